// SPDX-License-Identifier: BSD-3-Clause
// Connection requests: dat_cr_query, dat_cr_accept, dat_cr_reject, sections 5.5 to 5.7 of the rules.
#include <netinet/in.h>

#include "ep_states.h"

namespace anydat::test {
namespace {

class CrTest : public EpStateTest {
 protected:
  // An endpoint of the client asks; returns the request.
  DAT_CR_HANDLE request_from(const Ep& ep, const std::vector<std::byte>& data = {}) {
    require(
        dat_ep_connect(ep.get(), loopback(), server.listen(), DAT_TIMEOUT_INFINITE, static_cast<DAT_COUNT>(data.size()),
                       const_cast<std::byte*>(data.data()), DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
        "dat_ep_connect");
    return expect_request(server.requests.get()).cr_handle;
  }
  // A request that has been answered.
  DAT_CR_HANDLE dead_request() {
    const Ep ep(client);
    const DAT_CR_HANDLE request = request_from(ep);
    require(dat_cr_reject(request), "dat_cr_reject");
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
    return request;
  }
};

// ---- query

TEST_P(CrTest, QueryFillsEachFieldThatTheMaskNames) {
  // CR-QUERY-1, GEN-7
  static_assert(DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR == 0x1 && DAT_CR_FIELD_REMOTE_PORT_QUAL == 0x2 &&
                DAT_CR_FIELD_PRIVATE_DATA_SIZE == 0x4 && DAT_CR_FIELD_PRIVATE_DATA == 0x8 &&
                DAT_CR_FIELD_LOCAL_EP_HANDLE == 0x10 && DAT_CR_FIELD_ALL == 0x1F);
  const Ep ep(client);
  const DAT_CR_HANDLE request = request_from(ep, bytes_of("hello"));
  const DAT_CR_PARAM all = query_request(request);
  const auto with = [&](int mask) {
    DAT_CR_PARAM param{};
    EXPECT_THAT(dat_cr_query(request, static_cast<DAT_CR_PARAM_MASK>(mask), &param), Succeeds()) << mask;
    return param;
  };
  with(0);
  EXPECT_EQ(with(DAT_CR_FIELD_REMOTE_PORT_QUAL).remote_port_qual, all.remote_port_qual);
  EXPECT_NE(with(DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR).remote_ia_address_ptr, nullptr);
  EXPECT_EQ(with(DAT_CR_FIELD_PRIVATE_DATA_SIZE).private_data_size, 5);
  EXPECT_EQ(bytes_of(with(DAT_CR_FIELD_PRIVATE_DATA).private_data, 5), bytes_of("hello"));
  EXPECT_EQ(with(DAT_CR_FIELD_LOCAL_EP_HANDLE).local_ep_handle, all.local_ep_handle);
}

TEST_P(CrTest, QueryIdentifiesWhoAsks) {
  // CR-QUERY-2, CR-QUERY-3, CR-QUERY-5, EP-CONN-2
  const Ep one(client);
  const Ep two(client);
  const DAT_CR_PARAM first = query_request(request_from(one, bytes_of("first")));
  const DAT_CR_PARAM second = query_request(request_from(two, bytes_of("the second")));
  EXPECT_EQ(first.remote_port_qual, one.query().local_port_qual);
  EXPECT_EQ(second.remote_port_qual, two.query().local_port_qual);
  EXPECT_NE(first.remote_port_qual, second.remote_port_qual);
  EXPECT_EQ(bytes_of(first.private_data, first.private_data_size), bytes_of("first"));
  EXPECT_EQ(bytes_of(second.private_data, second.private_data_size), bytes_of("the second"));
  ASSERT_NE(first.remote_ia_address_ptr, nullptr);
  EXPECT_EQ(first.remote_ia_address_ptr->sa_family, client.ia.attributes().ia_address_ptr->sa_family);
  if (first.remote_ia_address_ptr->sa_family == AF_INET) {
    EXPECT_EQ(reinterpret_cast<const sockaddr_in*>(first.remote_ia_address_ptr)->sin_addr.s_addr,
              reinterpret_cast<const sockaddr_in*>(client.ia.attributes().ia_address_ptr)->sin_addr.s_addr);
  }
}

TEST_P(CrTest, QueriedDataStayUntilTheRequestIsAnswered) {
  // CR-QUERY-6, PD-7
  const Ep ep(client);
  const DAT_CR_HANDLE request = request_from(ep, bytes_of("stay"));
  const DAT_CR_PARAM before = query_request(request);
  for (int i = 0; i < 10; ++i) {
    (void)dead_request();
  }
  EXPECT_EQ(bytes_of(before.private_data, before.private_data_size), bytes_of("stay"));
  EXPECT_NE(before.remote_ia_address_ptr->sa_family, AF_UNSPEC);
  EXPECT_EQ(query_request(request).remote_port_qual, before.remote_port_qual);
}

TEST_P(CrTest, QueryChecksItsArguments) {
  // CR-QUERY-7, GEN-2, GEN-7
  const Ep ep(client);
  const DAT_CR_HANDLE request = request_from(ep);
  DAT_CR_PARAM param{};
  EXPECT_THAT(dat_cr_query(request, static_cast<DAT_CR_PARAM_MASK>(0x20), &param), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_cr_query(request, DAT_CR_FIELD_ALL, nullptr), HasType(DAT_INVALID_PARAMETER));
  for (const DAT_HANDLE bad :
       {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), dead_request(), server.psp->get(), server.requests.get()}) {
    const DAT_RETURN rc = dat_cr_query(bad, DAT_CR_FIELD_ALL, &param);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_CR));
  }
}

