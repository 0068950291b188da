// SPDX-License-Identifier: BSD-3-Clause
// The buffers an endpoint holds when its connection ends: chapter 1.16 of the rules.
#include "srq_fixture.h"

namespace anydat::test {
namespace {

// An SRQ endpoint that has received `small` messages whole and holds buffers for `large` incomplete ones.
class SrqFlush : public SrqHoldingTest {
 protected:
  void hold(int small, int large_messages, int left_on_queue = 0) {
    sender = std::make_unique<StoppedSender>(server, ep, GetParam(), small, large_messages);
    large.post(srq, 0, small + large_messages + left_on_queue);
    ASSERT_TRUE(eventually_held(ep, large_messages)) << held(ep);
    ASSERT_EQ(srq.available(), left_on_queue);
  }

  // Reaps the end of the connection and then the completions: first the successes, then the flushed.
  void expect_ended(DAT_EVENT_NUMBER event, int successes, int flushed) {
    EXPECT_EQ(expect_event(server.connect.get(), event).event_data.connect_event_data.ep_handle, ep.get());
    EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
    EXPECT_TRUE(holds_none(held(ep)));
    for (const auto& dto : expect_completions(server.recv.get(), successes)) {
      EXPECT_TRUE(has_pattern(large[static_cast<int>(dto.user_cookie.as_64)].first(StoppedSender::kSmall), 0));
    }
    expect_completions(server.recv.get(), flushed, DAT_DTO_ERR_FLUSHED);
    expect_no_event(server.recv.get());
  }

  Srq srq{server.ia, server.pz, 12};
  Ep ep{server, srq};
  std::unique_ptr<StoppedSender> sender;
};

TEST_P(SrqFlush, PeerDeathCompletesEveryBufferTaken) {
  // SRQ-FLUSH-1, SRQ-FLUSH-2, SRQ-FLUSH-3, EP-SM-25
  hold(2, 3);
  sender->kill();
  expect_ended(DAT_CONNECTION_EVENT_BROKEN, 2, 3);
}

TEST_P(SrqFlush, LocalDisconnectCompletesEveryBufferTaken) {
  // SRQ-FLUSH-1, SRQ-FLUSH-2, SRQ-FLUSH-3
  hold(2, 3);
  ASSERT_THAT(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_ended(DAT_CONNECTION_EVENT_DISCONNECTED, 2, 3);
}

TEST_P(SrqFlush, HardWatermarkCompletesEveryBufferTaken) {
  // SRQ-FLUSH-1, SRQ-FLUSH-3, EP-WM-19: successes for the messages that were received whole.
  hold(2, 3);
  ASSERT_THAT(dat_ep_set_watermark(ep.get(), DAT_WATERMARK_INFINITE, 2), Succeeds());
  expect_ended(DAT_CONNECTION_EVENT_BROKEN, 2, 3);
}

TEST_P(SrqFlush, BuffersOfAnInterruptedMessageAreNotReportedAsReceived) {
  // SRQ-FLUSH-2
  hold(0, 4);
  sender->kill();
  expect_ended(DAT_CONNECTION_EVENT_BROKEN, 0, 4);
}

TEST_P(SrqFlush, FlushedBuffersComeBackToTheConsumerNotToTheQueue) {
  // SRQ-FLUSH-4, SRQ-FLUSH-6
  hold(1, 3, 2);
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 6}));
  sender->kill();
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 6})) << "flushed, but not reaped";
  expect_completion(server.recv.get());
  for (DAT_COUNT left = 5; left > 2; --left) {
    EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = left}));
    expect_completion(server.recv.get(), DAT_DTO_ERR_FLUSHED);
  }
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 2}));
  large.post(srq, 0, 4);  // the Consumer posts them again
  EXPECT_EQ(srq.available(), 6);
}

TEST_P(SrqFlush, BuffersOnTheQueueStayForOthersAndForTheNextConnection) {
  // SRQ-FLUSH-5
  const Connection other = connect_pair(server, srq, client);
  hold(0, 2, 4);
  sender->kill();
  expect_ended(DAT_CONNECTION_EVENT_BROKEN, 0, 2);
  EXPECT_EQ(counts(srq), (Counts{.available = 4, .outstanding = 4}));
  pass_message(other, 5);
  ASSERT_THAT(dat_ep_reset(ep.get()), Succeeds());
  const Ep peer(client);
  connect_pair(server, ep.get(), peer.get());
  send_and_wait(peer, 6);
  EXPECT_EQ(expect_completion(server.recv.get()).ep_handle, ep.get());
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 2}));
}

TEST_P(SrqFlush, FreeingAConnectedEndpointLosesNoEntry) {
  // SRQ-FLUSH-7, EP-FREE-4, EP-FREE-5, SRQ-ACC-11
  hold(1, 3, 2);
  ASSERT_THAT(ep.free(), Succeeds());
  fill_pattern(large.lmr().bytes(), 99);  // until then the beginning of a message may have come
  // The completions may stay on the EVD or vanish; what stays is at most one for each buffer.
  EXPECT_LE(drain(server.recv.get()), 4);
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 2}));
  sender->resume();  // what it still sends must find no endpoint
  expect_no_event(server.recv.get());
  EXPECT_TRUE(has_pattern(large.lmr().bytes(), 99)) << "the memory of a freed endpoint's buffers was written to";
}

TEST_P(SrqFlush, MarkersWorkForRequestsOnly) {
  // SRQ-FLUSH-8, EP-RESET-7
  const Connection connection = connect_pair(server, srq, client);
  ASSERT_THAT(dat_ep_disconnect(connection.server.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  DAT_LMR_TRIPLET segment = buffers.triplet(0);
  EXPECT_THAT(dat_ep_post_recv(connection.server.get(), 1, &segment, cookie(1), DAT_COMPLETION_DEFAULT_FLAG),
              HasType(DAT_INVALID_STATE));
  expect_no_event(server.recv.get());
  EXPECT_THAT(dat_ep_post_send(connection.server.get(), 1, &segment, cookie(2), DAT_COMPLETION_DEFAULT_FLAG),
              Succeeds());
  EXPECT_EQ(expect_completion(server.request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 2u);
}

ANYDAT_OVER_ALL_WIRES(SrqFlush);

}  // namespace
}  // namespace anydat::test
