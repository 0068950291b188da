// SPDX-License-Identifier: BSD-3-Clause
// Processes that send to one adapter at the same time: of what there is, the first message of each is delivered before
// the second of any, and then none waits for more than a row of another's. What comes by one link of shared memory has
// an order of its own; these have one each.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "process/arrival_order.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr int kTurn = 65;  // one, and then a row

// Arguments: qualifier, messages each time, bytes of each.
const Role kSenderInTurn("sends_when_told", [](RoleContext& context) {
  const int messages = std::stoi(context.arguments.at(1));
  Side side(context.wire);
  const Lmr memory(side.ia, side.pz, std::stoul(context.arguments.at(2)));
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_request_dtos = messages;
  const Ep ep(side, attr);
  require(dat_ep_connect(ep.get(), loopback(), std::stoul(context.arguments.at(0)), DAT_TIMEOUT_INFINITE, 0, nullptr,
                         DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  (void)expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  context.parent.say("connected");
  while (context.parent.hear() == "send") {
    for (int i = 0; i < messages; ++i) {
      DAT_LMR_TRIPLET segment = memory.triplet();
      const DAT_COMPLETION_FLAGS flag = i + 1 < messages ? DAT_COMPLETION_SUPPRESS_FLAG : DAT_COMPLETION_DEFAULT_FLAG;
      require(dat_ep_post_send(ep.get(), 1, &segment, {}, flag), "dat_ep_post_send");
    }
    (void)expect_completion(side.request.get());
    context.parent.say("sent");
  }
});

class FairTurns : public testing::TestWithParam<Wire> {
 protected:
  struct Sender {
    int messages;
    std::size_t bytes;
  };
  void expect_fair(const std::vector<Sender>& senders, int rounds) {
    int all = 0;
    std::size_t most = 0;
    for (const Sender& sender : senders) {
      all += sender.messages;
      most = std::max(most, sender.bytes);
    }
    const int peers = static_cast<int>(senders.size());
    StandingReceiver receiver(GetParam(), peers, all, most);
    std::vector<std::unique_ptr<PeerProcess>> processes;
    for (const Sender& sender : senders) {
      processes.push_back(
          std::make_unique<PeerProcess>("sends_when_told", GetParam(),
                                        std::vector{std::to_string(receiver.qualifier()),
                                                    std::to_string(sender.messages), std::to_string(sender.bytes)}));
      EXPECT_EQ(processes.back()->channel().hear(), "connected");
      receiver.expect_peer();
    }
    for (int round = 0; round < rounds; ++round) {
      SCOPED_TRACE(round);
      receiver.stop();
      for (const auto& process : processes) {
        process->channel().say("send");
        EXPECT_EQ(process->channel().hear(), "sent");
      }
      const std::string order = receiver.resume_and_tell();
      EXPECT_EQ(order.size(), static_cast<std::size_t>(all));
      StandingReceiver::expect_fair(order, peers, kTurn);
    }
    for (const auto& process : processes) {
      process->channel().say("end");
      EXPECT_EQ(process->wait_exit(), 0);
    }
    receiver.end();
  }
};

TEST_P(FairTurns, TheFirstMessageOfEachProcessIsDeliveredBeforeTheSecondOfAny) {
  expect_fair(std::vector<Sender>(3, {200, 40}), 1);
}

// More than are looked at straight, whose peers leave marks.
TEST_P(FairTurns, AmongManyProcessesToo) {
  expect_fair(std::vector<Sender>(12, {250, 40}), 1);
}

// Where a ring of 4096 cells begins anew, what does not fit leaves a rest that is no message.
TEST_P(FairTurns, AlsoWhereARingBeginsAnew) {
  expect_fair({{3, 40}, {1, 8000}}, 34);
  expect_fair({{1, 8000}, {3, 40}}, 34);
}

// Over TCP what has been sent need not have come yet, so that this cannot be shown with processes (TcpFairness).
INSTANTIATE_TEST_SUITE_P(Wires, FairTurns, testing::Values(wire_by_name("shm"), wire_by_name("shm_ring")), wire_name);

}  // namespace
}  // namespace anydat::test