// ---- accept

TEST_P(CrTest, AcceptConnectsTheTwo) {
  // CR-ACC-1, CR-ACC-2, CR-ACC-3, CONN-SEQ-1, PD-4, PD-5, CONN-1, CONN-2
  const Pair pair = make_pair();
  const DAT_CR_HANDLE request = request_from(pair.client);
  const std::vector<std::byte> reply = bytes_of("come in");
  EXPECT_EQ(pair.client.state(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  ASSERT_THAT(dat_cr_accept(request, pair.server.get(), static_cast<DAT_COUNT>(reply.size()),
                            const_cast<std::byte*>(reply.data())),
              Succeeds());
  const DAT_EP_STATE state = pair.server.state();
  EXPECT_TRUE(state == DAT_EP_STATE_COMPLETION_PENDING || state == DAT_EP_STATE_CONNECTED) << state_name(state);
  DAT_CR_PARAM param{};
  EXPECT_THAT(dat_cr_query(request, DAT_CR_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_cr_accept(request, pair.server.get(), 0, nullptr), HasType(DAT_INVALID_HANDLE));
  const auto passive =
      expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, pair.server.get());
  EXPECT_EQ(passive.private_data_size, 0);
  const auto active =
      expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, pair.client.get());
  EXPECT_EQ(bytes_of(active.private_data, active.private_data_size), reply);
  EXPECT_EQ(pair.server.state(), DAT_EP_STATE_CONNECTED);
  EXPECT_EQ(pair.client.state(), DAT_EP_STATE_CONNECTED);
  expect_working(pair);
}

TEST_P(CrTest, ARefusedAcceptChangesNothing) {
  // CR-ACC-6, GEN-6
  const OwnEvds evds(client);
  const Ep ep(client.ia, client.pz, evds, default_ep_attr());
  const DAT_CR_HANDLE request = request_from(ep, bytes_of("patient"));
  const HeldEp connected(server, client, GetParam(), DAT_EP_STATE_CONNECTED);
  EXPECT_THAT(dat_cr_accept(request, connected.get(), 0, nullptr), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(dat_cr_accept(request, DAT_HANDLE_NULL, 0, nullptr), HasType(DAT_INVALID_HANDLE));
  EXPECT_EQ(connected.state(), DAT_EP_STATE_CONNECTED);
  const DAT_CR_PARAM param = query_request(request);
  EXPECT_EQ(bytes_of(param.private_data, param.private_data_size), bytes_of("patient"));
  EXPECT_EQ(ep.state(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  EXPECT_FALSE(poll_event(evds.connect.get()));
  const Ep another(server);
  ASSERT_THAT(dat_cr_accept(request, another.get(), 0, nullptr), Succeeds());
  expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, ep.get());
}

TEST_P(CrTest, AcceptNamesAnEndpointExactlyWhenTheRequestHasNone) {
  // CR-ACC-7
  const Ep ep(client);
  const DAT_CR_HANDLE request = request_from(ep);
  const DAT_RETURN rc = dat_cr_accept(request, DAT_HANDLE_NULL, 0, nullptr);
  EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
  for (const DAT_EP_STATE state :
       {DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING}) {
    const HeldEp held(server, client, GetParam(), state);
    const Ep other(server);
    for (const DAT_EP_HANDLE named : {held.get(), other.get()}) {
      const DAT_RETURN refused = dat_cr_accept(held.request(), named, 0, nullptr);
      EXPECT_THAT(refused, HasType(DAT_INVALID_HANDLE)) << state_name(state);
      EXPECT_THAT(refused, HasSubtype(DAT_INVALID_HANDLE_EP)) << state_name(state);
    }
    EXPECT_EQ(held.state(), state);
    EXPECT_EQ(other.state(), DAT_EP_STATE_UNCONNECTED);
  }
}

TEST_P(CrTest, AcceptNeedsAConfiguredEndpoint) {
  // CR-ACC-9
  const Ep caller(client);
  const DAT_CR_HANDLE request = request_from(caller);
  const EpEvds evds = evds_of(server);
  DAT_EP_ATTR attr = default_ep_attr();
  const auto create = [&](DAT_PZ_HANDLE pz, const EpEvds& given) {
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    require(dat_ep_create(server.ia.get(), pz, given.recv, given.request, given.connect, &attr, &ep), "dat_ep_create");
    return Owner<dat_ep_free>(ep);
  };
  const auto refused = [&](const Owner<dat_ep_free>& ep) {
    const DAT_RETURN rc = dat_cr_accept(request, ep.get(), 0, nullptr);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
    EXPECT_EQ(state_of(ep.get()), DAT_EP_STATE_UNCONNECTED);
  };
  refused(create(DAT_HANDLE_NULL, evds));
  refused(create(server.pz.get(), {.recv = evds.recv, .request = evds.request, .connect = DAT_HANDLE_NULL}));
  attr.max_recv_dtos = 0;
  attr.max_request_dtos = 0;
  const auto without_dtos =
      create(server.pz.get(), {.recv = DAT_HANDLE_NULL, .request = DAT_HANDLE_NULL, .connect = evds.connect});
  EXPECT_THAT(dat_cr_accept(request, without_dtos.get(), 0, nullptr), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST_P(CrTest, AcceptChecksItsHandles) {
  // CR-ACC-11, GEN-2, GEN-12
  const Ep ep(server);
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), dead_request(), server.psp->get()}) {
    const DAT_RETURN rc = dat_cr_accept(bad, ep.get(), 0, nullptr);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_CR));
  }
  const Ep caller(client);
  const DAT_CR_HANDLE request = request_from(caller);
  const Ep of_another_instance(client);
  for (const DAT_HANDLE bad : {of_another_instance.get(), server.pz.get()}) {
    const DAT_RETURN rc = dat_cr_accept(request, bad, 0, nullptr);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
  }
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
}

