// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_connect: section 3.5 of the rules. Outcomes are in ep_transitions.cc, private data in
// connection_private_data.cc.
#include <netinet/in.h>

#include <cstring>

#include "ep_states.h"
#include "support/properties.h"
#include "support/versions.h"

namespace anydat::test {
namespace {

using std::chrono::milliseconds;

class EpConnect : public EpStateTest {
 protected:
  struct Arguments {
    DAT_EP_HANDLE ep;
    DAT_IA_ADDRESS_PTR address = loopback();
    DAT_CONN_QUAL qualifier;
    DAT_TIMEOUT timeout = DAT_TIMEOUT_INFINITE;
    DAT_QOS qos = DAT_QOS_BEST_EFFORT;
    DAT_CONNECT_FLAGS flags = DAT_CONNECT_DEFAULT_FLAG;
  };
  static DAT_RETURN connect(const Arguments& args) {
    return dat_ep_connect(args.ep, args.address, args.qualifier, args.timeout, 0, nullptr, args.qos, args.flags);
  }

  // EP-CONN-16: an error leaves the endpoint as it was, with its receives, and reports nothing.
  void expect_untouched(const Ep& ep, const OwnEvds& evds, Caller caller = Caller::here()) {
    const testing::ScopedTrace trace(caller.file, caller.line, "after a refused connect");
    EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
    EXPECT_FALSE(poll_event(evds.connect.get()));
    EXPECT_FALSE(poll_event(evds.recv.get()));
    DAT_BOOLEAN recv_idle = DAT_TRUE;
    require(dat_ep_get_status(ep.get(), nullptr, &recv_idle, nullptr), "dat_ep_get_status");
    EXPECT_EQ(recv_idle, DAT_FALSE) << "the posted receive is gone";
  }
};

TEST_P(EpConnect, ReturnsBeforeTheOutcome) {
  // EP-CONN-2, EP-CONN-5
  const Ep ep(client);
  ASSERT_THAT(try_connect(ep.get(), server.listen()), Succeeds());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  EXPECT_NE(ep.query().local_port_qual, 0u);
  expect_request(server.requests.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  expect_no_event(client.connect.get());
}

TEST_P(EpConnect, ReachesTheServicePointItNames) {
  // EP-CONN-3
  const Evd one_requests(server.ia, DAT_EVD_CR_FLAG);
  const Evd other_requests(server.ia, DAT_EVD_CR_FLAG);
  const AnyPsp one(server.ia, one_requests.get());
  const AnyPsp other(server.ia, other_requests.get());
  const Ep ep(client);
  ASSERT_THAT(try_connect(ep.get(), other.qualifier()), Succeeds());
  const auto request = expect_request(other_requests.get());
  EXPECT_EQ(request.sp_handle.psp_handle, other.get());
  EXPECT_EQ(request.conn_qual, other.qualifier());
  EXPECT_FALSE(poll_event(one_requests.get()));
}

TEST_P(EpConnect, TimeoutRunsFromTheCallAndIsReportedOnce) {
  // EP-CONN-7, EP-CONN-8, EP-CONN-9, CONN-SEQ-7
  for (const int timeout_ms : {1, 30, 150}) {
    const OwnEvds evds(client);
    const Ep ep(client.ia, client.pz, evds, default_ep_attr());
    const auto start = std::chrono::steady_clock::now();
    ASSERT_THAT(try_connect(ep.get(), server.listen(), static_cast<DAT_TIMEOUT>(timeout_ms) * 1000), Succeeds());
    const auto event = wait_event(evds.connect.get());
    ASSERT_TRUE(event);
    EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(timeout_ms));
    // A very short one may be over before the host has been reached (ruling R52).
    if (timeout_ms == 1) {
      EXPECT_TRUE(event->event_number == DAT_CONNECTION_EVENT_TIMED_OUT ||
                  event->event_number == DAT_CONNECTION_EVENT_UNREACHABLE)
          << event_name(event->event_number);
    } else {
      EXPECT_EQ(event->event_number, DAT_CONNECTION_EVENT_TIMED_OUT) << event_name(event->event_number);
    }
    EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
    expect_no_event(evds.connect.get());
  }
}

TEST_P(EpConnect, AnOutcomeAfterTheTimeoutIsDiscarded) {
  ANYDAT_NEEDS_CONFIRMED_ACCEPTS(server.ia)
  // EP-CONN-9, CONN-SEQ-7
  const Ep ep(client);
  const Ep passive(server);
  const DAT_CR_HANDLE request = expired_request(server, ep.get(), client.connect.get());
  ASSERT_THAT(dat_cr_accept(request, passive.get(), 0, nullptr), Succeeds());
  expect_connection_event(server.connect.get(), DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, passive.get());
  expect_no_event(client.connect.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
}

TEST_P(EpConnect, InfiniteTimeoutDoesNotExpire) {
  // EP-CONN-8
  const Ep ep(client);
  ASSERT_THAT(try_connect(ep.get(), server.listen(), DAT_TIMEOUT_INFINITE), Succeeds());
  const DAT_CR_HANDLE request = expect_request(server.requests.get()).cr_handle;
  expect_no_event(client.connect.get());
  const Ep passive(server);
  ASSERT_THAT(dat_cr_accept(request, passive.get(), 0, nullptr), Succeeds());
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST_P(EpConnect, ADeadlineEndsWithItsAttempt) {
  // EP-CONN-8, EP-CONN-9, EP-RESET-1: it does not reach the next attempt of the endpoint.
  constexpr DAT_TIMEOUT kTimeout = 150'000;
  const OwnEvds evds(client), control_evds(client);
  const Ep ep(client.ia, client.pz, evds, default_ep_attr());
  const Ep control(client.ia, client.pz, control_evds, default_ep_attr());
  const DAT_CONN_QUAL nobody = unused_qualifier(server);
  ASSERT_THAT(try_connect(ep.get(), nobody, kTimeout), Succeeds());
  const auto outcome = wait_event(evds.connect.get());
  ASSERT_TRUE(outcome);
  ASSERT_THAT(dat_ep_reset(ep.get()), Succeeds());
  ASSERT_THAT(try_connect(ep.get(), server.listen(), DAT_TIMEOUT_INFINITE), Succeeds());
  const DAT_CR_HANDLE request = expect_request(server.requests.get()).cr_handle;
  // By the end of a time that began later, the first has passed.
  ASSERT_THAT(try_connect(control.get(), server.listen(), kTimeout), Succeeds());
  expect_event(control_evds.connect.get(), DAT_CONNECTION_EVENT_TIMED_OUT);
  EXPECT_FALSE(poll_event(evds.connect.get()));
  EXPECT_EQ(ep.state(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  const Ep passive(server);
  ASSERT_THAT(dat_cr_accept(request, passive.get(), 0, nullptr), Succeeds());
  expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, ep.get());
}

TEST_P(EpConnect, ZeroTimeoutIsInvalid) {
  // EP-CONN-8, EP-CONN-16
  const OwnEvds evds(client);
  const Ep ep(client.ia, client.pz, evds, default_ep_attr());
  post_recv(ep, client_buffers, 0);
  EXPECT_THAT(try_connect(ep.get(), server.listen(), 0), HasType(DAT_INVALID_PARAMETER));
  expect_untouched(ep, evds);
}

TEST_P(EpConnect, NoQualifierNamesNobody) {
  // EP-CONN-3, EP-CONN-16
  const OwnEvds evds(client);
  const Ep ep(client.ia, client.pz, evds, default_ep_attr());
  post_recv(ep, client_buffers, 0);
  server.listen();
  const DAT_RETURN rc = try_connect(ep.get(), 0);
  EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG3));
  expect_untouched(ep, evds);
  EXPECT_FALSE(poll_event(server.requests.get()));
}

TEST_P(EpConnect, BadAddressesAreRefusedAtOnce) {
  // EP-CONN-10, EP-CONN-16
  const OwnEvds evds(client);
  const Ep ep(client.ia, client.pz, evds, default_ep_attr());
  post_recv(ep, client_buffers, 0);
  const auto refused = [&](const void* address, std::optional<DAT_RETURN> subtype, Caller caller = Caller::here()) {
    const testing::ScopedTrace trace(caller.file, caller.line, "address");
    const DAT_RETURN rc = connect({.ep = ep.get(),
                                   .address = static_cast<DAT_IA_ADDRESS_PTR>(const_cast<void*>(address)),
                                   .qualifier = server.listen()});
    EXPECT_THAT(rc, HasType(DAT_INVALID_ADDRESS));
    if (subtype) {
      EXPECT_THAT(rc, HasSubtype(*subtype));
    }
    expect_untouched(ep, evds);
  };
  refused(nullptr, std::nullopt);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  for (const std::uint32_t group : {0xE0000001u, 0xEFFFFFFFu, 0xFFFFFFFFu}) {  // multicast, broadcast
    v4.sin_addr.s_addr = htonl(group);
    refused(&v4, DAT_INVALID_ADDRESS_UNSUPPORTED);
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr.s6_addr[0] = 0xFF;
  v6.sin6_addr.s6_addr[1] = 0x02;
  v6.sin6_addr.s6_addr[15] = 1;
  refused(&v6, DAT_INVALID_ADDRESS_UNSUPPORTED);
  sockaddr_storage other{};
  for (const sa_family_t family : {AF_UNSPEC, AF_UNIX, 250}) {
    other.ss_family = family;
    refused(&other, DAT_INVALID_ADDRESS_MALFORMED);
  }
}

TEST_P(EpConnect, QosMustBeSupported) {
  // EP-CONN-11, EP-CONN-16, GEN-13, ATTR-1
  const unsigned supported = client.ia.provider().dat_qos_supported;
  for (unsigned qos = 0; qos <= 0x10; ++qos) {
    const OwnEvds evds(client);
    const Ep ep(client.ia, client.pz, evds, default_ep_attr());
    post_recv(ep, client_buffers, 0);
    const DAT_RETURN rc = connect({.ep = ep.get(), .qualifier = server.listen(), .qos = static_cast<DAT_QOS>(qos)});
    if ((qos & ~supported) == 0) {
      EXPECT_THAT(rc, Succeeds()) << qos;
    } else {
      EXPECT_THAT(rc, HasType(DAT_MODEL_NOT_SUPPORTED)) << qos;
      expect_untouched(ep, evds);
    }
  }
}

TEST_P(EpConnect, ConnectFlagsAreChecked) {
  // EP-CONN-11, EP-CONN-16, GEN-13, ATTR-1
  const OwnEvds evds(client);
  const Ep ep(client.ia, client.pz, evds, default_ep_attr());
  post_recv(ep, client_buffers, 0);
  for (const int bad : {kIsVersion1 ? 2 : 3, 4, 0x100}) {
    EXPECT_THAT(connect({.ep = ep.get(), .qualifier = server.listen(), .flags = static_cast<DAT_CONNECT_FLAGS>(bad)}),
                HasType(DAT_INVALID_PARAMETER));
    expect_untouched(ep, evds);
  }
  const DAT_RETURN rc = connect({.ep = ep.get(), .qualifier = server.listen(), .flags = DAT_CONNECT_MULTIPATH_FLAG});
  if (client.ia.provider().supports_multipath == DAT_TRUE || !kIsVersion1) {  // D2-CONN-2: only wished for
    EXPECT_THAT(rc, Succeeds());
  } else {
    EXPECT_THAT(rc, HasType(DAT_MODEL_NOT_SUPPORTED));
    expect_untouched(ep, evds);
  }
}

TEST_P(EpConnect, NeedsAZoneAndAConnectEvd) {
  // EP-CONN-12, EP-SM-3
  const EpEvds evds = evds_of(client);
  DAT_EP_ATTR attr = default_ep_attr();
  DAT_EP_HANDLE handle = DAT_HANDLE_NULL;
  require(dat_ep_create(client.ia.get(), DAT_HANDLE_NULL, evds.recv, evds.request, evds.connect, &attr, &handle),
          "dat_ep_create");
  const Owner<dat_ep_free> without_zone(handle);
  DAT_RETURN rc = try_connect(without_zone.get(), server.listen());
  EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_EP_NOTREADY));
  EXPECT_EQ(state_of(without_zone.get()), DAT_EP_STATE_UNCONNECTED);

  require(dat_ep_create(client.ia.get(), client.pz.get(), evds.recv, evds.request, DAT_HANDLE_NULL, &attr, &handle),
          "dat_ep_create");
  const Owner<dat_ep_free> without_evd(handle);
  rc = try_connect(without_evd.get(), server.listen());
  EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EVD_CONN));
  EXPECT_EQ(state_of(without_evd.get()), DAT_EP_STATE_UNCONNECTED);

