// SPDX-License-Identifier: BSD-3-Clause
// Which completions wake a waiter and trigger a CNO: sections 5.5 and 5.6 of part 1.
#include "evd_fixture.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

// A server whose recv and request EVDs follow one model; both are of their own, and the recv EVD has a CNO.
class EventNotification : public MessageTest {
 protected:
  // Connects endpoints with these completion flags at the server.
  void connect_with(DAT_COMPLETION_FLAGS recv_model, DAT_COMPLETION_FLAGS request_model = DAT_COMPLETION_DEFAULT_FLAG) {
    DAT_EP_ATTR attr = default_ep_attr();
    attr.recv_completion_flags = recv_model;
    attr.request_completion_flags = request_model;
    receiver.reset();  // while it lasts, it determines the model of the EVDs
    sender.reset();
    receiver = Ep(server.ia, server.pz, {recv.get(), request.get(), server.connect.get()}, attr);
    sender = Ep(client);
    connect_pair(server, receiver.get(), sender.get());
  }

  // One message arrives and its completion is on `recv`: the receives of an endpoint complete before they make it idle.
  void deliver(int index, DAT_COMPLETION_FLAGS recv_flags = DAT_COMPLETION_DEFAULT_FLAG,
               DAT_COMPLETION_FLAGS send_flags = DAT_COMPLETION_DEFAULT_FLAG) {
    post_recv(receiver, index, recv_flags);
    send(sender, index, send_flags);
    expect_completion(client.request.get());
    wait_idle();
  }
  void wait_idle() {
    ASSERT_TRUE(eventually([&] {
      DAT_BOOLEAN recv_idle = DAT_FALSE;
      DAT_BOOLEAN request_idle = DAT_FALSE;
      require(dat_ep_get_status(receiver.get(), nullptr, &recv_idle, &request_idle), "dat_ep_get_status");
      return recv_idle == DAT_TRUE && request_idle == DAT_TRUE;
    }));
  }
  // One Send of the server's own with these flags completes; the client has a buffer for it.
  void complete_request(DAT_COMPLETION_FLAGS send_flags) {
    require(dat_ep_post_recv(sender.get(), 0, nullptr, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    require(dat_ep_post_send(receiver.get(), 0, nullptr, {}, send_flags), "dat_ep_post_send");
    expect_completion(client.recv.get());
    wait_idle();
  }

  Cno cno{server.ia};
  Evd recv{server.ia, DAT_EVD_DTO_FLAG, 64, cno.get()};
  Evd request{server.ia, DAT_EVD_DTO_FLAG, 64, cno.get()};
  Ep receiver;
  Ep sender;
};

// EVM-27, EVM-28, EVM-32: by default every completion notifies.
TEST_P(EventNotification, CompletionsNotifyByDefault) {
  connect_with(DAT_COMPLETION_DEFAULT_FLAG);
  for (int i = 0; i < 3; ++i) {
    deliver(i);
    EXPECT_EQ(wait_cno(cno.get(), long_timeout()).evd, recv.get());
    complete_request(DAT_COMPLETION_DEFAULT_FLAG);
    EXPECT_EQ(wait_cno(cno.get(), long_timeout()).evd, request.get());
  }
  EXPECT_EQ(drain(recv.get()), 3);
  EXPECT_EQ(drain(request.get()), 3);
}

// EVM-29: arrivals of requests, connection events and async events notify whatever else is set.
TEST_P(EventNotification, OtherKindsAlwaysNotify) {
  ASSERT_THAT(dat_evd_modify_cno(server.requests.get(), cno.get()), Succeeds());
  ASSERT_THAT(dat_evd_modify_cno(server.connect.get(), cno.get()), Succeeds());
  ASSERT_THAT(dat_evd_modify_cno(server.ia.async_evd(), cno.get()), Succeeds());
  const Ep own(server);
  const Ep peer(client);
  connect(peer.get(), server.listen());
  EXPECT_EQ(wait_cno(cno.get(), long_timeout()).evd, server.requests.get());
  const DAT_EVENT arrival = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  ASSERT_THAT(dat_cr_accept(arrival.event_data.cr_arrival_event_data.cr_handle, own.get(), 0, nullptr), Succeeds());
  EXPECT_EQ(wait_cno(cno.get(), long_timeout()).evd, server.connect.get());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  ASSERT_THAT(dat_ep_disconnect(peer.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  EXPECT_EQ(wait_cno(cno.get(), long_timeout()).evd, server.connect.get());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  const AsyncSource srq(server.ia);
  srq.fire();
  EXPECT_EQ(wait_cno(cno.get(), long_timeout()).evd, server.ia.async_evd());
  expect_event(server.ia.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
  for (const DAT_EVD_HANDLE evd : {server.requests.get(), server.connect.get(), server.ia.async_evd()}) {
    ASSERT_THAT(dat_evd_modify_cno(evd, DAT_HANDLE_NULL), Succeeds());
  }
}

// EVM-27, EVM-30, EVD-DEQ-6, DTO-32: configuration NOTIFY, one post after the other decides.
TEST_P(EventNotification, UnsignalledPostsOnlyJoinTheQueue) {
  connect_with(DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG);
  deliver(0, DAT_COMPLETION_UNSIGNALLED_FLAG);
  EXPECT_FALSE(take_trigger(cno.get()));
  complete_request(DAT_COMPLETION_UNSIGNALLED_FLAG);
  EXPECT_FALSE(take_trigger(cno.get()));
  deliver(1);
  EXPECT_EQ(wait_cno(cno.get(), long_timeout()).evd, recv.get());
  complete_request(DAT_COMPLETION_DEFAULT_FLAG);
  EXPECT_EQ(wait_cno(cno.get(), long_timeout()).evd, request.get());
  EXPECT_EQ(expect_completion(recv.get()).user_cookie.as_64, 0u) << "in queue order, whatever they are";
  EXPECT_EQ(expect_completion(recv.get()).user_cookie.as_64, 1u);
  EXPECT_EQ(drain(request.get()), 2);
}

// EVM-30, SRQ-POST-23: a receive from an SRQ has no such flag.
TEST_P(EventNotification, ReceivesFromAnSrqNotifyInTheUnsignalledModel) {
  const Srq srq(server.ia, server.pz, 4);
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
  receiver = Ep(server.ia, server.pz, {recv.get(), request.get(), server.connect.get()}, srq, attr);
  sender = Ep(client);
  connect_pair(server, receiver.get(), sender.get());
  DAT_LMR_TRIPLET segment = sink.triplet(0, kBytes);
  ASSERT_THAT(dat_srq_post_recv(srq.get(), 1, &segment, {}), Succeeds());
  send(sender, 0);
  EXPECT_EQ(wait_cno(cno.get(), long_timeout()).evd, recv.get());
  expect_completion(recv.get());
  receiver.reset();  // before the SRQ it takes its buffers from
  receiver.reset();  // before the SRQ
}

// EVM-31, DTO-31: configuration SOLICITED, the sender decides.
TEST_P(EventNotification, SolicitedReceivesNotifyIfTheSenderAsksForIt) {
  ANYDAT_NEEDS_SOLICITED(server.ia)
  connect_with(DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  deliver(0);
  EXPECT_FALSE(take_trigger(cno.get()));
  deliver(1, DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  EXPECT_EQ(wait_cno(cno.get(), long_timeout()).evd, recv.get());
  deliver(2);
  EXPECT_FALSE(take_trigger(cno.get()));
  EXPECT_EQ(drain(recv.get()), 3);
}

// EVM-32: in the threshold model the sender's wish changes nothing, and the count releases the waiter.
TEST_P(EventNotification, CountReleasesTheWaiterInTheThresholdModel) {
  connect_with(DAT_COMPLETION_EVD_THRESHOLD_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
  BlockedWait waiter(recv.get(), 3);
  deliver(0, DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  deliver(1);
  EXPECT_TRUE(waiter.stays_blocked());
  deliver(2);
  const EvdResult result = waiter.result();
  ASSERT_THAT(result.rc, Succeeds());
  EXPECT_EQ(result.event.event_data.dto_completion_event_data.user_cookie.as_64, 0u);
  EXPECT_EQ(result.more, 2);
  EXPECT_FALSE(take_trigger(cno.get())) << "a thread waited";
  EXPECT_EQ(drain(recv.get()), 2);
}

// EVM-33, DTO-30
TEST_P(EventNotification, SuppressedSuccessHasNoEventAndFailureHas) {
  connect_with(DAT_COMPLETION_DEFAULT_FLAG);
  complete_request(DAT_COMPLETION_SUPPRESS_FLAG);
  EXPECT_FALSE(poll_event(request.get()));
  EXPECT_FALSE(take_trigger(cno.get()));
  ASSERT_THAT(dat_ep_disconnect(sender.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  ASSERT_THAT(dat_ep_post_send(receiver.get(), 0, nullptr, {}, DAT_COMPLETION_SUPPRESS_FLAG), Succeeds());
  expect_completion(request.get(), DAT_DTO_ERR_FLUSHED);
}

// EVM-34, ruling A45: a failure notifies in every model, even one that was to be silent.
TEST_P(EventNotification, FailuresNotifyInEveryModel) {
  for (const DAT_COMPLETION_FLAGS model : {DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG}) {
    connect_with(model);
    post_recv(receiver, 0,
              model == DAT_COMPLETION_UNSIGNALLED_FLAG ? DAT_COMPLETION_UNSIGNALLED_FLAG : DAT_COMPLETION_DEFAULT_FLAG);
    BlockedWait waiter(recv.get());
    ASSERT_THAT(dat_ep_disconnect(sender.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    const EvdResult result = waiter.result();
    ASSERT_THAT(result.rc, Succeeds());
    EXPECT_EQ(result.event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
    expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  }
}

// EVM-36, EVM-37: at entry only the count matters, be it of silent events alone.
TEST_P(EventNotification, SilentEventsSatisfyAWaitThatBegins) {
  connect_with(DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  deliver(0);
  EXPECT_THAT(wait_evd(recv.get(), long_timeout()).rc, Succeeds());
}

// EVM-36, EVM-38: a silent event does not release who is blocked; the next one that notifies does, and the head of the
// queue is what the waiter gets.
TEST_P(EventNotification, SilentEventReleasesNoBlockedWaiter) {
  ANYDAT_NEEDS_SOLICITED(server.ia)
  connect_with(DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  BlockedWait waiter(recv.get());
  deliver(0);
  EXPECT_TRUE(waiter.stays_blocked());
  deliver(1, DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  const EvdResult result = waiter.result();
  ASSERT_THAT(result.rc, Succeeds());
  EXPECT_EQ(result.event.event_data.dto_completion_event_data.user_cookie.as_64, 0u);
  EXPECT_EQ(result.more, 1);
  expect_completion(recv.get());
}

// EVM-38, TMO-5: the look at the end of the time finds it. Should the time run out before the message comes, the next
// round gives it more.
TEST_P(EventNotification, SilentEventIsFoundWhenTheTimeIsUp) {
  ANYDAT_NEEDS_SOLICITED(server.ia)
  connect_with(DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  std::chrono::milliseconds time(50);
  for (int round = 0;; ++round) {
    const auto waiter = blocked_for(recv.get(), 1, time);
    deliver(round);
    const bool too_late = waiter->returned_within(std::chrono::milliseconds(0));
    const EvdResult result = waiter->result();
    if (!too_late) {
      ASSERT_THAT(result.rc, Succeeds());
      EXPECT_EQ(result.more, 0);
      break;
    }
    drain(recv.get());
    ASSERT_LT(time, patience()) << "no message ever came in time";
    time *= 2;
  }
  EXPECT_FALSE(take_trigger(cno.get()));
}

// EVM-39, EVM-40: the waiter takes one event, and until it leaves no other thread takes any.
TEST_P(EventNotification, WaiterTakesTheHeadAndLeavesTheRest) {
  connect_with(DAT_COMPLETION_DEFAULT_FLAG);
  BlockedWait waiter(recv.get(), 2);
  deliver(0);
  DAT_EVENT event{};
  EXPECT_THAT(dat_evd_dequeue(recv.get(), &event), HasType(DAT_INVALID_STATE));
  deliver(1);
  EXPECT_EQ(waiter.result().event.event_data.dto_completion_event_data.user_cookie.as_64, 0u);
  EXPECT_EQ(expect_completion(recv.get()).user_cookie.as_64, 1u);
}

// EVM-41, EVM-42, EVM-43, EVM-44: completions and triggers.
TEST_P(EventNotification, TriggersOfCompletionsAreLatchedAndNeverReplayed) {
  connect_with(DAT_COMPLETION_DEFAULT_FLAG);
  deliver(0);
  deliver(1);
  EXPECT_EQ(wait_cno(cno.get(), long_timeout()).evd, recv.get());
  EXPECT_FALSE(take_trigger(cno.get())) << "two triggers before a wait count as one";
  EXPECT_EQ(expect_completion(recv.get()).user_cookie.as_64, 0u);
  ASSERT_THAT(dat_evd_disable(recv.get()), Succeeds());
  deliver(2);
  ASSERT_THAT(dat_evd_enable(recv.get()), Succeeds());
  EXPECT_FALSE(take_trigger(cno.get()));
  EXPECT_EQ(drain(recv.get()), 2);
}

ANYDAT_OVER_ALL_WIRES(EventNotification);

}  // namespace
}  // namespace anydat::test
