// SPDX-License-Identifier: BSD-3-Clause
// Connection requests, connection events and private data: sections 9.2, 9.5 and 9.6 of part 1.
#include <netinet/in.h>

#include <cstring>

#include "evd_fixture.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

std::vector<std::byte> bytes_of(std::size_t count, unsigned seed) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + seed);
  }
  return bytes;
}

std::vector<std::byte> delivered(const DAT_CONNECTION_EVENT_DATA& data) {
  const auto* first = static_cast<const std::byte*>(data.private_data);
  return {first, first + data.private_data_size};
}

class EventConnection : public MessageTest {
 protected:
  DAT_CR_ARRIVAL_EVENT_DATA arrival() {
    return expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data;
  }
  DAT_CR_PARAM query_cr(DAT_CR_HANDLE cr) {
    DAT_CR_PARAM param{};
    require(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
    return param;
  }
  DAT_RETURN try_connect(const Ep& ep, DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout, DAT_COUNT size, DAT_PVOID data) {
    return dat_ep_connect(ep.get(), loopback(), qualifier, timeout, size, data, DAT_QOS_BEST_EFFORT,
                          DAT_CONNECT_DEFAULT_FLAG);
  }
  DAT_COUNT most_private_data() { return client.ia.provider().max_private_data_size; }
  // The one connection event there is, and nothing after it.
  void expect_only(const Side& side, const Ep& ep, DAT_EVENT_NUMBER number, Caller caller = Caller::here()) {
    const DAT_EVENT event = expect_event(side.connect.get(), number, caller);
    EXPECT_EQ(event.event_data.connect_event_data.ep_handle, ep.get());
    EXPECT_EQ(event.event_data.connect_event_data.private_data_size, 0) << event_name(number);
    EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
    expect_no_event(side.connect.get(), caller);
  }
};

// EVT-17, EVT-19, EVT-20, EVT-1, EVM-1: what an arrival says.
TEST_P(EventConnection, ArrivalNamesServicePointAddressQualifierAndRequest) {
  const DAT_CONN_QUAL qualifier = server.listen();
  const Ep peer(client);
  connect(peer.get(), qualifier);
  const DAT_EVENT event = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  EXPECT_EQ(event.evd_handle, server.requests.get());
  const DAT_CR_ARRIVAL_EVENT_DATA& data = event.event_data.cr_arrival_event_data;
  EXPECT_EQ(data.sp_handle.psp_handle, server.psp->get());
  EXPECT_EQ(data.conn_qual, qualifier);
  ASSERT_NE(data.local_ia_address_ptr, nullptr);
  ASSERT_EQ(data.local_ia_address_ptr->sa_family, AF_INET);
  sockaddr_in local{};
  std::memcpy(&local, data.local_ia_address_ptr, sizeof local);
  EXPECT_EQ(local.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  const DAT_CR_PARAM param = query_cr(data.cr_handle);
  EXPECT_EQ(param.private_data_size, 0);
  EXPECT_NE(param.remote_ia_address_ptr, nullptr);
  EXPECT_EQ(param.local_ep_handle, DAT_HANDLE_NULL);
  ASSERT_THAT(dat_cr_reject(data.cr_handle), Succeeds());
  expect_only(client, peer, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

// EVT-18, CR-ACC-2, CR-REJ-2
TEST_P(EventConnection, RequestIsGoneOnceItIsAnswered) {
  const DAT_CONN_QUAL qualifier = server.listen();
  DAT_CR_PARAM param{};
  const Ep first(client);
  connect(first.get(), qualifier);
  const DAT_CR_HANDLE rejected = arrival().cr_handle;
  ASSERT_THAT(dat_cr_reject(rejected), Succeeds());
  EXPECT_THAT(dat_cr_query(rejected, DAT_CR_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
  expect_only(client, first, DAT_CONNECTION_EVENT_PEER_REJECTED);
  const Ep second(client);
  const Ep own(server);
  connect(second.get(), qualifier);
  const DAT_CR_HANDLE accepted = arrival().cr_handle;
  EXPECT_THAT(dat_cr_accept(accepted, DAT_HANDLE_NULL, 0, nullptr), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_cr_query(accepted, DAT_CR_FIELD_ALL, &param), Succeeds()) << "a refused accept changes nothing";
  ASSERT_THAT(dat_cr_accept(accepted, own.get(), 0, nullptr), Succeeds());
  EXPECT_THAT(dat_cr_query(accepted, DAT_CR_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
}

// EVT-19, EVT-21, ruling A75: a PSP gives many, an RSP one, whose handle stays valid.
TEST_P(EventConnection, PspGivesManyRequestsAndAnRspOne) {
  const DAT_CONN_QUAL qualifier = server.listen();
  std::vector<Ep> peers;
  for (int i = 0; i < 4; ++i) {
    peers.emplace_back(client);
    connect(peers.back().get(), qualifier);
    ASSERT_THAT(dat_cr_reject(arrival().cr_handle), Succeeds());
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
  }
  const DAT_CONN_QUAL reserved = dead_qualifier(server.ia);
  const Ep own(server);
  DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_rsp_create(server.ia.get(), reserved, own.get(), server.requests.get(), &rsp), Succeeds());
  const Ep first(client);
  connect(first.get(), reserved);
  const DAT_CR_ARRIVAL_EVENT_DATA data = arrival();
  EXPECT_EQ(data.sp_handle.rsp_handle, rsp);
  EXPECT_EQ(data.conn_qual, reserved);
  const Ep second(client);
  connect(second.get(), reserved);
  expect_only(client, second, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  ASSERT_THAT(dat_cr_accept(data.cr_handle, DAT_HANDLE_NULL, 0, nullptr), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_FALSE(poll_event(server.requests.get()));
  EXPECT_THAT(dat_rsp_free(rsp), Succeeds());
}

// EVT-22, CR-HO-1, CR-HO-2
TEST_P(EventConnection, HandedOffRequestArrivesAnew) {
  const DAT_CONN_QUAL qualifier = server.listen();
  const Evd second_requests(server.ia, DAT_EVD_CR_FLAG);
  const Psp second(server.ia, second_requests);
  const Ep peer(client);
  std::vector<std::byte> data = bytes_of(40, 1);
  ASSERT_THAT(try_connect(peer, qualifier, DAT_TIMEOUT_INFINITE, 40, data.data()), Succeeds());
  const DAT_CR_HANDLE before = arrival().cr_handle;
  ASSERT_THAT(dat_cr_handoff(before, second.qualifier()), Succeeds());
  DAT_CR_PARAM gone{};
  EXPECT_THAT(dat_cr_query(before, DAT_CR_FIELD_ALL, &gone), HasType(DAT_INVALID_HANDLE));
  const auto arrived =
      expect_event(second_requests.get(), DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data;
  EXPECT_NE(arrived.cr_handle, before);
  EXPECT_EQ(arrived.conn_qual, second.qualifier());
  EXPECT_EQ(arrived.sp_handle.psp_handle, second.get());
  const DAT_CR_PARAM param = query_cr(arrived.cr_handle);
  ASSERT_EQ(param.private_data_size, 40);
  EXPECT_EQ(std::memcmp(param.private_data, data.data(), 40), 0);
  ASSERT_THAT(dat_cr_reject(arrived.cr_handle), Succeeds());
  expect_only(client, peer, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

// EVT-5, EVT-6, EVT-23, EVM-1: each way an attempt can go ends in exactly one event on each side that takes part.
TEST_P(EventConnection, EachAttemptEndsInOneEvent) {
  const DAT_CONN_QUAL qualifier = server.listen();
  {
    const Connection pair = connect_pair(server, client);
    expect_no_event(server.connect.get());
    expect_no_event(client.connect.get());
  }
  drain(server.connect.get());  // the end of the pair, where the other side was freed first
  server.psp->reset();
  server.psp.reset();
  const DAT_CONN_QUAL again = server.listen();
  {
    const Ep peer(client);
    connect(peer.get(), again);
    ASSERT_THAT(dat_cr_reject(arrival().cr_handle), Succeeds());
    expect_only(client, peer, DAT_CONNECTION_EVENT_PEER_REJECTED);
  }
  {
    const Ep peer(client);
    const DAT_CONN_QUAL nobody = dead_qualifier(server.ia);
    connect(peer.get(), nobody);
    expect_only(client, peer, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  }
  // Where accepts are not confirmed, what would fail is established and then over.
  const bool confirmed = provider_attribute(server.ia, "ANYDAT_ACCEPT_COMPLETES") == "confirmed";
  if (confirmed) {
    // Ruling A72: the host answers, the consumer does not. The time is long enough for the request to arrive.
    const auto time = std::chrono::duration_cast<std::chrono::microseconds>(patience() / 20);
    const Ep peer(client);
    const Ep own(server);
    post_recv(own, 0);
    ASSERT_THAT(try_connect(peer, again, static_cast<DAT_TIMEOUT>(time.count()), 0, nullptr), Succeeds());
    const DAT_CR_HANDLE cr = arrival().cr_handle;
    expect_only(client, peer, DAT_CONNECTION_EVENT_TIMED_OUT);
    ASSERT_THAT(dat_cr_accept(cr, own.get(), 0, nullptr), Succeeds());
    expect_only(server, own, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
    expect_completion(server.recv.get(), DAT_DTO_ERR_FLUSHED);
  }
  if (confirmed) {
    // Ruling A73: the consumer itself gives up.
    const Ep peer(client);
    connect(peer.get(), again);
    const DAT_CR_HANDLE cr = arrival().cr_handle;
    ASSERT_THAT(dat_ep_disconnect(peer.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    expect_only(client, peer, DAT_CONNECTION_EVENT_DISCONNECTED);
    const Ep own(server);
    ASSERT_THAT(dat_cr_accept(cr, own.get(), 0, nullptr), Succeeds());
    expect_only(server, own, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
  }
  {
    Ep peer(client);
    connect(peer.get(), again);
    const DAT_CR_HANDLE cr = arrival().cr_handle;
    ASSERT_THAT(peer.free(), Succeeds());
    expect_no_event(client.connect.get());
    ASSERT_THAT(dat_cr_reject(cr), Succeeds());
  }
  EXPECT_NE(qualifier, 0u);
}

// EVT-5, EP-DUP-1
TEST_P(EventConnection, DuplicatedAttemptEndsInOneEventToo) {
  const Connection pair = connect_pair(server, client);
  const Ep another(client);
  const Ep own(server);
  ASSERT_THAT(
      dat_ep_dup_connect(another.get(), pair.client.get(), DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT),
      Succeeds());
  ASSERT_THAT(dat_cr_accept(arrival().cr_handle, own.get(), 0, nullptr), Succeeds());
  EXPECT_EQ(
      expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data.ep_handle,
      another.get());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_no_event(client.connect.get());
}

// EVT-5: an address that leads nowhere (no router takes TEST-NET-1 on). Refused at once, unreachable, or timed out:
// ruling A72 lets each be.
TEST_P(EventConnection, SilentHostEndsInOneEvent) {
  sockaddr_in nowhere{};
  nowhere.sin_family = AF_INET;
  nowhere.sin_addr.s_addr = htonl(0xC0000201);
  const Ep ep(client);
  const DAT_RETURN rc = dat_ep_connect(ep.get(), reinterpret_cast<DAT_IA_ADDRESS_PTR>(&nowhere), 12345, 100'000, 0,
                                       nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
  if (rc != DAT_SUCCESS) {
    EXPECT_THAT(rc, HasType(DAT_INVALID_ADDRESS));
    EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
    return;
  }
  const auto event = wait_event(client.connect.get());
  ASSERT_TRUE(event);
  EXPECT_TRUE(event->event_number == DAT_CONNECTION_EVENT_UNREACHABLE ||
              event->event_number == DAT_CONNECTION_EVENT_TIMED_OUT ||
              event->event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED)
      << event_name(event->event_number);
  EXPECT_EQ(event->event_data.connect_event_data.ep_handle, ep.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
  expect_no_event(client.connect.get());
}

// EVT-7, EVT-23, EVT-26
TEST_P(EventConnection, EachConnectionEndsInOneEventPerSide) {
  {
    const Connection pair = connect_pair(server, client);
    ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
    expect_only(client, pair.client, DAT_CONNECTION_EVENT_DISCONNECTED);
    expect_only(server, pair.server, DAT_CONNECTION_EVENT_DISCONNECTED);
  }
  {
    const Connection pair = connect_pair(server, client);
    ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    expect_only(client, pair.client, DAT_CONNECTION_EVENT_DISCONNECTED);
    expect_only(server, pair.server, DAT_CONNECTION_EVENT_DISCONNECTED);
  }
  {
    const Connection pair = connect_pair(server, client);
    DAT_LMR_TRIPLET tiny = sink.triplet(0, 1);
    ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &tiny, {}, DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    send(pair.client, 1);
    expect_only(server, pair.server, DAT_CONNECTION_EVENT_BROKEN);
    const auto event = wait_event(client.connect.get());
    ASSERT_TRUE(event);
    EXPECT_TRUE(event->event_number == DAT_CONNECTION_EVENT_BROKEN ||
                event->event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
    expect_no_event(client.connect.get());
  }
  {
    Connection pair = connect_pair(server, client);
    ASSERT_THAT(pair.client.free(), Succeeds());
    expect_only(server, pair.server, DAT_CONNECTION_EVENT_DISCONNECTED);
    expect_no_event(client.connect.get());
  }
}

// EVT-24, EVT-25, EVT-28, EVT-30, ruling A78: all sizes up to the largest, in both directions, to the byte.
TEST_P(EventConnection, PrivateDataTravelsWholeInBothDirections) {
  const DAT_COUNT most = most_private_data();
  ASSERT_GE(most, 64);
  const DAT_CONN_QUAL qualifier = server.listen();
  for (const DAT_COUNT size : {0, 1, 2, 63, 64, most - 1, most}) {
    SCOPED_TRACE(size);
    const Ep peer(client);
    const Ep own(server);
    std::vector<std::byte> request = bytes_of(static_cast<std::size_t>(size), 3);
    std::vector<std::byte> reply = bytes_of(static_cast<std::size_t>(most - size), 5);
    ASSERT_THAT(try_connect(peer, qualifier, DAT_TIMEOUT_INFINITE, size, request.data()), Succeeds());
    const std::vector<std::byte> sent = request;
    std::fill(request.begin(), request.end(), std::byte{0});  // it is the caller's again
    const DAT_CR_HANDLE cr = arrival().cr_handle;
    const DAT_CR_PARAM param = query_cr(cr);
    ASSERT_EQ(param.private_data_size, size);
    if (size > 0) {
      EXPECT_EQ(std::memcmp(param.private_data, sent.data(), sent.size()), 0);
    }
    ASSERT_THAT(dat_cr_accept(cr, own.get(), most - size, reply.data()), Succeeds());
    const std::vector<std::byte> answered = reply;
    std::fill(reply.begin(), reply.end(), std::byte{0});
    const auto active = expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EQ(active.event_data.connect_event_data.ep_handle, peer.get());
    EXPECT_EQ(delivered(active.event_data.connect_event_data), answered);
    const auto passive = expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EQ(passive.event_data.connect_event_data.ep_handle, own.get());
    EXPECT_EQ(passive.event_data.connect_event_data.private_data_size, 0);
    ASSERT_THAT(dat_ep_disconnect(peer.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    expect_only(client, peer, DAT_CONNECTION_EVENT_DISCONNECTED);
    expect_only(server, own, DAT_CONNECTION_EVENT_DISCONNECTED);
  }
}

// EVT-27, PD-6, ruling A76: it is there while the endpoint is connected, disconnecting or disconnected, whatever else
// happens.
TEST_P(EventConnection, PrivateDataStaysUntilTheEndpointLeavesTheConnection) {
  const Ep peer(client);
  const Ep own(server);
  const std::vector<std::byte> reply = bytes_of(64, 9);
  const DAT_CONNECTION_EVENT_DATA data = connect_pair(server, own.get(), peer.get(), {.request = {}, .reply = reply});
  EXPECT_EQ(delivered(data), reply);
  for (int i = 0; i < 8; ++i) {
    const Ep other_own(server);
    const Ep other(client);  // goes first, so that it does not hear of the other's end
    connect_pair(server, other_own.get(), other.get(), {.request = bytes_of(64, 1), .reply = bytes_of(64, 2)});
  }
  EXPECT_EQ(delivered(data), reply);
  ASSERT_THAT(dat_ep_disconnect(peer.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  EXPECT_EQ(delivered(data), reply);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_EQ(peer.state(), DAT_EP_STATE_DISCONNECTED);
  EXPECT_EQ(delivered(data), reply);
}

// EVT-29, PD-1, PD-2
TEST_P(EventConnection, TooMuchPrivateDataIsRefused) {
  const DAT_COUNT most = most_private_data();
  const DAT_CONN_QUAL qualifier = server.listen();
  std::vector<std::byte> data = bytes_of(static_cast<std::size_t>(most) + 1, 1);
  const Ep peer(client);
  const Ep own(server);
  for (const DAT_COUNT size : {most + 1, 0x7FFFFFFF, -1}) {
    EXPECT_THAT(try_connect(peer, qualifier, DAT_TIMEOUT_INFINITE, size, data.data()), HasType(DAT_INVALID_PARAMETER))
        << size;
    EXPECT_EQ(peer.state(), DAT_EP_STATE_UNCONNECTED);
  }
  EXPECT_THAT(try_connect(peer, qualifier, DAT_TIMEOUT_INFINITE, 1, nullptr), HasType(DAT_INVALID_PARAMETER));
  connect(peer.get(), qualifier);
  const DAT_CR_HANDLE cr = arrival().cr_handle;
  for (const DAT_COUNT size : {most + 1, 0x7FFFFFFF, -1}) {
    EXPECT_THAT(dat_cr_accept(cr, own.get(), size, data.data()), HasType(DAT_INVALID_PARAMETER)) << size;
    EXPECT_EQ(own.state(), DAT_EP_STATE_UNCONNECTED);
  }
  ASSERT_THAT(dat_cr_accept(cr, own.get(), most, data.data()), Succeeds());
  EXPECT_EQ(expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED)
                .event_data.connect_event_data.private_data_size,
            most);
}

// EVT-3: the number alone tells the kind.
TEST(EventNumbers, BitsAboveTheLowTwelveNameTheKind) {
  EXPECT_EQ(DAT_DTO_COMPLETION_EVENT >> 12, 0x00);
  EXPECT_EQ(DAT_RMR_BIND_COMPLETION_EVENT >> 12, 0x01);
  EXPECT_EQ(DAT_CONNECTION_REQUEST_EVENT >> 12, 0x02);
  for (const DAT_EVENT_NUMBER number :
       {DAT_CONNECTION_EVENT_ESTABLISHED, DAT_CONNECTION_EVENT_PEER_REJECTED, DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
        DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, DAT_CONNECTION_EVENT_DISCONNECTED, DAT_CONNECTION_EVENT_BROKEN,
        DAT_CONNECTION_EVENT_TIMED_OUT, DAT_CONNECTION_EVENT_UNREACHABLE}) {
    EXPECT_EQ(number >> 12, 0x04);
  }
  for (const DAT_EVENT_NUMBER number :
       {DAT_ASYNC_ERROR_EVD_OVERFLOW, DAT_ASYNC_ERROR_IA_CATASTROPHIC, DAT_ASYNC_ERROR_EP_BROKEN,
        DAT_ASYNC_ERROR_TIMED_OUT, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR}) {
    EXPECT_EQ(number >> 12, 0x08);
  }
  EXPECT_EQ(DAT_SOFTWARE_EVENT >> 12, 0x10);
}

ANYDAT_OVER_ALL_WIRES(EventConnection);

}  // namespace
}  // namespace anydat::test
