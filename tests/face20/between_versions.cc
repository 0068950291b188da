// SPDX-License-Identifier: BSD-3-Clause
// A program of 1.2 talks to one of 2.0, each as the one that listens, over each wire.
#include <filesystem>
#include <optional>
#include <string>

#include "face20/both/conversation.h"
#include "face20/fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

// The same source, built for 1.2: it lies beside this program, wherever that has been taken to.
std::string peer_of_12() {
  return std::filesystem::read_symlink("/proc/self/exe").replace_filename("conversation12");
}

class BetweenVersions : public testing::TestWithParam<Wire> {};
INSTANTIATE_TEST_SUITE_P(Wires, BetweenVersions, testing::ValuesIn(all_wires()), wire_name);

// D2-CONN-1, D2-CR-4, D2-LMR-6, D2-TYPE-1.
TEST_P(BetweenVersions, AProgramOf12CallsOneOf20) {
  std::optional<PeerProcess> caller;
  serve_conversation(GetParam(), [&](const std::string& qualifier) {
    caller.emplace("calls for a conversation", GetParam(), std::vector{qualifier}, peer_of_12());
  });
  EXPECT_EQ(caller->wait_exit(), 0) << "what it says stands above";
}

// D2-CONN-1, D2-CR-4.
TEST_P(BetweenVersions, AProgramOf20CallsOneOf12) {
  PeerProcess server("serves a conversation", GetParam(), {}, peer_of_12());
  call_for_conversation(GetParam(), server.channel().hear());
  EXPECT_EQ(server.wait_exit(), 0) << "what it says stands above";
}

// D2-SENDINV-6: a program of 1.2 has nothing that a peer may invalidate.
TEST_P(BetweenVersions, AProgramOf12IsNotInvalidatedByOneOf20) {
  Side side(GetParam());
  if (side.ia.provider().rmr_scope_supported == DAT_RMR_SCOPE_PZ) GTEST_SKIP() << "the adapter invalidates nothing";
  PeerProcess server("serves an invalidation", GetParam(), {}, peer_of_12());
  const auto qualifier = static_cast<DAT_CONN_QUAL>(std::stoull(server.channel().hear()));
  const Ep ep(side);
  std::string question("what do you say?");
  require(dat_ep_connect(ep.get(), loopback(), qualifier, 60'000'000, static_cast<DAT_COUNT>(question.size()),
                         question.data(), DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  (void)expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  const auto context = static_cast<DAT_RMR_CONTEXT>(std::stoul(server.channel().hear()));
  const Lmr source(side.ia, side.pz, 16);
  DAT_LMR_TRIPLET segment = source.triplet();
  ASSERT_THAT(
      dat_ep_post_send_with_invalidate(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE, context),
      Succeeds());
  (void)expect_event(side.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(server.wait_exit(), 0) << "what it says stands above";
}

}  // namespace
}  // namespace anydat::test
