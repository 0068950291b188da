// SPDX-License-Identifier: BSD-3-Clause
// A message arrives, and who may take a buffer for it: chapters 1.14 and 1.15 of the rules.
#include "srq_states.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

class SrqArrival : public SrqTest {};
class SrqTaking : public SrqTest {};

// The server's adapter gives up on a message that finds no buffer within some milliseconds.
class SrqArrivalWithTimeout : public SrqTest {
 protected:
  static Wire impatient(Wire wire) {
    wire.env["DAT_RNR_TIMEOUT_MS"] = "50";
    return wire;
  }

  // The sender's side of the failure, as SRQ-ARR-4 and STAT-14 put it: its Send carries the news, or succeeded before.
  void expect_sender_broken(const Connection& connection) {
    const auto dto = expect_event(client.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
    EXPECT_TRUE(dto.status == DAT_DTO_ERR_RECEIVER_NOT_READY || dto.status == DAT_DTO_SUCCESS) << dto.status;
    const auto event = wait_event(client.connect.get());
    ASSERT_TRUE(event);
    EXPECT_TRUE(event->event_number == DAT_CONNECTION_EVENT_BROKEN ||
                event->event_number == DAT_CONNECTION_EVENT_DISCONNECTED)
        << event_name(event->event_number);
    EXPECT_EQ(connection.client.state(), DAT_EP_STATE_DISCONNECTED);
  }

  Side receiver{impatient(GetParam())};
  Buffers room{receiver.ia, receiver.pz, 8, kBytes};
};

TEST_P(SrqArrival, TakesOneBufferAndTestsAllWatermarksInOneStep) {
  // SRQ-ARR-1
  const Srq srq(server.ia, server.pz, 4);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 1);
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 1), Succeeds());
  ASSERT_THAT(dat_ep_set_watermark(connection.server.get(), 0, DAT_WATERMARK_INFINITE), Succeeds());
  expect_no_event(server.ia.async_evd());
  pass_message(connection);
  int low = 0;
  int soft = 0;
  for (int i = 0; i < 2; ++i) {
    const auto event = wait_event(server.ia.async_evd());
    ASSERT_TRUE(event);
    low += event->event_data.asynch_error_event_data.dat_handle == srq.get() ? 1 : 0;
    soft += event->event_data.asynch_error_event_data.dat_handle == connection.server.get() ? 1 : 0;
  }
  EXPECT_EQ(low, 1);
  EXPECT_EQ(soft, 1);
}

TEST_P(SrqArrival, WithoutABufferItWaitsAsWithAPlainEndpoint) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // SRQ-ARR-2, SRQ-ARR-3
  const Srq srq(server.ia, server.pz, 4);
  const Connection with_srq = connect_pair(server, srq, client);
  const Connection plain = connect_pair(server, client);
  send(with_srq.client, 1);
  send(plain.client, 2);
  expect_no_event(server.recv.get());
  EXPECT_EQ(with_srq.server.state(), DAT_EP_STATE_CONNECTED);
  EXPECT_EQ(plain.server.state(), DAT_EP_STATE_CONNECTED);
  buffers.post(srq, 0, 1);
  EXPECT_EQ(expect_completion(server.recv.get()).ep_handle, with_srq.server.get());
  EXPECT_TRUE(has_pattern(buffers[0].first(32), 1));
  buffers.post(plain.server, 1, 1);
  EXPECT_EQ(expect_completion(server.recv.get()).ep_handle, plain.server.get());
  EXPECT_TRUE(has_pattern(buffers[1].first(32), 2));
}

