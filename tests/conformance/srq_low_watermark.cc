// SPDX-License-Identifier: BSD-3-Clause
// dat_srq_set_lw: chapter 1.9 of the rules.
#include <algorithm>
#include <atomic>
#include <limits>

#include "srq_states.h"
#include "srq_traffic.h"
#include "support/counter.h"

namespace anydat::test {
namespace {

class SrqLowWatermark : public SrqTest {
 protected:
  void SetUp() override {
    connection = connect_pair(server, srq, client);
    buffers.post(srq, 0, 5);
  }

  void set_lw(DAT_COUNT watermark) { require(dat_srq_set_lw(srq.get(), watermark), "dat_srq_set_lw"); }

  // Passes messages until `available` buffers are left.
  void take_down_to(DAT_COUNT available) {
    while (srq.available() > available) {
      pass_message(connection);
    }
  }

  Srq srq{server.ia, server.pz, 10};
  Connection connection;
};
class SrqLowWatermarkHolding : public SrqHoldingTest {};

TEST_P(SrqLowWatermark, SettingArmsAndStoresTheValue) {
  // SRQ-LW-1
  set_lw(3);
  EXPECT_EQ(srq.query().low_watermark, 3);
  take_down_to(2);
  expect_low_watermark(server, srq);
  buffers.post(srq, 5, 3);
  set_lw(4);  // again, after an event
  EXPECT_EQ(srq.query().low_watermark, 4);
  take_down_to(3);
  expect_low_watermark(server, srq);
}

TEST_P(SrqLowWatermark, FiresTheFirstTimeAvailableIsBelow) {
  // SRQ-LW-2
  set_lw(4);
  take_down_to(4);
  expect_no_event(server.ia.async_evd());
  take_down_to(3);
  expect_low_watermark(server, srq);
}

TEST_P(SrqLowWatermark, FiresDuringTheCallIfAlreadyBelow) {
  // SRQ-LW-3, SRQ-LW-2
  set_lw(6);
  EXPECT_TRUE(poll_event(server.ia.async_evd())) << "the event is there when the call returns";
  expect_no_event(server.ia.async_evd());
  take_down_to(3);  // SRQ-LW-5: it has fired, and is not armed
  expect_no_event(server.ia.async_evd());
}

TEST_P(SrqLowWatermark, EachEventIsCounted) {
  // SRQ-LW-2, SRQ-LW-3: the one of the call, and that of a message.
  EXPECT_EQ(counter(srq.get(), "low_watermark_events"), 0u);
  set_lw(6);
  expect_low_watermark(server, srq);
  EXPECT_EQ(counter(srq.get(), "low_watermark_events"), 1u);
  set_lw(5);
  take_down_to(4);
  expect_low_watermark(server, srq);
  EXPECT_EQ(counter(srq.get(), "low_watermark_events"), 2u);
}

TEST_P(SrqLowWatermark, StaysSilentIfEqualOrAbove) {
  // SRQ-LW-4
  set_lw(5);
  set_lw(4);
  expect_no_event(server.ia.async_evd());
  EXPECT_EQ(srq.query().low_watermark, 4);
}

TEST_P(SrqLowWatermark, FiresOnceAndStaysQuietUntilSetAgain) {
  // SRQ-LW-5
  set_lw(3);
  for (int i = 0; i < 3; ++i) {
    take_down_to(0);
    buffers.post(srq, 0, 5);
  }
  expect_low_watermark(server, srq);
  expect_no_event(server.ia.async_evd());
  set_lw(3);
  take_down_to(2);
  expect_low_watermark(server, srq);
}

TEST_P(SrqLowWatermark, SameValueArmsAgain) {
  // SRQ-LW-6
  set_lw(6);
  expect_low_watermark(server, srq);
  set_lw(6);
  expect_low_watermark(server, srq);
  expect_no_event(server.ia.async_evd());
}

TEST_P(SrqLowWatermark, NewValueReplacesTheOldArm) {
  // SRQ-LW-7
  set_lw(5);
  set_lw(2);
  take_down_to(2);
  expect_no_event(server.ia.async_evd());  // 5 no longer counts
  take_down_to(0);
  expect_low_watermark(server, srq);
  expect_no_event(server.ia.async_evd());
  buffers.post(srq, 0, 5);
  set_lw(2);
  set_lw(5);
  take_down_to(4);
  expect_low_watermark(server, srq);
  take_down_to(0);
  expect_no_event(server.ia.async_evd());  // 2 was replaced, not kept
}

TEST_P(SrqLowWatermarkHolding, OnlyBuffersOnTheQueueCount) {
  // SRQ-LW-8
  const Srq srq(server.ia, server.pz, 10);
  const Ep ep(server, srq);
  const StoppedSender sender(server, ep, GetParam(), 2, 2);
  large.post(srq, 0, 6);  // two complete unreaped, two are held, two stay
  ASSERT_TRUE(eventually_held(ep, 2));
  ASSERT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 6}));
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 2), Succeeds());
  expect_no_event(server.ia.async_evd());
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 3), Succeeds());
  expect_low_watermark(server, srq);
}

