// SPDX-License-Identifier: BSD-3-Clause
// Many peers that do nothing cost those nothing who poll, and are heard all the same when they say something.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <exception>
#include <list>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr std::size_t kBytes = 8;
constexpr int kPeers = 20;

int many_peers() {
  return built_with_sanitizer() ? 300 : 1'000;
}

// Each peer takes some descriptors, at both ends. Returns for how many there are enough.
int take_all_descriptors() {
  constexpr rlim_t kOfEach = 16;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int>(std::min<rlim_t>(limit.rlim_max / kOfEach, many_peers()));
}

// Each is an adapter of its own, so each has a link of its own.
struct QuietPeer {
  explicit QuietPeer(const Wire& wire) : side(wire), memory(side.ia, side.pz, kBytes), ep(side) {}
  Side side;
  Lmr memory;
  Ep ep;
};

void play_quiet_peers(RoleContext& context) {
  take_all_descriptors();
  const auto qualifier = std::stoull(context.arguments.at(0));
  std::list<QuietPeer> peers;
  for (std::string order = context.parent.hear(); order != "end"; order = context.parent.hear()) {
    if (order == "one more") {
      const QuietPeer& peer = peers.emplace_back(context.wire);
      require(dat_ep_connect(peer.ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr,
                             DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
              "dat_ep_connect");
    } else {
      for (const QuietPeer& peer : peers) {
        DAT_LMR_TRIPLET segment = peer.memory.triplet();
        require(dat_ep_post_send(peer.ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
      }
    }
    context.parent.say("done");
  }
}

const Role kQuietPeers("quiet_peers", play_quiet_peers);

// One who is called by quiet peers, which live in another process.
class Called {
 public:
  explicit Called(const Wire& wire)
      : side_(wire),
        memory_(side_.ia, side_.pz, kBytes),
        process_("quiet_peers", wire, {std::to_string(side_.listen())}) {}
  ~Called() {
    try {
      process_.channel().say("end");
    } catch (const std::exception&) {
      // It has ended already, which has failed the test.
    }
  }
  Called(const Called&) = delete;
  Called& operator=(const Called&) = delete;

  void order(const std::string& what) {
    process_.channel().say(what);
    done();
  }
  void begin(const std::string& what) { process_.channel().say(what); }
  void done() { process_.channel().hear(); }

  void connect_one() {
    order("one more");
    const DAT_EVENT request = expect_event(side_.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    const Ep& ep = endpoints_.emplace_back(side_);
    DAT_LMR_TRIPLET segment = memory_.triplet();
    for (int i = 0; i < kMessagesOfEach; ++i) {
      require(dat_ep_post_recv(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    }
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
    expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }

  // The processor's time for an empty call, in nanoseconds.
  double cost_of_looking() {
    const double start = now();
    for (int i = 0; i < kCalls; ++i) {
      DAT_EVENT event;
      if (dat_evd_dequeue(side_.recv.get(), &event) == DAT_SUCCESS) throw std::runtime_error("an event");
    }
    return (now() - start) / kCalls;
  }

  // The processor's time for the end of a region that peers may not touch, in the same unit.
  double cost_of_a_free() {
    std::vector<Lmr> regions;
    for (int i = 0; i < kRegions; ++i) regions.emplace_back(side_.ia, side_.pz, kBytes, DAT_MEM_PRIV_LOCAL_READ_FLAG);
    const double start = now();
    for (Lmr& region : regions) region.reset();
    return (now() - start) / kRegions;
  }

  DAT_EVD_HANDLE recv() const { return side_.recv.get(); }

  static constexpr int kMessagesOfEach = 3;

 private:
  static constexpr int kCalls = 5'000;
  static constexpr int kRegions = 64;

  static double now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  }

  Side side_;
  Lmr memory_;
  std::list<Ep> endpoints_;
  PeerProcess process_;
};

class IdlePeers : public testing::TestWithParam<Wire> {
 protected:
  struct Costs {
    double one = 1e9;
    double many = 1e9;
  };
  // In nanoseconds, with one peer and with many. The two are looked at in turn, so that what else the machine does
  // meets both; and of what each has cost the smallest counts, since everything else adds to it.
  static Costs costs(double (Called::*cost)(), int peers) {
    Called by_many(GetParam());
    for (int i = 0; i < peers; ++i) by_many.connect_one();
    Called by_one(GetParam());
    by_one.connect_one();
    Costs least;
    for (int round = 0; round < 40; ++round) {
      least.one = std::min(least.one, (by_one.*cost)());
      least.many = std::min(least.many, (by_many.*cost)());
    }
    RecordProperty("peers", peers);
    RecordProperty("ns_with_one", static_cast<int>(least.one));
    RecordProperty("ns_with_many", static_cast<int>(least.many));
    return least;
  }
};

TEST_P(IdlePeers, MakeAnEmptyDequeueNoDearer) {
  const Costs least = costs(&Called::cost_of_looking, take_all_descriptors());
  EXPECT_LT(least.many, 1.5 * least.one) << "ns";
}

TEST_P(IdlePeers, MakeTheEndOfARegionThatTheyMayNotTouchNoDearer) {
  constexpr int kMany = 150;
  const Costs least = costs(&Called::cost_of_a_free, std::min(take_all_descriptors(), kMany));
  EXPECT_LT(least.many, 3 * least.one + 100) << "ns, where it takes " << least.one << " with one";
}

// While they were idle no thread looked at their links.
TEST_P(IdlePeers, AreHeardByWhoPolls) {
  Called called(GetParam());
  for (int i = 0; i < kPeers; ++i) called.connect_one();
  for (int i = 0; i < Called::kMessagesOfEach; ++i) {
    for (int round = 0; round < 15; ++round) called.cost_of_looking();
    called.order("send");
    int received = 0;
    EXPECT_TRUE(eventually([&] {
      received += drain(called.recv());
      return received == kPeers;
    })) << received;
  }
}

TEST_P(IdlePeers, WakeWhoSleeps) {
  Called called(GetParam());
  for (int i = 0; i < kPeers; ++i) called.connect_one();
  for (int i = 0; i < Called::kMessagesOfEach; ++i) {
    for (int round = 0; round < 15; ++round) called.cost_of_looking();
    called.begin("send");
    for (int received = 0; received < kPeers; ++received) {
      ASSERT_TRUE(wait_event(called.recv())) << received;
    }
    called.done();
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, IdlePeers, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
