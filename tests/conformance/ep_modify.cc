// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_modify: section 3.4 of the rules. Which state allows what is in ep_state_table.cc.
#include <functional>

#include "ep_states.h"

namespace anydat::test {
namespace {

class EpModify : public EpStateTest {
 protected:
  static DAT_RETURN modify(const Ep& ep, DAT_EP_PARAM_MASK mask, const std::function<void(DAT_EP_PARAM&)>& change) {
    DAT_EP_PARAM param = ep.query();
    change(param);
    return dat_ep_modify(ep.get(), mask, &param);
  }
};

TEST_P(EpModify, ChangesWhatTheMaskNamesAndNothingElse) {
  // EP-MODIFY-1
  const Ep ep(server);
  const DAT_EP_PARAM before = ep.query();
  ASSERT_THAT(modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE,
                     [](DAT_EP_PARAM& param) {
                       param.pz_handle = DAT_HANDLE_NULL;
                       param.connect_evd_handle = DAT_HANDLE_NULL;
                       param.ep_attr = DAT_EP_ATTR{};
                       param.ep_attr.max_rdma_size = 777;
                     }),
              Succeeds());
  const DAT_EP_PARAM after = ep.query();
  EXPECT_EQ(after.ep_attr.max_rdma_size, 777u);
  EXPECT_EQ(after.pz_handle, before.pz_handle);
  EXPECT_EQ(after.connect_evd_handle, before.connect_evd_handle);
  EXPECT_EQ(after.ep_attr.max_message_size, before.ep_attr.max_message_size);
  EXPECT_EQ(after.ep_attr.max_recv_dtos, before.ep_attr.max_recv_dtos);
  EXPECT_EQ(after.ep_attr.max_request_iov, before.ep_attr.max_request_iov);
}

TEST_P(EpModify, ChangesAllOrNothing) {
  // EP-MODIFY-1, EP-MODIFY-7, GEN-6
  const Pz other(server.ia);
  const Ep ep(server);
  const DAT_EP_PARAM before = ep.query();
  EXPECT_THAT(
      modify(ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV,
             [&](DAT_EP_PARAM& param) {
               param.pz_handle = other.get();
               param.ep_attr.max_rdma_size = 777;
               param.ep_attr.max_request_iov = 0;  // wrong
             }),
      HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(ep.query().pz_handle, before.pz_handle);
  EXPECT_EQ(ep.query().ep_attr.max_rdma_size, before.ep_attr.max_rdma_size);
}

TEST_P(EpModify, NeverChangesIdentityOrQueue) {
  // EP-MODIFY-2, EP-CSRQ-26
  const Srq srq(server.ia, server.pz, 4);
  const Ep ep(server);
  DAT_EP_PARAM param = ep.query();
  param.srq_handle = srq.get();
  for (const DAT_EP_PARAM_MASK mask :
       {DAT_EP_FIELD_IA_HANDLE, DAT_EP_FIELD_EP_STATE, DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR, DAT_EP_FIELD_LOCAL_PORT_QUAL,
        DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR, DAT_EP_FIELD_REMOTE_PORT_QUAL, DAT_EP_FIELD_SRQ_HANDLE,
        DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW}) {
    EXPECT_THAT(dat_ep_modify(ep.get(), mask, &param), HasType(DAT_INVALID_PARAMETER)) << std::hex << mask;
  }
  EXPECT_EQ(ep.query().srq_handle, static_cast<DAT_SRQ_HANDLE>(DAT_HANDLE_NULL));
}

TEST_P(EpModify, APassiveEndpointIsAcceptedAsModified) {
  // EP-MODIFY-3
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
  const OwnEvds others(server);
  DAT_EP_PARAM param = ep.query();
  param.recv_evd_handle = others.recv.get();
  param.connect_evd_handle = others.connect.get();
  param.ep_attr.max_recv_iov = 1;
  ASSERT_THAT(
      dat_ep_modify(ep.get(),
                    DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV,
                    &param),
      Succeeds());
  ASSERT_THAT(dat_cr_accept(ep.request(), DAT_HANDLE_NULL, 0, nullptr), Succeeds());
  expect_connection_event(others.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, ep.get());
  expect_event(ep.peer_evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  DAT_LMR_TRIPLET segment = server_buffers.triplet(0);
  ASSERT_THAT(dat_ep_post_recv(ep.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  post_send(ep.peer(), client_buffers, 0);
  expect_completion(others.recv.get());
  ASSERT_THAT(dat_ep_free(ep.get()), Succeeds());  // before its EVDs
}

TEST_P(EpModify, ReceivesOfTheZoneBeforeFail) {
  // EP-MODIFY-4, STAT-6, PROT-3
  const Pz other(server.ia);
  const Pair pair = make_pair();
  post_recv(pair.server, server_buffers, 0, 2);
  ASSERT_THAT(modify(pair.server, DAT_EP_FIELD_PZ_HANDLE, [&](DAT_EP_PARAM& param) { param.pz_handle = other.get(); }),
              Succeeds());
  EXPECT_FALSE(poll_event(pair.server_evds.recv.get()));
  connect_pair(server, pair.server.get(), pair.client.get());
  post_send(pair.client, client_buffers, 0);
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get(), DAT_DTO_ERR_LOCAL_PROTECTION).user_cookie.as_64, 0u);
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 1u);
  expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_BROKEN, pair.server.get());
  expect_terminal_event(pair.client_evds.connect.get(), pair.client.get());
}

TEST_P(EpModify, NewHandlesAreCheckedAsAtCreation) {
  // EP-MODIFY-5, GEN-2, GEN-12
  const Ep ep(server);
  const DAT_EP_PARAM before = ep.query();
  Pz freed(server.ia);
  const DAT_PZ_HANDLE stale = freed.get();
  freed.reset();
  for (const DAT_HANDLE bad : {stale, server.recv.get(), client.pz.get()}) {
    const DAT_RETURN rc = modify(ep, DAT_EP_FIELD_PZ_HANDLE, [&](DAT_EP_PARAM& param) { param.pz_handle = bad; });
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_PZ));
  }
  for (const DAT_HANDLE bad : {server.connect.get(), server.pz.get(), client.recv.get()}) {
    DAT_RETURN rc = modify(ep, DAT_EP_FIELD_RECV_EVD_HANDLE, [&](DAT_EP_PARAM& param) { param.recv_evd_handle = bad; });
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EVD_RECV));
    rc = modify(ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE, [&](DAT_EP_PARAM& param) { param.request_evd_handle = bad; });
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EVD_REQUEST));
  }
  for (const DAT_HANDLE bad : {server.recv.get(), server.pz.get(), client.connect.get()}) {
    const DAT_RETURN rc =
        modify(ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, [&](DAT_EP_PARAM& param) { param.connect_evd_handle = bad; });
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EVD_CONN));
  }
  const DAT_EP_PARAM after = ep.query();
  EXPECT_EQ(after.pz_handle, before.pz_handle);
  EXPECT_EQ(after.recv_evd_handle, before.recv_evd_handle);
  EXPECT_EQ(after.request_evd_handle, before.request_evd_handle);
  EXPECT_EQ(after.connect_evd_handle, before.connect_evd_handle);
}

