// SPDX-License-Identifier: BSD-3-Clause
// Many peers that do nothing cost those nothing who poll, and are heard all the same when they say something.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <list>
#include <stdexcept>
#include <string>

#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr std::size_t kBytes = 8;
constexpr int kPeers = 40;

// Each is an adapter of its own, so each has a link of its own.
struct QuietPeer {
  explicit QuietPeer(const Wire& wire) : side(wire), memory(side.ia, side.pz, kBytes), ep(side) {}
  Side side;
  Lmr memory;
  Ep ep;
};

void play_quiet_peers(RoleContext& context) {
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

class IdlePeers : public testing::TestWithParam<Wire> {
 protected:
  void order(const std::string& what) {
    process_.channel().say(what);
    process_.channel().hear();
  }

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

  // The processor's time for an empty call, in nanoseconds; the best of some rounds.
  double cost_of_looking() {
    double best = 1e9;
    for (int round = 0; round < 15; ++round) {
      const double start = now();
      for (int i = 0; i < kCalls; ++i) {
        DAT_EVENT event;
        if (dat_evd_dequeue(side_.recv.get(), &event) == DAT_SUCCESS) throw std::runtime_error("an event");
      }
      best = std::min(best, (now() - start) / kCalls);
    }
    return best;
  }

  void TearDown() override { process_.channel().say("end"); }

  static constexpr int kMessagesOfEach = 3;
  static constexpr int kCalls = 5'000;

  static double now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  }

  Side side_{GetParam()};
  Lmr memory_{side_.ia, side_.pz, kBytes};
  std::list<Ep> endpoints_;
  PeerProcess process_{"quiet_peers", GetParam(), {std::to_string(side_.listen())}};
};

TEST_P(IdlePeers, MakeAnEmptyDequeueNoDearer) {
  connect_one();
  const double with_one = cost_of_looking();
  for (int i = 1; i < kPeers; ++i) connect_one();
  const double with_all = cost_of_looking();
  RecordProperty("ns_with_one", static_cast<int>(with_one));
  RecordProperty("ns_with_all", static_cast<int>(with_all));
  EXPECT_LT(with_all, 4 * with_one);
}

// While they were idle nobody looked at their links.
TEST_P(IdlePeers, AreHeardByWhoPolls) {
  for (int i = 0; i < kPeers / 2; ++i) connect_one();
  for (int i = 0; i < kMessagesOfEach; ++i) {
    cost_of_looking();
    order("send");
    int received = 0;
    EXPECT_TRUE(eventually([&] {
      received += drain(side_.recv.get());
      return received == kPeers / 2;
    })) << received;
  }
}

TEST_P(IdlePeers, WakeWhoSleeps) {
  for (int i = 0; i < kPeers / 2; ++i) connect_one();
  for (int i = 0; i < kMessagesOfEach; ++i) {
    cost_of_looking();
    process_.channel().say("send");
    for (int received = 0; received < kPeers / 2; ++received) {
      ASSERT_TRUE(wait_event(side_.recv.get())) << received;
    }
    process_.channel().hear();
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, IdlePeers, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
