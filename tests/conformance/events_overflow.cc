// SPDX-License-Identifier: BSD-3-Clause
// Full queues: section 5.8 of part 1.
#include "evd_fixture.h"

namespace anydat::test {
namespace {

class EventOverflow : public MessageTest {
 protected:
  // Each call gives one connection event: the endpoint is refused, and is fresh again afterwards.
  void refuse_once(const Ep& ep) {
    connect(ep.get(), nobody);
    ASSERT_TRUE(eventually([&] { return ep.state() == DAT_EP_STATE_DISCONNECTED; }));
    ASSERT_THAT(dat_ep_reset(ep.get()), Succeeds());
  }
  void expect_overflow_of(const Evd& evd) {
    const DAT_EVENT event = expect_event(server.ia.async_evd(), DAT_ASYNC_ERROR_EVD_OVERFLOW);
    EXPECT_EQ(event.evd_handle, server.ia.async_evd());
    EXPECT_EQ(event.event_data.asynch_error_event_data.dat_handle, evd.get());
    EXPECT_EQ(static_cast<int>(event.event_data.asynch_error_event_data.reason), DAT_EVD_OVERFLOW_ERROR);
  }
  // An EVD of connection events that holds exactly `length`.
  Evd connection_evd(DAT_COUNT length) { return Evd(server.ia, DAT_EVD_CONNECTION_FLAG, length); }
  Ep ep_on(const Evd& connection) {
    return Ep(server.ia, server.pz, {server.recv.get(), server.request.get(), connection.get()}, default_ep_attr());
  }

