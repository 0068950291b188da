// SPDX-License-Identifier: BSD-3-Clause
// Table 2.2 of the rules: which operation is allowed in which state. One test a row, all states in each. The rows of
// RDMA, binds, dup_connect and handoff stand with the other tests of those calls.
#include <algorithm>

#include "ep_states.h"

namespace anydat::test {
namespace {

class EpStateTable : public EpStateTest {};

bool one_of(DAT_EP_STATE state, std::initializer_list<DAT_EP_STATE> states) {
  return std::find(states.begin(), states.end(), state) != states.end();
}

TEST_P(EpStateTable, EveryStateIsReportedByStatusAndQuery) {
  // EP-SM-1, EP-SM-4 (get_status and query: ok in every state), EP-STATUS-1, EP-STATUS-7, EP-QUERY-9
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    const HeldEp ep(server, client, GetParam(), state);
    DAT_EP_STATE reported{};
    expect_unchanged(ep, state, dat_ep_get_status(ep.get(), &reported, nullptr, nullptr));
    EXPECT_EQ(reported, state);
    EXPECT_EQ(ep.query().ep_state, state);
    for (const Evd* evd : {&ep.evds().recv, &ep.evds().request, &ep.evds().connect}) {
      EXPECT_FALSE(poll_event(evd->get())) << state_name(state);
    }
  }
}

TEST_P(EpStateTable, RecvQueryWorksInEveryState) {
  // EP-SM-4
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    const HeldEp ep(server, client, GetParam(), state);
    DAT_COUNT allocated = -5;
    DAT_COUNT span = -5;
    expect_unchanged(ep, state, dat_ep_recv_query(ep.get(), &allocated, &span));
    EXPECT_EQ(allocated, 0) << state_name(state);
  }
}

TEST_P(EpStateTable, WatermarksCanBeSetInEveryState) {
  // EP-SM-4
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    const HeldEp ep(server, client, GetParam(), state);
    expect_unchanged(ep, state, dat_ep_set_watermark(ep.get(), 5, 10));
  }
}

TEST_P(EpStateTable, ConnectingNeedsUnconnected) {
  // EP-SM-4, EP-SM-27, EP-CONN-1
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    const HeldEp ep(server, client, GetParam(), state);
    const DAT_RETURN rc = try_connect(ep.get(), client.listen());
    if (state == DAT_EP_STATE_UNCONNECTED) {
      expect_unchanged(ep, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, rc);
    } else {
      expect_refused(ep, state, rc);
    }
  }
}

TEST_P(EpStateTable, ReservingNeedsUnconnected) {
  // EP-SM-4, EP-SM-27, RSP-CREATE-2
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    const HeldEp ep(server, client, GetParam(), state);
    const DAT_CONN_QUAL qualifier = unused_qualifier(server);
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    const DAT_RETURN rc = dat_rsp_create(server.ia.get(), qualifier, ep.get(), server.requests.get(), &rsp);
    if (state == DAT_EP_STATE_UNCONNECTED) {
      expect_unchanged(ep, DAT_EP_STATE_RESERVED, rc);
      EXPECT_THAT(dat_rsp_free(rsp), Succeeds());
      EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
    } else {
      expect_refused(ep, state, rc);
      // No service point listens there: the qualifier is still free.
      DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
      ASSERT_THAT(dat_psp_create(server.ia.get(), qualifier, server.requests.get(), DAT_PSP_CONSUMER_FLAG, &psp),
                  Succeeds());
      EXPECT_THAT(dat_psp_free(psp), Succeeds());
    }
  }
}

TEST_P(EpStateTable, FreeingTheServicePointReleasesOnlyAReservedEndpoint) {
  // EP-SM-4, RSP-FREE-1, RSP-FREE-2
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    if (one_of(state, {DAT_EP_STATE_UNCONNECTED, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
                       DAT_EP_STATE_ACTIVE_CONNECTION_PENDING})) {
      continue;  // has no service point
    }
    HeldEp ep(server, client, GetParam(), state, Way::kAcceptedThroughRsp);
    const DAT_RETURN rc = ep.free_rsp();
    expect_unchanged(ep, state == DAT_EP_STATE_RESERVED ? DAT_EP_STATE_UNCONNECTED : state, rc);
    if (ep.request() != DAT_HANDLE_NULL) {
      EXPECT_EQ(query_request(ep.request()).local_ep_handle, ep.get());
    }
  }
}