  attr.max_recv_dtos = 0;
  attr.max_request_dtos = 0;
  require(
      dat_ep_create(client.ia.get(), client.pz.get(), DAT_HANDLE_NULL, DAT_HANDLE_NULL, evds.connect, &attr, &handle),
      "dat_ep_create");
  const Owner<dat_ep_free> without_dtos(handle);
  const Ep passive(server);
  connect_pair(server, passive.get(), without_dtos.get());
}

TEST_P(EpConnect, CopiesAddressAndPrivateData) {
  // EP-CONN-14, PD-8
  const Ep ep(client);
  sockaddr_in address{};
  std::memcpy(&address, loopback(), sizeof address);
  std::vector<std::byte> data = bytes_of("who is calling");
  const std::vector<std::byte> sent = data;
  ASSERT_THAT(
      dat_ep_connect(ep.get(), reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), server.listen(), DAT_TIMEOUT_INFINITE,
                     static_cast<DAT_COUNT>(data.size()), data.data(), DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
      Succeeds());
  std::memset(&address, 0xFF, sizeof address);
  std::fill(data.begin(), data.end(), std::byte{0});
  const DAT_CR_PARAM request = query_request(expect_request(server.requests.get()).cr_handle);
  EXPECT_EQ(bytes_of(request.private_data, request.private_data_size), sent);
}

