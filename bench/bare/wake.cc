// SPDX-License-Identifier: BSD-3-Clause
#include "bare/wake.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "bare/two_processes.h"
#include "common/error.h"
#include "common/ticks.h"

namespace bench {
namespace {

constexpr std::uint64_t kWarmUp = 200;

// A token that one side gives and the other takes; taking sleeps until it is there.
class EventfdToken {
 public:
  EventfdToken() : fd_(eventfd(0, EFD_CLOEXEC)) {
    if (fd_ < 0) tools::fail_errno("eventfd");
  }
  ~EventfdToken() { close(fd_); }
  EventfdToken(const EventfdToken&) = delete;
  EventfdToken& operator=(const EventfdToken&) = delete;
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
tools::Summary measure(std::uint64_t rounds, const std::vector<int>& cpus) {
  const SharedMemory memory(sizeof(Pair<Token>));
  auto* const tokens = new (memory.data()) Pair<Token>;
  std::vector<std::uint32_t> samples;
  samples.reserve(rounds);
  double ns_per_tick = 1;
  in_two_processes(
      cpus,
      [&] {
        for (std::uint64_t i = 0; i < kWarmUp + rounds; ++i) {
          tokens->question.take();
          tokens->answer.give();
        }
      },
      [&] {
        const tools::TickScale scale;
        for (std::uint64_t i = 0; i < kWarmUp + rounds; ++i) {
          const std::uint64_t start = tools::ticks();
          tokens->question.give();
          tokens->answer.take();
          if (i >= kWarmUp) samples.push_back(static_cast<std::uint32_t>(tools::ticks() - start));
        }
        ns_per_tick = scale.ns_per_tick();
      });
  tokens->~Pair<Token>();
  return tools::summarize(samples, ns_per_tick / 2);
}

}  // namespace

tools::Summary wake_by_eventfd(std::uint64_t rounds, const std::vector<int>& cpus) {
  return measure<EventfdToken>(rounds, cpus);
}

tools::Summary wake_by_futex(std::uint64_t rounds, const std::vector<int>& cpus) {
  return measure<FutexToken>(rounds, cpus);
}

}  // namespace bench
