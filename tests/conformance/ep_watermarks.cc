// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_set_watermark: chapter 1.12 of the rules.
#include <algorithm>
#include <limits>

#include "srq_states.h"

namespace anydat::test {
namespace {

constexpr DAT_COUNT kInfinite = DAT_WATERMARK_INFINITE;

void set_watermark(const Ep& ep, DAT_COUNT soft, DAT_COUNT hard) {
  require(dat_ep_set_watermark(ep.get(), soft, hard), "dat_ep_set_watermark");
}

class SrqWatermark : public SrqTest {
 protected:
  Srq srq{server.ia, server.pz, 20};
};

// An SRQ endpoint that holds as many buffers as the test posts.
class SrqWatermarkHolding : public SrqHoldingTest {
 protected:
  // Connects the sender, whose messages then wait for buffers.
  void start(int small, int large_messages) {
    sender = std::make_unique<StoppedSender>(server, ep, GetParam(), small, large_messages);
  }

  // Posts buffers one by one until the endpoint holds `count`.
  void hold(DAT_COUNT count) {
    while (held(ep).buffers < count) {
      large.post(srq, posted_, 1);
      ++posted_;
      ASSERT_TRUE(eventually_held(ep, posted_)) << held(ep);
    }
  }

  // Posts the buffer whose allocation exceeds the hard watermark, and sees the connection break.
  void hold_one_too_many() {
    large.post(srq, posted_, 1);
    ++posted_;
    expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
  }

