// SPDX-License-Identifier: BSD-3-Clause
// dat_cr_handoff: section 5.7 of the rules, and its row of table 2.2.
#include "ep_states.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

class Handoff : public EpStateTest {
 protected:
  DAT_CR_HANDLE request_from(const Ep& ep, DAT_TIMEOUT timeout = DAT_TIMEOUT_INFINITE) {
    const std::vector<std::byte> data = bytes_of("for whom it may concern");
    require(dat_ep_connect(ep.get(), loopback(), server.listen(), timeout, static_cast<DAT_COUNT>(data.size()),
                           const_cast<std::byte*>(data.data()), DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    return expect_request(server.requests.get()).cr_handle;
  }

  Evd requests{server.ia, DAT_EVD_CR_FLAG};  // of the service point that requests are passed to
};

TEST_P(Handoff, TheOtherServicePointGetsTheRequest) {
  // CR-HO-1, CR-HO-2, CR-HO-3, CONN-SEQ-11
  const AnyPsp psp(server.ia, requests.get());
  const OwnEvds evds(client);
  const Ep caller(client.ia, client.pz, evds, default_ep_attr());
  const DAT_CR_HANDLE old = request_from(caller);
  const DAT_CR_PARAM before = query_request(old);
  const DAT_PORT_QUAL port = before.remote_port_qual;
  ASSERT_THAT(dat_cr_handoff(old, psp.qualifier()), Succeeds());
  DAT_CR_PARAM param{};
  EXPECT_THAT(dat_cr_query(old, DAT_CR_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
  EXPECT_EQ(caller.state(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  EXPECT_FALSE(poll_event(evds.connect.get()));

  const auto request = expect_request(requests.get());
  EXPECT_EQ(request.sp_handle.psp_handle, psp.get());
  EXPECT_EQ(request.conn_qual, psp.qualifier());
  EXPECT_NE(request.cr_handle, old);
  const DAT_CR_PARAM after = query_request(request.cr_handle);
  EXPECT_EQ(after.remote_port_qual, port);
  EXPECT_EQ(bytes_of(after.private_data, after.private_data_size), bytes_of("for whom it may concern"));
  const Ep passive(server);
  ASSERT_THAT(dat_cr_accept(request.cr_handle, passive.get(), 0, nullptr), Succeeds());
  expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, caller.get());
  expect_connection_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, passive.get());
}

TEST_P(Handoff, MayGoOnFromThere) {
  // CR-HO-1, CR-REJ-1
  const AnyPsp psp(server.ia, requests.get());
  const Ep caller(client);
  ASSERT_THAT(dat_cr_handoff(request_from(caller), psp.qualifier()), Succeeds());
  ASSERT_THAT(dat_cr_handoff(expect_request(requests.get()).cr_handle, server.listen()), Succeeds());
  ASSERT_THAT(dat_cr_reject(expect_request(server.requests.get()).cr_handle), Succeeds());
  expect_connection_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED, caller.get());
}

TEST_P(Handoff, GivesBackTheEndpointsOfTheRequest) {
  // EP-SM-4, CR-HO-2, CR-REJ-3, CR-REJ-4
  const AnyPsp psp(server.ia, requests.get());
  {
    const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
    ASSERT_THAT(dat_cr_handoff(ep.request(), psp.qualifier()), Succeeds());
    EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
    EXPECT_THAT(dat_cr_reject(expect_request(requests.get()).cr_handle), Succeeds());
  }
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
  ASSERT_THAT(dat_cr_handoff(ep.request(), psp.qualifier()), Succeeds());
  EXPECT_FALSE(ep.exists());
  EXPECT_THAT(dat_cr_reject(expect_request(requests.get()).cr_handle), Succeeds());
}

TEST_P(Handoff, TheActiveSidesTimeoutKeepsRunning) {
  // CR-HO-3
  const AnyPsp psp(server.ia, requests.get());
  const Ep caller(client);
  ASSERT_THAT(
      dat_cr_handoff(request_from(caller, static_cast<DAT_TIMEOUT>(patience().count() * 1000 / 5)), psp.qualifier()),
      Succeeds());
  expect_request(requests.get());
  expect_connection_event(client.connect.get(), DAT_CONNECTION_EVENT_TIMED_OUT, caller.get());
}

TEST_P(Handoff, NeedsSomebodyWhoListens) {
  // CR-HO-4, GEN-2, GEN-6
  const Ep caller(client);
  const DAT_CR_HANDLE request = request_from(caller);
  for (const DAT_CONN_QUAL bad : {DAT_CONN_QUAL{0}, unused_qualifier(server)}) {
    EXPECT_THAT(dat_cr_handoff(request, bad), HasType(DAT_INVALID_PARAMETER)) << bad;
  }
  EXPECT_EQ(query_request(request).private_data_size, 23) << "the request stays";
  EXPECT_EQ(caller.state(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.psp->get()}) {
    const DAT_RETURN rc = dat_cr_handoff(bad, server.listen());
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_CR));
  }
  ASSERT_THAT(dat_cr_reject(request), Succeeds());
}

TEST_P(Handoff, ReachesAReservedServicePoint) {
  // CR-HO-5, RSP-CREATE-4
  const OwnEvds evds(server);
  const Ep passive(server.ia, server.pz, evds, default_ep_attr());
  const Rsp rsp(server, passive.get(), requests.get());
  const Ep caller(client);
  ASSERT_THAT(dat_cr_handoff(request_from(caller), rsp.qualifier()), Succeeds());
  const auto request = expect_request(requests.get());
  EXPECT_EQ(query_request(request.cr_handle).local_ep_handle, passive.get());
  EXPECT_EQ(passive.state(), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
  ASSERT_THAT(dat_cr_accept(request.cr_handle, DAT_HANDLE_NULL, 0, nullptr), Succeeds());
  expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, passive.get());
}

TEST_P(Handoff, ReachesAnotherInstanceAndAnotherProcess) {
  // CR-HO-5
  Side other(GetParam());
  const OwnEvds evds(client);
  const Ep passive(other);
  {
    const Ep caller(client.ia, client.pz, evds, default_ep_attr());
    ASSERT_THAT(dat_cr_handoff(request_from(caller), other.listen()), Succeeds());
    ASSERT_THAT(dat_cr_accept(expect_request(other.requests.get()).cr_handle, passive.get(), 0, nullptr), Succeeds());
    expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, caller.get());
  }
  RemotePeer peer(GetParam());
  const Ep caller(client.ia, client.pz, evds, default_ep_attr());
  ASSERT_THAT(dat_cr_handoff(request_from(caller), peer.listen()), Succeeds());
  peer.accept();
  expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, caller.get());
}

