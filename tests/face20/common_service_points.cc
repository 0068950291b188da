// SPDX-License-Identifier: BSD-3-Clause
// Common service points and dat_ep_common_connect (D2-CSP).
#include <netinet/in.h>

#include "face20/fixture.h"

namespace anydat::test {
namespace {

constexpr DAT_COMM kTcp{AF_INET, SOCK_STREAM, IPPROTO_TCP};

bool same(const DAT_COMM& one, const DAT_COMM& other) {
  return one.domain == other.domain && one.type == other.type && one.protocol == other.protocol;
}

class Dat2Csp : public Dat2 {
 protected:
  void TearDown() override {
    if (csp != DAT_HANDLE_NULL) {
      EXPECT_THAT(dat_csp_free(csp), Succeeds());
    }
  }

  sockaddr_in own_address(in_port_t port = 0) {
    sockaddr_in address{};
    const DAT_IA_ATTR attributes = server.ia.attributes();
    EXPECT_EQ(attributes.ia_address_ptr->sa_family, AF_INET);
    std::memcpy(&address, attributes.ia_address_ptr, sizeof address);
    address.sin_port = htons(port);
    return address;
  }
  static DAT_IA_ADDRESS_PTR pointer(sockaddr_in& address) { return reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address); }

  DAT_RETURN create(DAT_COMM comm, sockaddr_in address, DAT_CSP_HANDLE* handle) {
    return dat_csp_create(server.ia.get(), &comm, pointer(address), server.requests.get(), handle);
  }
  DAT_RETURN create_at(in_port_t port, DAT_CSP_HANDLE* handle) { return create(kTcp, own_address(port), handle); }
  DAT_CSP_PARAM query(DAT_CSP_HANDLE handle) {
    DAT_CSP_PARAM param{};
    require(dat_csp_query(handle, DAT_CSP_FIELD_ALL, &param), "dat_csp_query");
    return param;
  }
  in_port_t port_of(DAT_CSP_HANDLE handle) {
    sockaddr_in address{};
    std::memcpy(&address, query(handle).address_ptr, sizeof address);
    return ntohs(address.sin_port);
  }
  in_port_t listen() {
    require(create_at(0, &csp), "dat_csp_create");
    return port_of(csp);
  }
  DAT_RETURN common_connect(const Ep& ep, in_port_t port) {
    sockaddr_in address{};
    std::memcpy(&address, loopback(), sizeof address);
    address.sin_port = htons(port);
    return dat_ep_common_connect(ep.get(), pointer(address), 60'000'000, 0, nullptr);
  }
  DAT_CR_ARRIVAL_EVENT_DATA next_request() {
    return expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data;
  }
  void accept(const Ep& ep, DAT_CR_HANDLE request) {
    require(dat_cr_accept(request, ep.get(), 0, nullptr), "dat_cr_accept");
    (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }

  DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
};
INSTANTIATE_TEST_SUITE_P(Wires, Dat2Csp, testing::ValuesIn(all_wires()), wire_name);

// D2-CSP-1.
TEST_P(Dat2Csp, OnlyStreamsOfTcpAreSupported) {
  DAT_CSP_HANDLE made = DAT_HANDLE_NULL;
  for (const DAT_COMM& comm : {DAT_COMM{AF_UNIX, SOCK_STREAM, 0}, DAT_COMM{AF_INET, SOCK_DGRAM, 0},
                               DAT_COMM{AF_INET, SOCK_STREAM, IPPROTO_UDP}, DAT_COMM{0, 0, 0}, DAT_COMM{-1, -1, -1}}) {
    EXPECT_THAT(create(comm, own_address(), &made), HasType(DAT_COMM_NOT_SUPPORTED)) << comm.domain << ' ' << comm.type;
  }
  EXPECT_EQ(made, DAT_HANDLE_NULL);
  for (const int protocol : {0, static_cast<int>(IPPROTO_TCP)}) {
    ASSERT_THAT(create({AF_INET, SOCK_STREAM, protocol}, own_address(), &made), Succeeds());
    EXPECT_THAT(dat_csp_free(made), Succeeds());
  }
}

// D2-CSP-2.
TEST_P(Dat2Csp, TheAddressIsTheAdaptersOrAWildcard) {
  DAT_CSP_HANDLE made = DAT_HANDLE_NULL;
  sockaddr_in address = own_address();
  address.sin_addr.s_addr = htonl(0xC0000201);  // 192.0.2.1, which no host has
  EXPECT_THAT(create(kTcp, address, &made), HasType(DAT_INVALID_ADDRESS));
  EXPECT_THAT(create({AF_INET6, SOCK_STREAM, 0}, own_address(), &made), HasType(DAT_INVALID_ADDRESS))
      << "its family is not the domain";
  sockaddr_in6 address6{};
  address6.sin6_family = AF_INET6;
  address6.sin6_addr.s6_addr[0] = 0x20;
  DAT_COMM comm{AF_INET6, SOCK_STREAM, 0};
  const auto create6 = [&] {
    return dat_csp_create(server.ia.get(), &comm, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address6),
                          server.requests.get(), &made);
  };
  EXPECT_THAT(create6(), HasType(DAT_INVALID_ADDRESS));
  EXPECT_EQ(made, DAT_HANDLE_NULL);
  address6.sin6_addr = in6addr_any;
  ASSERT_THAT(create6(), Succeeds());
  EXPECT_THAT(dat_csp_free(made), Succeeds());
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  ASSERT_THAT(create(kTcp, address, &made), Succeeds());
  EXPECT_THAT(dat_csp_free(made), Succeeds());
}

// D2-CSP-1, D2-CSP-2, D2-CSP-9: what is refused makes nothing.
TEST_P(Dat2Csp, BadArgumentsAreRefused) {
  DAT_COMM comm = kTcp;
  sockaddr_in address = own_address();
  DAT_CSP_HANDLE made = DAT_HANDLE_NULL;
  const auto create_with = [&](DAT_IA_HANDLE ia, DAT_COMM* c, DAT_IA_ADDRESS_PTR a, DAT_EVD_HANDLE evd,
                               DAT_CSP_HANDLE* to) { return dat_csp_create(ia, c, a, evd, to); };
  const DAT_IA_HANDLE ia = server.ia.get();
  const DAT_EVD_HANDLE evd = server.requests.get();
  EXPECT_THAT(create_with(evd, &comm, pointer(address), evd, &made), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(create_with(ia, nullptr, pointer(address), evd, &made), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(create_with(ia, &comm, nullptr, evd, &made), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(create_with(ia, &comm, pointer(address), DAT_HANDLE_NULL, &made), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(create_with(ia, &comm, pointer(address), client.requests.get(), &made), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(create_with(ia, &comm, pointer(address), server.recv.get(), &made), HasType(DAT_INVALID_HANDLE))
      << "an EVD that takes no requests";
  EXPECT_THAT(create_with(ia, &comm, pointer(address), evd, nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(made, DAT_HANDLE_NULL);
}

// D2-CSP-3: one port, one service point, of whichever kind.
TEST_P(Dat2Csp, APortHasOneServicePoint) {
  const in_port_t port = listen();
  ASSERT_NE(port, 0);
  DAT_CSP_HANDLE second = DAT_HANDLE_NULL;
  EXPECT_THAT(create_at(port, &second), HasType(DAT_PORT_IN_USE));
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_psp_create(server.ia.get(), port, server.requests.get(), DAT_PSP_CONSUMER_FLAG, &psp),
              HasType(DAT_CONN_QUAL_IN_USE));
  EXPECT_THAT(create_at(static_cast<in_port_t>(server.listen()), &second), HasType(DAT_PORT_IN_USE));
  // Freed, it is another's (D2-CSP-6).
  EXPECT_THAT(dat_csp_free(std::exchange(csp, DAT_HANDLE_NULL)), Succeeds());
  const Ep ep(server);
  DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_rsp_create(server.ia.get(), port, ep.get(), server.requests.get(), &rsp), Succeeds());
  EXPECT_THAT(create_at(port, &second), HasType(DAT_PORT_IN_USE));
  EXPECT_THAT(dat_rsp_free(rsp), Succeeds());
  EXPECT_THAT(create_at(port, &csp), Succeeds());
}

// D2-CSP-4, D2-CSP-7, D2-CR-8, D2-CONN-4.
TEST_P(Dat2Csp, RequestsComeAsAtAServicePointOfTheConsumer) {
  const in_port_t port = listen();
  Ep ep(client);
  ASSERT_THAT(common_connect(ep, port), Succeeds());
  const DAT_CR_ARRIVAL_EVENT_DATA request = next_request();
  EXPECT_EQ(request.conn_qual, port);
  EXPECT_EQ(request.sp_handle.csp_handle, csp);
  DAT_CR_PARAM param{};
  ASSERT_THAT(dat_cr_query(request.cr_handle, DAT_CR_FIELD_ALL, &param), Succeeds());
  EXPECT_EQ(param.local_ep_handle, DAT_HANDLE_NULL) << "the Consumer brings the endpoint";
  EXPECT_THAT(dat_cr_accept(request.cr_handle, DAT_HANDLE_NULL, 0, nullptr), HasType(DAT_INVALID_HANDLE));
  Ep accepting(server);
  accept(accepting, request.cr_handle);
  EXPECT_TRUE(same(ep.query().comm, kTcp));
  EXPECT_TRUE(same(accepting.query().comm, kTcp)) << "that of the service point";
  // Until the endpoint starts anew.
  for (Ep* const one : {&ep, &accepting}) {
    if (one->state() == DAT_EP_STATE_CONNECTED)
      require(dat_ep_disconnect(one->get(), DAT_CLOSE_ABRUPT_FLAG), "disconnect");
  }
  (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  for (const Ep* const one : {&ep, &accepting}) {
    require(dat_ep_reset(one->get()), "dat_ep_reset");
    EXPECT_TRUE(same(one->query().comm, DAT_COMM{}));
  }
}

// D2-CSP-8, D2-CONN-4: each kind of connect reaches each kind of service point.
TEST_P(Dat2Csp, EachWayToConnectReachesEachServicePoint) {
  DAT_COMM comm{AF_INET, SOCK_STREAM, 0};
  ASSERT_THAT(create(comm, own_address(), &csp), Succeeds());
  const Ep plain(client);
  ASSERT_THAT(dat_ep_connect(plain.get(), loopback(), port_of(csp), 60'000'000, 0, nullptr, DAT_QOS_BEST_EFFORT,
                             DAT_CONNECT_DEFAULT_FLAG),
              Succeeds());
  const Ep at_csp(server);
  accept(at_csp, next_request().cr_handle);
  EXPECT_TRUE(same(plain.query().comm, DAT_COMM{}));
  EXPECT_TRUE(same(at_csp.query().comm, comm));

  const Ep common(client);
  ASSERT_THAT(common_connect(common, static_cast<in_port_t>(server.listen())), Succeeds());
  const Ep at_psp(server);
  accept(at_psp, next_request().cr_handle);
  EXPECT_TRUE(same(common.query().comm, kTcp));
  EXPECT_TRUE(same(at_psp.query().comm, DAT_COMM{}));
  EXPECT_THAT(common_connect(Ep(client), 0), HasType(DAT_INVALID_ADDRESS));
}

// D2-CSP-7: what dat_ep_connect refuses is refused here too, and the endpoint is as it was.
TEST_P(Dat2Csp, ACommonConnectIsCheckedAsAConnectIs) {
  const in_port_t port = listen();
  const Ep ep(client);
  sockaddr_in address{};
  std::memcpy(&address, loopback(), sizeof address);
  address.sin_port = htons(port);
  const DAT_COUNT most = client.ia.provider().max_private_data_size;
  EXPECT_THAT(dat_ep_common_connect(ep.get(), pointer(address), 0, 0, nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ep_common_connect(ep.get(), pointer(address), 1, most + 1, &address), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ep_common_connect(ep.get(), pointer(address), 1, 1, nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ep_common_connect(csp, pointer(address), 1, 0, nullptr), HasType(DAT_INVALID_HANDLE));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  EXPECT_THAT(dat_ep_common_connect(ep.get(), pointer(address), 1, 0, nullptr), HasType(DAT_INVALID_ADDRESS));
  address.sin_family = AF_UNIX;
  EXPECT_THAT(dat_ep_common_connect(ep.get(), pointer(address), 1, 0, nullptr), HasType(DAT_INVALID_ADDRESS));
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
  EXPECT_TRUE(same(ep.query().comm, DAT_COMM{}));
}

// D2-CSP-5.
TEST_P(Dat2Csp, AQueryTellsWhatItWasMadeOf) {
  const in_port_t port = listen();
  for (unsigned mask = 0; mask <= DAT_CSP_FIELD_ALL; ++mask) {
    DAT_CSP_PARAM param{};
    ASSERT_THAT(dat_csp_query(csp, static_cast<DAT_CSP_PARAM_MASK>(mask), &param), Succeeds());
    EXPECT_EQ(param.ia_handle, server.ia.get());
    EXPECT_EQ(param.evd_handle, server.requests.get());
    EXPECT_TRUE(same(*param.comm, kTcp));
    sockaddr_in address{};
    std::memcpy(&address, param.address_ptr, sizeof address);
    EXPECT_EQ(address.sin_family, AF_INET);
    EXPECT_EQ(address.sin_addr.s_addr, own_address().sin_addr.s_addr);
    EXPECT_EQ(ntohs(address.sin_port), port);
  }
  EXPECT_THAT(dat_csp_query(csp, DAT_CSP_FIELD_ALL, nullptr), HasType(DAT_INVALID_PARAMETER));
}

// D2-CSP-6: a request that has come stays, a later one finds no service point.
TEST_P(Dat2Csp, AFreedServicePointLeavesItsRequests) {
  const in_port_t port = listen();
  const Ep first(client);
  ASSERT_THAT(common_connect(first, port), Succeeds());
  const DAT_CR_HANDLE request = next_request().cr_handle;
  ASSERT_THAT(dat_csp_free(std::exchange(csp, DAT_HANDLE_NULL)), Succeeds());
  const Ep second(client);
  ASSERT_THAT(common_connect(second, port), Succeeds());
  (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  const Ep accepting(server);
  accept(accepting, request);
  EXPECT_TRUE(same(accepting.query().comm, kTcp)) << "although the service point is gone";
}

// D2-CSP-9, D2-RC-3.
TEST_P(Dat2Csp, ItsHandleHasItsOwnType) {
  (void)listen();
  DAT_HANDLE_TYPE type = DAT_HANDLE_TYPE_IA;
  ASSERT_THAT(dat_get_handle_type(csp, &type), Succeeds());
  EXPECT_EQ(type, DAT_HANDLE_TYPE_CSP);
  constexpr DAT_RETURN kRefused =
      static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_CSP;
  DAT_CSP_PARAM param{};
  const DAT_CSP_HANDLE freed = std::exchange(csp, DAT_HANDLE_NULL);
  EXPECT_THAT(dat_psp_free(freed), HasType(DAT_INVALID_HANDLE));
  ASSERT_THAT(dat_csp_free(freed), Succeeds());
  for (const DAT_HANDLE bad : {freed, DAT_HANDLE{DAT_HANDLE_NULL}, server.ia.get(), server.requests.get()}) {
    EXPECT_EQ(dat_csp_query(bad, DAT_CSP_FIELD_ALL, &param), kRefused);
    EXPECT_EQ(dat_csp_free(bad), kRefused);
  }
}

// D2-CSP-6, IA-CLOSE-3: it holds its adapter and its EVD, and goes with an adapter that is closed abruptly.
TEST_P(Dat2Csp, ItGoesWithItsAdapter) {
  const in_port_t port = listen();
  EXPECT_THAT(dat_evd_free(server.requests.get()), HasType(DAT_INVALID_STATE)) << "it feeds it";
  ASSERT_THAT(dat_csp_free(std::exchange(csp, DAT_HANDLE_NULL)), Succeeds());
  Ia other(GetParam());
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  require(dat_evd_create(other.get(), 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd), "dat_evd_create");
  DAT_COMM comm = kTcp;
  sockaddr_in address = own_address(port);
  DAT_CSP_HANDLE made = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_csp_create(other.get(), &comm, pointer(address), evd, &made), Succeeds());
  EXPECT_THAT(other.close(DAT_CLOSE_GRACEFUL_FLAG), HasType(DAT_INVALID_STATE));
  ASSERT_THAT(other.close(DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  DAT_CSP_PARAM param{};
  EXPECT_THAT(dat_csp_query(made, DAT_CSP_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(create_at(port, &csp), Succeeds()) << "the port is free again";
}

}  // namespace
}  // namespace anydat::test
