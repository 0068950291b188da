// SPDX-License-Identifier: BSD-3-Clause
// Public service points: sections 5.1 to 5.3 of the rules.
#include <netinet/in.h>

#include <set>
#include <thread>

#include "ep_states.h"

namespace anydat::test {
namespace {

class PspTest : public EpStateTest {
 protected:
  static DAT_RETURN create(const Ia& ia, DAT_CONN_QUAL qualifier, DAT_EVD_HANDLE evd,
                           DAT_PSP_FLAGS flags = DAT_PSP_CONSUMER_FLAG) {
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    const DAT_RETURN rc = dat_psp_create(ia.get(), qualifier, evd, flags, &psp);
    if (rc == DAT_SUCCESS) {
      EXPECT_THAT(dat_psp_free(psp), Succeeds());
    }
    return rc;
  }
  // An attempt to reach `qualifier` ends as one does where no service point listens.
  static void expect_nobody_listens(const Side& side, DAT_CONN_QUAL qualifier, Caller caller = Caller::here()) {
    const OwnEvds evds(side);
    const Ep ep(side.ia, side.pz, evds, default_ep_attr());
    require(try_connect(ep.get(), qualifier), "dat_ep_connect");
    expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep.get(), caller);
  }
};

TEST_P(PspTest, ListensForAnyNumberOfRequests) {
  // PSP-CREATE-1, PSP-CREATE-2, PSP-CREATE-13
  const AnyPsp psp(server.ia, server.requests.get());
  std::vector<Ep> all;
  std::set<DAT_CR_HANDLE> requests;
  for (int i = 0; i < 10; ++i) {
    all.emplace_back(client);
    ASSERT_THAT(try_connect(all.back().get(), psp.qualifier()), Succeeds());
  }
  for (int i = 0; i < 10; ++i) {
    requests.insert(expect_request(server.requests.get()).cr_handle);
  }
  EXPECT_EQ(requests.size(), 10u) << "each request has its own handle";
  EXPECT_FALSE(poll_event(server.requests.get()));
  // Answered later, in whatever way.
  bool accept = true;
  std::vector<Ep> accepted;
  for (const DAT_CR_HANDLE request : requests) {
    if (accept) {
      accepted.emplace_back(server);
      EXPECT_THAT(dat_cr_accept(request, accepted.back().get(), 0, nullptr), Succeeds());
    } else {
      EXPECT_THAT(dat_cr_reject(request), Succeeds());
    }
    accept = !accept;
  }
  int established = 0;
  int rejected = 0;
  for (int i = 0; i < 10; ++i) {
    const auto event = wait_event(client.connect.get());
    ASSERT_TRUE(event);
    established += event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED ? 1 : 0;
    rejected += event->event_number == DAT_CONNECTION_EVENT_PEER_REJECTED ? 1 : 0;
  }
  EXPECT_EQ(established, 5);
  EXPECT_EQ(rejected, 5);
}

TEST_P(PspTest, EventSaysWhereTheRequestArrived) {
  // PSP-CREATE-3
  const AnyPsp psp(server.ia, server.requests.get());
  const Ep ep(client);
  ASSERT_THAT(try_connect(ep.get(), psp.qualifier()), Succeeds());
  const DAT_EVENT event = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  EXPECT_EQ(event.evd_handle, server.requests.get());
  const auto& data = event.event_data.cr_arrival_event_data;
  EXPECT_EQ(data.sp_handle.psp_handle, psp.get());
  EXPECT_EQ(data.conn_qual, psp.qualifier());
  ASSERT_NE(data.local_ia_address_ptr, nullptr);
  ASSERT_EQ(data.local_ia_address_ptr->sa_family, AF_INET);
  EXPECT_EQ(reinterpret_cast<const sockaddr_in*>(data.local_ia_address_ptr)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  DAT_HANDLE_TYPE type{};
  ASSERT_THAT(dat_get_handle_type(data.cr_handle, &type), Succeeds());
  EXPECT_EQ(type, DAT_HANDLE_TYPE_CR);
}

TEST_P(PspTest, TheQueueIsTheBacklog) {
  // PSP-CREATE-4, CONN-SEQ-6
  const RequestQueue requests(server.ia, 1);
  if (requests.qlen() != 1) {
    GTEST_SKIP() << "a queue of 1 holds " << requests.qlen() << " events";
  }
  const AnyPsp psp(server.ia, requests.get());
  const Ep first(client);
  ASSERT_THAT(try_connect(first.get(), psp.qualifier()), Succeeds());
  requests.await_arrival();
  for (int i = 0; i < 3; ++i) {
    expect_nobody_listens(client, psp.qualifier());
  }
  expect_request(requests.get());
  expect_no_event(requests.get());
  expect_no_event(server.ia.async_evd());
  EXPECT_EQ(first.state(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  const Ep second(client);  // there is room again
  ASSERT_THAT(try_connect(second.get(), psp.qualifier()), Succeeds());
  expect_request(requests.get());
}

TEST_P(PspTest, ConsumerFlagLeavesTheEndpointToTheConsumer) {
  // PSP-CREATE-5, CR-QUERY-4
  const AnyPsp psp(server.ia, server.requests.get());
  const Ep ep(client);
  ASSERT_THAT(try_connect(ep.get(), psp.qualifier()), Succeeds());
  const auto request = expect_request(server.requests.get());
  EXPECT_EQ(query_request(request.cr_handle).local_ep_handle, static_cast<DAT_EP_HANDLE>(DAT_HANDLE_NULL));
}

TEST_P(PspTest, ProviderFlagBringsAnEndpointWithEachRequest) {
  // PSP-CREATE-6, CR-QUERY-4, CONN-SEQ-2
  HeldEp one(server, client, GetParam(), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
  EXPECT_EQ(query_request(one.request()).local_ep_handle, one.get());
  EXPECT_EQ(one.state(), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
  // Not acceptable before it is configured.
  EXPECT_THAT(dat_cr_accept(one.request(), DAT_HANDLE_NULL, 0, nullptr), HasType(DAT_INVALID_HANDLE));
  EXPECT_EQ(one.state(), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
  one.configure();
  ASSERT_THAT(dat_cr_accept(one.request(), DAT_HANDLE_NULL, 0, nullptr), Succeeds());
  expect_connection_event(one.evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, one.get());
  expect_connection_event(one.peer_evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, one.peer().get());
  EXPECT_EQ(one.state(), DAT_EP_STATE_CONNECTED);
  // From here on it is the Consumer's like any other.
  DAT_LMR_TRIPLET segment = server_buffers.triplet(0);
  ASSERT_THAT(dat_ep_post_recv(one.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  post_send(one.peer(), client_buffers, 0);
  expect_completion(one.evds().recv.get());
  EXPECT_TRUE(has_pattern(server_buffers[0].first(32), 0));
  EXPECT_THAT(dat_ep_free(one.get()), Succeeds());
}

TEST_P(PspTest, EndpointOfTheProviderTakesAnyConfiguration) {
  // PSP-CREATE-6, EP-MODIFY-2
  HeldEp ep(server, client, GetParam(), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
  ep.configure();
  DAT_EP_PARAM param = ep.query();
  param.ep_attr.max_recv_dtos = 40;
  param.ep_attr.max_message_size = 1000;
  ASSERT_THAT(
      dat_ep_modify(ep.get(), DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &param),
      Succeeds());
  for (int i = 0; i < 40; ++i) {
    DAT_LMR_TRIPLET segment = server_buffers.triplet(i);
    ASSERT_THAT(
        dat_ep_post_recv(ep.get(), 1, &segment, cookie(static_cast<DAT_UINT64>(i)), DAT_COMPLETION_DEFAULT_FLAG),
        Succeeds());
  }
  ASSERT_THAT(dat_cr_accept(ep.request(), DAT_HANDLE_NULL, 0, nullptr), Succeeds());
  expect_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(ep.peer_evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  post_send(ep.peer(), client_buffers, 3);
  EXPECT_EQ(expect_completion(ep.evds().recv.get()).user_cookie.as_64, 0u);
}

TEST_P(PspTest, FlagsAgreeWithTheProvidersAttribute) {
  // PSP-CREATE-7, ATTR-1, GEN-13
  const DAT_EP_CREATOR_FOR_PSP creator = server.ia.provider().ep_creator;
  const DAT_RETURN by_consumer = create(server.ia, unused_qualifier(server), server.requests.get());
  const DAT_RETURN by_provider =
      create(server.ia, unused_qualifier(server), server.requests.get(), DAT_PSP_PROVIDER_FLAG);
  if (creator == DAT_PSP_CREATES_EP_ALWAYS) {
    EXPECT_THAT(by_consumer, HasType(DAT_MODEL_NOT_SUPPORTED));
  } else {
    EXPECT_THAT(by_consumer, Succeeds());
  }
  if (creator == DAT_PSP_CREATES_EP_NEVER) {
    EXPECT_THAT(by_provider, HasType(DAT_MODEL_NOT_SUPPORTED));
  } else {
    EXPECT_THAT(by_provider, Succeeds());
  }
  for (const int bad : {2, 3, -1}) {
    EXPECT_THAT(create(server.ia, unused_qualifier(server), server.requests.get(), static_cast<DAT_PSP_FLAGS>(bad)),
                HasType(DAT_INVALID_PARAMETER));
  }
}

TEST_P(PspTest, QualifierIsNotZero) {
  // PSP-CREATE-8
  EXPECT_THAT(create(server.ia, 0, server.requests.get()), HasType(DAT_INVALID_PARAMETER));
}

TEST_P(PspTest, QualifierHasOneListener) {
  // PSP-CREATE-9, PSP-FREE-5
  const Side other(GetParam());  // another instance of the same adapter counts
  const Ep ep(server);
  DAT_CONN_QUAL qualifier = 0;
  {
    const AnyPsp psp(server.ia, server.requests.get());
    qualifier = psp.qualifier();
    EXPECT_THAT(create(server.ia, qualifier, server.requests.get()), HasType(DAT_CONN_QUAL_IN_USE));
    EXPECT_THAT(create(other.ia, qualifier, other.requests.get()), HasType(DAT_CONN_QUAL_IN_USE));
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    EXPECT_THAT(dat_rsp_create(server.ia.get(), qualifier, ep.get(), server.requests.get(), &rsp),
                HasType(DAT_CONN_QUAL_IN_USE));
    EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
  }
  EXPECT_THAT(create(server.ia, qualifier, server.requests.get()), Succeeds());
  EXPECT_THAT(create(other.ia, qualifier, other.requests.get()), Succeeds());
  {
    const Rsp rsp(server, ep.get());
    EXPECT_THAT(create(server.ia, rsp.qualifier(), server.requests.get()), HasType(DAT_CONN_QUAL_IN_USE));
    qualifier = rsp.qualifier();
  }
  EXPECT_THAT(create(server.ia, qualifier, server.requests.get()), Succeeds());
}

TEST_P(PspTest, QualifierOfAnotherProcessIsInUse) {
  // PSP-CREATE-9
  RemotePeer peer(GetParam());
  const DAT_CONN_QUAL qualifier = peer.listen();
  EXPECT_THAT(create(server.ia, qualifier, server.requests.get()), HasType(DAT_CONN_QUAL_IN_USE));
  peer.kill();
  EXPECT_TRUE(eventually([&] { return create(server.ia, qualifier, server.requests.get()) == DAT_SUCCESS; }))
      << "free again once the service point is gone";
}

TEST_P(PspTest, ChecksItsArguments) {
  // PSP-CREATE-10, GEN-2, GEN-12
  const DAT_CONN_QUAL qualifier = unused_qualifier(server);
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.recv.get(), server.connect.get(),
                               server.pz.get(), client.requests.get()}) {
    const DAT_RETURN rc = create(server.ia, qualifier, bad);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EVD_CR));
  }
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.pz.get()}) {
    const DAT_RETURN rc = dat_psp_create(bad, qualifier, server.requests.get(), DAT_PSP_CONSUMER_FLAG, &psp);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_IA));
  }
  EXPECT_THAT(dat_psp_create(server.ia.get(), qualifier, server.requests.get(), DAT_PSP_CONSUMER_FLAG, nullptr),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(create(server.ia, qualifier, server.requests.get()), Succeeds()) << "nothing took the qualifier";
}

TEST_P(PspTest, UsesItsEvd) {
  // PSP-CREATE-11, PSP-FREE-6
  Evd requests(server.ia, DAT_EVD_CR_FLAG);
  AnyPsp psp(server.ia, requests.get());
  EXPECT_THAT(requests.free(), HasType(DAT_INVALID_STATE));
  ASSERT_THAT(psp.free(), Succeeds());
  EXPECT_THAT(requests.free(), Succeeds());
}

TEST_P(PspTest, SeveralShareAnEvdAndAPoolOfEndpoints) {
  // PSP-CREATE-12
  const AnyPsp one(server.ia, server.requests.get());
  const AnyPsp two(server.ia, server.requests.get());
  std::vector<Ep> pool;
  std::vector<Ep> callers;
  for (int i = 0; i < 4; ++i) {
    pool.emplace_back(server);
    callers.emplace_back(client);
    const AnyPsp& called = i % 2 == 0 ? one : two;
    ASSERT_THAT(try_connect(callers.back().get(), called.qualifier()), Succeeds());
    const auto request = expect_request(server.requests.get());
    EXPECT_EQ(request.sp_handle.psp_handle, called.get());
    EXPECT_EQ(request.conn_qual, called.qualifier());
    ASSERT_THAT(dat_cr_accept(request.cr_handle, pool.back().get(), 0, nullptr), Succeeds());
    expect_connection_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, callers.back().get());
  }
}

TEST_P(PspTest, PicksAQualifierThatAPeerCanUse) {
  // PSP-ANY-1, PSP-ANY-2, PSP-ANY-3
  const AnyPsp psp(server.ia, server.requests.get());
  EXPECT_GE(psp.qualifier(), 1024u);
  EXPECT_LE(psp.qualifier(), 65535u);
  EXPECT_THAT(create(server.ia, psp.qualifier(), server.requests.get()), HasType(DAT_CONN_QUAL_IN_USE));
  RemotePeer peer(GetParam());
  peer.connect(psp.qualifier());
  EXPECT_EQ(expect_request(server.requests.get()).sp_handle.psp_handle, psp.get());
}

TEST_P(PspTest, PickingChecksItsArguments) {
  // PSP-ANY-4, PSP-ANY-5, PSP-CREATE-7, PSP-CREATE-10
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  DAT_CONN_QUAL qualifier = 0;
  EXPECT_THAT(dat_psp_create_any(server.ia.get(), nullptr, server.requests.get(), DAT_PSP_CONSUMER_FLAG, &psp),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_psp_create_any(server.ia.get(), &qualifier, server.requests.get(), DAT_PSP_CONSUMER_FLAG, nullptr),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(
      dat_psp_create_any(server.ia.get(), &qualifier, server.requests.get(), static_cast<DAT_PSP_FLAGS>(7), &psp),
      HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_psp_create_any(server.ia.get(), &qualifier, server.recv.get(), DAT_PSP_CONSUMER_FLAG, &psp),
              HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_psp_create_any(server.pz.get(), &qualifier, server.requests.get(), DAT_PSP_CONSUMER_FLAG, &psp),
              HasType(DAT_INVALID_HANDLE));
}

TEST_P(PspTest, PickingAtOnceGivesDifferentQualifiers) {
  // PSP-ANY-6, MT-1
  constexpr int kThreads = 4;
  constexpr int kEach = 10;
  std::vector<std::vector<AnyPsp>> made(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Side& side = t % 2 == 0 ? server : client;  // of two instances, too
      for (int i = 0; i < kEach; ++i) {
        made[static_cast<std::size_t>(t)].emplace_back(side.ia, side.requests.get());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::set<DAT_CONN_QUAL> distinct;
  for (const auto& list : made) {
    for (const AnyPsp& psp : list) {
      distinct.insert(psp.qualifier());
    }
  }
  EXPECT_EQ(distinct.size(), static_cast<std::size_t>(kThreads * kEach));
}

TEST_P(PspTest, NobodyListensAfterTheFree) {
  // PSP-FREE-1, PSP-FREE-2
  AnyPsp psp(server.ia, server.requests.get());
  const DAT_CONN_QUAL qualifier = psp.qualifier();
  ASSERT_THAT(psp.free(), Succeeds());
  expect_nobody_listens(client, qualifier);
  EXPECT_FALSE(poll_event(server.requests.get()));
}

TEST_P(PspTest, RequestsInProgressAreAnnouncedOrRefused) {
  // PSP-FREE-2, MT-3
  for (int round = 0; round < 20; ++round) {
    const OwnEvds evds(client);
    const Ep ep(client.ia, client.pz, evds, default_ep_attr());
    AnyPsp psp(server.ia, server.requests.get());
    ASSERT_THAT(try_connect(ep.get(), psp.qualifier()), Succeeds());
    ASSERT_THAT(psp.free(), Succeeds());
    // Whatever was on its way has now been decided, or will be refused.
    if (const auto event = poll_event(server.requests.get())) {
      EXPECT_THAT(dat_cr_reject(event->event_data.cr_arrival_event_data.cr_handle), Succeeds());
      expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED, ep.get());
    } else {
      expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep.get());
      EXPECT_FALSE(poll_event(server.requests.get()));
    }
  }
}

TEST_P(PspTest, AnnouncedRequestsOutliveIt) {
  // PSP-FREE-3, CONN-SEQ-17
  const Ep passive(server);
  const Ep one(client);
  const Ep two(client);
  AnyPsp psp(server.ia, server.requests.get());
  const DAT_CONN_QUAL qualifier = psp.qualifier();
  ASSERT_THAT(try_connect(one.get(), qualifier), Succeeds());
  const DAT_CR_HANDLE reaped = expect_request(server.requests.get()).cr_handle;
  ASSERT_THAT(try_connect(two.get(), qualifier), Succeeds());
  ASSERT_THAT(dat_cr_reject(expect_request(server.requests.get()).cr_handle), Succeeds());
  ASSERT_THAT(psp.free(), Succeeds());
  ASSERT_THAT(dat_cr_accept(reaped, passive.get(), 0, nullptr), Succeeds());
  expect_connection_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, passive.get());
  expect_nobody_listens(client, qualifier);
}

TEST_P(PspTest, AnnouncedRequestsOutliveItUnreaped) {
  // PSP-FREE-3
  const RequestQueue requests(server.ia, 4);
  const Ep passive(server);
  const Ep caller(client);
  AnyPsp psp(server.ia, requests.get());
  ASSERT_THAT(try_connect(caller.get(), psp.qualifier()), Succeeds());
  requests.await_arrival();
  ASSERT_THAT(psp.free(), Succeeds());
  ASSERT_THAT(dat_cr_accept(expect_request(requests.get()).cr_handle, passive.get(), 0, nullptr), Succeeds());
  expect_connection_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, passive.get());
}

TEST_P(PspTest, EndpointsOfTheProviderOutliveIt) {
  // PSP-FREE-3
  const OwnEvds evds(server);
  const Ep caller(client);
  DAT_CR_HANDLE request = DAT_HANDLE_NULL;
  {
    const AnyPsp psp(server.ia, server.requests.get(), DAT_PSP_PROVIDER_FLAG);
    ASSERT_THAT(try_connect(caller.get(), psp.qualifier()), Succeeds());
    request = expect_request(server.requests.get()).cr_handle;
  }
  const DAT_EP_HANDLE ep = query_request(request).local_ep_handle;
  EXPECT_EQ(state_of(ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
  DAT_EP_PARAM param{};
  param.pz_handle = server.pz.get();
  param.connect_evd_handle = evds.connect.get();
  param.ep_attr.max_message_size = 100;  // PSP-CREATE-6: and before its EVDs are there
  ASSERT_THAT(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &param), Succeeds());
  param.ep_attr.max_recv_dtos = -5;
  EXPECT_THAT(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param),
              HasType(DAT_INVALID_PARAMETER));
  ASSERT_THAT(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param), Succeeds());
  ASSERT_THAT(dat_cr_accept(request, DAT_HANDLE_NULL, 0, nullptr), Succeeds());
  expect_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_THAT(dat_ep_free(ep), Succeeds());
}

TEST_P(PspTest, ConnectionsOutliveIt) {
  // PSP-FREE-4
  const Pair pair = make_connected_pair();
  server.psp.reset();
  expect_working(pair);
}

TEST_P(PspTest, FreeingChecksItsHandle) {
  // PSP-FREE-6, GEN-2, GEN-5
  AnyPsp psp(server.ia, server.requests.get());
  const DAT_PSP_HANDLE stale = psp.get();
  ASSERT_THAT(psp.free(), Succeeds());
  for (const DAT_HANDLE bad :
       {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, server.requests.get(), server.ia.get()}) {
    const DAT_RETURN rc = dat_psp_free(bad);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_PSP));
  }
}

