// SPDX-License-Identifier: BSD-3-Clause
// The counters of the InfiniBand extension: what they count.
#include <anydat/anydat.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "face20/counters_fixture.h"

namespace anydat::test {
namespace {

constexpr auto kPlain = DAT_COMPLETION_DEFAULT_FLAG;

DAT_DTO_COOKIE no_cookie() {
  return {};
}

INSTANTIATE_TEST_SUITE_P(Wires, Dat2Counters, testing::ValuesIn(all_wires()), wire_name);

// D2-CNTR-1: one counter goes to its place in the array, all of them fill it, and nothing else is written.
TEST_P(Dat2Counters, ValuesStandAtTheirNumbers) {
  const Ep ep(client);
  const Evd evd(client.ia, DAT_EVD_SOFTWARE_FLAG);
  post_software(evd.get());
  ASSERT_TRUE(poll_event(evd.get()));
  for (const auto& [handle, count] :
       {std::pair{client.ia.get(), int{DCNT_IA_ALL_COUNTERS}}, std::pair{ep.get(), int{DCNT_EP_ALL_COUNTERS}},
        std::pair{evd.get(), int{DCNT_EVD_ALL_COUNTERS}}}) {
    const auto size = static_cast<std::size_t>(count);
    std::vector<DAT_UINT64> all(size + 1, kUntouched);
    ASSERT_THAT(dat_ib_query_counters(handle, count, all.data(), 0), Succeeds());
    EXPECT_EQ(all.back(), kUntouched);
    EXPECT_EQ(std::count(all.begin(), all.end(), kUntouched), 1);
    for (int i = 0; i < count; ++i) {
      std::vector<DAT_UINT64> one(size, kUntouched);
      ASSERT_THAT(dat_ib_query_counters(handle, i, one.data(), 0), Succeeds());
      EXPECT_EQ(one[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(i)]) << i;
      EXPECT_EQ(std::count(one.begin(), one.end(), kUntouched), count - 1) << i;
    }
  }
  EXPECT_EQ(counter_of(evd.get(), DCNT_EVD_DEQUEUE_FOUND), 1u);
}

// D2-CNTR-2.
TEST_P(Dat2Counters, OtherNumbersAndOtherHandlesAreRefused) {
  const Ep ep(client);
  const Srq srq(client.ia, client.pz, 4);
  std::vector<DAT_UINT64> values(DCNT_IA_ALL_COUNTERS, kUntouched);
  for (const DAT_HANDLE handle : {client.ia.get(), ep.get(), client.recv.get()}) {
    const int count = handle == client.ia.get() ? int{DCNT_IA_ALL_COUNTERS}
                      : handle == ep.get()      ? int{DCNT_EP_ALL_COUNTERS}
                                                : int{DCNT_EVD_ALL_COUNTERS};
    for (const int counter : {-1, count + 1, 1 << 20}) {
      EXPECT_THAT(dat_ib_query_counters(handle, counter, values.data(), 0), HasType(DAT_INVALID_PARAMETER));
      EXPECT_THAT(dat_ib_print_counters(handle, counter, 0), HasType(DAT_INVALID_PARAMETER));
    }
    EXPECT_THAT(dat_ib_query_counters(handle, 0, nullptr, 1), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(dat_ib_query_counters(handle, count, nullptr, 1), HasType(DAT_INVALID_PARAMETER));
  }
  for (const DAT_HANDLE handle : {client.pz.get(), srq.get(), DAT_HANDLE{DAT_HANDLE_NULL}}) {
    EXPECT_THAT(dat_ib_query_counters(handle, 0, values.data(), 0), HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(dat_ib_query_counters(handle, 0, nullptr, 0), HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(dat_ib_print_counters(handle, 0, 0), HasType(DAT_INVALID_HANDLE));
  }
  EXPECT_EQ(std::count(values.begin(), values.end(), kUntouched), DCNT_IA_ALL_COUNTERS);
}

// D2-CNTR-4: of an endpoint, each kind of request by itself.
TEST_P(Dat2Counters, AnEndpointCountsItsTransfers) {
  const Connection connection = connect_pair(server, client);
  const Lmr target(
      server.ia, server.pz, 4096,
      static_cast<DAT_MEM_PRIV_FLAGS>(
          DAT_MEM_PRIV_ALL_FLAG |
          (client.ia.attributes().extension_supported == DAT_EXTENSION_IB ? int{DAT_IB_MEM_PRIV_REMOTE_ATOMIC} : 0)));
  const Lmr local(client.ia, client.pz, 4096);
  const DAT_EP_HANDLE ep = connection.client.get();
  const DAT_EP_HANDLE peer = connection.server.get();
  const Since sent(ep);
  const Since received(peer);

  // Receives of one and of several segments, one by one and in a row.
  DAT_LMR_TRIPLET pieces[] = {target.triplet(0, 100), target.triplet(100, 20), target.triplet(120, 4)};
  require(dat_ep_post_recv(peer, 1, pieces, no_cookie(), kPlain), "dat_ep_post_recv");
  require(dat_ep_post_recv(peer, 3, pieces, no_cookie(), kPlain), "dat_ep_post_recv");
  const ANYDAT_EP_POST row[] = {{1, pieces, no_cookie(), kPlain}, {1, pieces + 1, no_cookie(), kPlain}};
  DAT_COUNT posted = 0;
  require(anydat_ep_post_recvs(peer, 2, row, &posted), "anydat_ep_post_recvs");
  EXPECT_EQ(received[DCNT_EP_POST_RECV], 4u);
  EXPECT_EQ(received[DCNT_EP_POST_RECV_DATA], 100u + 124u + 100u + 20u);

  for (const std::size_t bytes : {60u, 7u}) {
    DAT_LMR_TRIPLET message = local.triplet(0, bytes);
    require(dat_ep_post_send(ep, 1, &message, no_cookie(), kPlain), "dat_ep_post_send");
    (void)expect_completion(server.recv.get());
    (void)expect_completion(client.request.get());
  }
  EXPECT_EQ(sent[DCNT_EP_POST_SEND], 2u);
  EXPECT_EQ(sent[DCNT_EP_POST_SEND_DATA], 67u);
  EXPECT_EQ(received[DCNT_EP_RECV], 2u);
  EXPECT_EQ(received[DCNT_EP_RECV_DATA], 67u);

  // More than once, since what is like the one before it takes another way.
  DAT_LMR_TRIPLET segment = local.triplet(0, 32);
  const DAT_RMR_TRIPLET remote = target.remote(512, 32);
  for (int i = 0; i < 3; ++i) {
    require(dat_ep_post_rdma_write(ep, 1, &segment, no_cookie(), &remote, kPlain), "dat_ep_post_rdma_write");
    (void)expect_completion(client.request.get());
  }
  for (int i = 0; i < 4; ++i) {
    require(dat_ep_post_rdma_read(ep, 1, &segment, no_cookie(), &remote, kPlain), "dat_ep_post_rdma_read");
    (void)expect_completion(client.request.get());
  }
  EXPECT_EQ(sent[DCNT_EP_POST_WRITE], 3u);
  EXPECT_EQ(sent[DCNT_EP_POST_WRITE_DATA], 96u);
  EXPECT_EQ(sent[DCNT_EP_POST_READ], 4u);
  EXPECT_EQ(sent[DCNT_EP_POST_READ_DATA], 128u);

  if (client.ia.attributes().extension_supported != DAT_EXTENSION_IB) return;
  DAT_RMR_TRIPLET word = target.remote(1024, 8);
  DAT_LMR_TRIPLET old = local.triplet(64, 8);
  const auto await = [&] { (void)expect_event(client.request.get(), static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT)); };
  require(dat_ib_post_rdma_write_immed(ep, 1, &segment, no_cookie(), &remote, 5, kPlain), "write_immed");
  await();
  require(dat_ib_post_fetch_and_add(ep, 1, &old, no_cookie(), &word, kPlain), "fetch_and_add");
  await();
  for (int i = 0; i < 2; ++i) {
    require(dat_ib_post_cmp_and_swap(ep, 1, 2, &old, no_cookie(), &word, kPlain), "cmp_and_swap");
    await();
  }
  (void)expect_event(server.recv.get(), static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT));
  EXPECT_EQ(sent[DCNT_EP_POST_WRITE_IMM], 1u);
  EXPECT_EQ(sent[DCNT_EP_POST_WRITE_IMM_DATA], 32u);
  EXPECT_EQ(sent[DCNT_EP_POST_FETCH_ADD], 1u);
  EXPECT_EQ(sent[DCNT_EP_POST_CMP_SWAP], 2u);
  EXPECT_EQ(sent[DCNT_EP_POST_WRITE], 3u) << "by itself";
  EXPECT_EQ(sent[DCNT_EP_POST_READ], 4u);
  EXPECT_EQ(received[DCNT_EP_RECV_RDMA_IMM], 1u);
  EXPECT_EQ(received[DCNT_EP_RECV_RDMA_IMM_DATA], 32u);
  EXPECT_EQ(received[DCNT_EP_RECV], 2u) << "by itself";
  for (const int none : {DCNT_EP_POST_SEND_UD, DCNT_EP_RECV_UD, DCNT_EP_RECV_IMM}) EXPECT_EQ(sent[none], 0u);
  // The older counters add the kinds up.
  std::array<ANYDAT_COUNTER, 32> old_counters{};
  DAT_COUNT count = 0;
  require(anydat_get_counters(ep, 32, old_counters.data(), &count), "anydat_get_counters");
  const auto value_of = [&](std::string_view name) {
    const auto found = std::find_if(old_counters.begin(), old_counters.begin() + count,
                                    [&](const ANYDAT_COUNTER& counter) { return name == counter.name; });
    return found->value;
  };
  EXPECT_EQ(value_of("rdmas"), 3u + 4u + 1u + 1u + 2u);
  EXPECT_EQ(value_of("rdma_bytes"), 96u + 128u + 32u + 3 * 8u);
}

// D2-CNTR-4: an SRQ's buffers are not posted to its endpoints, which count what they receive.
TEST_P(Dat2Counters, AnEndpointWithAnSrqHasNoReceivesPosted) {
  const Srq srq(server.ia, server.pz, 4);
  const Connection connection = connect_pair(server, srq, client);
  const Lmr target(server.ia, server.pz, 64);
  const Lmr local(client.ia, client.pz, 64);
  DAT_LMR_TRIPLET buffer = target.triplet();
  require(dat_srq_post_recv(srq.get(), 1, &buffer, no_cookie()), "dat_srq_post_recv");
  DAT_LMR_TRIPLET message = local.triplet(0, 10);
  require(dat_ep_post_send(connection.client.get(), 1, &message, no_cookie(), kPlain), "dat_ep_post_send");
  (void)expect_completion(server.recv.get());
  EXPECT_EQ(counter_of(connection.server.get(), DCNT_EP_POST_RECV), 0u);
  EXPECT_EQ(counter_of(connection.server.get(), DCNT_EP_POST_RECV_DATA), 0u);
  EXPECT_EQ(counter_of(connection.server.get(), DCNT_EP_RECV), 1u);
  EXPECT_EQ(counter_of(connection.server.get(), DCNT_EP_RECV_DATA), 10u);
}

// D2-CNTR-4: connections, as their two sides and their IAs count them.
TEST_P(Dat2Counters, ConnectionsAreCountedAtBothSides) {
  const Since asking(client.ia.get());
  const Since asked(server.ia.get());
  {
    const Connection connection = connect_pair(server, client);
    EXPECT_EQ(counter_of(connection.client.get(), DCNT_EP_CONNECT), 1u);
    EXPECT_EQ(counter_of(connection.server.get(), DCNT_EP_CONNECT), 0u);
    require(dat_ep_disconnect(connection.client.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
    (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    require(dat_ep_disconnect(connection.client.get(), DAT_CLOSE_GRACEFUL_FLAG), "there is nothing to end any more");
    EXPECT_EQ(counter_of(connection.client.get(), DCNT_EP_DISCONNECT), 1u);
    EXPECT_EQ(counter_of(connection.server.get(), DCNT_EP_DISCONNECT), 0u);
  }
  {
    const Ep ep(client);
    connect_to(ep, server.listen());
    require(dat_cr_reject(next_request(server), 0, nullptr), "dat_cr_reject");
    (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
  }
  const DAT_CONN_QUAL qualifier = server.listen();
  server.psp.reset();
  {
    const Ep ep(client);
    connect_to(ep, qualifier);
    (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  }
  EXPECT_EQ(asking[DCNT_IA_CM_REQ_TX], 3u);
  EXPECT_EQ(asking[DCNT_IA_CM_REP_RX], 1u);
  EXPECT_EQ(asking[DCNT_IA_CM_ACTIVE_EST], 1u);
  EXPECT_EQ(asking[DCNT_IA_CM_PASSIVE_EST], 0u);
  EXPECT_EQ(asking[DCNT_IA_CM_DREQ_TX], 1u);
  EXPECT_EQ(asking[DCNT_IA_CM_DREQ_RX], 0u);
  EXPECT_EQ(asking[DCNT_IA_CM_USER_REJ_RX], 1u);
  EXPECT_EQ(asking[DCNT_IA_CM_ERR_REFUSED], 1u);
  EXPECT_EQ(asked[DCNT_IA_CM_LISTEN], 1u);
  EXPECT_EQ(asked[DCNT_IA_CM_REQ_RX], 2u);
  EXPECT_EQ(asked[DCNT_IA_SP_CR], 2u);
  EXPECT_EQ(asked[DCNT_IA_SP_CR_ACCEPTED], 1u);
  EXPECT_EQ(asked[DCNT_IA_SP_CR_REJECTED], 1u);
  EXPECT_EQ(asked[DCNT_IA_CM_REP_TX], 1u);
  EXPECT_EQ(asked[DCNT_IA_CM_USER_REJ_TX], 1u);
  EXPECT_EQ(asked[DCNT_IA_CM_PASSIVE_EST], 1u);
  EXPECT_EQ(asked[DCNT_IA_CM_ACTIVE_EST], 0u);
  EXPECT_EQ(asked[DCNT_IA_CM_DREQ_RX], 1u);
  EXPECT_EQ(asked[DCNT_IA_CM_DREQ_TX], 0u);
  EXPECT_EQ(asked[DCNT_IA_CM_ERR_RESET], 0u);
}

// D2-CNTR-4: a connection that an error ends, at the side where it has happened and at the other.
TEST_P(Dat2Counters, BrokenConnectionsAreCountedApart) {
  const Since asking(client.ia.get());
  const Since asked(server.ia.get());
  const Connection connection = connect_pair(server, client);
  const Lmr local(client.ia, client.pz, 64);
  DAT_LMR_TRIPLET segment = local.triplet();
  DAT_RMR_TRIPLET nothing{};
  nothing.rmr_context = 0x12345;
  nothing.segment_length = 64;
  require(dat_ep_post_rdma_write(connection.client.get(), 1, &segment, no_cookie(), &nothing, kPlain), "rdma_write");
  (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(asking[DCNT_IA_CM_ERR_RESET], 1u);
  EXPECT_EQ(asked[DCNT_IA_CM_ERR_RESET], 1u);
  EXPECT_EQ(asking[DCNT_IA_CM_DREQ_TX] + asked[DCNT_IA_CM_DREQ_RX], 0u);
  drain(client.request.get());
}

// D2-CNTR-4: objects that are made and freed, and those that could not be made.
TEST_P(Dat2Counters, AnAdapterCountsItsObjects) {
  const Since since(client.ia.get());
  {
    const Pz pz(client.ia);
    const Lmr lmr(client.ia, pz, 64);
    DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
    require(dat_rmr_create(pz.get(), &rmr), "dat_rmr_create");
    require(dat_rmr_free(rmr), "dat_rmr_free");
    const Srq srq(client.ia, pz, 4);
    const Evd evd(client.ia, DAT_EVD_SOFTWARE_FLAG);
    const Ep ep(client);
    const Psp any(client.ia, client.requests);
    DAT_PSP_HANDLE refused = DAT_HANDLE_NULL;
    EXPECT_THAT(
        dat_psp_create(client.ia.get(), any.qualifier(), client.requests.get(), DAT_PSP_CONSUMER_FLAG, &refused),
        HasType(DAT_CONN_QUAL_IN_USE));
    DAT_RSP_HANDLE refused_too = DAT_HANDLE_NULL;
    EXPECT_THAT(dat_rsp_create(client.ia.get(), any.qualifier(), ep.get(), client.requests.get(), &refused_too),
                HasType(DAT_CONN_QUAL_IN_USE));
    for (const int counter : {DCNT_IA_PZ_CREATE, DCNT_IA_LMR_CREATE, DCNT_IA_RMR_CREATE, DCNT_IA_RMR_FREE,
                              DCNT_IA_SRQ_CREATE, DCNT_IA_EVD_CREATE, DCNT_IA_EP_CREATE, DCNT_IA_PSP_CREATE_ANY}) {
      EXPECT_EQ(since[counter], 1u) << counter;
    }
    for (const int counter : {DCNT_IA_PZ_FREE, DCNT_IA_EP_FREE, DCNT_IA_EVD_FREE, DCNT_IA_PSP_CREATE, DCNT_IA_PSP_FREE,
                              DCNT_IA_RSP_CREATE, DCNT_IA_RSP_FREE}) {
      EXPECT_EQ(since[counter], 0u) << counter;
    }
  }
  const DAT_CONN_QUAL qualifier = [&] { return Psp(client.ia, client.requests).qualifier(); }();
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  require(dat_psp_create(client.ia.get(), qualifier, client.requests.get(), DAT_PSP_CONSUMER_FLAG, &psp), "psp_create");
  require(dat_psp_free(psp), "dat_psp_free");
  {
    const Ep ep(client);
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    require(dat_rsp_create(client.ia.get(), qualifier, ep.get(), client.requests.get(), &rsp), "dat_rsp_create");
    require(dat_rsp_free(rsp), "dat_rsp_free");
  }
  for (const int counter : {DCNT_IA_PZ_FREE, DCNT_IA_LMR_FREE, DCNT_IA_SRQ_FREE, DCNT_IA_EVD_FREE, DCNT_IA_PSP_CREATE,
                            DCNT_IA_RSP_CREATE, DCNT_IA_RSP_FREE}) {
    EXPECT_EQ(since[counter], 1u) << counter;
  }
  EXPECT_EQ(since[DCNT_IA_EP_FREE], 2u);
  EXPECT_EQ(since[DCNT_IA_PSP_CREATE_ANY], 2u);
  EXPECT_EQ(since[DCNT_IA_PSP_FREE], 3u);
  for (const int none : {DCNT_IA_MEM_ALLOC, DCNT_IA_CM_MRA_TX, DCNT_IA_LNK_ERR_RCV, DCNT_IA_DIAG_ERR_RQ_RAE}) {
    EXPECT_EQ(counter_of(client.ia.get(), none), 0u) << none;
  }
}

// D2-CNTR-4: an asynchronous error counts by what it is about. An EVD that is full is one where it does not grow.
TEST_P(Dat2Counters, AsynchronousErrorsAreCounted) {
  const std::map<std::string, std::string> variables{{"DAT_COMPAT", "strict"}};
  const ScopedEnv strict(variables);
  Side side(GetParam());
  const Since since(side.ia.get());
  const Evd small(side.ia, DAT_EVD_CONNECTION_FLAG, 1);
  const DAT_COUNT room = small.qlen();
  const DAT_CONN_QUAL qualifier = server.listen();
  server.psp.reset();
  // No service point listens: each attempt ends with an event, and there is no room for the last one.
  std::vector<Ep> endpoints;
  for (DAT_COUNT i = 0; i <= room; ++i) {
    EpEvds evds = evds_of(side);
    evds.connect = small.get();
    connect_to(endpoints.emplace_back(side.ia, side.pz, evds, default_ep_attr()), qualifier);
  }
  (void)expect_event(side.ia.async_evd(), DAT_ASYNC_ERROR_EVD_OVERFLOW);
  EXPECT_EQ(since[DCNT_IA_ASYNC_CQ_ERROR], 1u);
  EXPECT_EQ(since[DCNT_IA_ASYNC_QP_ERROR], 0u);
  EXPECT_EQ(since[DCNT_IA_ASYNC_ERROR], 0u);
}

// D2-CNTR-4: waits and dequeues of an event dispatcher.
TEST_P(Dat2Counters, AnEvdCountsItsCalls) {
  const Evd evd(client.ia, DAT_EVD_SOFTWARE_FLAG);
  for (int i = 0; i < 3; ++i) post_software(evd.get());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(poll_event(evd.get()));
  DAT_EVENT event{};
  DAT_COUNT more = 0;
  require(dat_evd_wait(evd.get(), long_timeout(), 1, &event, &more), "dat_evd_wait");
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(poll_event(evd.get()));
  // Of whatever class: programs of OpenFabrics get none.
  for (const DAT_TIMEOUT timeout : {0, 1000}) {
    EXPECT_EQ(DAT_GET_TYPE(dat_evd_wait(evd.get(), timeout, 1, &event, &more)), DAT_RETURN{DAT_TIMEOUT_EXPIRED});
  }
  EXPECT_THAT(dat_evd_wait(evd.get(), 0, 0, &event, &more), HasType(DAT_INVALID_PARAMETER));
  std::vector<DAT_UINT64> all = counters_of(evd.get());
  EXPECT_EQ(all[DCNT_EVD_WAIT], 3u) << "one was none";
  EXPECT_EQ(all[DCNT_EVD_WAIT_BLOCKED], 1u);
  EXPECT_EQ(all[DCNT_EVD_WAIT_NOTIFY], 0u);
  EXPECT_EQ(all[DCNT_EVD_DEQUEUE], 7u);
  EXPECT_EQ(all[DCNT_EVD_DEQUEUE_FOUND], 2u);
  EXPECT_EQ(all[DCNT_EVD_DEQUEUE_NOT_FOUND], 5u);
  EXPECT_EQ(all[DCNT_EVD_DEQUEUE_POLL], 5u);
  EXPECT_EQ(all[DCNT_EVD_DEQUEUE_POLL_FOUND], 0u);
  EXPECT_EQ(all[DCNT_EVD_CONN_CALLBACK], 0u);
  EXPECT_EQ(all[DCNT_EVD_DTO_CALLBACK], 0u);
  {
    std::jthread waiter([&] { EXPECT_TRUE(wait_event(evd.get())); });
    while (counter_of(evd.get(), DCNT_EVD_WAIT_BLOCKED) < 2) std::this_thread::yield();
    post_software(evd.get());
  }
  all = counters_of(evd.get());
  EXPECT_EQ(all[DCNT_EVD_WAIT], 4u);
  EXPECT_GE(all[DCNT_EVD_WAIT_NOTIFY], 1u);
  EXPECT_EQ(all[DCNT_EVD_DEQUEUE_FOUND], 2u) << "a wait is no dequeue";
  // Several by one call.
  for (int i = 0; i < 3; ++i) post_software(evd.get());
  std::array<DAT_EVENT, 8> events{};
  DAT_COUNT count = 0;
  require(anydat_evd_dequeue_many(evd.get(), 8, events.data(), &count), "anydat_evd_dequeue_many");
  EXPECT_EQ(counter_of(evd.get(), DCNT_EVD_DEQUEUE_FOUND), 2u + 3u);
  EXPECT_NE(anydat_evd_dequeue_many(evd.get(), 8, events.data(), &count), DAT_SUCCESS);
  EXPECT_EQ(counter_of(evd.get(), DCNT_EVD_DEQUEUE_NOT_FOUND), 6u);
}

// D2-CNTR-4: what comes to an EVD, and what a dequeue only finds by looking for it.
TEST_P(Dat2Counters, AnEvdCountsWhatComes) {
  const Connection connection = connect_pair(server, client);
  EXPECT_EQ(counter_of(client.connect.get(), DCNT_EVD_CONN_CALLBACK), 1u);
  EXPECT_EQ(counter_of(client.connect.get(), DCNT_EVD_DTO_CALLBACK), 0u);
  const Lmr target(server.ia, server.pz, 64);
  const Lmr local(client.ia, client.pz, 64);
  DAT_LMR_TRIPLET buffer = target.triplet();
  DAT_LMR_TRIPLET message = local.triplet();
  constexpr int kMessages = 16;
  for (int i = 0; i < kMessages; ++i) {
    require(dat_ep_post_recv(connection.server.get(), 1, &buffer, no_cookie(), kPlain), "dat_ep_post_recv");
    require(dat_ep_post_send(connection.client.get(), 1, &message, no_cookie(), kPlain), "dat_ep_post_send");
    while (!poll_event(server.recv.get())) {
    }
    (void)expect_completion(client.request.get());
  }
  const std::vector<DAT_UINT64> all = counters_of(server.recv.get());
  EXPECT_EQ(all[DCNT_EVD_DTO_CALLBACK], kMessages);
  EXPECT_EQ(all[DCNT_EVD_CONN_CALLBACK], 0u);
  EXPECT_EQ(all[DCNT_EVD_DEQUEUE_FOUND], kMessages);
  EXPECT_LE(all[DCNT_EVD_DEQUEUE_POLL_FOUND], kMessages);
  EXPECT_EQ(all[DCNT_EVD_DEQUEUE_POLL], all[DCNT_EVD_DEQUEUE_NOT_FOUND] + all[DCNT_EVD_DEQUEUE_POLL_FOUND]);
}

}  // namespace
}  // namespace anydat::test
