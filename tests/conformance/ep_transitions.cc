// SPDX-License-Identifier: BSD-3-Clause
// Transitions of endpoints that no call of their own makes: section 2.3 of the rules.
#include <algorithm>
#include <thread>

#include "ep_states.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

constexpr int kPosted = 3;

// The environment of the next IA to be opened: a message waits only this long for a receive buffer.
Wire impatient(Wire wire, const char* milliseconds = "50") {
  wire.env["DAT_RNR_TIMEOUT_MS"] = milliseconds;
  return wire;
}

class EpTransition : public EpStateTest {
 protected:
  // Posts kPosted receives, before whatever happens next.
  void prepost(const HeldEp& ep) {
    for (int i = 0; i < kPosted; ++i) {
      DAT_LMR_TRIPLET segment = server_buffers.triplet(i);
      require(dat_ep_post_recv(ep.get(), 1, &segment, cookie(static_cast<DAT_UINT64>(i)), DAT_COMPLETION_DEFAULT_FLAG),
              "dat_ep_post_recv");
    }
  }

  // The attempt or the connection ends with that event: the state is the new one (EP-SM-24), every receive is flushed
  // once (EP-SM-25), and nothing else is reported, now or later (EP-SM-22, EP-SM-23).
  void expect_end(const HeldEp& ep, DAT_EVENT_NUMBER number, int receives = kPosted, Caller caller = Caller::here()) {
    const testing::ScopedTrace trace(caller.file, caller.line, event_name(number));
    const auto data = expect_connection_event(ep.evds().connect.get(), number, ep.get(), caller);
    EXPECT_EQ(data.private_data_size, 0);
    EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
    for (int i = 0; i < receives; ++i) {
      EXPECT_EQ(expect_completion(ep.evds().recv.get(), DAT_DTO_ERR_FLUSHED, caller).user_cookie.as_64,
                static_cast<DAT_UINT64>(i));
    }
    DAT_BOOLEAN recv_idle = DAT_FALSE;
    DAT_BOOLEAN request_idle = DAT_FALSE;
    require(dat_ep_get_status(ep.get(), nullptr, &recv_idle, &request_idle), "dat_ep_get_status");
    EXPECT_EQ(recv_idle, DAT_TRUE);
    EXPECT_EQ(request_idle, DAT_TRUE);
    expect_no_event(ep.evds().connect.get(), caller);
    EXPECT_FALSE(poll_event(ep.evds().recv.get()));
  }

  // The receives are still posted: the peer's messages meet them in order.
  void expect_receives_kept(const HeldEp& ep, const Ep& peer) {
    EXPECT_FALSE(poll_event(ep.evds().recv.get()));
    post_send(peer, client_buffers, 10, kPosted);
    for (int i = 0; i < kPosted; ++i) {
      EXPECT_EQ(expect_completion(ep.evds().recv.get()).user_cookie.as_64, static_cast<DAT_UINT64>(i));
      EXPECT_TRUE(has_pattern(server_buffers[i].first(32), static_cast<DAT_UINT64>(10 + i)));
    }
  }
};

TEST_P(EpTransition, AcceptedByThePeerTheEndpointIsConnected) {
  // EP-SM-10, EP-CONN-4, EP-CONN-5
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  prepost(ep);
  EXPECT_FALSE(poll_event(ep.evds().connect.get())) << "established before the peer accepted";
  const std::vector<std::byte> reply = bytes_of("welcome");
  ASSERT_THAT(dat_cr_accept(ep.request_made(), ep.peer().get(), static_cast<DAT_COUNT>(reply.size()),
                            const_cast<std::byte*>(reply.data())),
              Succeeds());
  const auto data = expect_connection_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, ep.get());
  EXPECT_EQ(bytes_of(data.private_data, data.private_data_size), reply);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  expect_event(ep.peer_evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_receives_kept(ep, ep.peer());
  expect_no_event(ep.evds().connect.get());
}

