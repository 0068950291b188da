// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_dup_connect: section 3.6 of the rules, and its rows of table 2.2.
#include "ep_states.h"

namespace anydat::test {
namespace {

class EpDupConnect : public EpStateTest {
 protected:
  static DAT_RETURN dup(DAT_EP_HANDLE ep, DAT_EP_HANDLE original, DAT_TIMEOUT timeout = DAT_TIMEOUT_INFINITE,
                        const std::vector<std::byte>& data = {}) {
    return dat_ep_dup_connect(ep, original, timeout, static_cast<DAT_COUNT>(data.size()),
                              const_cast<std::byte*>(data.data()), DAT_QOS_BEST_EFFORT);
  }
};

TEST_P(EpDupConnect, ReachesTheSameServicePoint) {
  // EP-DUP-1, EP-DUP-5, CONN-SEQ-18
  const Pair original = make_connected_pair();
  const Ep ep(client);
  const Ep passive(server);
  const std::vector<std::byte> data = bytes_of("once more");
  ASSERT_THAT(dup(ep.get(), original.client.get(), DAT_TIMEOUT_INFINITE, data), Succeeds());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  const auto request = expect_request(server.requests.get());
  EXPECT_EQ(request.sp_handle.psp_handle, server.psp->get());
  EXPECT_EQ(request.conn_qual, server.listen());
  const DAT_CR_PARAM seen = query_request(request.cr_handle);
  EXPECT_EQ(bytes_of(seen.private_data, seen.private_data_size), data);
  EXPECT_EQ(seen.remote_port_qual, ep.query().local_port_qual);
  EXPECT_EQ(ep.query().remote_port_qual, original.client.query().remote_port_qual);
  ASSERT_THAT(dat_cr_accept(request.cr_handle, passive.get(), 0, nullptr), Succeeds());
  expect_connection_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, ep.get());
  expect_connection_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, passive.get());
  expect_working(original);
}

TEST_P(EpDupConnect, FollowsHandoffs) {
  // EP-DUP-1, CR-HO-1
  const Evd final_requests(server.ia, DAT_EVD_CR_FLAG);
  const AnyPsp final(server.ia, final_requests.get());
  const OwnEvds evds(client);
  const Ep original(client.ia, client.pz, evds, default_ep_attr());
  const Ep passive(server);
  ASSERT_THAT(try_connect(original.get(), server.listen()), Succeeds());
  ASSERT_THAT(dat_cr_handoff(expect_request(server.requests.get()).cr_handle, final.qualifier()), Succeeds());
  ASSERT_THAT(dat_cr_accept(expect_request(final_requests.get()).cr_handle, passive.get(), 0, nullptr), Succeeds());
  expect_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  const Ep ep(client);
  ASSERT_THAT(dup(ep.get(), original.get()), Succeeds());
  EXPECT_EQ(expect_request(final_requests.get()).sp_handle.psp_handle, final.get());
  EXPECT_FALSE(poll_event(server.requests.get()));
}

TEST_P(EpDupConnect, FollowsHandoffsToAnotherInstance) {
  // EP-DUP-1, CR-HO-5, EP-QUERY-6
  Side other(GetParam());
  const OwnEvds evds(client);
  const Ep original(client.ia, client.pz, evds, default_ep_attr());
  const Ep passive(other);
  ASSERT_THAT(try_connect(original.get(), server.listen()), Succeeds());
  ASSERT_THAT(dat_cr_handoff(expect_request(server.requests.get()).cr_handle, other.listen()), Succeeds());
  ASSERT_THAT(dat_cr_accept(expect_request(other.requests.get()).cr_handle, passive.get(), 0, nullptr), Succeeds());
  expect_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(original.query().remote_port_qual, server.listen()) << "what was asked for";
  const Ep ep(client);
  ASSERT_THAT(dup(ep.get(), original.get()), Succeeds());
  EXPECT_EQ(expect_request(other.requests.get()).sp_handle.psp_handle, other.psp->get());
  EXPECT_FALSE(poll_event(server.requests.get()));
}

