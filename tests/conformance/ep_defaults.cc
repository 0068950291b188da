// SPDX-License-Identifier: BSD-3-Clause
// Endpoints created without attributes: section 3.2 of the rules.
#include <algorithm>

#include "ep_fixture.h"

namespace anydat::test {
namespace {

class EpDefaults : public EpTest {
 protected:
  static Owner<dat_ep_free> create(const Side& side, DAT_PZ_HANDLE pz, const EpEvds& evds) {
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    require(dat_ep_create(side.ia.get(), pz, evds.recv, evds.request, evds.connect, nullptr, &ep), "dat_ep_create");
    return Owner<dat_ep_free>(ep);
  }
  static DAT_EP_ATTR attributes(const Owner<dat_ep_free>& ep) {
    DAT_EP_PARAM param{};
    require(dat_ep_query(ep.get(), DAT_EP_FIELD_ALL, &param), "dat_ep_query");
    return param.ep_attr;
  }
};

TEST_P(EpDefaults, AreTheAdoptedValuesWithinTheAdaptersLimits) {
  // EP-DEF-1, EP-CREATE-11
  const DAT_IA_ATTR limits = server.ia.attributes();
  const DAT_EP_ATTR attr = attributes(create(server, server.pz.get(), evds_of(server)));
  EXPECT_EQ(attr.service_type, DAT_SERVICE_TYPE_RC);
  EXPECT_EQ(attr.max_message_size, std::min<DAT_VLEN>(0x80000000u, limits.max_message_size));
  EXPECT_EQ(attr.max_rdma_size, std::min<DAT_VLEN>(0x80000000u, limits.max_rdma_size));
  EXPECT_EQ(attr.qos, DAT_QOS_BEST_EFFORT);
  EXPECT_EQ(attr.recv_completion_flags, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
  EXPECT_EQ(attr.request_completion_flags, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
  EXPECT_EQ(attr.max_recv_dtos, std::min(16, limits.max_dto_per_ep));
  EXPECT_EQ(attr.max_request_dtos, std::min(16, limits.max_dto_per_ep));
  EXPECT_EQ(attr.max_recv_iov, std::min(4, limits.max_iov_segments_per_dto));
  EXPECT_EQ(attr.max_request_iov, std::min(4, limits.max_iov_segments_per_dto));
  EXPECT_EQ(attr.max_rdma_read_in, std::min(8, limits.max_rdma_read_per_ep_in));
  EXPECT_EQ(attr.max_rdma_read_out, std::min(8, limits.max_rdma_read_per_ep_out));
  EXPECT_EQ(attr.max_rdma_read_iov, std::min(4, limits.max_iov_segments_per_rdma_read));
  EXPECT_EQ(attr.max_rdma_write_iov, std::min(4, limits.max_iov_segments_per_rdma_write));
  EXPECT_EQ(attr.srq_soft_hw, DAT_HW_DEFAULT);
  EXPECT_EQ(attr.ep_transport_specific_count, 0);
  EXPECT_EQ(attr.ep_transport_specific, nullptr);
  EXPECT_EQ(attr.ep_provider_specific_count, 0);
  EXPECT_EQ(attr.ep_provider_specific, nullptr);
}

TEST_P(EpDefaults, QueuesWithoutAnEvdAreEmpty) {
  // EP-DEF-1
  const DAT_EP_ATTR attr = attributes(create(server, DAT_HANDLE_NULL, {}));
  EXPECT_EQ(attr.max_recv_dtos, 0);
  EXPECT_EQ(attr.max_request_dtos, 0);
}

TEST_P(EpDefaults, SufficeToExchangeMessages) {
  // EP-DEF-2, EP-CREATE-30
  const Owner<dat_ep_free> passive = create(server, server.pz.get(), evds_of(server));
  const Owner<dat_ep_free> active = create(client, client.pz.get(), evds_of(client));
  connect_pair(server, passive.get(), active.get());
  DAT_LMR_TRIPLET sink = server_buffers.triplet(0);
  ASSERT_THAT(dat_ep_post_recv(passive.get(), 1, &sink, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  DAT_LMR_TRIPLET source = client_buffers.triplet(0);
  ASSERT_THAT(dat_ep_post_send(active.get(), 1, &source, cookie(2), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  expect_completion(client.request.get());
  EXPECT_EQ(expect_completion(server.recv.get()).transfered_length, kBytes);
}

TEST_P(EpDefaults, AreAcceptedWhenPassedBack) {
  // EP-DEF-3
  const DAT_EP_ATTR attr = attributes(create(server, server.pz.get(), evds_of(server)));
  const Ep same(server, attr);
  DAT_EP_ATTR larger = attr;  // as existing programs do
  larger.max_recv_dtos += 100;
  larger.max_request_dtos += 100;
  const Ep ep(server, larger);
  EXPECT_GE(ep.query().ep_attr.max_recv_dtos, attr.max_recv_dtos + 100);
}

TEST_P(EpDefaults, WaitForWhatTheRequestSays) {
  // EP-CREATE-30, EP-CREATE-29, CONN-3: attributes fixed only after the remote request is seen.
  const Owner<dat_ep_free> ep = create(server, DAT_HANDLE_NULL, {});
  const Ep requester(client);
  ASSERT_THAT(try_connect(requester.get(), server.listen()), Succeeds());
  const DAT_CR_HANDLE request = expect_request(server.requests.get()).cr_handle;
  DAT_EP_PARAM param{};
  param.pz_handle = server.pz.get();
  param.recv_evd_handle = server.recv.get();
  param.connect_evd_handle = server.connect.get();
  param.ep_attr.max_recv_dtos = 5;
  param.ep_attr.max_recv_iov = 2;
  ASSERT_THAT(dat_ep_modify(ep.get(),
                            DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE |
                                DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV,
                            &param),
              Succeeds());
  ASSERT_THAT(dat_cr_accept(request, ep.get(), 0, nullptr), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  DAT_LMR_TRIPLET sink = server_buffers.triplet(0);
  ASSERT_THAT(dat_ep_post_recv(ep.get(), 1, &sink, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  post_send(requester, client_buffers, 0);
  expect_completion(server.recv.get());
}

ANYDAT_OVER_ALL_WIRES(EpDefaults);

}  // namespace
}  // namespace anydat::test
