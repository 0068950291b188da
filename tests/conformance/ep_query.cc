// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_query: section 3.3 of the rules.
#include <netinet/in.h>

#include <cstring>

#include "ep_states.h"
#include "support/versions.h"

namespace anydat::test {
namespace {

class EpQuery : public EpStateTest {};

bool same_address(DAT_IA_ADDRESS_PTR one, DAT_IA_ADDRESS_PTR other) {
  if (one->sa_family != other->sa_family) {
    return false;
  }
  if (one->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(one)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(other)->sin_addr.s_addr;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(one)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(other)->sin6_addr, sizeof(in6_addr)) == 0;
}

TEST_P(EpQuery, ShowsWhatCreationWasGiven) {
  // EP-QUERY-1
  const OwnEvds evds(server);
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_message_size = 4321;
  const Ep ep(server.ia, server.pz, evds, attr);
  const DAT_EP_PARAM param = ep.query();
  EXPECT_EQ(param.ia_handle, server.ia.get());
  EXPECT_EQ(param.ep_state, DAT_EP_STATE_UNCONNECTED);
  EXPECT_EQ(param.pz_handle, server.pz.get());
  EXPECT_EQ(param.recv_evd_handle, evds.recv.get());
  EXPECT_EQ(param.request_evd_handle, evds.request.get());
  EXPECT_EQ(param.connect_evd_handle, evds.connect.get());
  EXPECT_EQ(param.srq_handle, static_cast<DAT_SRQ_HANDLE>(DAT_HANDLE_NULL));
  EXPECT_EQ(param.ep_attr.max_message_size, 4321u);
}

TEST_P(EpQuery, FillsEachFieldThatTheMaskNames) {
  // EP-QUERY-1, EP-QUERY-2, GEN-7
  const Pair pair = make_connected_pair();
  const DAT_EP_PARAM all = pair.client.query();
  const auto with = [&](DAT_EP_PARAM_MASK mask) {
    DAT_EP_PARAM param;
    std::memset(static_cast<void*>(&param), 0x5A, sizeof param);
    EXPECT_THAT(dat_ep_query(pair.client.get(), mask, &param), Succeeds()) << std::hex << mask;
    return param;
  };
  with(0);
  EXPECT_EQ(with(DAT_EP_FIELD_IA_HANDLE).ia_handle, all.ia_handle);
  EXPECT_EQ(with(DAT_EP_FIELD_EP_STATE).ep_state, all.ep_state);
  EXPECT_EQ(with(DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR).local_ia_address_ptr, all.local_ia_address_ptr);
  EXPECT_EQ(with(DAT_EP_FIELD_LOCAL_PORT_QUAL).local_port_qual, all.local_port_qual);
  EXPECT_EQ(with(DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR).remote_ia_address_ptr, all.remote_ia_address_ptr);
  EXPECT_EQ(with(DAT_EP_FIELD_REMOTE_PORT_QUAL).remote_port_qual, all.remote_port_qual);
  EXPECT_EQ(with(DAT_EP_FIELD_PZ_HANDLE).pz_handle, all.pz_handle);
  EXPECT_EQ(with(DAT_EP_FIELD_RECV_EVD_HANDLE).recv_evd_handle, all.recv_evd_handle);
  EXPECT_EQ(with(DAT_EP_FIELD_REQUEST_EVD_HANDLE).request_evd_handle, all.request_evd_handle);
  EXPECT_EQ(with(DAT_EP_FIELD_CONNECT_EVD_HANDLE).connect_evd_handle, all.connect_evd_handle);
  EXPECT_EQ(with(DAT_EP_FIELD_SRQ_HANDLE).srq_handle, all.srq_handle);
  EXPECT_EQ(with(DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE).ep_attr.service_type, all.ep_attr.service_type);
  EXPECT_EQ(with(DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE).ep_attr.max_message_size, all.ep_attr.max_message_size);
  EXPECT_EQ(with(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE).ep_attr.max_rdma_size, all.ep_attr.max_rdma_size);
  EXPECT_EQ(with(DAT_EP_FIELD_EP_ATTR_QOS).ep_attr.qos, all.ep_attr.qos);
  EXPECT_EQ(with(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS).ep_attr.max_recv_dtos, all.ep_attr.max_recv_dtos);
  EXPECT_EQ(with(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS).ep_attr.max_request_dtos, all.ep_attr.max_request_dtos);
  EXPECT_EQ(with(DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV).ep_attr.max_recv_iov, all.ep_attr.max_recv_iov);
  EXPECT_EQ(with(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV).ep_attr.max_request_iov, all.ep_attr.max_request_iov);
  EXPECT_EQ(with(DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW).ep_attr.srq_soft_hw, all.ep_attr.srq_soft_hw);
  EXPECT_EQ(with(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV).ep_attr.max_rdma_read_iov, all.ep_attr.max_rdma_read_iov);
  EXPECT_EQ(with(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV).ep_attr.max_rdma_write_iov, all.ep_attr.max_rdma_write_iov);
}

TEST_P(EpQuery, KnowsItsMaskBits) {
  // EP-QUERY-2, EP-QUERY-9, GEN-7
  const Ep ep(server);
  DAT_EP_PARAM param{};
  for (int bit = 0; bit < 64; ++bit) {
    const DAT_EP_PARAM_MASK mask = DAT_EP_PARAM_MASK{1} << bit;
    const DAT_RETURN rc = dat_ep_query(ep.get(), mask, &param);
    if ((mask & (kIsVersion1 ? 0x7FFFF7FFu : 0x7FFFFFFFu)) != 0) {
      EXPECT_THAT(rc, Succeeds()) << "bit " << bit;
    } else {
      EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER)) << "bit " << bit;
    }
  }
}

