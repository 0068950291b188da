// SPDX-License-Identifier: BSD-3-Clause
// One buffer that an endpoint has taken and not completed: what the other suites show of many, where the wire leaves so
// few to a sender that stands still.
#include "srq_fixture.h"

namespace anydat::test {
namespace {

class SrqOneHeld : public SrqTest {
 protected:
  void SetUp() override {
    if (GetParam().held_for_stopped_sender == 0) {
      GTEST_SKIP() << "over wire " << GetParam().name << " a message arrives whole whatever its sender does";
    }
  }
  // The sender has posted a small message and a large one, and stands still; one is unreaped, one held, two are left.
  void begin() {
    sender.emplace(server, ep, GetParam(), 1, 1, sink.bytes().size());
    buffers.post(srq, 0, 1);
    DAT_LMR_TRIPLET segment = sink.triplet();
    ASSERT_THAT(dat_srq_post_recv(srq.get(), 1, &segment, cookie(1)), Succeeds());
    buffers.post(srq, 2, 2);
    ASSERT_TRUE(eventually_held(ep, 1));
    // What the endpoint holds shows before it is counted.
    ASSERT_TRUE(eventually([&] { return counts(srq) == kBegun; })) << counts(srq);
  }
  static constexpr Counts kBegun{.available = 2, .outstanding = 4};

  // More than can leave a sender that stands still.
  Lmr sink{server.ia, server.pz, StoppedSender::kLarge + GetParam().taken_ahead};
  Srq srq{server.ia, server.pz, 10};
  Ep ep{server, srq};
  std::optional<StoppedSender> sender;
};

TEST_P(SrqOneHeld, CountsUntilItIsReaped) {
  // SRQ-ACC-3, SRQ-ACC-5, SRQ-ACC-7, SRQ-ACC-8, EP-RQ-1, EP-RQ-3
  begin();
  EXPECT_EQ(held(ep).buffers, 1);
  expect_completion(server.recv.get());
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 3}));
  EXPECT_EQ(held(ep).buffers, 1);
  sender->resume();
  ASSERT_TRUE(eventually_held(ep, 0));
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 3})) << "completed, and not reaped";
  expect_completion(server.recv.get());
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 2}));
}

TEST_P(SrqOneHeld, IsInTheWayOfResizingAndNotOfTheLowWatermark) {
  // SRQ-RESIZE-4, SRQ-LW-8
  begin();
  EXPECT_THAT(dat_srq_resize(srq.get(), 3), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(dat_srq_resize(srq.get(), 4), Succeeds());
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 2), Succeeds());
  expect_no_event(server.ia.async_evd());
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 3), Succeeds());
  expect_low_watermark(server, srq);
  sender->resume();
  expect_completions(server.recv.get(), 2);
}

TEST_P(SrqOneHeld, IsFlushedBehindWhatWasWhole) {
  // SRQ-FLUSH-1, SRQ-FLUSH-2, SRQ-FLUSH-3, SRQ-FLUSH-4, SRQ-FLUSH-6, EP-RQ-4
  begin();
  sender->kill();
  ASSERT_TRUE(eventually([&] { return ep.state() == DAT_EP_STATE_DISCONNECTED; }));
  EXPECT_EQ(counts(srq), kBegun) << "none has come back to the SRQ, and none has been reaped";
  EXPECT_TRUE(holds_none(held(ep)));
  expect_completion(server.recv.get());
  expect_completion(server.recv.get(), DAT_DTO_ERR_FLUSHED);
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 2}));
}

TEST_P(SrqOneHeld, IsGivenUpWithItsEndpoint) {
  // SRQ-FLUSH-7
  begin();
  EXPECT_THAT(ep.free(), Succeeds());
  drain(server.recv.get());
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 2}));
}

TEST_P(SrqOneHeld, ExceedsASoftWatermarkAndNoInfiniteOne) {
  // EP-CSRQ-16, EP-WM-7, EP-WM-9
  if (!watermarks_supported(server.ia)) GTEST_SKIP() << "no watermarks";
  begin();
  expect_no_event(server.ia.async_evd());
  ASSERT_THAT(dat_ep_set_watermark(ep.get(), 1, DAT_WATERMARK_INFINITE), Succeeds());
  expect_no_event(server.ia.async_evd());
  ASSERT_THAT(dat_ep_set_watermark(ep.get(), 0, DAT_WATERMARK_INFINITE), Succeeds());
  expect_soft_watermark(server, ep);
  sender->resume();
  expect_completions(server.recv.get(), 2);
}

TEST_P(SrqOneHeld, IsFlushedWhenItExceedsTheHardWatermark) {
  // EP-WM-18, EP-WM-7
  if (!watermarks_supported(server.ia)) GTEST_SKIP() << "no watermarks";
  begin();
  expect_completion(server.recv.get());
  ASSERT_THAT(dat_ep_set_watermark(ep.get(), DAT_WATERMARK_INFINITE, 0), Succeeds());
  expect_completion(server.recv.get(), DAT_DTO_ERR_FLUSHED);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_no_event(server.ia.async_evd());
}

ANYDAT_OVER_ALL_WIRES(SrqOneHeld);

}  // namespace
}  // namespace anydat::test
