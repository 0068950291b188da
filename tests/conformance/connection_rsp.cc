// SPDX-License-Identifier: BSD-3-Clause
// Reserved service points: section 5.4 of the rules.
#include "ep_states.h"

namespace anydat::test {
namespace {

class RspTest : public EpStateTest {
 protected:
  DAT_RETURN try_create(DAT_CONN_QUAL qualifier, DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd) {
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    const DAT_RETURN rc = dat_rsp_create(server.ia.get(), qualifier, ep, evd, &rsp);
    if (rc == DAT_SUCCESS) {
      EXPECT_THAT(dat_rsp_free(rsp), Succeeds());
    }
    return rc;
  }
  static void expect_refused_caller(const Side& side, DAT_CONN_QUAL qualifier, Caller caller = Caller::here()) {
    const OwnEvds evds(side);
    const Ep ep(side.ia, side.pz, evds, default_ep_attr());
    require(try_connect(ep.get(), qualifier), "dat_ep_connect");
    expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep.get(), caller);
  }
};

TEST_P(RspTest, YieldsOneRequestForItsEndpoint) {
  // RSP-CREATE-1, RSP-CREATE-2, RSP-CREATE-4, RSP-CREATE-5, CR-QUERY-4, CONN-SEQ-3
  const OwnEvds evds(server);
  const Ep ep(server.ia, server.pz, evds, default_ep_attr());
  Rsp rsp(server, ep.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_RESERVED);
  const Ep caller(client);
  ASSERT_THAT(try_connect(caller.get(), rsp.qualifier()), Succeeds());
  const auto request = expect_request(server.requests.get());
  EXPECT_EQ(request.sp_handle.rsp_handle, rsp.get());
  EXPECT_EQ(request.conn_qual, rsp.qualifier());
  EXPECT_EQ(query_request(request.cr_handle).local_ep_handle, ep.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
  // No other endpoint can accept it.
  const Ep other(server);
  EXPECT_THAT(dat_cr_accept(request.cr_handle, other.get(), 0, nullptr), HasType(DAT_INVALID_HANDLE));
  EXPECT_EQ(other.state(), DAT_EP_STATE_UNCONNECTED);
  ASSERT_THAT(dat_cr_accept(request.cr_handle, DAT_HANDLE_NULL, 0, nullptr), Succeeds());
  expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, ep.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  EXPECT_THAT(rsp.free(), Succeeds());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
}

TEST_P(RspTest, ProviderMakesTheEndpointIfAsked) {
  // RSP-CREATE-3, ATTR-1
  const DAT_CONN_QUAL qualifier = unused_qualifier(server);
  if (server.ia.provider().ep_creator == DAT_PSP_CREATES_EP_NEVER) {
    EXPECT_THAT(try_create(qualifier, DAT_HANDLE_NULL, server.requests.get()), HasType(DAT_INVALID_HANDLE));
    return;
  }
  const OwnEvds evds(server);
  const Rsp rsp(server, DAT_HANDLE_NULL);
  const Ep caller(client);
  ASSERT_THAT(try_connect(caller.get(), rsp.qualifier()), Succeeds());
  const auto request = expect_request(server.requests.get());
  const DAT_EP_HANDLE ep = query_request(request.cr_handle).local_ep_handle;
  EXPECT_EQ(state_of(ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
  DAT_EP_PARAM param{};
  param.pz_handle = server.pz.get();
  param.connect_evd_handle = evds.connect.get();
  ASSERT_THAT(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param), Succeeds());
  ASSERT_THAT(dat_cr_accept(request.cr_handle, DAT_HANDLE_NULL, 0, nullptr), Succeeds());
  expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, ep);
  EXPECT_THAT(dat_ep_free(ep), Succeeds());
}

TEST_P(RspTest, RefusesEveryOtherRequest) {
  // RSP-CREATE-4, RSP-CREATE-6, CONN-SEQ-12
  const Ep ep(server);
  Rsp rsp(server, ep.get());
  const Ep caller(client);
  ASSERT_THAT(try_connect(caller.get(), rsp.qualifier()), Succeeds());
  const auto request = expect_request(server.requests.get());
  expect_refused_caller(client, rsp.qualifier());
  ASSERT_THAT(dat_cr_reject(request.cr_handle), Succeeds());
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
  expect_refused_caller(client, rsp.qualifier());  // it does not listen again
  expect_no_event(server.requests.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
}

TEST_P(RspTest, RejectedEndpointIsFreeForAnyUse) {
  // RSP-CREATE-7, CR-REJ-4, CONN-SEQ-4
  const OwnEvds evds(server);
  const Ep ep(server.ia, server.pz, evds, default_ep_attr());
  const Ep caller(client);
  post_recv(ep, server_buffers, 0, 2);
  {
    const Rsp rsp(server, ep.get());
    ASSERT_THAT(try_connect(caller.get(), rsp.qualifier()), Succeeds());
    ASSERT_THAT(dat_cr_reject(expect_request(server.requests.get()).cr_handle), Succeeds());
    EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
  }
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
  EXPECT_FALSE(poll_event(evds.recv.get())) << "preposted receives stay";
  ASSERT_THAT(dat_ep_reset(caller.get()), Succeeds());
  // Now it reserves again, and then it connects.
  { const Rsp again(server, ep.get()); }
  connect_pair(client, caller.get(), ep.get());
}

TEST_P(RspTest, IsStillReservedAfterARequestThatFoundNoRoom) {
  // RSP-CREATE-2, EP-SM-24, EVM-57: the request is refused, and the next one is the one.
  const Evd requests(server.ia, static_cast<DAT_EVD_FLAGS>(DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG), 2);
  const OwnEvds evds(server), client_evds(client);
  const Ep ep(server.ia, server.pz, evds, default_ep_attr());
  const Rsp rsp(server, ep.get(), requests.get());
  DAT_EVENT filler{};
  filler.event_number = DAT_SOFTWARE_EVENT;
  for (int i = 0; i < requests.qlen(); ++i) ASSERT_THAT(dat_evd_post_se(requests.get(), &filler), Succeeds());
  const Ep caller(client.ia, client.pz, client_evds, default_ep_attr());
  ASSERT_THAT(try_connect(caller.get(), rsp.qualifier()), Succeeds());
  expect_connection_event(client_evds.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED, caller.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_RESERVED);
  EXPECT_THAT(try_connect(ep.get(), rsp.qualifier()), HasType(DAT_INVALID_STATE));
  ASSERT_EQ(drain(requests.get()), requests.qlen());
  ASSERT_THAT(dat_ep_reset(caller.get()), Succeeds());
  ASSERT_THAT(try_connect(caller.get(), rsp.qualifier()), Succeeds());
  const auto request = expect_request(requests.get());
  EXPECT_EQ(query_request(request.cr_handle).local_ep_handle, ep.get());
  ASSERT_THAT(dat_cr_accept(request.cr_handle, DAT_HANDLE_NULL, 0, nullptr), Succeeds());
  expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, ep.get());
  expect_connection_event(client_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, caller.get());
}

TEST_P(RspTest, ChecksItsArguments) {
  // RSP-CREATE-8, GEN-2, GEN-12
  const Ep ep(server);
  const Ep of_another_instance(client);
  const DAT_CONN_QUAL qualifier = unused_qualifier(server);
  EXPECT_THAT(try_create(0, ep.get(), server.requests.get()), HasType(DAT_INVALID_PARAMETER));
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.recv.get(), server.connect.get(),
                               server.pz.get(), client.requests.get()}) {
    EXPECT_THAT(try_create(qualifier, ep.get(), bad), HasType(DAT_INVALID_HANDLE));
  }
  for (const DAT_HANDLE bad : {server.recv.get(), of_another_instance.get()}) {
    const DAT_RETURN rc = try_create(qualifier, bad, server.requests.get());
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
  }
  DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_rsp_create(DAT_HANDLE_NULL, qualifier, ep.get(), server.requests.get(), &rsp),
              HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_rsp_create(server.ia.get(), qualifier, ep.get(), server.requests.get(), nullptr),
              HasType(DAT_INVALID_PARAMETER));
  {
    const AnyPsp psp(server.ia, server.requests.get());
    EXPECT_THAT(try_create(psp.qualifier(), ep.get(), server.requests.get()), HasType(DAT_CONN_QUAL_IN_USE));
    const Ep other(server);
    const Rsp reserved(server, other.get());
    EXPECT_THAT(try_create(reserved.qualifier(), ep.get(), server.requests.get()), HasType(DAT_CONN_QUAL_IN_USE));
  }
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
  EXPECT_THAT(try_create(qualifier, ep.get(), server.requests.get()), Succeeds());
}