TEST_P(SrqArrivalWithTimeout, WaitEndsWithTheTimeoutAndBreaksTheConnection) {
  // SRQ-ARR-3, SRQ-ARR-4, EP-WM-10
  const Srq srq(receiver.ia, receiver.pz, 4);
  const Connection connection = connect_pair(receiver, srq, client);  // no hard watermark
  send(connection.client, 1);
  send(connection.client, 2);
  expect_event(receiver.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(connection.server.state(), DAT_EP_STATE_DISCONNECTED);
  expect_sender_broken(connection);
  expect_event(client.request.get(), DAT_DTO_COMPLETION_EVENT);  // the second Send, whatever became of it
  expect_no_event(receiver.connect.get());
  expect_no_event(receiver.recv.get());
  EXPECT_EQ(srq.query().srq_state, DAT_SRQ_STATE_OPERATIONAL);
}

TEST_P(SrqArrivalWithTimeout, PlainEndpointBreaksTheSameWay) {
  // SRQ-ARR-2
  const Connection connection = connect_pair(receiver, client);
  send(connection.client, 1);
  expect_event(receiver.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(connection.server.state(), DAT_EP_STATE_DISCONNECTED);
  expect_sender_broken(connection);
}

TEST_P(SrqArrivalWithTimeout, OnlyTheEndpointWithoutABufferBreaks) {
  // SRQ-ARR-5
  const Srq srq(receiver.ia, receiver.pz, 4);
  const Connection unlucky = connect_pair(receiver, srq, client);
  const Connection other = connect_pair(receiver, srq, client);
  send(unlucky.client, 1);
  const auto broken = expect_event(receiver.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(broken.event_data.connect_event_data.ep_handle, unlucky.server.get());
  expect_sender_broken(unlucky);
  EXPECT_EQ(other.server.state(), DAT_EP_STATE_CONNECTED);
  EXPECT_EQ(other.client.state(), DAT_EP_STATE_CONNECTED);
  room.post(srq, 0, 1);
  EXPECT_EQ(pass_message(other, 5).ep_handle, other.server.get());
}

TEST_P(SrqArrivalWithTimeout, BufferWithinTheTimeoutSavesTheConnection) {
  // SRQ-ARR-3
  const Srq srq(receiver.ia, receiver.pz, 4);
  const Connection connection = connect_pair(receiver, srq, client);
  room.post(srq, 0, 1);
  for (DAT_UINT64 i = 0; i < 20; ++i) {
    pass_message(connection, i);
    room.post(srq, 0, 1);
  }
  expect_no_event(receiver.connect.get());
}

TEST_P(SrqArrival, WaitingMessageHoldsBackItsOwnConnectionOnly) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // SRQ-ARR-6
  const Srq dry(server.ia, server.pz, 4);
  const Srq full(server.ia, server.pz, 4);
  const Connection waiting = connect_pair(server, dry, client);
  const Connection flowing = connect_pair(server, full, client);
  const Connection plain = connect_pair(server, client);
  send(waiting.client, 1);
  send(waiting.client, 2);
  buffers.post(full, 10, 4);
  buffers.post(plain.server, 20, 4);
  for (DAT_UINT64 i = 0; i < 4; ++i) {
    send(flowing.client, 40 + i);
    EXPECT_EQ(expect_completion(server.recv.get()).ep_handle, flowing.server.get());
    send(plain.client, 50 + i);
    EXPECT_EQ(expect_completion(server.recv.get()).ep_handle, plain.server.get());
  }
  buffers.post(dry, 0, 2);
  const auto first = expect_completion(server.recv.get());
  const auto second = expect_completion(server.recv.get());
  EXPECT_TRUE(has_pattern(buffers[static_cast<int>(first.user_cookie.as_64)].first(32), 1));
  EXPECT_TRUE(has_pattern(buffers[static_cast<int>(second.user_cookie.as_64)].first(32), 2));
}

TEST_P(SrqArrival, SendCompletesWithoutTheReceiverReaping) {
  // SRQ-ARR-7
  const Srq srq(server.ia, server.pz, 4);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 3);
  for (DAT_UINT64 i = 0; i < 3; ++i) {
    send_and_wait(connection.client, i);
  }
  expect_completed(srq, connection.server, 0);
  EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 3})) << "nothing has been reaped";
}

TEST_P(SrqTaking, ConnectedAndDisconnectingEndpointsTake) {
  // SRQ-TAKE-1
  for (const DAT_EP_STATE state : reachable_states(server.ia)) {
    if (state != DAT_EP_STATE_CONNECTED && state != DAT_EP_STATE_DISCONNECT_PENDING) {
      continue;
    }
    const Srq srq(server.ia, server.pz, 4);
    const EpInState ep(server, client, srq, state);
    buffers.post(srq, 0, 2);
    send(ep.peer(), 8);
    const auto dto = expect_completion(ep.recv_evd());
    EXPECT_EQ(dto.ep_handle, ep.get().get()) << "endpoint state " << state;
    EXPECT_TRUE(has_pattern(buffers[static_cast<int>(dto.user_cookie.as_64)].first(32), 8));
    EXPECT_EQ(srq.available(), 1);
    EXPECT_EQ(ep.get().state(), state);
  }
}

TEST_P(SrqTaking, MessageBeforeEstablishmentIsHeldUntilAfterIt) {
  // SRQ-TAKE-2, SRQ-TAKE-3, CR-ACC-14
  // Each side in turn is the SRQ endpoint; its peer sends as soon as it is established itself, which may be before the
  // SRQ endpoint is. All its events come on one EVD, so their order shows.
  for (int round = 0; round < 10; ++round) {
    const Srq srq(server.ia, server.pz, 4);
    buffers.post(srq, 0, 1);
    const Evd all(server.ia, static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG));
    const EpEvds evds{.recv = all.get(), .request = server.request.get(), .connect = all.get()};
    const Ep ep(server.ia, server.pz, evds, srq, default_srq_ep_attr());
    const Ep peer(client);
    const bool passive = round % 2 == 0;
    Side& accepting = passive ? server : client;
    const Ep& active_ep = passive ? peer : ep;
    const Ep& passive_ep = passive ? ep : peer;
    require(dat_ep_connect(active_ep.get(), loopback(), accepting.listen(), DAT_TIMEOUT_INFINITE, 0, nullptr,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    const auto request = expect_event(accepting.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, passive_ep.get(), 0, nullptr),
            "dat_cr_accept");
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    send(peer, 3);
    expect_event(all.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EQ(expect_completion(all.get()).ep_handle, ep.get());
    EXPECT_TRUE(has_pattern(buffers[0].first(32), 3));
  }
}

TEST_P(SrqTaking, UnconnectedEndpointsNeverChangeTheCount) {
  // SRQ-TAKE-4
  const Srq srq(server.ia, server.pz, 4);
  buffers.post(srq, 0, 3);
  for (const DAT_EP_STATE state : reachable_states(server.ia)) {
    if (state == DAT_EP_STATE_CONNECTED || state == DAT_EP_STATE_DISCONNECT_PENDING) {
      continue;
    }
    const EpInState ep(server, client, srq, state);
    EXPECT_EQ(counts(srq), (Counts{.available = 3, .outstanding = 3})) << "endpoint state " << state;
    EXPECT_TRUE(holds_none(held(ep.get())));
  }
}

ANYDAT_OVER_ALL_WIRES(SrqArrival);
ANYDAT_OVER_ALL_WIRES(SrqArrivalWithTimeout);
ANYDAT_OVER_ALL_WIRES(SrqTaking);

}  // namespace
}  // namespace anydat::test