TEST_P(CrTest, AnyEndpointMayAccept) {
  // CR-ACC-12
  const Pz other_zone(server.ia);
  const Srq srq(server.ia, server.pz, 4);
  const std::vector<std::function<Ep()>> kinds{
      [&] { return Ep(server); },
      [&] { return Ep(server.ia, other_zone, evds_of(server), default_ep_attr()); },
      [&] { return Ep(server, srq); },
      [&] { return Ep(server.ia, other_zone, evds_of(server), srq, default_srq_ep_attr()); },
  };
  for (const auto& make : kinds) {
    const Ep passive = make();
    const Ep active(client);
    connect_pair(server, passive.get(), active.get());
  }
}

TEST_P(CrTest, FittingReadDepthsConnect) {
  // CR-ACC-13, EP-CONN-18
  const auto depths = [](DAT_COUNT in, DAT_COUNT out) {
    DAT_EP_ATTR attr = default_ep_attr();
    attr.max_rdma_read_in = in;
    attr.max_rdma_read_out = out;
    return attr;
  };
  expect_working(make_connected_pair(depths(4, 2), depths(2, 4)));
  expect_working(make_connected_pair(depths(8, 1), depths(3, 2)));
  expect_working(make_connected_pair(depths(0, 0), depths(0, 0)));
}