TEST_P(EpQuery, NeedsAResultAndAnEndpoint) {
  // EP-QUERY-9, GEN-2, GEN-7
  const Ep ep(server);
  DAT_EP_PARAM param{};
  EXPECT_THAT(dat_ep_query(ep.get(), DAT_EP_FIELD_ALL, nullptr), HasType(DAT_INVALID_PARAMETER));
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.pz.get(), server.ia.get()}) {
    const DAT_RETURN rc = dat_ep_query(bad, DAT_EP_FIELD_ALL, &param);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
  }
}

TEST_P(EpQuery, AddressesCanBeReadInEveryState) {
  // EP-QUERY-3, EP-QUERY-4, EP-QUERY-5
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    SCOPED_TRACE(state_name(state));
    const HeldEp ep(server, client, GetParam(), state);
    const DAT_EP_PARAM param = ep.query();
    // What is undefined can still be looked at.
    sockaddr_storage copy{};
    for (const DAT_IA_ADDRESS_PTR address : {param.local_ia_address_ptr, param.remote_ia_address_ptr}) {
      if (address != nullptr) {
        std::memcpy(&copy, address, sizeof(sockaddr_in));
      }
    }
    switch (state) {
      case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
      case DAT_EP_STATE_COMPLETION_PENDING:
      case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
      case DAT_EP_STATE_CONNECTED:
      case DAT_EP_STATE_DISCONNECT_PENDING:
        EXPECT_NE(param.local_port_qual, 0u);
        [[fallthrough]];
      case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING:
        EXPECT_NE(param.remote_port_qual, 0u);
        ASSERT_NE(param.remote_ia_address_ptr, nullptr);
        EXPECT_TRUE(param.remote_ia_address_ptr->sa_family == AF_INET ||
                    param.remote_ia_address_ptr->sa_family == AF_INET6);
        break;
      default:
        break;
    }
  }
}

TEST_P(EpQuery, LocalPortIsWhatTheOtherSideSees) {
  // EP-QUERY-4, EP-QUERY-3: in each state where it is valid.
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    SCOPED_TRACE(state_name(state));
    const HeldEp ep(server, client, GetParam(), state);
    const DAT_EP_PARAM param = ep.query();
    const DAT_EP_PARAM peer = ep.peer().query();
    switch (state) {
      case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
        EXPECT_EQ(param.local_port_qual, query_request(ep.request_made()).remote_port_qual);
        break;
      case DAT_EP_STATE_COMPLETION_PENDING:
        EXPECT_EQ(param.local_port_qual, ep.asked_at()) << "of a process that stands still";
        break;
      case DAT_EP_STATE_CONNECTED:
      case DAT_EP_STATE_DISCONNECT_PENDING:
        EXPECT_EQ(param.remote_port_qual, peer.local_port_qual) << "the other way round";
        [[fallthrough]];
      case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
        EXPECT_EQ(param.local_port_qual, peer.remote_port_qual);
        break;
      default:
        break;
    }
  }
  const HeldEp accepted(server, client, GetParam(), DAT_EP_STATE_CONNECTED, Way::kAcceptedThroughRsp);
  EXPECT_EQ(accepted.query().local_port_qual, accepted.peer().query().remote_port_qual) << "of the passive side";
}