TEST_P(EpDupConnect, AsksThatServicePointAndNoOtherOfItsNumber) {
  // EP-DUP-1: another adapter that serves the address as well listens on the same qualifier by now.
  const Pair original = make_connected_pair();
  Wire everywhere = GetParam();
  everywhere.ia_name = "soft";
  const Ia other(everywhere);
  const Evd other_requests(other, DAT_EVD_CR_FLAG);
  Owner<dat_psp_free> psp;
  DAT_PSP_HANDLE handle = DAT_HANDLE_NULL;
  const DAT_RETURN rc =
      dat_psp_create(other.get(), server.listen(), other_requests.get(), DAT_PSP_CONSUMER_FLAG, &handle);
  if (!GetParam().ia_name.starts_with("soft") && is_type(rc, DAT_CONN_QUAL_IN_USE)) {
    GTEST_SKIP() << "the two adapters share their qualifiers, which are TCP ports";
  }
  ASSERT_THAT(rc, Succeeds());
  psp = Owner<dat_psp_free>(handle);
  const Ep ep(client);
  ASSERT_THAT(dup(ep.get(), original.client.get()), Succeeds());
  EXPECT_EQ(expect_request(server.requests.get()).sp_handle.psp_handle, server.psp->get());
  EXPECT_FALSE(poll_event(other_requests.get()));
}

TEST_P(EpDupConnect, MayBeRejected) {
  // EP-DUP-5, EP-DUP-2
  const Pair original = make_connected_pair();
  const Ep ep(client);
  post_recv(ep, client_buffers, 0);
  ASSERT_THAT(dup(ep.get(), original.client.get()), Succeeds());
  ASSERT_THAT(dat_cr_reject(expect_request(server.requests.get()).cr_handle), Succeeds());
  expect_connection_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED, ep.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
  expect_completion(client.recv.get(), DAT_DTO_ERR_FLUSHED);
  expect_working(original);
}

TEST_P(EpDupConnect, NeedsAnUnconnectedEndpoint) {
  // EP-SM-4, EP-SM-27, EP-DUP-2
  const Pair original = make_connected_pair();
  // The duplicated one belongs to the same adapter as those that are tried.
  const OwnEvds evds(server);
  const Ep connected(server.ia, server.pz, evds, default_ep_attr());
  const Ep peer(client);
  connect_pair(client, peer.get(), connected.get());
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    const HeldEp ep(server, client, GetParam(), state);
    const DAT_RETURN rc = dup(ep.get(), connected.get());
    if (state == DAT_EP_STATE_UNCONNECTED) {
      expect_unchanged(ep, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, rc);
    } else {
      expect_refused(ep, state, rc);
    }
    EXPECT_EQ(connected.state(), DAT_EP_STATE_CONNECTED);
  }
}

TEST_P(EpDupConnect, NeedsAConnectedOriginal) {
  // EP-SM-4, EP-DUP-3
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    SCOPED_TRACE(state_name(state));
    const HeldEp original(server, client, GetParam(), state);
    const Ep ep(server);
    const DAT_RETURN rc = dup(ep.get(), original.get());
    if (state == DAT_EP_STATE_CONNECTED) {
      EXPECT_THAT(rc, Succeeds());
      EXPECT_EQ(ep.state(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    } else {
      EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
      EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
    }
    EXPECT_EQ(original.state(), state);
  }
}

TEST_P(EpDupConnect, NeedsAnOriginalThatAskedForItsConnection) {
  // EP-DUP-4
  const Pair original = make_connected_pair();
  const Ep ep(server);
  EXPECT_THAT(dup(ep.get(), original.server.get()), HasType(DAT_INVALID_STATE)) << "it was connected passively";
  EXPECT_THAT(dup(original.client.get(), original.client.get()), HasType(DAT_INVALID_STATE)) << "the same twice";
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
  expect_working(original);
}

TEST_P(EpDupConnect, ChecksBothHandles) {
  // EP-DUP-3, GEN-2, GEN-12
  const Pair original = make_connected_pair();
  const Ep ep(client);
  Ep freed(client);
  const DAT_EP_HANDLE stale = freed.get();
  freed.reset();
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, client.pz.get(), client.recv.get()}) {
    EXPECT_THAT(dup(bad, original.client.get()), HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(dup(ep.get(), bad), HasType(DAT_INVALID_HANDLE));
  }
  const Ep of_another_instance(server);
  EXPECT_THAT(dup(of_another_instance.get(), original.client.get()), HasType(DAT_INVALID_HANDLE));
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
}

