// SPDX-License-Identifier: BSD-3-Clause
// What it costs to register a region and to free it, in nanoseconds of the processor's time, in an adapter with so many
// endpoints, of which so many are connected to others of the same process and have sent and received. The region is one
// page that has been touched. Each number is the best round's mean. Prints one line for each number of endpoints:
//   endpoints 10000 connected 0 lmr_create_ns 1210 lmr_free_ns 612
#include <dat/udat.h>
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <vector>

#include "common/adapter.h"
#include "common/command_line.h"
#include "common/connection.h"
#include "common/error.h"

namespace {

struct Options {
  std::vector<int> endpoints{0, 1000, 10'000};
  std::vector<int> connected{0, 1000};
  int rounds = 60;
};

constexpr int kRegionsOfARound = 64;
constexpr tools::Timeout kPatience = std::chrono::seconds(60);

double processor_ns() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// Endpoints of two adapters of this process, connected in pairs over which one message each has gone.
class Pairs {
 public:
  Pairs(tools::Adapter& server, int count) : server_(server) {
    if (count == 0) return;
    const tools::Listener listener(server_, server_events_.get(), 0);
    const tools::Peer peer = tools::resolve_peer("127.0.0.1", listener.qualifier());
    for (int i = 0; i < count; ++i) connect_one(peer);
  }

 private:
  void connect_one(const tools::Peer& peer) {
    endpoints_.push_back(client_.make_ep(client_events_.get(), client_events_.get(), client_events_.get(), 1, 1));
    const DAT_EP_HANDLE caller = endpoints_.back().get();
    tools::begin_connect(caller, peer, kPatience, {});
    const DAT_EVENT request = next(server_events_);
    endpoints_.push_back(server_.make_ep(server_events_.get(), server_events_.get(), server_events_.get(), 1, 1));
    const DAT_EP_HANDLE called = endpoints_.back().get();
    tools::check(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, called, 0, nullptr),
                 "dat_cr_accept");
    next(client_events_);
    next(server_events_);
    DAT_LMR_TRIPLET there = to_.at(0, kMessage);
    DAT_LMR_TRIPLET here = from_.at(0, kMessage);
    tools::check(dat_ep_post_recv(called, 1, &there, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    tools::check(dat_ep_post_send(caller, 1, &here, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    next(client_events_);
    next(server_events_);
  }
  static DAT_EVENT next(const tools::Evd& events) {
    DAT_EVENT event;
    if (!tools::wait_event(events.get(), kPatience, event)) throw tools::Error("the endpoints do not connect");
    return event;
  }

  static constexpr std::size_t kMessage = 64;
  tools::Adapter& server_;
  tools::Adapter client_{tools::kDefaultIa};
  tools::Region from_{client_, kMessage};
  tools::Region to_{server_, kMessage};
  tools::Evd server_events_ = server_.make_evd(64, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG);
  tools::Evd client_events_ = client_.make_evd(64, DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG);
  std::vector<tools::Ep> endpoints_;
};

void measure(const Options& options, int endpoints, int connected) {
  tools::Adapter adapter(tools::kDefaultIa);
  const Pairs pairs(adapter, connected);
  const tools::Evd events = adapter.make_evd(64, DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG);
  std::vector<tools::Ep> idle;
  for (int i = connected; i < endpoints; ++i) {
    idle.push_back(adapter.make_ep(events.get(), events.get(), events.get(), 1, 1));
  }
  std::vector<char> memory(std::size_t{4096} * 2, 'x');
  std::array<DAT_LMR_HANDLE, kRegionsOfARound> regions{};
  const double never = std::numeric_limits<double>::max();
  double create = never;
  double free = never;
  DAT_REGION_DESCRIPTION where;
  where.for_va = memory.data();
  for (int round = 0; round < options.rounds; ++round) {
    const double start = processor_ns();
    for (DAT_LMR_HANDLE& region : regions) {
      DAT_LMR_CONTEXT context;
      tools::check(dat_lmr_create(adapter.ia(), DAT_MEM_TYPE_VIRTUAL, where, 4096, adapter.pz(),
                                  DAT_MEM_PRIV_LOCAL_READ_FLAG, &region, &context, nullptr, nullptr, nullptr),
                   "dat_lmr_create");
    }
    const double created = processor_ns();
    for (const DAT_LMR_HANDLE region : regions) tools::check(dat_lmr_free(region), "dat_lmr_free");
    const double end = processor_ns();
    create = std::min(create, (created - start) / kRegionsOfARound);
    free = std::min(free, (end - created) / kRegionsOfARound);
  }
  fmt::print("endpoints {} connected {} lmr_create_ns {:.0f} lmr_free_ns {:.0f}\n", endpoints, connected, create, free);
}

int run(const Options& options) {
  for (const int connected : options.connected) {
    for (const int endpoints : options.endpoints) {
      if (connected <= endpoints) measure(options, endpoints, connected);
    }
  }
  return tools::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What registering and freeing a region costs with so many endpoints", "region_costs");
  app.add_option("--endpoints", options.endpoints, "Numbers of endpoints")
      ->delimiter(',')
      ->check(CLI::Range(0, 100'000));
  app.add_option("--connected", options.connected, "How many of them are connected")
      ->delimiter(',')
      ->check(CLI::Range(0, 100'000));
  app.add_option("--rounds", options.rounds, "Of 64 regions; the best counts")->check(CLI::Range(1, 10'000));
  app.footer(tools::examples({"region_costs --endpoints 0,1000,10000"}));
  return tools::run_tool(app, argc, argv, [&] { return run(options); });
}