TEST_P(RspTest, FreeingGivesAReservedEndpointBack) {
  // RSP-FREE-1, RSP-FREE-4
  const Ep ep(server);
  Rsp rsp(server, ep.get());
  const DAT_CONN_QUAL qualifier = rsp.qualifier();
  ASSERT_THAT(rsp.free(), Succeeds());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
  expect_refused_caller(client, qualifier);
  EXPECT_FALSE(poll_event(server.requests.get()));
  EXPECT_THAT(try_create(qualifier, ep.get(), server.requests.get()), Succeeds()) << "the qualifier is free";
}

TEST_P(RspTest, FreeingLaterTouchesNothing) {
  // RSP-FREE-2, RSP-CREATE-5: as programs do that free it after ESTABLISHED, and earlier.
  const Ep ep(server);
  Rsp rsp(server, ep.get());
  const Ep caller(client);
  ASSERT_THAT(try_connect(caller.get(), rsp.qualifier()), Succeeds());
  const auto request = expect_request(server.requests.get());
  DAT_RSP_PARAM param{};
  EXPECT_THAT(dat_rsp_query(rsp.get(), DAT_RSP_FIELD_ALL, &param), Succeeds()) << "valid until it is freed";
  EXPECT_EQ(param.ep_handle, ep.get());
  ASSERT_THAT(rsp.free(), Succeeds());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
  EXPECT_EQ(query_request(request.cr_handle).local_ep_handle, ep.get());
  ASSERT_THAT(dat_cr_accept(request.cr_handle, DAT_HANDLE_NULL, 0, nullptr), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST_P(RspTest, FreeingDuringARequestDecidesForOneSide) {
  // RSP-FREE-3, RSP-FREE-4, MT-3
  for (int round = 0; round < 20; ++round) {
    const OwnEvds evds(client);
    const Ep ep(server);
    const Ep caller(client.ia, client.pz, evds, default_ep_attr());
    Rsp rsp(server, ep.get());
    ASSERT_THAT(try_connect(caller.get(), rsp.qualifier()), Succeeds());
    ASSERT_THAT(rsp.free(), Succeeds());
    if (const auto event = poll_event(server.requests.get())) {
      EXPECT_EQ(ep.state(), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
      EXPECT_THAT(dat_cr_reject(event->event_data.cr_arrival_event_data.cr_handle), Succeeds());
      expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED, caller.get());
    } else {
      EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
      expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED, caller.get());
    }
    EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
  }
}

TEST_P(RspTest, FreeingChecksItsHandle) {
  // RSP-FREE-4, GEN-2, GEN-5
  const Ep ep(server);
  Rsp rsp(server, ep.get());
  const DAT_RSP_HANDLE stale = rsp.get();
  ASSERT_THAT(rsp.free(), Succeeds());
  const AnyPsp psp(server.ia, server.requests.get());
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, psp.get(), ep.get()}) {
    const DAT_RETURN rc = dat_rsp_free(bad);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_RSP));
  }
}