TEST_P(EpDupConnect, ObeysTheRulesOfConnect) {
  // EP-DUP-2, EP-CONN-8, EP-CONN-11, EP-CONN-12, PD-1, PD-2
  const Pair original = make_connected_pair();
  const Ep ep(client);
  std::vector<std::byte> data(4096);
  const auto with = [&](DAT_TIMEOUT timeout, DAT_COUNT size, DAT_PVOID bytes, int qos) {
    return dat_ep_dup_connect(ep.get(), original.client.get(), timeout, size, bytes, static_cast<DAT_QOS>(qos));
  };
  EXPECT_THAT(with(0, 0, nullptr, 0), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(with(DAT_TIMEOUT_INFINITE, -1, data.data(), 0), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(with(DAT_TIMEOUT_INFINITE, 1, nullptr, 0), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(with(DAT_TIMEOUT_INFINITE, client.ia.provider().max_private_data_size + 1, data.data(), 0),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(with(DAT_TIMEOUT_INFINITE, 0, nullptr, 0x40), HasType(DAT_MODEL_NOT_SUPPORTED));
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
  EXPECT_FALSE(poll_event(client.connect.get()));
  ASSERT_THAT(with(20'000, 0, nullptr, 0), Succeeds());
  expect_connection_event(client.connect.get(), DAT_CONNECTION_EVENT_TIMED_OUT, ep.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);

  const EpEvds evds = evds_of(client);
  const DAT_EP_ATTR attr = default_ep_attr();
  DAT_EP_HANDLE bare = DAT_HANDLE_NULL;
  require(dat_ep_create(client.ia.get(), DAT_HANDLE_NULL, evds.recv, evds.request, evds.connect, &attr, &bare),
          "dat_ep_create");
  const DAT_RETURN rc = dup(bare, original.client.get());
  EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_EP_NOTREADY));
  EXPECT_THAT(dat_ep_free(bare), Succeeds());
}

TEST_P(EpDupConnect, IsIndependentOfTheOriginal) {
  // EP-DUP-6
  Pair original = make_connected_pair();
  const Pair second = make_pair();
  ASSERT_THAT(dup(second.client.get(), original.client.get()), Succeeds());
  const DAT_CR_HANDLE request = expect_request(server.requests.get()).cr_handle;
  ASSERT_THAT(original.client.free(), Succeeds());  // even while the second is still being made
  expect_event(original.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  ASSERT_THAT(dat_cr_accept(request, second.server.get(), 0, nullptr), Succeeds());
  expect_event(second.client_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(second.server_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_working(second);
}

TEST_P(EpDupConnect, FailsLikeConnectWhenNobodyListensAnyMore) {
  // EP-DUP-7, EP-CONN-6
  const Pair original = make_connected_pair();
  server.psp.reset();
  const Ep ep(client);
  ASSERT_THAT(dup(ep.get(), original.client.get()), Succeeds());
  expect_connection_event(client.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
  expect_working(original);
}

ANYDAT_OVER_ALL_WIRES(EpDupConnect);

}  // namespace
}  // namespace anydat::test