TEST_P(EpQuery, ActiveSideNamesWhatItAskedFor) {
  // EP-QUERY-6, EP-CONN-2
  const Ep ep(client);
  ASSERT_THAT(try_connect(ep.get(), server.listen()), Succeeds());
  const auto request = expect_request(server.requests.get());
  const auto check = [&] {
    const DAT_EP_PARAM param = ep.query();
    EXPECT_EQ(param.remote_port_qual, server.listen());
    EXPECT_TRUE(same_address(param.remote_ia_address_ptr, loopback()));
    return param;
  };
  const DAT_EP_PARAM pending = check();
  EXPECT_EQ(query_request(request.cr_handle).remote_port_qual, pending.local_port_qual) << "EP-CONN-2, CR-QUERY-2";
  const Ep passive(server);
  ASSERT_THAT(dat_cr_accept(request.cr_handle, passive.get(), 0, nullptr), Succeeds());
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(check().local_port_qual, pending.local_port_qual);
}

TEST_P(EpQuery, PassiveSideNamesWhoAsked) {
  // EP-QUERY-7, EP-QUERY-3, CR-QUERY-2
  const auto check = [](const DAT_CR_PARAM& request, const DAT_EP_PARAM& param) {
    EXPECT_EQ(param.remote_port_qual, request.remote_port_qual);
    ASSERT_NE(param.remote_ia_address_ptr, nullptr);
    EXPECT_TRUE(same_address(param.remote_ia_address_ptr, request.remote_ia_address_ptr));
  };
  {
    const Ep requester(client);
    ASSERT_THAT(try_connect(requester.get(), server.listen()), Succeeds());
    const DAT_CR_HANDLE request = expect_request(server.requests.get()).cr_handle;
    const DAT_CR_PARAM seen = query_request(request);
    sockaddr_storage address{};  // the request's own memory goes with it
    std::memcpy(&address, seen.remote_ia_address_ptr,
                seen.remote_ia_address_ptr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    DAT_CR_PARAM kept = seen;
    kept.remote_ia_address_ptr = reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address);
    const Ep ep(server);
    ASSERT_THAT(dat_cr_accept(request, ep.get(), 0, nullptr), Succeeds());
    check(kept, ep.query());
    expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    check(kept, ep.query());
  }
  for (const DAT_EP_STATE state :
       {DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING}) {
    SCOPED_TRACE(state_name(state));
    const HeldEp ep(server, client, GetParam(), state);
    check(query_request(ep.request()), ep.query());
  }
}

TEST_P(EpQuery, AddressKeepsItsValueWhileConnected) {
  // EP-QUERY-5
  Pair pair = make_connected_pair();
  const DAT_EP_PARAM before = pair.client.query();
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_TRUE(same_address(before.remote_ia_address_ptr, loopback()));
}

TEST_P(EpQuery, EndpointOfTheProviderHasNoPartsYet) {
  // EP-QUERY-8, PSP-CREATE-6
  HeldEp ep(server, client, GetParam(), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
  const DAT_EP_PARAM param = ep.query();
  EXPECT_EQ(param.ia_handle, server.ia.get());
  EXPECT_EQ(param.pz_handle, static_cast<DAT_PZ_HANDLE>(DAT_HANDLE_NULL));
  EXPECT_EQ(param.recv_evd_handle, static_cast<DAT_EVD_HANDLE>(DAT_HANDLE_NULL));
  EXPECT_EQ(param.request_evd_handle, static_cast<DAT_EVD_HANDLE>(DAT_HANDLE_NULL));
  EXPECT_EQ(param.connect_evd_handle, static_cast<DAT_EVD_HANDLE>(DAT_HANDLE_NULL));
  ep.configure();
  EXPECT_EQ(ep.query().pz_handle, server.pz.get());
  EXPECT_EQ(ep.query().connect_evd_handle, ep.evds().connect.get());
}

ANYDAT_OVER_ALL_WIRES(EpQuery);

}  // namespace
}  // namespace anydat::test