TEST_P(EpStateTable, AcceptingWithANamedEndpointNeedsUnconnected) {
  // EP-SM-4, EP-SM-27, CR-ACC-6, CR-ACC-8
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    const HeldEp ep(server, client, GetParam(), state);
    const OwnEvds evds(client);
    const Ep requester(client.ia, client.pz, evds, default_ep_attr());
    ASSERT_THAT(try_connect(requester.get(), server.listen()), Succeeds());
    const DAT_CR_HANDLE request = expect_request(server.requests.get()).cr_handle;
    const DAT_RETURN rc = dat_cr_accept(request, ep.get(), 0, nullptr);
    if (state == DAT_EP_STATE_UNCONNECTED) {
      EXPECT_THAT(rc, Succeeds());
      expect_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
      expect_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
      continue;
    }
    if (one_of(state, {DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING})) {
      // Note 1 speaks of the endpoint's own request; with another one either reading is right.
      EXPECT_TRUE(is_type(rc, DAT_INVALID_HANDLE) || is_type(rc, DAT_INVALID_STATE)) << describe(rc);
      EXPECT_EQ(ep.state(), state);
    } else {
      expect_refused(ep, state, rc);
    }
    // The request is as it was.
    const Ep other(server);
    ASSERT_THAT(dat_cr_accept(request, other.get(), 0, nullptr), Succeeds()) << state_name(state);
    expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    expect_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }
}

TEST_P(EpStateTable, AcceptingItsOwnRequestNeedsANullHandle) {
  // EP-SM-4 (note 1), CR-ACC-7
  for (const DAT_EP_STATE state :
       {DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING}) {
    HeldEp ep(server, client, GetParam(), state);
    if (state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
      ep.configure();
    }
    const DAT_RETURN rc = dat_cr_accept(ep.request(), ep.get(), 0, nullptr);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE)) << state_name(state);
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP)) << state_name(state);
    EXPECT_EQ(ep.state(), state);
    EXPECT_THAT(dat_cr_accept(ep.request(), DAT_HANDLE_NULL, 0, nullptr), Succeeds());
    // COMPLETION_PENDING, or CONNECTED already: the state never goes back.
    EXPECT_TRUE(one_of(ep.state(), {DAT_EP_STATE_COMPLETION_PENDING, DAT_EP_STATE_CONNECTED}));
    expect_connection_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, ep.get());
    EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  }
}

TEST_P(EpStateTable, RejectingGivesThePassiveEndpointBackAndTakesTheProvidersAway) {
  // EP-SM-4, CR-REJ-3, CR-REJ-4
  {
    const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
    EXPECT_THAT(dat_cr_reject(ep.request()), Succeeds());
    EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
    expect_no_event(ep.evds().connect.get());
  }
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
  EXPECT_THAT(dat_cr_reject(ep.request()), Succeeds());
  DAT_EP_PARAM param{};
  EXPECT_THAT(dat_ep_query(ep.get(), DAT_EP_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_ep_free(ep.get()), HasType(DAT_INVALID_HANDLE));
}

TEST_P(EpStateTable, ZoneCanBeChangedOnlyWhileQuiescent) {
  // EP-SM-2, EP-SM-4, EP-MODIFY-2
  const Pz other(server.ia);
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    const HeldEp ep(server, client, GetParam(), state);
    DAT_EP_PARAM param = ep.query();
    const DAT_PZ_HANDLE before = param.pz_handle;
    param.pz_handle = other.get();
    const DAT_RETURN rc = dat_ep_modify(ep.get(), DAT_EP_FIELD_PZ_HANDLE, &param);
    if (one_of(state, {DAT_EP_STATE_UNCONNECTED, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING})) {
      expect_unchanged(ep, state, rc);
      EXPECT_EQ(ep.query().pz_handle, other.get());
    } else {
      expect_refused(ep, state, rc);
      EXPECT_EQ(ep.query().pz_handle, before);
    }
  }
}