TEST_P(SrqLowWatermark, PostingReapingResizingAndQueryingNeverFire) {
  // SRQ-LW-9
  set_lw(3);
  send(connection.client, 1);
  send(connection.client, 2);
  expect_completed(srq, connection.server, 3);
  expect_completions(server.recv.get(), 2);
  ASSERT_THAT(dat_srq_resize(srq.get(), 20), Succeeds());
  ASSERT_THAT(dat_srq_resize(srq.get(), 3), Succeeds());
  ASSERT_THAT(dat_srq_resize(srq.get(), 10), Succeeds());
  buffers.post(srq, 5, 1);
  EXPECT_EQ(srq.available(), 4);
  expect_no_event(server.ia.async_evd());
}

TEST_P(SrqLowWatermark, ZeroSwitchesTheEventOff) {
  // SRQ-LW-10
  set_lw(3);
  set_lw(DAT_SRQ_LW_DEFAULT);
  take_down_to(0);
  expect_no_event(server.ia.async_evd());
  EXPECT_EQ(srq.query().low_watermark, 0);
}

TEST_P(SrqLowWatermark, ValueOutsideTheQueueIsRefusedAndLeavesTheOldArm) {
  // SRQ-LW-11, GEN-6
  set_lw(3);
  for (const DAT_COUNT bad :
       {-1, -2, 11, std::numeric_limits<DAT_COUNT>::max(), std::numeric_limits<DAT_COUNT>::min()}) {
    EXPECT_THAT(dat_srq_set_lw(srq.get(), bad), HasType(DAT_INVALID_PARAMETER)) << bad;
    EXPECT_EQ(srq.query().low_watermark, 3);
  }
  expect_no_event(server.ia.async_evd());
  take_down_to(2);
  expect_low_watermark(server, srq);
  set_lw(10);  // equal to the size is allowed
  expect_low_watermark(server, srq);
  // The size that bounds it is the actual one.
  ASSERT_THAT(dat_srq_resize(srq.get(), 20), Succeeds());
  set_lw(20);
  expect_low_watermark(server, srq);
}

TEST_P(SrqLowWatermark, BadHandlesAreRefused) {
  // SRQ-LW-13, GEN-2
  for (const DAT_HANDLE bad :
       {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.ia.get(), connection.server.get(), server.recv.get()}) {
    const DAT_RETURN rc = dat_srq_set_lw(bad, 1);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_SRQ));
  }
}

