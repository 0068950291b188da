// SPDX-License-Identifier: BSD-3-Clause
// Streams, their order, and where they may be attached: sections 5.1 to 5.3 of part 1.
#include <map>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

class EventStreams : public MessageTest {
 protected:
  static constexpr unsigned kAll = 0x1F1;

  DAT_RETURN create_ep(DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, DAT_EVD_HANDLE connection) {
    const DAT_EP_ATTR attr = default_ep_attr();
    return dat_ep_create(server.ia.get(), server.pz.get(), recv, request, connection, &attr, &made_);
  }

  DAT_EP_HANDLE made_ = DAT_HANDLE_NULL;
};

void expect_refused(DAT_RETURN rc, DAT_RETURN_SUBTYPE subtype) {
  EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(rc, HasSubtype(subtype));
}

// EVM-1, EVM-2, EVM-19, EVM-20, EVT-4: one EVD for everything that one endpoint, one service point and the program
// itself have to tell.
TEST_P(EventStreams, OneEvdMayBeFedByEveryKind) {
  const Evd all(server.ia, flags(kAll));
  const Psp psp(server.ia, all);
  const Ep ep(server.ia, server.pz, {all.get(), all.get(), all.get()}, default_ep_attr());
  const Ep peer(client);
  connect(peer.get(), psp.qualifier());
  const DAT_EVENT request = expect_event(all.get(), DAT_CONNECTION_REQUEST_EVENT);
  ASSERT_THAT(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), Succeeds());
  expect_event(all.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  post_recv(ep, 1);
  send(peer, 1);
  EXPECT_EQ(expect_completion(all.get()).user_cookie.as_64, 1u);
  ASSERT_THAT(dat_ep_post_recv(peer.get(), 0, nullptr, {}, DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_THAT(dat_ep_post_send(ep.get(), 0, nullptr, {}, DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_EQ(expect_completion(all.get()).ep_handle, ep.get());
  post(all.get(), 9);
  EXPECT_EQ(take(all.get()), 9u);
  ASSERT_THAT(dat_ep_disconnect(peer.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  expect_event(all.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

// EVM-2: many streams of one kind.
TEST_P(EventStreams, OneEvdMayBeFedByManyEndpoints) {
  std::vector<Connection> pairs;
  for (int i = 0; i < 5; ++i) {
    pairs.push_back(connect_pair(server, client));
    post_recv(pairs.back().server, i);
  }
  for (int i = 0; i < 5; ++i) {
    send(pairs[static_cast<std::size_t>(i)].client, i);
  }
  std::map<DAT_EP_HANDLE, DAT_UINT64> met;
  for (int i = 0; i < 5; ++i) {
    const auto dto = expect_completion(server.recv.get());
    met[dto.ep_handle] = dto.user_cookie.as_64;
  }
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(met.at(pairs[i].server.get()), i);
  }
}

// EVM-3, EVM-6: at creation and at modification.
TEST_P(EventStreams, EvdMustBeOfTheKindThatFeedsIt) {
  const Evd no_dto(server.ia, flags(kAll & ~0x020u));
  const Evd no_connection(server.ia, flags(kAll & ~0x040u));
  const Evd no_request(server.ia, flags(kAll & ~0x010u));
  const Evd no_async(server.ia, flags(kAll & ~0x100u));
  const DAT_EVD_HANDLE recv = server.recv.get();
  const DAT_EVD_HANDLE request = server.request.get();
  const DAT_EVD_HANDLE connection = server.connect.get();
  expect_refused(create_ep(no_dto.get(), request, connection), DAT_INVALID_HANDLE_EVD_RECV);
  expect_refused(create_ep(recv, no_dto.get(), connection), DAT_INVALID_HANDLE_EVD_REQUEST);
  expect_refused(create_ep(recv, request, no_connection.get()), DAT_INVALID_HANDLE_EVD_CONN);

  const Srq srq(server.ia, server.pz, 4);
  const DAT_EP_ATTR attr = default_srq_ep_attr();
  const auto create_srq_ep = [&](DAT_EVD_HANDLE r, DAT_EVD_HANDLE q, DAT_EVD_HANDLE c) {
    return dat_ep_create_with_srq(server.ia.get(), server.pz.get(), r, q, c, srq.get(), &attr, &made_);
  };
  expect_refused(create_srq_ep(no_dto.get(), request, connection), DAT_INVALID_HANDLE_EVD_RECV);
  expect_refused(create_srq_ep(recv, no_dto.get(), connection), DAT_INVALID_HANDLE_EVD_REQUEST);
  expect_refused(create_srq_ep(recv, request, no_connection.get()), DAT_INVALID_HANDLE_EVD_CONN);

  const Ep ep(server);
  DAT_EP_PARAM param{};
  param.recv_evd_handle = no_dto.get();
  param.request_evd_handle = no_dto.get();
  param.connect_evd_handle = no_connection.get();
  expect_refused(dat_ep_modify(ep.get(), DAT_EP_FIELD_RECV_EVD_HANDLE, &param), DAT_INVALID_HANDLE_EVD_RECV);
  expect_refused(dat_ep_modify(ep.get(), DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param), DAT_INVALID_HANDLE_EVD_REQUEST);
  expect_refused(dat_ep_modify(ep.get(), DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param), DAT_INVALID_HANDLE_EVD_CONN);
  EXPECT_EQ(ep.query().recv_evd_handle, recv);

  DAT_CONN_QUAL qualifier = 0;
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
  const DAT_CONN_QUAL free_qualifier = dead_qualifier(server.ia);
  expect_refused(dat_psp_create_any(server.ia.get(), &qualifier, no_request.get(), DAT_PSP_CONSUMER_FLAG, &psp),
                 DAT_INVALID_HANDLE_EVD_CR);
  expect_refused(dat_psp_create(server.ia.get(), free_qualifier, no_request.get(), DAT_PSP_CONSUMER_FLAG, &psp),
                 DAT_INVALID_HANDLE_EVD_CR);
  expect_refused(dat_rsp_create(server.ia.get(), free_qualifier, ep.get(), no_request.get(), &rsp),
                 DAT_INVALID_HANDLE_EVD_CR);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);

  DAT_EVD_HANDLE shared = no_async.get();
  DAT_IA_HANDLE second = DAT_HANDLE_NULL;
  expect_refused(open_ia(GetParam(), 0, &shared, &second), DAT_INVALID_HANDLE_EVD_ASYNC);
}

// EVM-5, EVT-14: an endpoint without a recv EVD loses its receive completions and nothing else.
TEST_P(EventStreams, CompletionsWithoutAnEvdAreDiscardedSilently) {
  const Srq srq(server.ia, server.pz, 4);
  const Ep deaf(server.ia, server.pz, {DAT_HANDLE_NULL, server.request.get(), server.connect.get()}, srq,
                default_srq_ep_attr());
  DAT_EP_ATTR attr = default_ep_attr();
  const Ep peer(client.ia, client.pz, evds_of(client), attr);
  connect_pair(server, deaf.get(), peer.get());
  DAT_LMR_TRIPLET segment = sink.triplet(0, kBytes);
  for (int i = 0; i < 10; ++i) {
    ASSERT_THAT(dat_srq_post_recv(srq.get(), 1, &segment, {}), Succeeds()) << i;
    send(peer, 1);
    expect_completion(client.request.get());
    ASSERT_TRUE(eventually([&] { return srq.outstanding() == 0; })) << i;
  }
  EXPECT_FALSE(poll_event(server.recv.get()));
  EXPECT_FALSE(poll_event(server.request.get()));
  EXPECT_FALSE(poll_event(server.ia.async_evd())) << "it is no overflow";
  EXPECT_EQ(deaf.state(), DAT_EP_STATE_CONNECTED);
}

// EVM-5: nor is an endpoint without a connect EVD heard of, and it takes part in nothing that would need one.
TEST_P(EventStreams, EndpointWithoutAnyEvdCanBeMadeAndFreed) {
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  ASSERT_THAT(
      dat_ep_create(server.ia.get(), server.pz.get(), DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, nullptr, &ep),
      Succeeds());
  EXPECT_EQ(state_of(ep), DAT_EP_STATE_UNCONNECTED);
  EXPECT_THAT(dat_ep_free(ep), Succeeds());
}

// EVM-6, EP-MODIFY-6: changing the EVD moves the stream.
TEST_P(EventStreams, StreamFollowsTheEndpointToItsNewEvd) {
  Evd before(server.ia, flags(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG));
  const Evd after(server.ia, flags(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG));
  const Ep ep(server.ia, server.pz, {before.get(), before.get(), before.get()}, default_ep_attr());
  DAT_EP_PARAM param{};
  param.recv_evd_handle = after.get();
  param.request_evd_handle = after.get();
  param.connect_evd_handle = after.get();
  EXPECT_THAT(dat_evd_free(before.get()), HasType(DAT_INVALID_STATE));
  ASSERT_THAT(
      dat_ep_modify(ep.get(),
                    DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
                    &param),
      Succeeds());
  EXPECT_THAT(before.free(), Succeeds());
  EXPECT_THAT(dat_evd_free(after.get()), HasType(DAT_INVALID_STATE));
  connect(ep.get(), dead_qualifier(server.ia));
  expect_event(after.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

// EVM-7
TEST_P(EventStreams, CompletionsOfAFreedEndpointMayBeReapedOrGone) {
  Connection pair = connect_pair(server, client);
  for (int i = 0; i < 3; ++i) {
    post_recv(pair.server, i);
    send(pair.client, i);
    expect_completion(client.request.get());
  }
  ASSERT_TRUE(eventually([&] {
    DAT_BOOLEAN idle = DAT_FALSE;
    return dat_ep_get_status(pair.server.get(), nullptr, &idle, nullptr) == DAT_SUCCESS && idle == DAT_TRUE;
  }));
  const DAT_EP_HANDLE freed = pair.server.get();
  ASSERT_THAT(pair.server.free(), Succeeds());
  int left = 0;
  while (const auto event = poll_event(server.recv.get())) {
    EXPECT_EQ(event->event_data.dto_completion_event_data.ep_handle, freed);
    ++left;
  }
  EXPECT_LE(left, 3);
}

// EVM-8, PSP-FREE-3
TEST_P(EventStreams, RequestsOfAFreedPspStayWithTheirEvents) {
  Psp psp(server.ia, server.requests);
  const Ep peer(client);
  const Ep own(server);
  connect(peer.get(), psp.qualifier());
  ASSERT_TRUE(eventually([&] { return queued(server.requests.get()) == 1; }));
  ASSERT_THAT(psp.free(), Succeeds());
  const DAT_EVENT request = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  EXPECT_THAT(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, own.get(), 0, nullptr), Succeeds());
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
}

// EVM-9, EVM-10, EVM-11: each stream on a shared EVD in its own order.
TEST_P(EventStreams, EachStreamKeepsItsOrderOnASharedEvd) {
  const Evd all(server.ia, flags(kAll));
  std::vector<Connection> pairs;
  for (int i = 0; i < 3; ++i) {
    Connection pair{.server = Ep(server.ia, server.pz, {all.get(), all.get(), server.connect.get()}, default_ep_attr()),
                    .client = Ep(client)};
    connect_pair(server, pair.server.get(), pair.client.get());
    pairs.push_back(std::move(pair));
  }
  constexpr int kEach = 15;
  for (int i = 0; i < kEach; ++i) {
    for (const Connection& pair : pairs) {
      post_recv(pair.server, i);
    }
  }
  std::map<DAT_HANDLE, DAT_UINT64> next;
  std::uintptr_t next_software = 0;
  int received = 0;
  for (int i = 0; i < kEach; ++i) {
    for (const Connection& pair : pairs) {
      send(pair.client, i);
    }
    post(all.get(), static_cast<std::uintptr_t>(i));
  }
  while (received < 3 * kEach || next_software < kEach) {
    const auto event = wait_event(all.get());
    ASSERT_TRUE(event);
    if (event->event_number == DAT_SOFTWARE_EVENT) {
      ASSERT_EQ(value_of(*event), next_software++);
    } else {
      const auto& dto = event->event_data.dto_completion_event_data;
      ASSERT_EQ(dto.user_cookie.as_64, next[dto.ep_handle]++);
      ++received;
    }
  }
  expect_completions(client.request.get(), 3 * kEach);
}

// EVM-12, EVM-16, EP-DISC-11: with one EVD for all, what succeeded comes before what failed, and both before the end.
TEST_P(EventStreams, DisconnectedComesAfterTheCompletionsOnTheSameEvd) {
  const Evd all(server.ia, flags(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG));
  const Ep ep(server.ia, server.pz, {all.get(), all.get(), all.get()}, default_ep_attr());
  const Ep peer(client);
  connect_pair(server, ep.get(), peer.get());
  constexpr int kReceives = 12;
  constexpr int kMessages = 5;
  for (int i = 0; i < kReceives; ++i) {
    post_recv(ep, i);
  }
  for (int i = 0; i < kMessages; ++i) {
    send(peer, i);
  }
  ASSERT_THAT(dat_ep_disconnect(peer.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  for (int i = 0; i < kReceives; ++i) {
    const auto dto = expect_completion(all.get(), i < kMessages ? DAT_DTO_SUCCESS : DAT_DTO_ERR_FLUSHED);
    EXPECT_EQ(dto.user_cookie.as_64, static_cast<DAT_UINT64>(i));
  }
  expect_event(all.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
}

// EVM-15, SRQ-ORD-1
TEST_P(EventStreams, ReceivesFromAnSrqComeInTheOrderOfTheSendsOfEachConnection) {
  const Srq srq(server.ia, server.pz, 32);
  const Connection first = connect_pair(server, srq, client);
  const Connection second = connect_pair(server, srq, client);
  for (int i = 0; i < 20; ++i) {
    DAT_LMR_TRIPLET segment = sink.triplet(static_cast<std::size_t>(i) * kBytes, kBytes);
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = static_cast<DAT_UINT64>(i);
    ASSERT_THAT(dat_srq_post_recv(srq.get(), 1, &segment, cookie), Succeeds());
  }
  for (int i = 0; i < 10; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * kBytes;
    source.bytes()[at] = static_cast<std::byte>(i);
    send(first.client, i);
    send(second.client, i);
  }
  std::map<DAT_EP_HANDLE, int> next;
  for (int i = 0; i < 20; ++i) {
    const auto dto = expect_completion(server.recv.get());
    EXPECT_EQ(sink.bytes()[dto.user_cookie.as_64 * kBytes], static_cast<std::byte>(next[dto.ep_handle]++));
  }
  EXPECT_EQ(next.at(first.server.get()), 10);
}

ANYDAT_OVER_ALL_WIRES(EventStreams);

}  // namespace
}  // namespace anydat::test