TEST_P(CrTest, MismatchedReadDepthsFailCleanlyOrConnect) {
  // CR-ACC-13, EP-CONN-18, EP-CONN-6
  DAT_EP_ATTR asks_much = default_ep_attr();
  asks_much.max_rdma_read_out = 8;
  DAT_EP_ATTR allows_little = default_ep_attr();
  allows_little.max_rdma_read_in = 1;
  const Pair pair = make_pair(allows_little, asks_much);
  const DAT_CR_HANDLE request = request_from(pair.client);
  const DAT_RETURN rc = dat_cr_accept(request, pair.server.get(), 0, nullptr);
  if (rc != DAT_SUCCESS) {
    EXPECT_EQ(pair.server.state(), DAT_EP_STATE_UNCONNECTED);
    EXPECT_THAT(dat_cr_reject(request), Succeeds());
    return;
  }
  const auto active = wait_event(pair.client_evds.connect.get());
  const auto passive = wait_event(pair.server_evds.connect.get());
  ASSERT_TRUE(active && passive);
  if (active->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
    EXPECT_EQ(passive->event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect_working(pair);
  } else {
    EXPECT_EQ(active->event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    EXPECT_EQ(passive->event_number, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
  }
}

TEST_P(CrTest, MessagesSentAtOnceAreHeldForEstablished) {
  // CR-ACC-14, SRQ-TAKE-2, SRQ-TAKE-3, CONN-1
  for (int round = 0; round < 20; ++round) {
    const Evd all(server.ia, static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG));
    const OwnEvds evds(client);
    const Ep passive(server.ia, server.pz, {.recv = all.get(), .request = server.request.get(), .connect = all.get()},
                     default_ep_attr());
    const Ep active(client.ia, client.pz, evds, default_ep_attr());
    post_recv(passive, server_buffers, 0, 3);
    ASSERT_THAT(dat_cr_accept(request_from(active), passive.get(), 0, nullptr), Succeeds());
    expect_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    post_send(active, client_buffers, 0, 3);
    expect_connection_event(all.get(), DAT_CONNECTION_EVENT_ESTABLISHED, passive.get());
    expect_completions(all.get(), 3);
  }
}

// ---- reject

TEST_P(CrTest, RejectTellsTheActiveSide) {
  // CR-REJ-1, CR-REJ-2, CONN-SEQ-4, PD-5
  const OwnEvds evds(client);
  const Ep ep(client.ia, client.pz, evds, default_ep_attr());
  post_recv(ep, client_buffers, 0, 2);
  const DAT_CR_HANDLE request = request_from(ep);
  ASSERT_THAT(dat_cr_reject(request), Succeeds());
  const auto data = expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED, ep.get());
  EXPECT_EQ(data.private_data_size, 0);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
  expect_completions(evds.recv.get(), 2, DAT_DTO_ERR_FLUSHED);
  DAT_CR_PARAM param{};
  EXPECT_THAT(dat_cr_query(request, DAT_CR_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
  expect_no_event(server.requests.get());
  expect_no_event(server.connect.get());
}

TEST_P(CrTest, RejectTakesBackTheEndpointOfTheProvider) {
  // CR-REJ-3, CONN-SEQ-4
  HeldEp ep(server, client, GetParam(), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
  ep.configure();
  ASSERT_THAT(dat_cr_reject(ep.request()), Succeeds());
  EXPECT_FALSE(ep.exists());
  DAT_EP_PARAM param{};
  EXPECT_THAT(dat_ep_query(ep.get(), DAT_EP_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
  expect_connection_event(ep.peer_evds().connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED, ep.peer().get());
}

TEST_P(CrTest, RejectFreesTheEndpointOfAReservedServicePoint) {
  // CR-REJ-4, RSP-CREATE-7, CONN-SEQ-4
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
  DAT_LMR_TRIPLET segment = server_buffers.triplet(0);
  ASSERT_THAT(dat_ep_post_recv(ep.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_THAT(dat_cr_reject(ep.request()), Succeeds());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
  EXPECT_FALSE(poll_event(ep.evds().recv.get())) << "preposted receives stay";
  const Ep caller(client);
  connect_pair(server, ep.get(), caller.get());
  post_send(caller, client_buffers, 1);
  EXPECT_EQ(expect_completion(ep.evds().recv.get()).user_cookie.as_64, 0u);
}

TEST_P(CrTest, RejectingWhoIsGoneSucceeds) {
  // CR-REJ-5
  DAT_CR_HANDLE request = DAT_HANDLE_NULL;
  {
    const Ep ep(client);
    request = request_from(ep);
  }
  EXPECT_THAT(dat_cr_reject(request), Succeeds());
  RemotePeer peer(GetParam());
  peer.connect(server.listen());
  request = expect_request(server.requests.get()).cr_handle;
  peer.kill();
  EXPECT_THAT(dat_cr_reject(request), Succeeds());
}

TEST_P(CrTest, RejectChecksItsHandle) {
  // CR-REJ-5, GEN-2, GEN-5
  for (const DAT_HANDLE bad :
       {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), dead_request(), server.psp->get(), server.pz.get()}) {
    const DAT_RETURN rc = dat_cr_reject(bad);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_CR));
  }
}

TEST_P(CrTest, EndpointsMayBeMadeAndChangedUntilTheAccept) {
  // CONN-3
  const Ep caller(client);
  const DAT_CR_HANDLE request = request_from(caller);
  const Ep ep(server);
  DAT_EP_PARAM param = ep.query();
  param.ep_attr.max_recv_dtos = 3;
  ASSERT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param), Succeeds());
  ASSERT_THAT(dat_cr_accept(request, ep.get(), 0, nullptr), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
}

ANYDAT_OVER_ALL_WIRES(CrTest);

}  // namespace
}  // namespace anydat::test
