// SPDX-License-Identifier: BSD-3-Clause
// Which zone governs what around an SRQ: chapter 1.17 of the rules.
#include "srq_fixture.h"

namespace anydat::test {
namespace {

// The SRQ and its buffers live in server.pz; its endpoint and the memory that peers may touch live in client_zone.
class SrqZones : public SrqTest {
 protected:
  Pz client_zone{server.ia};
  Srq srq{server.ia, server.pz, 10};
  Lmr target{server.ia, client_zone, 4096};
  Connection connection = [this] {
    Connection pair{.server = Ep(server.ia, client_zone, evds_of(server), srq, default_srq_ep_attr()),
                    .client = Ep(client)};
    connect_pair(server, pair.server.get(), pair.client.get());
    return pair;
  }();
};

TEST_P(SrqZones, ReceiveBuffersFollowTheZoneOfTheQueue) {
  // EP-CSRQ-8, EP-CSRQ-9, SRQ-POST-14, SRQ-CREATE-6
  ASSERT_EQ(server.ia.provider().srq_ep_pz_difference_supported, DAT_TRUE);
  buffers.post(srq, 0, 1);
  DAT_LMR_TRIPLET of_the_endpoint = target.triplet();
  EXPECT_THAT(dat_srq_post_recv(srq.get(), 1, &of_the_endpoint, cookie(1)), HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_EQ(pass_message(connection, 3).transfered_length, 32u);
  EXPECT_TRUE(has_pattern(buffers[0].first(32), 3));
}

TEST_P(SrqZones, SendsFollowTheZoneOfTheEndpoint) {
  // EP-CSRQ-8, DTO-10
  const Buffers at_client(client.ia, client.pz, 1, kBytes);
  at_client.post(connection.client, 0, 1);
  DAT_LMR_TRIPLET of_the_queue = buffers.triplet(0);
  EXPECT_THAT(dat_ep_post_send(connection.server.get(), 1, &of_the_queue, cookie(1), DAT_COMPLETION_DEFAULT_FLAG),
              HasType(DAT_PROTECTION_VIOLATION));
  DAT_LMR_TRIPLET of_the_endpoint = target.triplet(0, 32);
  EXPECT_THAT(dat_ep_post_send(connection.server.get(), 1, &of_the_endpoint, cookie(2), DAT_COMPLETION_DEFAULT_FLAG),
              Succeeds());
  expect_completion(client.recv.get());
}

TEST_P(SrqZones, LocalRdmaMemoryFollowsTheZoneOfTheEndpoint) {
  // EP-CSRQ-8, DTO-10
  const Lmr remote_memory(client.ia, client.pz, 64);
  const DAT_RMR_TRIPLET remote = remote_memory.remote(0, 64);
  DAT_LMR_TRIPLET wrong = buffers.lmr().triplet(0, 64);
  DAT_LMR_TRIPLET right = target.triplet(0, 64);
  EXPECT_THAT(
      dat_ep_post_rdma_read(connection.server.get(), 1, &wrong, cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG),
      HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_THAT(
      dat_ep_post_rdma_write(connection.server.get(), 1, &wrong, cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG),
      HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_THAT(
      dat_ep_post_rdma_read(connection.server.get(), 1, &right, cookie(2), &remote, DAT_COMPLETION_DEFAULT_FLAG),
      Succeeds());
  expect_completion(server.request.get());
}

TEST_P(SrqZones, PeersReachTheZoneOfTheEndpoint) {
  // EP-CSRQ-8, EP-CSRQ-10
  fill_pattern(source.bytes().first(64), 4);
  DAT_LMR_TRIPLET local = source.triplet(0, 64);
  const DAT_RMR_TRIPLET remote = target.remote(100, 64);
  ASSERT_THAT(
      dat_ep_post_rdma_write(connection.client.get(), 1, &local, cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG),
      Succeeds());
  expect_completion(client.request.get());
  buffers.post(srq, 0, 1);
  pass_message(connection);  // orders the Write before our look at it
  EXPECT_TRUE(has_pattern(target.bytes().subspan(100, 64), 4));
}

TEST_P(SrqZones, PeersDoNotReachTheZoneOfTheQueue) {
  // EP-CSRQ-8, EP-CSRQ-10, PROT-8
  const Connection other_client = connect_pair(server, srq, client);  // of zone server.pz
  fill_pattern(buffers.lmr().bytes(), 99);
  DAT_LMR_TRIPLET local = source.triplet(0, 64);
  const DAT_RMR_TRIPLET remote = buffers.lmr().remote(0, 64);
  ASSERT_THAT(
      dat_ep_post_rdma_write(connection.client.get(), 1, &local, cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG),
      Succeeds());
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_TRUE(has_pattern(buffers.lmr().bytes(), 99)) << "a peer wrote through the wrong zone";
  EXPECT_EQ(other_client.server.state(), DAT_EP_STATE_CONNECTED);
  drain(client.request.get());
  fill_pattern(source.bytes().first(64), 5);
  ASSERT_THAT(
      dat_ep_post_rdma_write(other_client.client.get(), 1, &local, cookie(2), &remote, DAT_COMPLETION_DEFAULT_FLAG),
      Succeeds());
  expect_completion(client.request.get());
  EXPECT_TRUE(eventually([&] { return has_pattern(buffers.lmr().bytes().first(64), 5); }));
}

TEST_P(SrqZones, OneClientsZoneIsClosedToAnother) {
  // EP-CSRQ-10
  const Pz second_zone(server.ia);
  const Ep second_server(server.ia, second_zone, evds_of(server), srq, default_srq_ep_attr());
  const Ep second_client(client);
  connect_pair(server, second_server.get(), second_client.get());
  fill_pattern(target.bytes(), 99);
  DAT_LMR_TRIPLET local = source.triplet(0, 64);
  const DAT_RMR_TRIPLET remote = target.remote(0, 64);
  ASSERT_THAT(dat_ep_post_rdma_read(second_client.get(), 1, &local, cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG),
              Succeeds());
  expect_completion(client.request.get(), DAT_DTO_ERR_REMOTE_ACCESS);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_TRUE(has_pattern(target.bytes(), 99));
  // The two still share their buffers: the first client is served from the queue as before.
  buffers.post(srq, 0, 1);
  pass_message(connection);
}

ANYDAT_OVER_ALL_WIRES(SrqZones);

}  // namespace
}  // namespace anydat::test
