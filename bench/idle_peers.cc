// SPDX-License-Identifier: BSD-3-Clause
// What an empty dat_evd_dequeue costs, in nanoseconds of the processor's time, with so many peers on this host that are
// connected and do nothing, and what dat_lmr_free does, of a region of the program's own and of one that peers may use.
// Each peer is an adapter of its own, twenty to a process. Prints one line for each number:
//   peers 64 dequeue_ns 41.5 own_region_free_ns 110 open_region_free_ns 940
#include <dat/udat.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <limits>
#include <list>
#include <vector>

#include "common/adapter.h"
#include "common/command_line.h"
#include "common/connection.h"
#include "common/error.h"

namespace {

struct Options {
  std::vector<int> peers{1, 64, 200};
  int rounds = 40;
};

constexpr int kPeersOfAProcess = 20;
constexpr int kCallsOfARound = 20'000;
constexpr int kRegionsOfARound = 64;
constexpr tools::Timeout kPatience = std::chrono::seconds(60);

struct Connected {
  explicit Connected(const std::string& name)
      : adapter(name),
        events(adapter.make_evd(64, DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG)),
        ep(adapter.make_ep(events.get(), events.get(), events.get(), 1, 1)) {}
  tools::Adapter adapter;
  tools::Evd events;
  tools::Ep ep;
};

[[noreturn]] void be_peers(int count, DAT_CONN_QUAL qualifier) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    std::list<Connected> peers;
    const tools::Peer server = tools::resolve_peer("127.0.0.1", qualifier);
    for (int i = 0; i < count; ++i) {
      Connected& peer = peers.emplace_back(tools::kDefaultIa);
      tools::connect(peer.ep.get(), peer.events.get(), server, kPatience, {});
    }
    for (;;) pause();
  } catch (const std::exception& error) {
    fmt::print(stderr, "a peer: {}\n", error.what());
  }
  _exit(1);
}

double processor_ns() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double ns_of_an_empty_dequeue(DAT_EVD_HANDLE events) {
  DAT_EVENT event;
  const double start = processor_ns();
  for (int i = 0; i < kCallsOfARound; ++i) dat_evd_dequeue(events, &event);
  return (processor_ns() - start) / kCallsOfARound;
}

double ns_of_a_free(const tools::Adapter& adapter, DAT_MEM_PRIV_FLAGS rights) {
  std::vector<char> memory(std::size_t{4096} * 2, 'x');
  DAT_REGION_DESCRIPTION where;
  where.for_va = memory.data();
  std::array<DAT_LMR_HANDLE, kRegionsOfARound> regions{};
  for (DAT_LMR_HANDLE& region : regions) {
    DAT_LMR_CONTEXT context;
    tools::check(dat_lmr_create(adapter.ia(), DAT_MEM_TYPE_VIRTUAL, where, 4096, adapter.pz(), rights, &region,
                                &context, nullptr, nullptr, nullptr),
                 "dat_lmr_create");
  }
  const double start = processor_ns();
  for (const DAT_LMR_HANDLE region : regions) tools::check(dat_lmr_free(region), "dat_lmr_free");
  return (processor_ns() - start) / kRegionsOfARound;
}

void measure(const Options& options, int count) {
  // A number that is free now, for the processes that are started before this one opens anything.
  const auto qualifier = static_cast<DAT_CONN_QUAL>(20'000 + getpid() % 10'000 + count);
  std::vector<pid_t> children;
  int ready[2];
  if (pipe(ready) != 0) throw tools::Error("no pipe");
  for (int left = count; left > 0; left -= kPeersOfAProcess) {
    const pid_t child = fork();
    if (child < 0) throw tools::Error("no process");
    if (child == 0) {
      close(ready[1]);
      char byte;
      if (read(ready[0], &byte, 1) != 1) _exit(1);
      be_peers(std::min(left, kPeersOfAProcess), qualifier);
    }
    children.push_back(child);
  }
  {
    tools::Adapter adapter(tools::kDefaultIa);
    const tools::Evd events = adapter.make_evd(4096, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG);
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    tools::check(dat_psp_create(adapter.ia(), qualifier, events.get(), DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create");
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (write(ready[1], "g", 1) != 1) throw tools::Error("the pipe is broken");
    }
    std::vector<tools::Ep> endpoints;
    for (int established = 0; established < count;) {
      DAT_EVENT event;
      if (!tools::wait_event(events.get(), kPatience, event)) throw tools::Error("the peers do not connect");
      if (event.event_number == DAT_CONNECTION_REQUEST_EVENT) {
        endpoints.push_back(adapter.make_ep(events.get(), events.get(), events.get(), 1, 1));
        tools::check(
            dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, endpoints.back().get(), 0, nullptr),
            "dat_cr_accept");
      }
      if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED) ++established;
    }
    double dequeue = std::numeric_limits<double>::max();
    double own = dequeue;
    double open = dequeue;
    for (int round = 0; round < options.rounds; ++round) {
      dequeue = std::min(dequeue, ns_of_an_empty_dequeue(events.get()));
      own = std::min(own, ns_of_a_free(adapter, DAT_MEM_PRIV_LOCAL_READ_FLAG));
      open = std::min(open, ns_of_a_free(adapter, DAT_MEM_PRIV_ALL_FLAG));
    }
    fmt::print("peers {} dequeue_ns {:.1f} own_region_free_ns {:.0f} open_region_free_ns {:.0f}\n", count, dequeue, own,
               open);
    for (const pid_t child : children) kill(child, SIGKILL);
    for (const pid_t child : children) waitpid(child, nullptr, 0);
    dat_psp_free(psp);
  }
  close(ready[0]);
  close(ready[1]);
}

int run(const Options& options) {
  for (const int count : options.peers) measure(options, count);
  return tools::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What an empty dequeue and the end of a region cost with so many idle peers", "idle_peers");
  app.add_option("--peers", options.peers, "Numbers of peers")->delimiter(',')->check(CLI::Range(0, 2000));
  app.add_option("--rounds", options.rounds, "Of 20,000 calls; the best counts")->check(CLI::Range(1, 10'000));
  app.footer(tools::examples({"idle_peers --peers 1,64,200,1000"}));
  return tools::run_tool(app, argc, argv, [&] { return run(options); });
}