TEST_P(Handoff, TheTimeoutKeepsRunningOnTheWayToAnotherInstance) {
  ANYDAT_NEEDS_CONFIRMED_ACCEPTS(server.ia)
  // CR-HO-3, CR-HO-5
  Side other(GetParam());
  const OwnEvds evds(client);
  const Ep caller(client.ia, client.pz, evds, default_ep_attr());
  const DAT_CR_HANDLE request = request_from(caller, static_cast<DAT_TIMEOUT>(patience().count() * 1000 / 5));
  ASSERT_THAT(dat_cr_handoff(request, other.listen()), Succeeds());
  const DAT_CR_HANDLE passed_on = expect_request(other.requests.get()).cr_handle;
  EXPECT_FALSE(poll_event(evds.connect.get()));
  expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_TIMED_OUT, caller.get());
  // The new owner of the request learns of it like any other.
  const OwnEvds passive_evds(other);
  const Ep passive(other.ia, other.pz, passive_evds, default_ep_attr());
  ASSERT_THAT(dat_cr_accept(passed_on, passive.get(), 0, nullptr), Succeeds());
  expect_connection_event(passive_evds.connect.get(), DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, passive.get());
}

TEST_P(Handoff, TheActiveSideMayGiveUpOnTheWay) {
  // CR-HO-3, EP-DISC-14: whether before, while or after it learns where to ask.
  Side other(GetParam());
  for (int i = 0; i < 20; ++i) {
    const OwnEvds evds(client);
    const Ep caller(client.ia, client.pz, evds, default_ep_attr());
    const DAT_CR_HANDLE request = request_from(caller);
    ASSERT_THAT(dat_cr_handoff(request, other.listen()), Succeeds());
    if (i % 2 == 0 && !wait_event(other.requests.get())) {
      const auto instead = poll_event(evds.connect.get());
      FAIL() << "round " << i << ": no request where it was passed to, and the active side was told "
             << (instead ? event_name(instead->event_number) : "nothing");
    }
    ASSERT_THAT(dat_ep_disconnect(caller.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, caller.get());
    EXPECT_FALSE(poll_event(evds.connect.get()));
  }
}

TEST_P(Handoff, ARequestWhoseActiveSideIsGoneCanBePassedOn) {
  ANYDAT_NEEDS_CONFIRMED_ACCEPTS(server.ia)
  // CR-HO-2, CR-ACC-5
  const AnyPsp psp(server.ia, requests.get());
  Side other(GetParam());
  const OwnEvds evds(client);
  {
    const Ep caller(client.ia, client.pz, evds, default_ep_attr());
    const DAT_CR_HANDLE request = expired_request(server, caller.get(), evds.connect.get());
    ASSERT_THAT(dat_cr_handoff(request, psp.qualifier()), Succeeds());
    const OwnEvds passive_evds(server);
    const Ep passive(server.ia, server.pz, passive_evds, default_ep_attr());
    ASSERT_THAT(dat_cr_accept(expect_request(requests.get()).cr_handle, passive.get(), 0, nullptr), Succeeds());
    expect_connection_event(passive_evds.connect.get(), DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, passive.get());
  }
  const Ep caller(client.ia, client.pz, evds, default_ep_attr());
  const DAT_CR_HANDLE request = expired_request(server, caller.get(), evds.connect.get());
  EXPECT_THAT(dat_cr_handoff(request, other.listen()), Succeeds());
  DAT_CR_PARAM param{};
  EXPECT_THAT(dat_cr_query(request, DAT_CR_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
}

TEST_P(Handoff, AReservedServicePointThatHasItsRequestListensNoMore) {
  // CR-HO-4, RSP-CREATE-4, RSP-CREATE-6: neither within the instance nor from another one; its qualifier stays taken.
  Side other(GetParam());
  const HeldEp ep(other, client, GetParam(), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
  DAT_RSP_PARAM rsp{};
  require(dat_rsp_query(ep.rsp(), DAT_RSP_FIELD_ALL, &rsp), "dat_rsp_query");
  const Ep caller(client);
  const DAT_CR_HANDLE request = request_from(caller);
  EXPECT_THAT(dat_cr_handoff(request, rsp.conn_qual), HasType(DAT_INVALID_PARAMETER));
  ASSERT_THAT(dat_cr_reject(request), Succeeds());
  const Ep second(client);
  ASSERT_THAT(try_connect(second.get(), other.listen()), Succeeds());
  const DAT_CR_HANDLE local = expect_request(other.requests.get()).cr_handle;
  EXPECT_THAT(dat_cr_handoff(local, rsp.conn_qual), HasType(DAT_INVALID_PARAMETER));
  ASSERT_THAT(dat_cr_reject(local), Succeeds());
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_psp_create(server.ia.get(), rsp.conn_qual, server.requests.get(), DAT_PSP_CONSUMER_FLAG, &psp),
              HasType(DAT_CONN_QUAL_IN_USE));
}

TEST_P(Handoff, TheNewOwnersDeathEndsTheAttempt) {
  // CR-HO-5, EP-SM-12
  RemotePeer peer(GetParam());
  const DAT_CONN_QUAL qualifier = peer.listen();
  const OwnEvds evds(client);
  const Ep caller(client.ia, client.pz, evds, default_ep_attr());
  ASSERT_THAT(dat_cr_handoff(request_from(caller), qualifier), Succeeds());
  EXPECT_EQ(caller.state(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  peer.kill();
  expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED, caller.get());
}

TEST_P(Handoff, ToAFullBacklogEndsTheAttempt) {
  // CR-HO-5
  const RequestQueue narrow(server.ia, 1);
  if (narrow.qlen() != 1) {
    GTEST_SKIP() << "a queue of 1 holds " << narrow.qlen() << " events";
  }
  const AnyPsp psp(server.ia, narrow.get());
  const Ep first(client);
  ASSERT_THAT(try_connect(first.get(), psp.qualifier()), Succeeds());
  narrow.await_arrival();
  const OwnEvds evds(client);
  const Ep caller(client.ia, client.pz, evds, default_ep_attr());
  ASSERT_THAT(dat_cr_handoff(request_from(caller), psp.qualifier()), Succeeds());
  expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED, caller.get());
}

ANYDAT_OVER_ALL_WIRES(Handoff);

}  // namespace
}  // namespace anydat::test
