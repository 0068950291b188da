// SPDX-License-Identifier: BSD-3-Clause
// What waking another process costs on this machine, with nothing else in the way: two processes hand a token back and
// forth through an eventfd, then through a futex in shared memory. The floor for anything that blocks.
//
// Measures half a round trip, sleeping every time: no spinning before the sleep. Prints one line for each means:
//   eventfd median_ns 14321.5 p99_ns 20011.0
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <vector>

#include "common/command_line.h"
#include "common/error.h"
#include "common/process.h"

namespace {

struct Options {
  int iters = 20'000;
  std::vector<int> cpus;  // the one that answers, the one that asks
};

constexpr int kWarmUp = 200;

// A token that one side gives and the other takes; taking sleeps until it is there.
class EventfdToken {
 public:
  EventfdToken() : fd_(eventfd(0, 0)) {}
  void give() { eventfd_write(fd_, 1); }
  void take() {
    eventfd_t value = 0;
    while (eventfd_read(fd_, &value) != 0) {
    }
  }

 private:
  int fd_;
};

class FutexToken {
 public:
  void give() {
    // The store must be seen before the wake-up; the taker loads again after it wakes.
    word_.store(1, std::memory_order_release);
    syscall(SYS_futex, &word_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
  void take() {
    while (word_.exchange(0, std::memory_order_acquire) == 0)
      syscall(SYS_futex, &word_, FUTEX_WAIT, 0, nullptr, nullptr, 0);
  }

 private:
  std::atomic<std::uint32_t> word_{0};
};

template <typename Token>
struct Pair {
  Token question;
  Token answer;
};

template <typename Token>
bool measure(const char* name, const Options& options) {
  void* memory = mmap(nullptr, sizeof(Pair<Token>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto* tokens = new (memory) Pair<Token>;
  const int rounds = kWarmUp + options.iters;

  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!options.cpus.empty()) tools::pin_to_cpu(options.cpus[0]);
    for (int i = 0; i < rounds; ++i) {
      tokens->question.take();
      tokens->answer.give();
    }
    _exit(0);
  }
  if (!options.cpus.empty()) tools::pin_to_cpu(options.cpus[1]);

  using Clock = std::chrono::steady_clock;
  std::vector<double> half_ns;
  half_ns.reserve(static_cast<std::size_t>(options.iters));
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    tokens->question.give();
    tokens->answer.take();
    const std::chrono::duration<double, std::nano> round_trip = Clock::now() - start;
    if (i >= kWarmUp) half_ns.push_back(round_trip.count() / 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  munmap(memory, sizeof(Pair<Token>));

  std::sort(half_ns.begin(), half_ns.end());
  fmt::print("{} median_ns {:.1f} p99_ns {:.1f}\n", name, half_ns[half_ns.size() / 2],
             half_ns[half_ns.size() * 99 / 100]);
  return status == 0;
}

int run(const Options& options) {
  const bool good = measure<EventfdToken>("eventfd", options) && measure<FutexToken>("futex", options);
  return good ? tools::kExitOk : tools::kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What waking another process costs, by an eventfd and by a futex", "wake_roundtrip");
  app.add_option("--iters", options.iters, "Round trips")->check(CLI::Range(1, 100'000'000))->capture_default_str();
  app.add_option("--cpus", options.cpus, "Processors to tie the two processes to")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::NonNegativeNumber)
      ->type_name("ANSWERING,ASKING");
  app.footer(tools::examples({"wake_roundtrip --iters 10000 --cpus 0,1"}));
  return tools::run_tool(app, argc, argv, [&] { return run(options); });
}
