// SPDX-License-Identifier: BSD-3-Clause
// A program of 1.2 talks to one of 2.0, each as the one that listens, over each wire.
#include <optional>

#include "face20/both/conversation.h"
#include "face20/fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

class BetweenVersions : public testing::TestWithParam<Wire> {};
INSTANTIATE_TEST_SUITE_P(Wires, BetweenVersions, testing::ValuesIn(all_wires()), wire_name);

// D2-CONN-1, D2-CR-4, D2-LMR-6, D2-TYPE-1.
TEST_P(BetweenVersions, AProgramOf12CallsOneOf20) {
  std::optional<PeerProcess> caller;
  serve_conversation(GetParam(), [&](const std::string& qualifier) {
    caller.emplace("calls for a conversation", GetParam(), std::vector{qualifier}, ANYDAT_PEER_OF_12);
  });
  EXPECT_EQ(caller->wait_exit(), 0) << "what it says stands above";
}

// D2-CONN-1, D2-CR-4.
TEST_P(BetweenVersions, AProgramOf20CallsOneOf12) {
  PeerProcess server("serves a conversation", GetParam(), {}, ANYDAT_PEER_OF_12);
  call_for_conversation(GetParam(), server.channel().hear());
  EXPECT_EQ(server.wait_exit(), 0) << "what it says stands above";
}

}  // namespace
}  // namespace anydat::test