TEST_P(EpConnect, ReceivesCanBePostedBeforeDuringAndAfter) {
  // EP-CONN-15, RECV-2, RECV-4
  const Pair pair = make_pair();
  post_recv(pair.client, client_buffers, 0);
  ASSERT_THAT(try_connect(pair.client.get(), server.listen()), Succeeds());
  post_recv(pair.client, client_buffers, 1);
  const DAT_CR_HANDLE request = expect_request(server.requests.get()).cr_handle;
  ASSERT_THAT(dat_cr_accept(request, pair.server.get(), 0, nullptr), Succeeds());
  expect_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  post_recv(pair.client, client_buffers, 2);
  post_send(pair.server, server_buffers, 10, 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(expect_completion(pair.client_evds.recv.get()).user_cookie.as_64, static_cast<DAT_UINT64>(i));
    EXPECT_TRUE(has_pattern(client_buffers[i].first(32), static_cast<DAT_UINT64>(10 + i)));
  }
}

TEST_P(EpConnect, SetupChangesNoAttributeOfTheConsumer) {
  // EP-CONN-17
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_rdma_read_in = 3;
  attr.max_rdma_read_out = 1;
  attr.max_message_size = 5000;
  const Pair pair = make_pair(default_ep_attr(), attr);
  const DAT_EP_ATTR before = pair.client.query().ep_attr;
  connect_pair(server, pair.server.get(), pair.client.get());
  const DAT_EP_ATTR after = pair.client.query().ep_attr;
  EXPECT_EQ(after.max_rdma_read_in, before.max_rdma_read_in);
  EXPECT_EQ(after.max_rdma_read_out, before.max_rdma_read_out);
  EXPECT_EQ(after.max_message_size, before.max_message_size);
  EXPECT_EQ(after.max_rdma_size, before.max_rdma_size);
  EXPECT_EQ(after.qos, before.qos);
  EXPECT_EQ(after.recv_completion_flags, before.recv_completion_flags);
  EXPECT_EQ(after.request_completion_flags, before.request_completion_flags);
  EXPECT_EQ(after.max_recv_dtos, before.max_recv_dtos);
  EXPECT_EQ(after.max_request_dtos, before.max_request_dtos);
  EXPECT_EQ(after.max_recv_iov, before.max_recv_iov);
  EXPECT_EQ(after.max_request_iov, before.max_request_iov);
  EXPECT_EQ(after.max_rdma_read_iov, before.max_rdma_read_iov);
  EXPECT_EQ(after.max_rdma_write_iov, before.max_rdma_write_iov);
}