TEST_P(EpStateTable, EvdsAndAttributesCanBeChangedBeforeConnecting) {
  // EP-SM-4, EP-MODIFY-2, EP-MODIFY-3
  const OwnEvds others(server);
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    HeldEp ep(server, client, GetParam(), state);
    if (state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
      ep.configure();
    }
    const bool allowed =
        one_of(state, {DAT_EP_STATE_UNCONNECTED, DAT_EP_STATE_RESERVED, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
                       DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING});
    DAT_EP_PARAM param = ep.query();
    param.recv_evd_handle = others.recv.get();
    param.request_evd_handle = others.request.get();
    param.connect_evd_handle = others.connect.get();
    param.ep_attr.max_message_size -= 1;
    param.ep_attr.max_rdma_size -= 1;
    param.ep_attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
    param.ep_attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
    param.ep_attr.max_recv_dtos += 1;
    param.ep_attr.max_recv_iov += 1;
    param.ep_attr.max_request_dtos += 1;
    param.ep_attr.max_request_iov += 1;
    param.ep_attr.max_rdma_read_in -= 1;
    param.ep_attr.max_rdma_read_out -= 1;
    param.ep_attr.max_rdma_read_iov -= 1;
    param.ep_attr.max_rdma_write_iov -= 1;
    for (const DAT_EP_PARAM_MASK mask :
         {DAT_EP_FIELD_RECV_EVD_HANDLE, DAT_EP_FIELD_REQUEST_EVD_HANDLE, DAT_EP_FIELD_CONNECT_EVD_HANDLE,
          DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE,
          DAT_EP_FIELD_EP_ATTR_QOS, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS,
          DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS,
          DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV,
          DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN,
          DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV,
          DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV}) {
      SCOPED_TRACE(testing::Message() << "mask 0x" << std::hex << mask);
      const DAT_RETURN rc = dat_ep_modify(ep.get(), mask, &param);
      if (allowed) {
        expect_unchanged(ep, state, rc);
      } else {
        expect_refused(ep, state, rc);
      }
    }
    const DAT_EP_PARAM after = ep.query();
    EXPECT_EQ(after.recv_evd_handle == others.recv.get(), allowed) << state_name(state);
    EXPECT_EQ(after.request_evd_handle == others.request.get(), allowed) << state_name(state);
    EXPECT_EQ(after.connect_evd_handle == others.connect.get(), allowed) << state_name(state);
    EXPECT_EQ(after.ep_attr.max_message_size == param.ep_attr.max_message_size, allowed) << state_name(state);
    EXPECT_EQ(after.ep_attr.max_rdma_size == param.ep_attr.max_rdma_size, allowed) << state_name(state);
    EXPECT_EQ(after.ep_attr.recv_completion_flags == param.ep_attr.recv_completion_flags, allowed) << state_name(state);
    EXPECT_EQ(after.ep_attr.max_rdma_read_in == param.ep_attr.max_rdma_read_in, allowed) << state_name(state);
  }
}

TEST_P(EpStateTable, NamedAttributesCanBeChangedOnlyWhileUnconnected) {
  // EP-SM-4, EP-MODIFY-2
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    const HeldEp ep(server, client, GetParam(), state);
    const DAT_EP_PARAM param = ep.query();
    for (const DAT_EP_PARAM_MASK mask :
         {DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR, DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR,
          DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR, DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR}) {
      SCOPED_TRACE(testing::Message() << "mask 0x" << std::hex << mask);
      const DAT_RETURN rc = dat_ep_modify(ep.get(), mask, &param);
      if (state == DAT_EP_STATE_UNCONNECTED) {
        expect_unchanged(ep, state, rc);
      } else {
        expect_refused(ep, state, rc);
      }
    }
  }
}

TEST_P(EpStateTable, ReceivesCanBePostedInEveryState) {
  // EP-SM-4 (notes 3 and 4), RECV-2, RECV-3, RECV-11
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    SCOPED_TRACE(state_name(state));
    HeldEp ep(server, client, GetParam(), state);
    DAT_LMR_TRIPLET segment = server_buffers.triplet(0);
    if (state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
      // The provider's endpoint has no zone yet, so no memory is in it.
      EXPECT_THAT(dat_ep_post_recv(ep.get(), 1, &segment, cookie(7), DAT_COMPLETION_DEFAULT_FLAG),
                  HasType(DAT_PROTECTION_VIOLATION));
      ep.configure();
    }
    expect_unchanged(ep, state, dat_ep_post_recv(ep.get(), 1, &segment, cookie(7), DAT_COMPLETION_DEFAULT_FLAG));
    if (state == DAT_EP_STATE_DISCONNECTED) {
      EXPECT_EQ(expect_completion(ep.evds().recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 7u);
    } else {
      EXPECT_FALSE(poll_event(ep.evds().recv.get()));
    }
  }
}

