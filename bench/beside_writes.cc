// SPDX-License-Identifier: BSD-3-Clause
// How long an 8-byte message takes over TCP, half of a round trip, while another connection of the same adapter carries
// a stream of RDMA Writes to it as fast as it can. The control is the same stream into an adapter of another process,
// which takes as much of the processors and nothing of the turns. Prints one line for each size of Write:
//   writes 65536 alone_us 9.1 control_us 21.5 beside_us 33.0 ratio 1.53
#include <dat/udat.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <vector>

#include "common/adapter.h"
#include "common/command_line.h"
#include "common/connection.h"
#include "common/error.h"

namespace {

struct Options {
  std::vector<std::size_t> sizes{8, 4096, 65536};
  int rounds = 5;
  int pings = 2000;
};

constexpr std::size_t kMemory = 1 << 20;
constexpr std::size_t kPing = 8;
constexpr int kPongs = 4;
constexpr DAT_COUNT kWritesUnderWay = 16;
constexpr tools::Timeout kPatience = std::chrono::seconds(60);

// Where Writes may go.
struct Open {
  DAT_RMR_CONTEXT context;
  std::uint64_t address;
};

DAT_EVENT poll(DAT_EVD_HANDLE evd) {
  DAT_EVENT event;
  while (dat_evd_dequeue(evd, &event) != DAT_SUCCESS) {
  }
  return event;
}

void post_receive(DAT_EP_HANDLE ep, const tools::Region& memory) {
  DAT_LMR_TRIPLET buffer = memory.at(0, kPing);
  DAT_DTO_COOKIE cookie{};
  cookie.as_64 = 1;
  tools::check(dat_ep_post_recv(ep, 1, &buffer, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
}

void send(DAT_EP_HANDLE ep, const tools::Region& memory) {
  DAT_LMR_TRIPLET message = memory.at(0, kPing);
  tools::check(dat_ep_post_send(ep, 1, &message, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
}

// Answers each message, and lets anybody write.
void serve(DAT_CONN_QUAL qualifier, int ready) {
  tools::Adapter adapter(tools::kDefaultIa);
  const tools::Evd events = adapter.make_evd(4096, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG);
  const tools::Region words(adapter, 4096);
  const tools::Region memory(adapter, kMemory, DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
  const tools::Listener listener(adapter, events.get(), qualifier);
  const Open open{memory.rmr_context(), reinterpret_cast<std::uintptr_t>(memory.data())};
  std::list<tools::Ep> endpoints;
  if (write(ready, "r", 1) != 1) throw tools::Error("the pipe is broken");
  for (;;) {
    DAT_EVENT event;
    if (!tools::wait_event(events.get(), kPatience, event)) continue;
    if (event.event_number == DAT_CONNECTION_REQUEST_EVENT) {
      const tools::Ep& ep =
          endpoints.emplace_back(adapter.make_ep(events.get(), events.get(), events.get(), kPongs, kWritesUnderWay));
      for (int i = 0; i < kPongs; ++i) post_receive(ep.get(), words);
      tools::check(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep.get(), sizeof open,
                                 const_cast<Open*>(&open)),
                   "dat_cr_accept");
    } else if (event.event_number == DAT_DTO_COMPLETION_EVENT) {
      const DAT_DTO_COMPLETION_EVENT_DATA& done = event.event_data.dto_completion_event_data;
      if (done.status != DAT_DTO_SUCCESS || done.user_cookie.as_64 != 1) continue;
      post_receive(done.ep_handle, words);
      send(done.ep_handle, words);
    }
  }
}

void write_endlessly(DAT_CONN_QUAL qualifier, std::size_t bytes, int ready) {
  tools::Adapter adapter(tools::kDefaultIa);
  const tools::Evd events = adapter.make_evd(64, DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG);
  const tools::Ep ep = adapter.make_ep(events.get(), events.get(), events.get(), 1, kWritesUnderWay);
  const tools::Region memory(adapter, kMemory);
  const tools::Bytes told =
      tools::connect(ep.get(), events.get(), tools::resolve_peer("127.0.0.1", qualifier), kPatience, {});
  Open open;
  if (told.size() < sizeof open) throw tools::Error("the server does not say where to write");
  std::memcpy(&open, told.data(), sizeof open);
  DAT_LMR_TRIPLET from = memory.at(0, bytes);
  DAT_RMR_TRIPLET to{};
  to.rmr_context = open.context;
  to.target_address = open.address;
  to.segment_length = bytes;
  for (long written = 0;; ++written) {
    if (written >= kWritesUnderWay) poll(events.get());
    if (written == 2 * kWritesUnderWay && ::write(ready, "r", 1) != 1) throw tools::Error("the pipe is broken");
    tools::check(dat_ep_post_rdma_write(ep.get(), 1, &from, {}, &to, DAT_COMPLETION_DEFAULT_FLAG),
                 "dat_ep_post_rdma_write");
  }
}

// A process that plays a part until it is not needed any more, and is ready when this returns.
class Player {
 public:
  explicit Player(const std::function<void(int ready)>& part) {
    int ready[2];
    if (pipe(ready) != 0) throw tools::Error("no pipe");
    child_ = fork();
    if (child_ < 0) throw tools::Error("no process");
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      try {
        part(ready[1]);
      } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
      }
      _exit(1);
    }
    close(ready[1]);
    char byte;
    const bool there = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    if (!there) throw tools::Error("a process has not begun");
  }
  ~Player() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

 private:
  pid_t child_;
};

// The median half of a round trip, in microseconds. In a process of its own, as no adapter outlives a fork.
double ping(DAT_CONN_QUAL qualifier, int pings) {
  double median = 0;
  int answer[2];
  if (pipe(answer) != 0) throw tools::Error("no pipe");
  const Player pinging([&](int ready) {
    tools::Adapter adapter(tools::kDefaultIa);
    const tools::Evd events = adapter.make_evd(64, DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG);
    const tools::Ep ep = adapter.make_ep(events.get(), events.get(), events.get(), 1, 1);
    const tools::Region memory(adapter, 4096);
    tools::connect(ep.get(), events.get(), tools::resolve_peer("127.0.0.1", qualifier), kPatience, {});
    std::vector<double> halves;
    for (int i = 0; i < pings; ++i) {
      post_receive(ep.get(), memory);
      const auto begun = std::chrono::steady_clock::now();
      send(ep.get(), memory);
      for (int left = 2; left > 0; --left) poll(events.get());
      halves.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun).count() / 2);
    }
    std::nth_element(halves.begin(), halves.begin() + pings / 2, halves.end());
    const double result = halves[static_cast<std::size_t>(pings / 2)];
    if (write(answer[1], &result, sizeof result) != sizeof result || write(ready, "r", 1) != 1) _exit(1);
    pause();
  });
  const bool told = read(answer[0], &median, sizeof median) == sizeof median;
  close(answer[0]);
  close(answer[1]);
  if (!told) throw tools::Error("no answer");
  return median;
}

double median_of(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

int run(const Options& options) {
  setenv("DAT_WIRE", "tcp", 1);
  const auto qualifier = static_cast<DAT_CONN_QUAL>(20'000 + getpid() % 10'000);
  const auto other = qualifier + 1;
  const Player server([&](int ready) { serve(qualifier, ready); });
  const Player elsewhere([&](int ready) { serve(other, ready); });
  for (const std::size_t bytes : options.sizes) {
    std::vector<double> alone, control, beside;
    for (int round = 0; round < options.rounds; ++round) {
      alone.push_back(ping(qualifier, options.pings));
      for (const DAT_CONN_QUAL at : {other, qualifier}) {
        const Player writer([&](int ready) { write_endlessly(at, bytes, ready); });
        (at == other ? control : beside).push_back(ping(qualifier, options.pings));
      }
    }
    fmt::print("writes {} alone_us {:.1f} control_us {:.1f} beside_us {:.1f} ratio {:.2f}\n", bytes, median_of(alone),
               median_of(control), median_of(beside), median_of(beside) / median_of(control));
  }
  return tools::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("How long a small message takes over TCP beside a stream of RDMA Writes", "beside_writes");
  app.add_option("--sizes", options.sizes, "Bytes of a Write")->delimiter(',')->check(CLI::Range(1, 1 << 20));
  app.add_option("--rounds", options.rounds, "The median counts")->check(CLI::Range(1, 1000));
  app.add_option("--pings", options.pings, "Of a round; the median counts")->check(CLI::Range(10, 1'000'000));
  app.footer(tools::examples({"beside_writes --sizes 65536 --rounds 11"}));
  return tools::run_tool(app, argc, argv, [&] { return run(options); });
}