TEST_P(EpConnect, ReachesAServicePointOfItsOwnAdapter) {
  // EP-CONN-19
  const OwnEvds evds(server);
  const OwnEvds other_evds(server);
  const Ep passive(server.ia, server.pz, evds, default_ep_attr());
  const Ep active(server.ia, server.pz, other_evds, default_ep_attr());
  connect_pair(server, passive.get(), active.get());
  post_recv(passive, server_buffers, 0);
  post_send(active, server_buffers, 1);
  expect_completion(evds.recv.get());
  EXPECT_TRUE(has_pattern(server_buffers[0].first(32), 1));
}

TEST_P(EpConnect, NeedsAResetAfterDisconnected) {
  // EP-CONN-20, EP-RESET-1
  const Ep ep(client);
  const Ep passive(server);
  ASSERT_THAT(try_connect(ep.get(), server.listen()), Succeeds());
  ASSERT_THAT(dat_cr_reject(expect_request(server.requests.get()).cr_handle), Succeeds());
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
  const DAT_RETURN rc = try_connect(ep.get(), server.listen());
  EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_EP_DISCONNECTED));
  ASSERT_THAT(dat_ep_reset(ep.get()), Succeeds());
  connect_pair(server, passive.get(), ep.get());
}

TEST_P(EpConnect, ChecksItsHandle) {
  // EP-CONN-21, GEN-2
  Ep freed(client);
  const DAT_EP_HANDLE stale = freed.get();
  freed.reset();
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, client.pz.get()}) {
    const DAT_RETURN rc = try_connect(bad, server.listen());
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
  }
}

ANYDAT_OVER_ALL_WIRES(EpConnect);

}  // namespace
}  // namespace anydat::test