TEST_P(EpStateTable, ReceivesCannotBePostedToAnSrqEndpoint) {
  // EP-SM-4 (note 5), RECV-9
  const Srq srq(server.ia, server.pz, 4);
  DAT_LMR_TRIPLET segment = server_buffers.triplet(0);
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    if (state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
      continue;  // the provider's endpoints have no SRQ
    }
    const HeldEp ep(server, client, GetParam(), state, Way::kConnected, &srq);
    EXPECT_THAT(dat_ep_post_recv(ep.get(), 1, &segment, cookie(7), DAT_COMPLETION_DEFAULT_FLAG),
                HasType(DAT_INVALID_STATE))
        << state_name(state);
    EXPECT_EQ(ep.state(), state);
    EXPECT_FALSE(poll_event(ep.evds().recv.get())) << state_name(state);
  }
}

TEST_P(EpStateTable, SendsCanBePostedWhenConnectedAndAreFlushedWhenDisconnected) {
  // EP-SM-4 (note 4), EP-SM-27, SEND-5, DTO-20, DTO-21, EP-DISC-5
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    SCOPED_TRACE(state_name(state));
    const HeldEp ep(server, client, GetParam(), state);
    // No segments: so that nothing but the state can be wrong, also without a zone.
    const DAT_RETURN rc = dat_ep_post_send(ep.get(), 0, nullptr, cookie(9), DAT_COMPLETION_DEFAULT_FLAG);
    if (!one_of(state, {DAT_EP_STATE_CONNECTED, DAT_EP_STATE_DISCONNECTED})) {
      expect_refused(ep, state, rc);
      continue;
    }
    expect_unchanged(ep, state, rc);
    if (state == DAT_EP_STATE_DISCONNECTED) {
      EXPECT_EQ(expect_completion(ep.evds().request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 9u);
    }
  }
}

TEST_P(EpStateTable, DisconnectingGracefully) {
  // EP-SM-4 (notes 6 and 7), EP-SM-27, EP-DISC-4, EP-DISC-8, EP-DISC-12, EP-DISC-13, EP-DISC-14
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    SCOPED_TRACE(state_name(state));
    if (state == DAT_EP_STATE_CONNECTED && !messages_wait(server.ia)) {
      continue;  // it would be over at once
    }
    const HeldEp ep(server, client, GetParam(), state);
    const Lmr large(server.ia, server.pz, kLarge);
    if (state == DAT_EP_STATE_CONNECTED) {
      // Something to drain: the peer has no buffer for it.
      DAT_LMR_TRIPLET segment = large.triplet();
      ASSERT_THAT(dat_ep_post_send(ep.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    }
    const DAT_RETURN rc = dat_ep_disconnect(ep.get(), DAT_CLOSE_GRACEFUL_FLAG);
    switch (state) {
      case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
      case DAT_EP_STATE_COMPLETION_PENDING:
        EXPECT_THAT(rc, Succeeds());
        expect_connection_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, ep.get());
        EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
        break;
      case DAT_EP_STATE_CONNECTED:
        expect_unchanged(ep, DAT_EP_STATE_DISCONNECT_PENDING, rc);
        break;
      case DAT_EP_STATE_DISCONNECT_PENDING:
      case DAT_EP_STATE_DISCONNECTED:
        expect_unchanged(ep, state, rc);
        EXPECT_FALSE(poll_event(ep.evds().connect.get()));
        break;
      default:
        expect_refused(ep, state, rc);
    }
  }
}

TEST_P(EpStateTable, DisconnectingAbruptly) {
  // EP-SM-4 (notes 6 and 8), EP-SM-27, EP-DISC-7, EP-DISC-9, EP-DISC-12, EP-DISC-13, EP-DISC-14
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    SCOPED_TRACE(state_name(state));
    const HeldEp ep(server, client, GetParam(), state);
    const DAT_RETURN rc = dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG);
    switch (state) {
      case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
      case DAT_EP_STATE_COMPLETION_PENDING:
      case DAT_EP_STATE_CONNECTED:
      case DAT_EP_STATE_DISCONNECT_PENDING:
        EXPECT_THAT(rc, Succeeds());
        expect_connection_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, ep.get());
        EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
        break;
      case DAT_EP_STATE_DISCONNECTED:
        expect_unchanged(ep, state, rc);
        expect_no_event(ep.evds().connect.get());
        break;
      default:
        expect_refused(ep, state, rc);
    }
  }
}

