// SPDX-License-Identifier: BSD-3-Clause
// Processes that send to one adapter at the same time: of what there is, the first message of each is delivered before
// the second of any, and then none waits for more than a row of another's. What comes by one link of shared memory has
// an order of its own; these have one each.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "process/arrival_order.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr std::size_t kBytesOfEach = 40;
constexpr int kTurn = 65;  // one, and then a row

// Arguments: qualifier, messages.
const Role kSenderInTurn("sends_when_told", [](RoleContext& context) {
  const int messages = std::stoi(context.arguments.at(1));
  Side side(context.wire);
  const Lmr memory(side.ia, side.pz, kBytesOfEach);
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_request_dtos = messages;
  const Ep ep(side, attr);
  require(dat_ep_connect(ep.get(), loopback(), std::stoul(context.arguments.at(0)), DAT_TIMEOUT_INFINITE, 0, nullptr,
                         DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  (void)expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  context.parent.say("connected");
  context.parent.hear();
  for (int i = 0; i < messages; ++i) {
    DAT_LMR_TRIPLET segment = memory.triplet();
    const DAT_COMPLETION_FLAGS flag = i + 1 < messages ? DAT_COMPLETION_SUPPRESS_FLAG : DAT_COMPLETION_DEFAULT_FLAG;
    require(dat_ep_post_send(ep.get(), 1, &segment, {}, flag), "dat_ep_post_send");
  }
  (void)expect_completion(side.request.get());
  context.parent.say("sent");
  context.parent.hear();
});

class FairTurns : public testing::TestWithParam<Wire> {
 protected:
  void expect_fair(int peers, int messages) {
    StandingReceiver receiver(GetParam(), peers, messages, kBytesOfEach);
    std::vector<std::unique_ptr<PeerProcess>> senders;
    for (int i = 0; i < peers; ++i) {
      senders.push_back(std::make_unique<PeerProcess>(
          "sends_when_told", GetParam(), std::vector{std::to_string(receiver.qualifier()), std::to_string(messages)}));
      EXPECT_EQ(senders.back()->channel().hear(), "connected");
      receiver.expect_peer();
    }
    receiver.stop();
    for (const auto& sender : senders) {
      sender->channel().say("send");
      EXPECT_EQ(sender->channel().hear(), "sent");
    }
    const std::string order = receiver.resume_and_tell();
    EXPECT_EQ(order.size(), static_cast<std::size_t>(peers * messages));
    StandingReceiver::expect_fair(order, peers, kTurn);
    for (const auto& sender : senders) {
      sender->channel().say("end");
      EXPECT_EQ(sender->wait_exit(), 0);
    }
    receiver.end();
  }
};

TEST_P(FairTurns, TheFirstMessageOfEachProcessIsDeliveredBeforeTheSecondOfAny) {
  expect_fair(3, 200);
}

// More than are looked at straight, whose peers leave marks.
TEST_P(FairTurns, AmongManyProcessesToo) {
  expect_fair(12, 250);
}

// Over TCP what has been sent need not have come yet, so that this cannot be shown with processes (TcpFairness).
INSTANTIATE_TEST_SUITE_P(Wires, FairTurns, testing::Values(wire_by_name("shm"), wire_by_name("shm_ring")), wire_name);

}  // namespace
}  // namespace anydat::test