TEST_P(PspTest, QueryShowsWhatCreationWasGiven) {
  // PSP-QUERY-1, GEN-7
  for (const DAT_PSP_FLAGS flags : {DAT_PSP_CONSUMER_FLAG, DAT_PSP_PROVIDER_FLAG}) {
    const AnyPsp psp(server.ia, server.requests.get(), flags);
    DAT_PSP_PARAM param{};
    ASSERT_THAT(dat_psp_query(psp.get(), DAT_PSP_FIELD_ALL, &param), Succeeds());
    EXPECT_EQ(param.ia_handle, server.ia.get());
    EXPECT_EQ(param.conn_qual, psp.qualifier());
    EXPECT_EQ(param.evd_handle, server.requests.get());
    EXPECT_EQ(param.psp_flags, flags);
    EXPECT_THAT(dat_psp_query(psp.get(), static_cast<DAT_PSP_PARAM_MASK>(0), &param), Succeeds());
  }
  static_assert(DAT_PSP_FIELD_IA_HANDLE == 0x1 && DAT_PSP_FIELD_CONN_QUAL == 0x2 && DAT_PSP_FIELD_EVD_HANDLE == 0x4 &&
                DAT_PSP_FIELD_PSP_FLAGS == 0x8 && DAT_PSP_FIELD_ALL == 0xF);
}

TEST_P(PspTest, QueryChecksItsArguments) {
  // PSP-QUERY-2, GEN-2, GEN-7
  const AnyPsp psp(server.ia, server.requests.get());
  DAT_PSP_PARAM param{};
  EXPECT_THAT(dat_psp_query(psp.get(), static_cast<DAT_PSP_PARAM_MASK>(0x10), &param), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_psp_query(psp.get(), DAT_PSP_FIELD_ALL, nullptr), HasType(DAT_INVALID_PARAMETER));
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.requests.get(), server.pz.get()}) {
    const DAT_RETURN rc = dat_psp_query(bad, DAT_PSP_FIELD_ALL, &param);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_PSP));
  }
}

ANYDAT_OVER_ALL_WIRES(PspTest);

}  // namespace
}  // namespace anydat::test