  DAT_CONN_QUAL nobody = dead_qualifier(server.ia);
};

// EVM-48, EVM-49, EVT-34: what was queued stays in order, what did not fit is lost, and it is told once.
TEST_P(EventOverflow, LosesTheNewEventAndTellsTheAsyncEvd) {
  const Evd evd = connection_evd(2);
  ASSERT_EQ(evd.qlen(), 2) << "this test needs a queue of exactly the length it asks for";
  const Ep first = ep_on(evd);
  const Ep second = ep_on(evd);
  const Ep third = ep_on(evd);
  for (const Ep* ep : {&first, &second, &third}) {
    refuse_once(*ep);
  }
  expect_overflow_of(evd);
  for (const Ep* ep : {&first, &second}) {
    const DAT_EVENT event = expect_event(evd.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    EXPECT_EQ(event.event_data.connect_event_data.ep_handle, ep->get());
  }
  EXPECT_FALSE(poll_event(evd.get()));
  EXPECT_FALSE(poll_event(server.ia.async_evd()));
}

// EVM-50, EVM-56: silent until an event has been dequeued and it overflows anew; it works all the while.
TEST_P(EventOverflow, IsToldAgainOnlyAfterRoomWasMade) {
  const Evd evd = connection_evd(1);
  const Ep ep = ep_on(evd);
  for (int i = 0; i < 4; ++i) {
    refuse_once(ep);
  }
  expect_overflow_of(evd);
  EXPECT_FALSE(poll_event(server.ia.async_evd())) << "three events were lost, and told of once";
  EXPECT_THAT(wait_evd(evd.get(), 0).rc, Succeeds());
  refuse_once(ep);
  EXPECT_FALSE(poll_event(server.ia.async_evd())) << "there was room";
  refuse_once(ep);
  expect_overflow_of(evd);
  expect_event(evd.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  BlockedWait waiter(evd.get());
  refuse_once(ep);
  EXPECT_THAT(waiter.result().rc, Succeeds());
}

// EVM-51: a queue that grew is no smaller than it says.
TEST_P(EventOverflow, ResizingMakesRoom) {
  const Evd evd = connection_evd(1);
  const Ep ep = ep_on(evd);
  refuse_once(ep);
  refuse_once(ep);
  expect_overflow_of(evd);
  ASSERT_THAT(dat_evd_resize(evd.get(), 3), Succeeds());
  refuse_once(ep);
  refuse_once(ep);
  EXPECT_EQ(drain(evd.get()), 3);
  EXPECT_FALSE(poll_event(server.ia.async_evd()));
}

// EVM-49: on overflow of the EVD of another instance that one's async EVD hears of it.
TEST_P(EventOverflow, OwningInstanceIsTold) {
  const Evd evd(client.ia, DAT_EVD_CONNECTION_FLAG, 1);
  const Ep ep(client.ia, client.pz, {client.recv.get(), client.request.get(), evd.get()}, default_ep_attr());
  refuse_once(ep);
  refuse_once(ep);
  EXPECT_EQ(
      expect_event(client.ia.async_evd(), DAT_ASYNC_ERROR_EVD_OVERFLOW).event_data.asynch_error_event_data.dat_handle,
      evd.get());
  EXPECT_FALSE(poll_event(server.ia.async_evd()));
}

// EVM-52, EVD-POST-7
TEST_P(EventOverflow, SoftwarePostToAFullEvdIsNoOverflow) {
  const Evd evd(server.ia, DAT_EVD_SOFTWARE_FLAG, 1);
  post(evd.get());
  EXPECT_THAT(try_post(evd.get()), HasType(DAT_QUEUE_FULL));
  EXPECT_FALSE(poll_event(server.ia.async_evd()));
}

// EVM-53, PSP-CREATE-4: the free places are the backlog; without one the requester alone hears that it is refused.
TEST_P(EventOverflow, RequestForAFullEvdIsRefusedWithoutATrace) {
  const Evd requests(server.ia, flags(DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG), 2);
  const Psp psp(server.ia, requests);
  const Ep ep(client);
  post_range(requests.get(), 1, requests.qlen());
  connect(ep.get(), psp.qualifier());
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  EXPECT_EQ(take_all(requests.get()).size(), static_cast<std::size_t>(requests.qlen()));
  EXPECT_FALSE(poll_event(server.ia.async_evd())) << "no overflow";

  ASSERT_THAT(dat_ep_reset(ep.get()), Succeeds());
  connect(ep.get(), psp.qualifier());
  const DAT_EVENT arrival = expect_event(requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  EXPECT_THAT(dat_cr_reject(arrival.event_data.cr_arrival_event_data.cr_handle), Succeeds());
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
}

// EVM-54: the connection whose completion is lost breaks, and no other.
TEST_P(EventOverflow, LostCompletionBreaksItsConnection) {
  const Evd recv(server.ia, DAT_EVD_DTO_FLAG, 2);
  ASSERT_EQ(recv.qlen(), 2) << "this test needs a queue of exactly the length it asks for";
  const Ep ep(server.ia, server.pz, {recv.get(), server.request.get(), server.connect.get()}, default_ep_attr());
  const Ep peer(client);
  connect_pair(server, ep.get(), peer.get());
  const Connection other = connect_pair(server, client);
  for (int i = 0; i < 3; ++i) {
    post_recv(ep, i);
    send(peer, i);
  }
  const DAT_EVENT broken = expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(broken.event_data.connect_event_data.ep_handle, ep.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
  expect_overflow_of(recv);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(expect_completion(recv.get()).user_cookie.as_64, static_cast<DAT_UINT64>(i));
  }
  EXPECT_EQ(other.server.state(), DAT_EP_STATE_CONNECTED);
  const auto ended = wait_event(client.connect.get());
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->event_data.connect_event_data.ep_handle, peer.get());
}

// EVM-54: without room for it not even the broken connection can be told of; the state tells.
TEST_P(EventOverflow, LostCompletionBreaksItsConnectionEvenIfNobodyCanBeTold) {
  const Evd all(server.ia, flags(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG), 2);
  ASSERT_EQ(all.qlen(), 2) << "this test needs a queue of exactly the length it asks for";
  const Ep ep(server.ia, server.pz, {all.get(), server.request.get(), all.get()}, default_ep_attr());
  const Ep peer(client);
  connect_pair(server, ep.get(), peer.get());
  for (int i = 0; i < 3; ++i) {
    post_recv(ep, i);
    send(peer, i);
  }
  EXPECT_TRUE(eventually([&] { return ep.state() == DAT_EP_STATE_DISCONNECTED; }));
  expect_overflow_of(all);
  EXPECT_EQ(drain(all.get()), 2);
}

// EVM-55
TEST_P(EventOverflow, FullAsyncEvdLosesTheNewEventWithoutFurtherReport) {
  const Ia small(GetParam(), 2);
  const AsyncSource srq(small);
  const DAT_COUNT length = query_evd(small.async_evd()).evd_qlen;
  for (DAT_COUNT i = 0; i < length + 3; ++i) {
    srq.fire();
  }
  for (DAT_COUNT i = 0; i < length; ++i) {
    EXPECT_EQ(expect_event(small.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR)
                  .event_data.asynch_error_event_data.dat_handle,
              srq.handle());
  }
  EXPECT_FALSE(poll_event(small.async_evd()));
  srq.fire();
  expect_event(small.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
}

// EVM-55: an overflow that finds the async EVD full is itself lost, and the EVD works on.
TEST_P(EventOverflow, OverflowThatCannotBeToldHarmsNothing) {
  const Ia small(GetParam(), 1);
  const Pz pz(small);
  const Evd evd(small, DAT_EVD_CONNECTION_FLAG, 1);
  const Evd dto(small, DAT_EVD_DTO_FLAG);
  const Ep ep(small, pz, {dto.get(), dto.get(), evd.get()}, default_ep_attr());
  const AsyncSource srq(small);
  for (DAT_COUNT i = 0; i < query_evd(small.async_evd()).evd_qlen; ++i) {
    srq.fire();
  }
  refuse_once(ep);
  refuse_once(ep);
  EXPECT_EQ(drain(evd.get()), 1);
  EXPECT_GE(drain(small.async_evd()), 1);
  refuse_once(ep);
  expect_event(evd.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

ANYDAT_OVER_ALL_WIRES(EventOverflow);

}  // namespace
}  // namespace anydat::test
