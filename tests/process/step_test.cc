// SPDX-License-Identifier: BSD-3-Clause
// Several connections between the same two programs. The standard promises no order between them, but programs know one
// from devices, which have one port: dapltest takes it for a lost message when one connection is two messages ahead of
// another on which the same rounds were sent.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr int kConnections = 4;
constexpr int kStepRounds = 16;
constexpr std::size_t kBytes = 64;

// Stops itself until all rounds have been sent, and then tells how many messages came out of step: on a connection that
// was more than one ahead of another.
void play_stepping_receiver(RoleContext& context) {
  Side side(context.wire);
  const Lmr memory(side.ia, side.pz, kBytes);
  context.parent.say(std::to_string(side.listen()));
  std::vector<Ep> eps;
  for (int i = 0; i < kConnections; ++i) {
    eps.emplace_back(side);
    for (int round = 0; round < kStepRounds; ++round) {
      DAT_LMR_TRIPLET segment = memory.triplet();
      DAT_DTO_COOKIE cookie{};
      cookie.as_64 = static_cast<DAT_UINT64>(i);
      require(dat_ep_post_recv(eps[i].get(), 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    }
    const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, eps[i].get(), 0, nullptr),
            "dat_cr_accept");
    expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }
  ::raise(SIGSTOP);
  std::array<int, kConnections> received{};
  int out_of_step = 0;
  for (int i = 0; i < kStepRounds * kConnections; ++i) {
    ++received[expect_completion(side.recv.get()).user_cookie.as_64];
    const auto [least, most] = std::minmax_element(received.begin(), received.end());
    if (*most - *least > 1) ++out_of_step;
  }
  context.parent.say(std::to_string(out_of_step));
  for (int i = 0; i < kConnections; ++i) expect_event(side.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

const Role kSteppingReceiver("stepping_receiver", play_stepping_receiver);

class Step : public testing::TestWithParam<Wire> {
 protected:
  Side side_{GetParam()};
  Lmr memory_{side_.ia, side_.pz, kBytes};
  PeerProcess peer_{"stepping_receiver", GetParam()};
};

TEST_P(Step, IsKeptByConnectionsOfOnePeer) {
  const DAT_CONN_QUAL qualifier = std::stoull(peer_.channel().hear());
  std::vector<Ep> eps;
  for (int i = 0; i < kConnections; ++i) {
    eps.emplace_back(side_);
    require(dat_ep_connect(eps[i].get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }
  peer_.wait_until_stopped();
  for (int round = 0; round < kStepRounds; ++round) {
    for (const Ep& ep : eps) {
      DAT_LMR_TRIPLET segment = memory_.triplet();
      require(dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    }
    for (int i = 0; i < kConnections; ++i) expect_completion(side_.request.get());
    // A dequeue that finds nothing has looked, and what was posted has gone out by then.
    EXPECT_FALSE(poll_event(side_.request.get()));
  }
  peer_.resume();
  EXPECT_EQ(std::stoi(peer_.channel().hear()), 0) << "of " << kStepRounds * kConnections << " messages";
  for (const Ep& ep : eps) {
    require(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
    expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  }
  EXPECT_EQ(peer_.wait_exit(), 0);
}

INSTANTIATE_TEST_SUITE_P(Wires, Step, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
