// SPDX-License-Identifier: BSD-3-Clause
// The end of a connection over TCP, and of what was never one: what a peer still takes it gets, and none decides how
// long that lasts, or what it costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;
using Clock = std::chrono::steady_clock;

class TcpParting : public TcpTest {
 protected:
  // As much as the peer can send before it is cut off; at most that.
  static std::size_t flood(MpaPeer& peer, std::size_t most) {
    const Bytes some = repeat(256 << 10);
    std::size_t sent = 0;
    while (sent < most) {
      const std::size_t gone = peer.send_what_goes(some);
      sent += gone;
      if (gone < some.size()) break;
    }
    return sent;
  }
};

// A host that was never let in is heard until it has its rejection, not for as long as it likes.
TEST_F(TcpParting, AStrangerThatFloodsAfterItsRejectionIsCutOff) {
  MpaPeer peer(target.port());
  peer.greet({.markers = true});            // which are not to be had
  constexpr std::size_t kMost = 96u << 20;  // many times what the sockets in between hold
  EXPECT_LT(flood(peer, kMost), kMost);
  EXPECT_TRUE(peer.hung_up());
  target.expect_no_request();
  target.expect_unharmed();
}

// The control is the same flood to another adapter of this process: it takes as much of the processors, and nothing of
// the engine that the wait needs.
TEST_F(TcpParting, StrangersThatFloodDoNotHoldUpAWait) {
  Side elsewhere(tcp_wire());
  const auto wait_beside = [this](DAT_CONN_QUAL flooded) {
    std::vector<std::thread> hosts;
    for (int i = 0; i < 24; ++i) {
      hosts.emplace_back([flooded] {
        try {
          MpaPeer peer(flooded);
          peer.greet({.markers = true});
          flood(peer, 512u << 20);
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
      });
    }
    const auto start = Clock::now();
    EXPECT_FALSE(wait_event(target.side().connect.get(), std::chrono::milliseconds(50)));
    const auto took = Clock::now() - start;
    for (std::thread& host : hosts) host.join();
    return took;
  };
  std::vector<Clock::duration> control, beside;
  for (int round = 0; round < 5; ++round) {
    control.push_back(wait_beside(elsewhere.listen()));
    beside.push_back(wait_beside(target.port()));
  }
  std::ranges::nth_element(control, control.begin() + 2);
  std::ranges::nth_element(beside, beside.begin() + 2);
  EXPECT_LT(beside[2], 3 * control[2]);
  target.expect_unharmed();
}

// A peer that was let in has a connection's worth to say that is on its way when it hears of the end, and no more.
TEST_F(TcpParting, APeerThatFloodsAfterTheEndIsCutOff) {
  MpaPeer peer(target.port());
  const Ep ep = meet(peer);
  require(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  target.expect_end(ep);
  constexpr std::size_t kMost = 256u << 20;
  EXPECT_LT(flood(peer, kMost), kMost);
  target.expect_unharmed();
}

// EP-DISC-4: a Send that has succeeded arrives, however slowly the peer reads, as long as it does.
TEST_F(TcpParting, APeerThatReadsSlowlyGetsAllThatWasSent) {
  MpaPeer peer(target.port());
  peer.hold_little();
  const Ep ep = meet(peer);
  peer.send_message(hex("'now you may send'"));
  target.expect_message(ep);
  const Lmr memory(target.side().ia, target.side().pz, 8000);
  DAT_LMR_TRIPLET segment = memory.triplet();
  int posted = 0;
  int completed = 0;
  while (completed == posted) {
    require(dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    ++posted;
    if (wait_event(target.side().request.get(), std::chrono::milliseconds(50))) ++completed;
  }
  require(dat_ep_disconnect(ep.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  // It takes four seconds to read all of it, of which two are without anything else to send.
  const auto start = Clock::now();
  int heard = 0;
  while (heard < posted) {
    const auto due = (Clock::now() - start) * posted / std::chrono::seconds(4) + 1;
    for (; heard < due && heard < posted; ++heard) {
      ASSERT_TRUE(peer.hear_segment()) << "only " << heard << " of " << posted << " Sends have arrived";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_DISCONNECTED);
  while (completed < posted && wait_event(target.side().request.get())) ++completed;
  EXPECT_EQ(completed, posted);
  target.expect_unharmed();
}

// EP-DISC-4, at the other side: what has arrived waits for buffers as long as some are posted now and then.
TEST_F(TcpParting, AProgramThatPostsReceivesSlowlyGetsAllThatWasSent) {
  Side other(tcp_wire());
  const Lmr memory(other.ia, other.pz, 1000);
  const Lmr own(target.side().ia, target.side().pz, 1000);
  Connection connection = connect_pair(target.side(), other);
  constexpr int kSends = 12;
  DAT_LMR_TRIPLET segment = memory.triplet();
  for (int i = 0; i < kSends; ++i) {
    require(dat_ep_post_send(connection.client.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_send");
    expect_completion(other.request.get(), DAT_DTO_SUCCESS);
  }
  require(dat_ep_disconnect(connection.client.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  segment = own.triplet();
  for (int i = 0; i < kSends; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    require(dat_ep_post_recv(connection.server.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_recv");
    expect_completion(target.side().recv.get(), DAT_DTO_SUCCESS);
  }
  target.expect_end(connection.server);
  expect_event(other.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

// However many peers do not hang up, closing the adapter waits for all of them at once.
TEST_F(TcpParting, ClosingAnAdapterWaitsForAllPeersTogether) {
  const auto time_of_closing = [](int count) {
    auto side = std::make_unique<Side>(tcp_wire());
    std::vector<std::unique_ptr<MpaPeer>> peers;
    for (int i = 0; i < count; ++i) {
      peers.push_back(std::make_unique<MpaPeer>(side->listen()));
      peers.back()->greet({});
      const DAT_EVENT request = expect_event(side->requests.get(), DAT_CONNECTION_REQUEST_EVENT);
      const Ep ep(*side);
      require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
      expect_event(side->connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
      require(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
      expect_event(side->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    }
    const auto start = Clock::now();
    side.reset();
    return Clock::now() - start;
  };
  const auto one = time_of_closing(1);
  EXPECT_LT(one, std::chrono::seconds(1) + patience());
  EXPECT_LT(time_of_closing(50), 3 * std::max<Clock::duration>(one, std::chrono::seconds(1)));
}

}  // namespace
}  // namespace anydat::test