TEST_P(EpStateTable, ResettingNeedsDisconnected) {
  // EP-SM-4, EP-SM-27, EP-RESET-1, EP-RESET-2, EP-RESET-3
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    const HeldEp ep(server, client, GetParam(), state);
    const DAT_RETURN rc = dat_ep_reset(ep.get());
    if (one_of(state, {DAT_EP_STATE_UNCONNECTED, DAT_EP_STATE_DISCONNECTED})) {
      expect_unchanged(ep, DAT_EP_STATE_UNCONNECTED, rc);
    } else {
      expect_refused(ep, state, rc);
    }
  }
}

TEST_P(EpStateTable, FreeingIsRefusedWhileARequestOrAServicePointHoldsTheEndpoint) {
  // EP-SM-4 (note 9), EP-SM-27, EP-FREE-1
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    SCOPED_TRACE(state_name(state));
    const HeldEp ep(server, client, GetParam(), state);
    const DAT_RETURN rc = dat_ep_free(ep.get());
    if (one_of(state, {DAT_EP_STATE_RESERVED, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
                       DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING})) {
      expect_refused(ep, state, rc);
      continue;
    }
    EXPECT_THAT(rc, Succeeds());
    EXPECT_FALSE(ep.exists());
    EXPECT_THAT(dat_ep_free(ep.get()), HasType(DAT_INVALID_HANDLE));
    expect_no_event(ep.evds().connect.get());
  }
}

// Neither zone nor EVDs.
DAT_EP_HANDLE create_bare(const Side& side) {
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  require(
      dat_ep_create(side.ia.get(), DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, nullptr, &ep),
      "dat_ep_create");
  return ep;
}

TEST_P(EpStateTable, AnUnconfiguredEndpointFollowsTheColumnOfItsPlainState) {
  // EP-SM-3, EP-SM-6, EP-CREATE-3, EP-CREATE-7, EP-CONN-12, CR-ACC-9
  const Owner<dat_ep_free> ep(create_bare(server));
  EXPECT_EQ(state_of(ep.get()), DAT_EP_STATE_UNCONNECTED);
  EXPECT_THAT(dat_ep_reset(ep.get()), Succeeds());
  EXPECT_THAT(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), HasType(DAT_INVALID_STATE));

  // Not configured for connecting or accepting.
  DAT_EP_PARAM param{};
  param.pz_handle = server.pz.get();
  param.connect_evd_handle = server.connect.get();
  DAT_RETURN rc = try_connect(ep.get(), client.listen());
  EXPECT_TRUE(is_type(rc, DAT_INVALID_STATE) || is_type(rc, DAT_INVALID_HANDLE)) << describe(rc);
  ASSERT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param), Succeeds());
  rc = try_connect(ep.get(), client.listen());
  EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_EP_NOTREADY));

  // RESERVED and PASSIVE work without either; accepting does not.
  DAT_CR_HANDLE request = DAT_HANDLE_NULL;
  const Ep requester(client);
  {
    const Rsp rsp(server, ep.get());
    EXPECT_EQ(state_of(ep.get()), DAT_EP_STATE_RESERVED);
    ASSERT_THAT(try_connect(requester.get(), rsp.qualifier()), Succeeds());
    request = expect_request(server.requests.get()).cr_handle;
    EXPECT_EQ(state_of(ep.get()), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
    rc = dat_cr_accept(request, DAT_HANDLE_NULL, 0, nullptr);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
    EXPECT_EQ(state_of(ep.get()), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
  }
  ASSERT_THAT(dat_cr_reject(request), Succeeds());
  EXPECT_EQ(state_of(ep.get()), DAT_EP_STATE_UNCONNECTED);
  ASSERT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_PZ_HANDLE, &param), Succeeds());
  EXPECT_THAT(try_connect(ep.get(), client.listen()), Succeeds());
}

ANYDAT_OVER_ALL_WIRES(EpStateTable);

}  // namespace
}  // namespace anydat::test
