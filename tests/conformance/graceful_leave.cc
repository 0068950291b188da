// SPDX-License-Identifier: BSD-3-Clause
// A peer that closes its connection in order and is gone at once: what it sent before still arrives.
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "srq_fixture.h"
#include "support/captured_errors.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

class GracefulLeave : public SrqTest {};

TEST_P(GracefulLeave, LosesNothingThatWaitsForABuffer) {
  // EP-DISC-4, SRQ-ARR-3: CONN-SEQ-13 with a sender that ends as soon as it has its DISCONNECTED.
  constexpr int kPosted = 2;
  constexpr int kSent = 6;
  const Srq srq(server.ia, server.pz, kSent);
  buffers.post(srq, 0, kPosted);
  std::chrono::steady_clock::time_point left_at;
  Ep server_ep(server, srq);
  {
    const Side leaver(GetParam());
    const Lmr message(leaver.ia, leaver.pz, 32);
    const Ep ep(leaver);
    connect_pair(server, server_ep.get(), ep.get());
    for (int i = 0; i < kSent; ++i) {
      DAT_LMR_TRIPLET segment = message.triplet();
      fill_pattern(message.bytes(), i);
      ASSERT_THAT(dat_ep_post_send(ep.get(), 1, &segment, cookie(i), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
      expect_completion(leaver.request.get());
    }
    left_at = std::chrono::steady_clock::now();
    ASSERT_THAT(dat_ep_disconnect(ep.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
    expect_event(leaver.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  }
  expect_completions(server.recv.get(), kPosted);
  // By now the server knows that the peer is gone, whose adapter over TCP has waited a second for what was not read.
  expect_no_event(server.connect.get());
  buffers.post(srq, kPosted, kSent - kPosted);
  if (std::chrono::steady_clock::now() - left_at > std::chrono::milliseconds(1700)) {
    GTEST_SKIP() << "the machine took too long: an orderly end may give up on messages that wait for two seconds";
  }
  for (int i = kPosted; i < kSent; ++i) {
    EXPECT_EQ(expect_completion(server.recv.get()).user_cookie.as_64, static_cast<DAT_UINT64>(i));
    EXPECT_TRUE(has_pattern(buffers[i].first(32), static_cast<DAT_UINT64>(i)));
  }
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

// A connection within one process: its passive side posts no buffer for what has come. Tells what was logged when that
// was given up.
void play_giver_up(RoleContext& context) {
  const CapturedErrors errors;
  Side passive(context.wire);
  Side active(context.wire);
  Ep passive_ep(passive);
  const Ep active_ep(active);
  connect_pair(passive, passive_ep.get(), active_ep.get());
  const Lmr message(active.ia, active.pz, 32);
  DAT_LMR_TRIPLET segment = message.triplet();
  require(dat_ep_post_send(active_ep.get(), 1, &segment, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  expect_completion(active.request.get());
  require(dat_ep_disconnect(active_ep.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  expect_event(passive.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  std::string printed = errors.take();
  std::replace(printed.begin(), printed.end(), '\n', '|');
  context.parent.say(printed);
}
const Role kGiverUp("giver_up", play_giver_up);

// EP-DISC-18 bounds the wait for a buffer; what is lost by that is said.
TEST_P(GracefulLeave, SaysWhatIsGivenUp) {
  if (!GetParam().ia_name.starts_with("soft")) GTEST_SKIP() << "a device keeps no message without a buffer";
  const ScopedEnv env(std::map<std::string, std::string>{{"DAT_LOG", "warn"}});
  PeerProcess giver_up("giver_up", GetParam());
  EXPECT_THAT(giver_up.channel().hear(), testing::HasSubstr("loses messages that have arrived"));
}

ANYDAT_OVER_ALL_WIRES(GracefulLeave);

}  // namespace
}  // namespace anydat::test