TEST_P(EpModify, NullIsAllowedWhereCreationAllowsIt) {
  // EP-MODIFY-5, EP-MODIFY-7
  const Ep ep(server);
  EXPECT_THAT(modify(ep, DAT_EP_FIELD_PZ_HANDLE, [](DAT_EP_PARAM& param) { param.pz_handle = DAT_HANDLE_NULL; }),
              Succeeds());
  EXPECT_THAT(modify(ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE,
                     [](DAT_EP_PARAM& param) { param.connect_evd_handle = DAT_HANDLE_NULL; }),
              Succeeds());
  // A queue without an EVD is refused, as at creation; both together are given up.
  EXPECT_THAT(
      modify(ep, DAT_EP_FIELD_RECV_EVD_HANDLE, [](DAT_EP_PARAM& param) { param.recv_evd_handle = DAT_HANDLE_NULL; }),
      HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(modify(ep, DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS,
                     [](DAT_EP_PARAM& param) {
                       param.recv_evd_handle = DAT_HANDLE_NULL;
                       param.ep_attr.max_recv_dtos = 0;
                     }),
              Succeeds());
  EXPECT_EQ(ep.query().recv_evd_handle, static_cast<DAT_EVD_HANDLE>(DAT_HANDLE_NULL));
}

TEST_P(EpModify, UseMovesToTheNewObjects) {
  // EP-MODIFY-6, EP-CREATE-25
  Pz old_pz(server.ia);
  Pz new_pz(server.ia);
  OwnEvds old_evds(server);
  OwnEvds new_evds(server);
  const Ep ep(server.ia, old_pz, old_evds, default_ep_attr());
  ASSERT_THAT(modify(ep,
                     DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
                         DAT_EP_FIELD_CONNECT_EVD_HANDLE,
                     [&](DAT_EP_PARAM& param) {
                       param.pz_handle = new_pz.get();
                       param.recv_evd_handle = new_evds.recv.get();
                       param.request_evd_handle = new_evds.request.get();
                       param.connect_evd_handle = new_evds.connect.get();
                     }),
              Succeeds());
  EXPECT_THAT(old_pz.free(), Succeeds());
  EXPECT_THAT(old_evds.recv.free(), Succeeds());
  EXPECT_THAT(old_evds.request.free(), Succeeds());
  EXPECT_THAT(old_evds.connect.free(), Succeeds());
  EXPECT_THAT(new_pz.free(), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(new_evds.recv.free(), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(new_evds.request.free(), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(new_evds.connect.free(), HasType(DAT_INVALID_STATE));
}

TEST_P(EpModify, ValuesAreCheckedAsAtCreation) {
  // EP-MODIFY-7, EP-CREATE-13, EP-CREATE-15 to EP-CREATE-18, EP-CREATE-27
  const Ep ep(server);
  const DAT_IA_ATTR limits = server.ia.attributes();
  const auto refused = [&](DAT_EP_PARAM_MASK mask, const std::function<void(DAT_EP_ATTR&)>& change,
                           DAT_RETURN_TYPE type = DAT_INVALID_PARAMETER) {
    EXPECT_THAT(modify(ep, mask, [&](DAT_EP_PARAM& param) { change(param.ep_attr); }), HasType(type))
        << std::hex << mask;
  };
  refused(DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE,
          [](DAT_EP_ATTR& attr) { attr.service_type = static_cast<DAT_SERVICE_TYPE>(1); });
  refused(DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE,
          [&](DAT_EP_ATTR& attr) { attr.max_message_size = limits.max_message_size + 1; });
  refused(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE,
          [&](DAT_EP_ATTR& attr) { attr.max_rdma_size = limits.max_rdma_size + 1; });
  refused(
      DAT_EP_FIELD_EP_ATTR_QOS, [](DAT_EP_ATTR& attr) { attr.qos = static_cast<DAT_QOS>(0x40); },
      DAT_MODEL_NOT_SUPPORTED);
  refused(DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS,
          [](DAT_EP_ATTR& attr) { attr.recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG; });
  refused(DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS,
          [](DAT_EP_ATTR& attr) { attr.request_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(0x20); });
  refused(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, [](DAT_EP_ATTR& attr) { attr.max_recv_dtos = -1; });
  refused(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, [](DAT_EP_ATTR& attr) { attr.max_recv_dtos = 0; });
  refused(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS,
          [&](DAT_EP_ATTR& attr) { attr.max_recv_dtos = limits.max_dto_per_ep + 1; });
  refused(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, [](DAT_EP_ATTR& attr) { attr.max_request_dtos = 0; });
  refused(DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, [](DAT_EP_ATTR& attr) { attr.max_recv_iov = 0; });
  refused(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV,
          [&](DAT_EP_ATTR& attr) { attr.max_request_iov = limits.max_iov_segments_per_dto + 1; });
  refused(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, [](DAT_EP_ATTR& attr) { attr.max_rdma_read_in = -1; });
  refused(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT,
          [&](DAT_EP_ATTR& attr) { attr.max_rdma_read_out = limits.max_rdma_read_per_ep_out + 1; });
  refused(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV, [](DAT_EP_ATTR& attr) { attr.max_rdma_read_iov = -1; });
  refused(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, [](DAT_EP_ATTR& attr) { attr.max_rdma_write_iov = -1; });
  refused(DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR, [](DAT_EP_ATTR& attr) { attr.ep_transport_specific_count = 1; });
  refused(DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR, [](DAT_EP_ATTR& attr) { attr.ep_provider_specific_count = -1; });
}

TEST_P(EpModify, NewLimitsHold) {
  // EP-MODIFY-7, DTO-5, DTO-8, DTO-13
  const Pair pair = make_pair();
  ASSERT_THAT(modify(pair.client,
                     DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV |
                         DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS,
                     [](DAT_EP_PARAM& param) {
                       param.ep_attr.max_message_size = 100;
                       param.ep_attr.max_request_iov = 6;
                       param.ep_attr.max_recv_dtos = 100;
                     }),
              Succeeds());
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT(try_recv(pair.client, client_buffers, i % kBuffers), Succeeds()) << i;
  }
  connect_pair(server, pair.server.get(), pair.client.get());
  post_recv(pair.server, server_buffers, 0);
  EXPECT_THAT(try_send(pair.client, client_buffers, 0, 101), HasType(DAT_INVALID_PARAMETER));
  std::vector<DAT_LMR_TRIPLET> segments(6, client_buffers.triplet(0));
  for (DAT_LMR_TRIPLET& segment : segments) {
    segment.segment_length = 10;
  }
  ASSERT_THAT(dat_ep_post_send(pair.client.get(), 6, segments.data(), cookie(0), DAT_COMPLETION_DEFAULT_FLAG),
              Succeeds());
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).transfered_length, 60u);
}

TEST_P(EpModify, NoPostedReceiveIsLost) {
  // EP-MODIFY-8
  const Ep ep(server);
  DAT_LMR_TRIPLET segments[3] = {server_buffers.triplet(0), server_buffers.triplet(1), server_buffers.triplet(2)};
  ASSERT_THAT(dat_ep_post_recv(ep.get(), 3, segments, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  post_recv(ep, server_buffers, 3, 4);
  const auto with = [&](DAT_EP_PARAM_MASK mask, const std::function<void(DAT_EP_ATTR&)>& change) {
    return modify(ep, mask, [&](DAT_EP_PARAM& param) { change(param.ep_attr); });
  };
  const DAT_EP_ATTR before = ep.query().ep_attr;
  for (const DAT_RETURN rc :
       {with(DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS,
             [](DAT_EP_ATTR& attr) { attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG; }),
        with(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, [](DAT_EP_ATTR& attr) { attr.max_recv_dtos = 4; }),
        with(DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, [](DAT_EP_ATTR& attr) { attr.max_recv_iov = 2; })}) {
    EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
  }
  EXPECT_EQ(ep.query().ep_attr.recv_completion_flags, before.recv_completion_flags);
  EXPECT_EQ(ep.query().ep_attr.max_recv_dtos, before.max_recv_dtos);
  EXPECT_EQ(ep.query().ep_attr.max_recv_iov, before.max_recv_iov);
  EXPECT_THAT(with(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, [](DAT_EP_ATTR& attr) { attr.max_recv_dtos = 5; }), Succeeds());
  EXPECT_THAT(with(DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, [](DAT_EP_ATTR& attr) { attr.max_recv_iov = 3; }), Succeeds());
}

TEST_P(EpModify, PostedReceivesStayInOrderAndFollowTheEvd) {
  // EP-MODIFY-9
  const OwnEvds others(server);
  const Pair pair = make_pair();
  post_recv(pair.server, server_buffers, 0, 3);
  ASSERT_THAT(
      modify(pair.server,
             DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV,
             [&](DAT_EP_PARAM& param) {
               param.recv_evd_handle = others.recv.get();
               param.ep_attr.max_recv_dtos = 200;
               param.ep_attr.max_recv_iov = 6;
             }),
      Succeeds());
  post_recv(pair.server, server_buffers, 3, 2);
  connect_pair(server, pair.server.get(), pair.client.get());
  post_send(pair.client, client_buffers, 0, 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(expect_completion(others.recv.get()).user_cookie.as_64, static_cast<DAT_UINT64>(i));
    EXPECT_TRUE(has_pattern(server_buffers[i].first(32), static_cast<DAT_UINT64>(i)));
  }
  EXPECT_FALSE(poll_event(pair.server_evds.recv.get()));
}

TEST_P(EpModify, KnowsItsMaskBits) {
  // EP-MODIFY-10
  const Ep ep(server);
  DAT_EP_PARAM param = ep.query();
  for (const DAT_EP_PARAM_MASK bad : {DAT_EP_PARAM_MASK{0x800}, DAT_EP_PARAM_MASK{0x80000000},
                                      DAT_EP_PARAM_MASK{1} << 32, DAT_EP_PARAM_MASK{1} << 63}) {
    EXPECT_THAT(dat_ep_modify(ep.get(), bad, &param), HasType(DAT_INVALID_PARAMETER)) << std::hex << bad;
  }
  EXPECT_THAT(dat_ep_modify(ep.get(), 0, &param), Succeeds());
  EXPECT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_PZ_HANDLE, nullptr), HasType(DAT_INVALID_PARAMETER));
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.recv.get()}) {
    const DAT_RETURN rc = dat_ep_modify(bad, DAT_EP_FIELD_PZ_HANDLE, &param);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
  }
}

TEST_P(EpModify, RecvVectorOfAnSrqEndpointIsIgnored) {
  // EP-MODIFY-11
  const Srq srq(server.ia, server.pz, 4, 2);
  const Ep ep(server, srq);
  for (const DAT_COUNT value : {0, 1, 1000000}) {
    EXPECT_THAT(
        modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, [&](DAT_EP_PARAM& param) { param.ep_attr.max_recv_iov = value; }),
        Succeeds())
        << value;
  }
  EXPECT_EQ(srq.query().max_recv_iov, 2);
}

ANYDAT_OVER_ALL_WIRES(EpModify);

}  // namespace
}  // namespace anydat::test