TEST_P(SrqLowWatermark, EventNamesTheQueueAndTheReason) {
  // SRQ-LW-14, SRQ-LW-15
  set_lw(6);
  const DAT_EVENT event = expect_event(server.ia.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
  EXPECT_EQ(event.evd_handle, server.ia.async_evd());
  EXPECT_EQ(event.event_number, 0x8005);
  EXPECT_EQ(event.event_data.asynch_error_event_data.dat_handle, srq.get());
  EXPECT_EQ(event.event_data.asynch_error_event_data.reason, 2);
  DAT_HANDLE_TYPE type{};
  EXPECT_THAT(dat_get_handle_type(event.event_data.asynch_error_event_data.dat_handle, &type), Succeeds());
  EXPECT_EQ(type, DAT_HANDLE_TYPE_SRQ);
}

TEST_P(SrqLowWatermark, EventMeansNothingIsWrong) {
  // SRQ-LW-16, SRQ-LW-18
  set_lw(5);
  pass_message(connection);
  expect_low_watermark(server, srq);
  EXPECT_EQ(srq.query().srq_state, DAT_SRQ_STATE_OPERATIONAL);
  EXPECT_EQ(connection.server.state(), DAT_EP_STATE_CONNECTED);
  pass_message(connection);
  buffers.post(srq, 0, 4);
  EXPECT_EQ(srq.available(), 7) << "the count has moved on since the event";
  pass_message(connection);
}

TEST_P(SrqLowWatermark, ManyEndpointsTakingAtOnceFireExactlyOnce) {
  // SRQ-LW-17, INV-6
  constexpr int kConnections = 8;
  constexpr int kRounds = 30;
  const Srq shared(server.ia, server.pz, 2 * kConnections);
  std::vector<Connection> many;
  for (int i = 0; i < kConnections; ++i) {
    many.push_back(connect_pair(server, shared, client));
  }
  buffers.post(shared, 0, 2 * kConnections);
  for (int round = 0; round < kRounds; ++round) {
    // From 16 available down to 8 with one message on each connection; the watermark lies in between.
    const DAT_COUNT watermark = kConnections + 1 + round % kConnections;
    ASSERT_THAT(dat_srq_set_lw(shared.get(), watermark), Succeeds());
    for (const Connection& each : many) {
      send(each.client, 1);
    }
    const auto completions = expect_completions(server.recv.get(), kConnections);
    expect_completions(client.request.get(), kConnections);
    expect_low_watermark(server, shared);
    // A second event would have been generated by a take, and every take came before its completion.
    ASSERT_FALSE(poll_event(server.ia.async_evd())) << "round " << round;
    for (const auto& dto : completions) {
      buffers.post(shared, static_cast<int>(dto.user_cookie.as_64), 1);
    }
  }
}

TEST_P(SrqLowWatermark, WorksWithoutAnyEndpoint) {
  // SRQ-LW-19
  const Srq lonely(server.ia, server.pz, 10);
  ASSERT_THAT(dat_srq_set_lw(lonely.get(), 1), Succeeds());
  expect_low_watermark(server, lonely);
  buffers.post(lonely, 0, 3);
  ASSERT_THAT(dat_srq_set_lw(lonely.get(), 3), Succeeds());
  expect_no_event(server.ia.async_evd());
}

TEST_P(SrqLowWatermark, ExampleOfTheStandard) {
  // SRQ-LW-20
  const auto expect_row = [&](DAT_COUNT available, DAT_COUNT watermark, bool event, Caller caller = Caller::here()) {
    if (event) {
      expect_low_watermark(server, srq, caller);
    }
    expect_no_event(server.ia.async_evd(), caller);
    if (srq.available() != available || srq.query().low_watermark != watermark) {
      ADD_FAILURE_AT(caller.file, caller.line)
          << "available " << srq.available() << " instead of " << available << ", watermark "
          << srq.query().low_watermark << " instead of " << watermark;
    }
  };
  expect_row(5, 0, false);
  set_lw(3);
  expect_row(5, 3, false);
  pass_message(connection);
  pass_message(connection);
  expect_row(3, 3, false);
  pass_message(connection);
  expect_row(2, 3, true);
  pass_message(connection);
  expect_row(1, 3, false);
  buffers.post(srq, 5, 5);
  for (int i = 0; i < 4; ++i) {
    pass_message(connection);
  }
  expect_row(2, 3, false);
  set_lw(3);
  expect_row(2, 3, true);
  buffers.post(srq, 10, 1);
  set_lw(3);
  expect_row(3, 3, false);
  set_lw(2);
  expect_row(3, 2, false);
  pass_message(connection);
  expect_row(2, 2, false);
  pass_message(connection);
  expect_row(1, 2, true);
  set_lw(0);
  expect_row(1, 0, false);
  EXPECT_THAT(dat_srq_set_lw(srq.get(), 11), HasType(DAT_INVALID_PARAMETER));
  expect_row(1, 0, false);
}

ANYDAT_OVER_ALL_WIRES(SrqLowWatermark);
ANYDAT_OVER_ALL_WIRES(SrqLowWatermarkHolding);

}  // namespace
}  // namespace anydat::test
