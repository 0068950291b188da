// SPDX-License-Identifier: BSD-3-Clause
// Connections of 2.0: rejecting with private data, several paths, common service points, datagrams.
#include <vector>

#include "face20/fixture.h"

namespace anydat::test {
namespace {

using Dat2Connections = Dat2;
INSTANTIATE_TEST_SUITE_P(Wires, Dat2Connections, testing::ValuesIn(all_wires()), wire_name);

DAT_RETURN connect_to(DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier,
                      DAT_CONNECT_FLAGS flags = DAT_CONNECT_DEFAULT_FLAG) {
  return dat_ep_connect(ep, loopback(), qualifier, 60'000'000, 0, nullptr, DAT_QOS_BEST_EFFORT, flags);
}

DAT_CR_HANDLE next_request(Side& side) {
  const DAT_EVENT event = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  EXPECT_EQ(event.event_data.cr_arrival_event_data.truncate_flag, DAT_FALSE);  // D2-CR-7
  return event.event_data.cr_arrival_event_data.cr_handle;
}

// D2-CR-1, D2-CR-2, D2-CR-3.
TEST_P(Dat2Connections, ARejectionCarriesPrivateData) {
  // A reject of InfiniBand has room for less than what asks and accepts (docs/verbs.md).
  const bool infiniband = GetParam().ia_name.starts_with("verbs-rxe");
  const DAT_COUNT most = infiniband ? 132 : server.ia.provider().max_private_data_size;
  for (const DAT_COUNT size : {0, 1, 48, most}) {
    Ep ep(client);
    require(connect_to(ep.get(), server.listen()), "connect");
    const DAT_CR_HANDLE request = next_request(server);
    std::vector<unsigned char> data(static_cast<std::size_t>(size) + 1, 0);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 7 + 1);
    EXPECT_THAT(dat_cr_reject(request, most + 1, data.data()), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(dat_cr_reject(request, -1, data.data()), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(dat_cr_reject(request, 1, nullptr), HasType(DAT_INVALID_PARAMETER));
    ASSERT_THAT(dat_cr_reject(request, size, size > 0 ? data.data() : nullptr), Succeeds()) << "the request has stayed";
    const DAT_EVENT event = expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
    const DAT_CONNECTION_EVENT_DATA& told = event.event_data.connect_event_data;
    ASSERT_EQ(told.private_data_size, size);
    if (size > 0) {
      EXPECT_EQ(std::memcmp(told.private_data, data.data(), static_cast<std::size_t>(size)), 0);
    }
  }
}

// D2-CR-5.
TEST_P(Dat2Connections, OtherFailuresCarryNone) {
  const DAT_CONN_QUAL qualifier = server.listen();
  server.psp.reset();
  const Ep ep(client);
  require(connect_to(ep.get(), qualifier), "connect");
  const DAT_EVENT event = expect_event(client.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  EXPECT_EQ(event.event_data.connect_event_data.private_data_size, 0);
}

// D2-CONN-2.
TEST_P(Dat2Connections, SeveralPathsAreServedByOneUnlessTheyAreRequired) {
  const DAT_CONN_QUAL qualifier = server.listen();
  Ep ep(client);
  EXPECT_THAT(connect_to(ep.get(), qualifier, DAT_CONNECT_MULTIPATH_REQUIRED_FLAG), HasType(DAT_MODEL_NOT_SUPPORTED));
  EXPECT_THAT(connect_to(ep.get(), qualifier, static_cast<DAT_CONNECT_FLAGS>(3)), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(connect_to(ep.get(), qualifier, static_cast<DAT_CONNECT_FLAGS>(4)), HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
  ASSERT_THAT(connect_to(ep.get(), qualifier, DAT_CONNECT_MULTIPATH_REQUESTED_FLAG), Succeeds());
  const Ep accepting(server);
  require(dat_cr_accept(next_request(server), accepting.get(), 0, nullptr), "accept");
  (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED) << "D2-CONN-3";
}

// D2-CSP-7, D2-CSP-8: the port of the address is the qualifier.
TEST_P(Dat2Connections, ACommonConnectReachesTheServicePointAtThePort) {
  const DAT_CONN_QUAL qualifier = server.listen();
  sockaddr_in address{};
  std::memcpy(&address, loopback(), sizeof address);
  const Ep ep(client);
  auto* const at = reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address);
  address.sin_port = 0;
  EXPECT_THAT(dat_ep_common_connect(ep.get(), at, 60'000'000, 0, nullptr), HasType(DAT_INVALID_ADDRESS));
  EXPECT_THAT(dat_ep_common_connect(ep.get(), nullptr, 60'000'000, 0, nullptr), HasType(DAT_INVALID_PARAMETER));
  address.sin_port = htons(static_cast<in_port_t>(qualifier));
  ASSERT_THAT(dat_ep_common_connect(ep.get(), at, 60'000'000, 0, nullptr), Succeeds());
  const Ep accepting(server);
  require(dat_cr_accept(next_request(server), accepting.get(), 0, nullptr), "accept");
  (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
}

// D2-CONN-4, D2-CONN-5.
TEST_P(Dat2Connections, CommIsZeroAndCannotBeModified) {
  const Ep ep(client);
  DAT_EP_PARAM param;
  std::memset(static_cast<void*>(&param), 0xff, sizeof param);
  ASSERT_THAT(dat_ep_query(ep.get(), DAT_EP_FIELD_ALL, &param), Succeeds());
  EXPECT_EQ(param.comm.domain, 0);
  EXPECT_EQ(param.comm.type, 0);
  EXPECT_EQ(param.comm.protocol, 0);
  EXPECT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_COMM, &param), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_PZ_HANDLE, &param), Succeeds());
}

// D2-EXT-3.
TEST_P(Dat2Connections, ThereAreNoDatagrams) {
  DAT_EP_ATTR attr = default_ep_attr();
  attr.service_type = DAT_SERVICE_TYPE_EXTENSION_BASE;
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_ep_create(client.ia.get(), client.pz.get(), client.recv.get(), client.request.get(),
                            client.connect.get(), &attr, &ep),
              HasType(DAT_MODEL_NOT_SUPPORTED));
}

}  // namespace
}  // namespace anydat::test