TEST_P(EpTransition, RejectedByThePeerTheAttemptEnds) {
  // EP-SM-11, EP-SM-22, EP-SM-23, EP-SM-24, EP-SM-25
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  prepost(ep);
  ASSERT_THAT(dat_cr_reject(ep.request_made()), Succeeds());
  expect_end(ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

TEST_P(EpTransition, WithoutAListenerTheAttemptEnds) {
  // EP-SM-12, EP-CONN-6, CONN-SEQ-5
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_UNCONNECTED);
  prepost(ep);
  ASSERT_THAT(try_connect(ep.get(), unused_qualifier(client)), Succeeds());
  expect_end(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

TEST_P(EpTransition, WithAFullBacklogTheAttemptEnds) {
  // EP-SM-12, EP-CONN-6, CONN-SEQ-6, PSP-CREATE-4
  const RequestQueue requests(client.ia, 1);
  if (requests.qlen() != 1) {
    GTEST_SKIP() << "a queue of 1 holds " << requests.qlen() << " events";
  }
  const AnyPsp psp(client.ia, requests.get());
  const Ep first(server);
  ASSERT_THAT(try_connect(first.get(), psp.qualifier()), Succeeds());
  requests.await_arrival();
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_UNCONNECTED);
  prepost(ep);
  ASSERT_THAT(try_connect(ep.get(), psp.qualifier()), Succeeds());
  expect_end(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  EXPECT_EQ(first.state(), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  expect_request(requests.get());
  expect_no_event(requests.get());
  expect_no_event(client.ia.async_evd());
}

TEST_P(EpTransition, AnUnreachableHostEndsTheAttempt) {
  // EP-SM-13, EP-CONN-7, EP-CONN-10, CONN-SEQ-8
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_UNCONNECTED);
  prepost(ep);
  sockaddr_in nobody{};  // an address set aside for documentation
  nobody.sin_family = AF_INET;
  nobody.sin_addr.s_addr = htonl(0xC0000201);
  const DAT_RETURN rc = dat_ep_connect(ep.get(), reinterpret_cast<DAT_IA_ADDRESS_PTR>(&nobody), 4711, 1'000'000, 0,
                                       nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
  if (rc != DAT_SUCCESS) {
    EXPECT_THAT(rc, HasType(DAT_INVALID_ADDRESS));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ADDRESS_UNREACHABLE));
    EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
    expect_no_event(ep.evds().connect.get());
    EXPECT_FALSE(poll_event(ep.evds().recv.get())) << "EP-CONN-16: the receives stay";
    return;
  }
  const auto event = wait_event(ep.evds().connect.get());
  ASSERT_TRUE(event);
  // A host that is silent may have been reached or not (ruling R52).
  EXPECT_TRUE(event->event_number == DAT_CONNECTION_EVENT_UNREACHABLE ||
              event->event_number == DAT_CONNECTION_EVENT_TIMED_OUT)
      << event_name(event->event_number);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
  expect_completions(ep.evds().recv.get(), kPosted, DAT_DTO_ERR_FLUSHED);
}

TEST_P(EpTransition, ATimeOutEndsTheAttempt) {
  // EP-SM-14, EP-CONN-7, EP-CONN-8, EP-CONN-9
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_UNCONNECTED);
  prepost(ep);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_THAT(try_connect(ep.get(), client.listen(), 100'000), Succeeds());
  expect_end(ep, DAT_CONNECTION_EVENT_TIMED_OUT);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
}

TEST_P(EpTransition, ARequestMakesAReservedEndpointPassive) {
  // EP-SM-15, RSP-CREATE-4
  HeldEp ep(server, client, GetParam(), DAT_EP_STATE_RESERVED);
  prepost(ep);
  DAT_RSP_PARAM rsp{};
  require(dat_rsp_query(ep.rsp(), DAT_RSP_FIELD_ALL, &rsp), "dat_rsp_query");
  ASSERT_THAT(try_connect(ep.peer().get(), rsp.conn_qual), Succeeds());
  const auto request = expect_request(rsp.evd_handle);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
  EXPECT_EQ(query_request(request.cr_handle).local_ep_handle, ep.get());
  EXPECT_FALSE(poll_event(ep.evds().connect.get()));
  ASSERT_THAT(dat_cr_accept(request.cr_handle, DAT_HANDLE_NULL, 0, nullptr), Succeeds());
  expect_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(ep.peer_evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_receives_kept(ep, ep.peer());
}

TEST_P(EpTransition, EstablishmentConnectsTheAcceptingEndpoint) {
  // EP-SM-16, EP-SM-24, CR-ACC-2, CR-ACC-3, PD-5
  HeldEp ep(server, client, GetParam(), DAT_EP_STATE_COMPLETION_PENDING);
  prepost(ep);
  if (provider_attribute(server.ia, "ANYDAT_ACCEPT_COMPLETES") == "confirmed") {
    EXPECT_FALSE(poll_event(ep.evds().connect.get()));
  }
  ep.remote().resume();
  const auto data = expect_connection_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, ep.get());
  EXPECT_EQ(data.private_data_size, 0);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  EXPECT_FALSE(poll_event(ep.evds().recv.get())) << "a preposted receive was not kept";
  EXPECT_EQ(ep.remote().next_event(), DAT_CONNECTION_EVENT_ESTABLISHED);
  ep.remote().post_sends(kPosted, 16);
  for (int i = 0; i < kPosted; ++i) {
    EXPECT_EQ(expect_completion(ep.evds().recv.get()).user_cookie.as_64, static_cast<DAT_UINT64>(i));
  }
  expect_no_event(ep.evds().connect.get());
}

TEST_P(EpTransition, AnActiveSideThatDiesFailsTheAccept) {
  ANYDAT_NEEDS_CONFIRMED_ACCEPTS(server.ia)
  // EP-SM-17, CR-ACC-4
  HeldEp ep(server, client, GetParam(), DAT_EP_STATE_COMPLETION_PENDING);
  prepost(ep);
  ep.remote().kill();
  expect_end(ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

TEST_P(EpTransition, AnActiveSideThatTimedOutFailsTheAccept) {
  ANYDAT_NEEDS_CONFIRMED_ACCEPTS(server.ia)
  // EP-SM-17, CR-ACC-4, CR-ACC-5, EP-CONN-9, CONN-SEQ-7
  const Ep requester(client);
  const DAT_CR_HANDLE request = expired_request(server, requester.get(), client.connect.get());
  EXPECT_EQ(query_request(request).local_ep_handle, static_cast<DAT_EP_HANDLE>(DAT_HANDLE_NULL)) << "still queryable";
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_UNCONNECTED);
  prepost(ep);
  ASSERT_THAT(dat_cr_accept(request, ep.get(), 0, nullptr), Succeeds());
  expect_end(ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
  expect_no_event(client.connect.get());
}

TEST_P(EpTransition, AnOrderlyEndByThePeerDisconnects) {
  // EP-SM-18, EP-SM-22, EP-SM-25, EP-FREE-3, EP-DISC-15
  const std::vector<std::function<void(RemotePeer&)>> endings{
      [](RemotePeer& peer) { peer.disconnect(DAT_CLOSE_GRACEFUL_FLAG); },
      [](RemotePeer& peer) { peer.disconnect(DAT_CLOSE_ABRUPT_FLAG); },
      [](RemotePeer& peer) { peer.free_endpoint(); },
      [](RemotePeer& peer) { peer.close_adapter(DAT_CLOSE_ABRUPT_FLAG); },
  };
  for (std::size_t i = 0; i < endings.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "way " << i);
    HeldEp ep(server, client, GetParam(), DAT_EP_STATE_COMPLETION_PENDING);
    ep.remote().resume();
    expect_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    prepost(ep);
    endings[i](ep.remote());
    expect_end(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
  }
}

TEST_P(EpTransition, APeerThatDiesBreaksTheConnection) {
  // EP-SM-19, EP-SM-22, EP-SM-25, CONN-SEQ-15
  HeldEp ep(server, client, GetParam(), DAT_EP_STATE_COMPLETION_PENDING);
  ep.remote().resume();
  expect_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  prepost(ep);
  const Lmr large(server.ia, server.pz, kLarge);
  DAT_LMR_TRIPLET segment = large.triplet();
  ASSERT_THAT(dat_ep_post_send(ep.get(), 1, &segment, cookie(100), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_THAT(dat_ep_post_send(ep.get(), 1, &segment, cookie(101), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ep.remote().kill();
  expect_end(ep, DAT_CONNECTION_EVENT_BROKEN);
  const auto first = expect_event(ep.evds().request.get(), DAT_DTO_COMPLETION_EVENT);
  const auto status = first.event_data.dto_completion_event_data.status;
  EXPECT_TRUE(status == DAT_DTO_ERR_TRANSPORT || status == DAT_DTO_ERR_FLUSHED) << status;
  EXPECT_EQ(expect_completion(ep.evds().request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 101u);
  EXPECT_FALSE(poll_event(ep.evds().request.get()));
}

TEST_P(EpTransition, AFailingReceiveBreaksTheConnection) {
  // EP-SM-19, EP-SM-25, STAT-15
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_CONNECTED);
  DAT_LMR_TRIPLET small = server_buffers.triplet(0);
  small.segment_length = 8;
  ASSERT_THAT(dat_ep_post_recv(ep.get(), 1, &small, cookie(77), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  prepost(ep);
  post_send(ep.peer(), client_buffers, 0, 1, 9);
  EXPECT_EQ(expect_completion(ep.evds().recv.get(), DAT_DTO_ERR_LOCAL_LENGTH).user_cookie.as_64, 77u);
  expect_end(ep, DAT_CONNECTION_EVENT_BROKEN);
  expect_terminal_event(ep.peer_evds().connect.get(), ep.peer().get());
}

TEST_P(EpTransition, AHardWatermarkBreaksTheConnection) {
  // EP-SM-19, EP-SM-25
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_CONNECTED);
  prepost(ep);
  ASSERT_THAT(dat_ep_set_watermark(ep.get(), DAT_WATERMARK_INFINITE, kPosted - 1), Succeeds());
  expect_end(ep, DAT_CONNECTION_EVENT_BROKEN);
  expect_terminal_event(ep.peer_evds().connect.get(), ep.peer().get());
}

TEST_P(EpTransition, WithoutAReceiveBufferInTimeTheConnectionBreaks) {
  // EP-SM-19, RECV-10, STAT-11
  for (const char* const limit : {"50", "0"}) {
    SCOPED_TRACE(limit);
    const Wire wire = impatient(GetParam(), limit);
    Side receiver(wire);
    const OwnEvds evds(receiver);
    const Ep ep(receiver.ia, receiver.pz, evds, default_ep_attr());
    const OwnEvds sender_evds(client);
    const Ep sender(client.ia, client.pz, sender_evds, default_ep_attr());
    connect_pair(receiver, ep.get(), sender.get());
    const Lmr large(client.ia, client.pz, kLarge);
    post_large_send(sender, large, 1);
    post_large_send(sender, large, 2);
    expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_BROKEN, ep.get());
    EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
    EXPECT_EQ(expect_completion(sender_evds.request.get(), DAT_DTO_ERR_RECEIVER_NOT_READY).user_cookie.as_64, 1u);
    EXPECT_EQ(expect_completion(sender_evds.request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 2u);
    expect_terminal_event(sender_evds.connect.get(), sender.get());
    EXPECT_EQ(sender.state(), DAT_EP_STATE_DISCONNECTED);
  }
}

TEST_P(EpTransition, ADrainedEndpointDisconnects) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // EP-SM-20, EP-DISC-4, EP-DISC-10
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_DISCONNECT_PENDING);
  prepost(ep);
  const Lmr sink(client.ia, client.pz, kLarge);
  DAT_LMR_TRIPLET segment = sink.triplet();
  ASSERT_THAT(dat_ep_post_recv(ep.peer().get(), 1, &segment, cookie(5), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  expect_completion(ep.evds().request.get());
  expect_end(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_EQ(expect_completion(ep.peer_evds().recv.get()).transfered_length, kLarge);
  expect_connection_event(ep.peer_evds().connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, ep.peer().get());
}

TEST_P(EpTransition, AConnectionLostWhileDrainingDisconnects) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // EP-SM-21
  HeldEp ep(server, client, GetParam(), DAT_EP_STATE_COMPLETION_PENDING);
  ep.remote().resume();
  expect_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  prepost(ep);
  const Lmr large(server.ia, server.pz, kLarge);
  DAT_LMR_TRIPLET segment = large.triplet();
  ASSERT_THAT(dat_ep_post_send(ep.get(), 1, &segment, cookie(100), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_THAT(dat_ep_disconnect(ep.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  ASSERT_EQ(ep.state(), DAT_EP_STATE_DISCONNECT_PENDING);
  ep.remote().kill();
  expect_end(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
  const auto event = expect_event(ep.evds().request.get(), DAT_DTO_COMPLETION_EVENT);
  EXPECT_NE(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

TEST_P(EpTransition, ADtoThatFailsWhileDrainingDisconnects) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // EP-SM-21
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_DISCONNECT_PENDING);
  prepost(ep);
  DAT_LMR_TRIPLET small = client_buffers.triplet(0);
  ASSERT_THAT(dat_ep_post_recv(ep.peer().get(), 1, &small, cookie(5), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  expect_completion(ep.peer_evds().recv.get(), DAT_DTO_ERR_LOCAL_LENGTH);
  expect_end(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
  const auto event = expect_event(ep.evds().request.get(), DAT_DTO_COMPLETION_EVENT);
  EXPECT_NE(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

TEST_P(EpTransition, AnAttemptWhoseEndpointIsFreedReportsNothing) {
  // EP-SM-22, EP-FREE-5
  for (const DAT_EP_STATE state : {DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, DAT_EP_STATE_COMPLETION_PENDING}) {
    if (!can_hold(server.ia, state)) {
      continue;
    }
    HeldEp ep(server, client, GetParam(), state);
    ASSERT_THAT(dat_ep_free(ep.get()), Succeeds());
    if (state == DAT_EP_STATE_COMPLETION_PENDING) {
      ep.remote().resume();
    }
    expect_no_event(ep.evds().connect.get());
  }
}

TEST_P(EpTransition, EstablishedThatCannotBeReportedEndsTheConnection) {
  // EP-SM-26
  const Evd narrow(server.ia, DAT_EVD_CONNECTION_FLAG, 1);
  if (narrow.qlen() != 1) {
    GTEST_SKIP() << "a queue of 1 holds " << narrow.qlen() << " events";
  }
  const EpEvds evds{.recv = server.recv.get(), .request = server.request.get(), .connect = narrow.get()};
  const Ep first(server.ia, server.pz, evds, default_ep_attr());
  ASSERT_THAT(try_connect(first.get(), unused_qualifier(client)), Succeeds());
  ASSERT_TRUE(eventually([&] { return first.state() == DAT_EP_STATE_DISCONNECTED; }));  // its event fills the queue
  const Ep second(server.ia, server.pz, evds, default_ep_attr());
  const Ep requester(client);
  ASSERT_THAT(try_connect(requester.get(), server.listen()), Succeeds());
  const DAT_CR_HANDLE request = expect_request(server.requests.get()).cr_handle;
  ASSERT_THAT(dat_cr_accept(request, second.get(), 0, nullptr), Succeeds());
  EXPECT_TRUE(eventually([&] { return second.state() == DAT_EP_STATE_DISCONNECTED; })) << state_name(second.state());
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_terminal_event(client.connect.get(), requester.get());
  expect_event(server.ia.async_evd(), DAT_ASYNC_ERROR_EVD_OVERFLOW);
}

TEST_P(EpTransition, RacingTransitionsHappenOneAfterTheOther) {
  // EP-SM-5, MT-3: the call that comes second sees what the first has done.
  for (int round = 0; round < 20; ++round) {
    const Pair pair = make_connected_pair();
    post_recv(pair.server, server_buffers, 0, kPosted);
    post_recv(pair.client, client_buffers, 0, kPosted);
    std::array<DAT_RETURN, 4> results{};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < results.size(); ++i) {
      threads.emplace_back([&, i] {
        const Ep& ep = i % 2 == 0 ? pair.server : pair.client;
        results[i] = dat_ep_disconnect(ep.get(), i < 2 ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG);
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (const DAT_RETURN rc : results) {
      EXPECT_THAT(rc, Succeeds());
    }
    for (const auto& [ep, evds] : {std::pair<const Ep&, const OwnEvds&>(pair.server, pair.server_evds),
                                   std::pair<const Ep&, const OwnEvds&>(pair.client, pair.client_evds)}) {
      expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, ep.get());
      EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
      expect_completions(evds.recv.get(), kPosted, DAT_DTO_ERR_FLUSHED);
      EXPECT_FALSE(poll_event(evds.connect.get()));
      EXPECT_FALSE(poll_event(evds.recv.get()));
    }
  }
}

ANYDAT_OVER_ALL_WIRES(EpTransition);

}  // namespace
}  // namespace anydat::test