  Srq srq{server.ia, server.pz, 12};
  Ep ep{server, srq};
  std::unique_ptr<StoppedSender> sender;
  DAT_COUNT posted_ = 0;
};

TEST_P(SrqWatermarkHolding, SoftFiresWhenTheCountOfHeldBuffersExceedsIt) {
  // EP-WM-1, EP-WM-2
  set_watermark(ep, 2, kInfinite);
  start(0, 4);
  hold(2);
  expect_no_event(server.ia.async_evd());  // equal is not above
  hold(3);
  expect_soft_watermark(server, ep);
}

TEST_P(SrqWatermark, CompletedBuffersDoNotCount) {
  // EP-WM-1
  const Connection connection = connect_pair(server, srq, client);
  set_watermark(connection.server, 1, 1);
  buffers.post(srq, 0, 5);
  for (DAT_UINT64 i = 0; i < 5; ++i) {
    send_and_wait(connection.client, i);
    expect_completed(srq, connection.server, 4 - static_cast<DAT_COUNT>(i));
  }
  expect_no_event(server.ia.async_evd());  // five unreaped completions, but never two buffers at the endpoint
  EXPECT_EQ(connection.server.state(), DAT_EP_STATE_CONNECTED);
}

TEST_P(SrqWatermark, SoftEventSaysBrokenButNothingIs) {
  // EP-WM-3
  const Connection connection = connect_pair(server, srq, client);
  set_watermark(connection.server, 0, kInfinite);
  buffers.post(srq, 0, 2);
  pass_message(connection, 1);
  const DAT_EVENT event = expect_event(server.ia.async_evd(), DAT_ASYNC_ERROR_EP_BROKEN);
  EXPECT_EQ(event.event_number, 0x8003);
  EXPECT_EQ(event.event_data.asynch_error_event_data.dat_handle, connection.server.get());
  EXPECT_EQ(event.event_data.asynch_error_event_data.reason, 2);
  EXPECT_EQ(connection.server.state(), DAT_EP_STATE_CONNECTED);
  EXPECT_EQ(connection.client.state(), DAT_EP_STATE_CONNECTED);
  pass_message(connection, 2);
}

TEST_P(SrqWatermark, SoftComesOncePerSetting) {
  // EP-WM-4, EP-WM-8
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 10);
  set_watermark(connection.server, 0, kInfinite);
  pass_message(connection);
  expect_soft_watermark(server, connection.server);
  pass_message(connection);
  pass_message(connection);
  expect_no_event(server.ia.async_evd());
  set_watermark(connection.server, 0, kInfinite);
  pass_message(connection);
  expect_soft_watermark(server, connection.server);
  pass_message(connection);
  expect_no_event(server.ia.async_evd());
}

TEST_P(SrqWatermarkHolding, HardBreaksTheConnection) {
  // EP-WM-5, EP-SM-19
  set_watermark(ep, kInfinite, 2);
  start(0, 4);
  hold(2);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  hold_one_too_many();
  expect_completions(server.recv.get(), 3, DAT_DTO_ERR_FLUSHED);
  expect_no_event(server.ia.async_evd());  // the hard watermark has no async event
  expect_no_event(server.connect.get());
}

TEST_P(SrqWatermarkHolding, SoftFiresDuringTheCallIfAlreadyAbove) {
  // EP-WM-6, EP-WM-8
  start(0, 3);
  hold(3);
  set_watermark(ep, 2, kInfinite);
  EXPECT_TRUE(poll_event(server.ia.async_evd())) << "the event is there when the call returns";
  expect_no_event(server.ia.async_evd());
  set_watermark(ep, 2, kInfinite);
  expect_soft_watermark(server, ep);  // armed again, and above again
}

TEST_P(SrqWatermarkHolding, HardBreaksDuringTheCallIfAlreadyAbove) {
  // EP-WM-6
  start(0, 3);
  hold(3);
  set_watermark(ep, kInfinite, 3);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  set_watermark(ep, kInfinite, 2);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
  expect_completions(server.recv.get(), 3, DAT_DTO_ERR_FLUSHED);
}

TEST_P(SrqWatermarkHolding, SoftMayBeAboveHard) {
  // EP-WM-7
  set_watermark(ep, 5, 2);
  start(0, 4);
  hold(2);
  hold_one_too_many();
  expect_no_event(server.ia.async_evd());
}

TEST_P(SrqWatermarkHolding, EitherWorksWithoutTheOther) {
  // EP-WM-7
  set_watermark(ep, 1, kInfinite);
  start(0, 4);
  hold(3);
  expect_soft_watermark(server, ep);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  set_watermark(ep, kInfinite, 3);
  expect_no_event(server.ia.async_evd());
  hold_one_too_many();
  expect_no_event(server.ia.async_evd());
}

TEST_P(SrqWatermarkHolding, SettingBeforeTheEventReplacesTheValue) {
  // EP-WM-8
  set_watermark(ep, 1, kInfinite);
  set_watermark(ep, 3, kInfinite);
  start(0, 4);
  hold(3);
  expect_no_event(server.ia.async_evd());
  hold(4);
  expect_soft_watermark(server, ep);
  expect_no_event(server.ia.async_evd());
}

TEST_P(SrqWatermarkHolding, InfiniteMeansNoEventAndNoBreak) {
  // EP-WM-9
  set_watermark(ep, 1, 2);
  set_watermark(ep, kInfinite, kInfinite);
  start(0, 6);
  hold(6);
  expect_no_event(server.ia.async_evd());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  EXPECT_EQ(kInfinite, -1);
}

TEST_P(SrqWatermark, WorksInEveryState) {
  // EP-WM-11
  for (const DAT_EP_STATE state : reachable_states(server.ia)) {
    const EpInState ep(server, client, srq, state);
    EXPECT_THAT(dat_ep_set_watermark(ep.get().get(), 3, 4), Succeeds()) << "endpoint state " << state;
    EXPECT_EQ(ep.get().query().ep_attr.srq_soft_hw, 3);
    EXPECT_EQ(ep.get().query().ep_attr.max_recv_dtos, 4);
    EXPECT_EQ(ep.get().state(), state);
  }
  expect_no_event(server.ia.async_evd());
}

TEST_P(SrqWatermark, HardTakesEffectWhenTheConnectionIsEstablished) {
  // EP-WM-11
  const Ep plain(server);
  const Ep peer(client);
  buffers.post(plain, 0, 3);
  set_watermark(plain, kInfinite, 2);
  EXPECT_EQ(plain.state(), DAT_EP_STATE_UNCONNECTED);
  expect_no_event(server.connect.get());
  connect_pair(server, plain.get(), peer.get());  // both sides see ESTABLISHED first
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(plain.state(), DAT_EP_STATE_DISCONNECTED);
  expect_completions(server.recv.get(), 3, DAT_DTO_ERR_FLUSHED);
}

TEST_P(SrqWatermark, ValuesPersistAcrossDisconnectAndReset) {
  // EP-WM-12, EP-RESET-5
  Connection connection = connect_pair(server, srq, client);
  set_watermark(connection.server, 0, 7);
  ASSERT_THAT(dat_ep_disconnect(connection.server.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_EQ(connection.server.query().ep_attr.srq_soft_hw, 0);
  EXPECT_EQ(connection.server.query().ep_attr.max_recv_dtos, 7);
  ASSERT_THAT(dat_ep_reset(connection.server.get()), Succeeds());
  ASSERT_THAT(dat_ep_reset(connection.client.get()), Succeeds());
  EXPECT_EQ(connection.server.query().ep_attr.srq_soft_hw, 0);
  EXPECT_EQ(connection.server.query().ep_attr.max_recv_dtos, 7);
  connect_pair(server, connection.server.get(), connection.client.get());
  buffers.post(srq, 0, 1);
  pass_message(connection);
  expect_soft_watermark(server, connection.server);
}

TEST_P(SrqWatermark, NegativeValuesButInfiniteAreRefused) {
  // EP-WM-13, GEN-6
  const Ep ep(server, srq);
  set_watermark(ep, 5, 6);
  for (const DAT_COUNT bad : {-2, -3, std::numeric_limits<DAT_COUNT>::min()}) {
    EXPECT_THAT(dat_ep_set_watermark(ep.get(), bad, 8), HasType(DAT_INVALID_PARAMETER)) << bad;
    EXPECT_THAT(dat_ep_set_watermark(ep.get(), 8, bad), HasType(DAT_INVALID_PARAMETER)) << bad;
  }
  EXPECT_EQ(ep.query().ep_attr.srq_soft_hw, 5);
  EXPECT_EQ(ep.query().ep_attr.max_recv_dtos, 6);
}

TEST_P(SrqWatermark, HardZeroBreaksAtTheFirstBuffer) {
  // EP-WM-13
  const Connection connection = connect_pair(server, srq, client);
  set_watermark(connection.server, kInfinite, 0);
  EXPECT_EQ(connection.server.state(), DAT_EP_STATE_CONNECTED);
  buffers.post(srq, 0, 1);
  send(connection.client, 1);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

TEST_P(SrqWatermark, BadHandlesAreRefused) {
  // EP-WM-15, GEN-2
  Ep freed(server, srq);
  const DAT_EP_HANDLE stale = freed.get();
  freed.reset();
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, srq.get(), server.ia.get()}) {
    const DAT_RETURN rc = dat_ep_set_watermark(bad, 1, 2);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
  }
}

TEST_P(SrqWatermark, PostingToAPlainEndpointRaisesTheCount) {
  // EP-WM-16, EP-WM-6
  const Ep alone(server);
  set_watermark(alone, 2, 2);
  buffers.post(alone, 0, 2);
  expect_no_event(server.ia.async_evd());
  buffers.post(alone, 2, 1);
  expect_soft_watermark(server, alone);
  EXPECT_EQ(alone.state(), DAT_EP_STATE_UNCONNECTED) << "no connection, nothing to break";
  const Connection connection = connect_pair(server, client);
  set_watermark(connection.server, kInfinite, 2);
  buffers.post(connection.server, 10, 2);
  EXPECT_EQ(connection.server.state(), DAT_EP_STATE_CONNECTED);
  buffers.post(connection.server, 12, 1);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_completions(server.recv.get(), 3, DAT_DTO_ERR_FLUSHED);
}

TEST_P(SrqWatermark, PostThatAWaitingMessageUsesAtOnceCountsToo) {
  // EP-WM-16, EP-WM-2
  const Connection connection = connect_pair(server, client);
  ASSERT_THAT(dat_ep_set_watermark(connection.server.get(), 0, DAT_WATERMARK_INFINITE), Succeeds());
  send(connection.client, 1);
  expect_no_event(server.recv.get());
  buffers.post(connection.server, 0, 1);
  expect_completion(server.recv.get());
  expect_soft_watermark(server, connection.server);
}

TEST_P(SrqWatermark, QueryShowsSoftAlwaysAndHardForSrqEndpoints) {
  // EP-WM-17
  const Ep with_srq(server, srq);
  set_watermark(with_srq, 5, 9);
  EXPECT_EQ(with_srq.query().ep_attr.srq_soft_hw, 5);
  EXPECT_EQ(with_srq.query().ep_attr.max_recv_dtos, 9);
  const Ep plain(server);
  const DAT_COUNT queue_size = plain.query().ep_attr.max_recv_dtos;
  set_watermark(plain, 5, 9);
  EXPECT_EQ(plain.query().ep_attr.srq_soft_hw, 5);
  EXPECT_EQ(plain.query().ep_attr.max_recv_dtos, queue_size);
  EXPECT_GE(queue_size, default_ep_attr().max_recv_dtos);
}

TEST_P(SrqWatermarkHolding, BufferThatExceedsHardIsFlushedNotPutBack) {
  // EP-WM-18
  set_watermark(ep, kInfinite, 1);
  start(0, 3);
  hold(1);
  hold_one_too_many();
  EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 2}));
  std::vector<DAT_UINT64> cookies;
  for (const auto& dto : expect_completions(server.recv.get(), 2, DAT_DTO_ERR_FLUSHED)) {
    cookies.push_back(dto.user_cookie.as_64);
  }
  EXPECT_THAT(cookies, testing::UnorderedElementsAre(0, 1));
  EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 0}));
}

TEST_P(SrqWatermarkHolding, ExampleOfTheStandard) {
  // EP-WM-19
  set_watermark(ep, 2, 4);
  start(0, 6);
  hold(1);
  expect_no_event(server.ia.async_evd());
  hold(2);
  expect_no_event(server.ia.async_evd());
  hold(3);
  expect_soft_watermark(server, ep);
  hold(4);
  expect_no_event(server.ia.async_evd());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  hold_one_too_many();
  expect_completions(server.recv.get(), 5, DAT_DTO_ERR_FLUSHED);  // not one of the messages was fully received
  expect_no_event(server.recv.get());
  expect_no_event(server.ia.async_evd());
}

ANYDAT_OVER_ALL_WIRES(SrqWatermark);
ANYDAT_OVER_ALL_WIRES(SrqWatermarkHolding);

}  // namespace
}  // namespace anydat::test
