// SPDX-License-Identifier: BSD-3-Clause
// A peer that closes its connection in order and is gone at once: what it sent before still arrives.
#include <chrono>
#include <optional>

#include "srq_fixture.h"

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
  expect_no_event(server.connect.get());  // by now the server knows that the peer is gone
  buffers.post(srq, kPosted, kSent - kPosted);
  if (std::chrono::steady_clock::now() - left_at > std::chrono::seconds(1)) {
    GTEST_SKIP() << "the machine took too long: an orderly end may give up on messages that wait for two seconds";
  }
  for (int i = kPosted; i < kSent; ++i) {
    EXPECT_EQ(expect_completion(server.recv.get()).user_cookie.as_64, static_cast<DAT_UINT64>(i));
    EXPECT_TRUE(has_pattern(buffers[i].first(32), static_cast<DAT_UINT64>(i)));
  }
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

ANYDAT_OVER_ALL_WIRES(GracefulLeave);

}  // namespace
}  // namespace anydat::test