TEST_P(RspTest, QueryShowsWhatCreationWasGiven) {
  // RSP-QUERY-1, GEN-2, GEN-7
  const Ep ep(server);
  const Rsp rsp(server, ep.get());
  DAT_RSP_PARAM param{};
  ASSERT_THAT(dat_rsp_query(rsp.get(), DAT_RSP_FIELD_ALL, &param), Succeeds());
  EXPECT_EQ(param.ia_handle, server.ia.get());
  EXPECT_EQ(param.conn_qual, rsp.qualifier());
  EXPECT_EQ(param.evd_handle, server.requests.get());
  EXPECT_EQ(param.ep_handle, ep.get());
  EXPECT_THAT(dat_rsp_query(rsp.get(), static_cast<DAT_RSP_PARAM_MASK>(0), &param), Succeeds());
  EXPECT_THAT(dat_rsp_query(rsp.get(), static_cast<DAT_RSP_PARAM_MASK>(0x10), &param), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_rsp_query(rsp.get(), DAT_RSP_FIELD_ALL, nullptr), HasType(DAT_INVALID_PARAMETER));
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.requests.get(), ep.get()}) {
    const DAT_RETURN rc = dat_rsp_query(bad, DAT_RSP_FIELD_ALL, &param);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_RSP));
  }
  static_assert(DAT_RSP_FIELD_IA_HANDLE == 0x1 && DAT_RSP_FIELD_CONN_QUAL == 0x2 && DAT_RSP_FIELD_EVD_HANDLE == 0x4 &&
                DAT_RSP_FIELD_EP_HANDLE == 0x8 && DAT_RSP_FIELD_ALL == 0xF);
}

ANYDAT_OVER_ALL_WIRES(RspTest);

}  // namespace
}  // namespace anydat::test
