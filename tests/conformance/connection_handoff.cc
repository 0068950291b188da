// SPDX-License-Identifier: BSD-3-Clause
// dat_cr_handoff: section 5.7 of the rules, and its row of table 2.2.
#include "ep_states.h"

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
  for (const DAT_CONN_QUAL bad : {DAT_CONN_QUAL{0}, DAT_CONN_QUAL{65536}, unused_qualifier(server)}) {
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
