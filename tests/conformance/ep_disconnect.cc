// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_disconnect: section 3.7 of the rules. Which state allows what is in ep_state_table.cc.
#include <thread>

#include "ep_states.h"

namespace anydat::test {
namespace {

class EpDisconnect : public EpStateTest {
 protected:
  // Messages from the client that the server has no buffer for.
  void post_large_sends(const Ep& ep, int count) {
    for (int i = 0; i < count; ++i) {
      post_large_send(ep, large, static_cast<DAT_UINT64>(i));
    }
  }
  void post_large_recv(const Ep& ep, DAT_UINT64 number) {
    DAT_LMR_TRIPLET segment = sink.triplet();
    require(dat_ep_post_recv(ep.get(), 1, &segment, cookie(number), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  }
  static std::vector<DAT_DTO_COMPLETION_EVENT_DATA> next_completions(DAT_EVD_HANDLE evd, int count) {
    std::vector<DAT_DTO_COMPLETION_EVENT_DATA> result;
    for (int i = 0; i < count; ++i) {
      result.push_back(expect_event(evd, DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data);
    }
    return result;
  }

  Lmr large{client.ia, client.pz, kLarge};
  Lmr sink{server.ia, server.pz, kLarge};
};

TEST_P(EpDisconnect, AbruptlyCompletesEverythingThatIsPosted) {
  // EP-DISC-1, EP-DISC-2, EP-DISC-6, EP-DISC-10, CONN-SEQ-14
  const Pair pair = make_connected_pair();
  post_recv(pair.client, client_buffers, 0, 3);
  post_recv(pair.server, server_buffers, 20);
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.client.get());
  EXPECT_EQ(pair.client.state(), DAT_EP_STATE_DISCONNECTED);
  for (DAT_UINT64 i = 0; i < 3; ++i) {
    EXPECT_EQ(expect_completion(pair.client_evds.recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, i);
  }
  expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.server.get());
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 20u);
  EXPECT_EQ(pair.server.state(), DAT_EP_STATE_DISCONNECTED);
}

TEST_P(EpDisconnect, AbruptlyFlushesRequestsThatCannotFinish) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // EP-DISC-1, EP-DISC-2, EP-DISC-3
  const Pair pair = make_connected_pair();
  constexpr int kSends = 20;
  post_large_sends(pair.client, kSends);
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.client.get());
  const auto completions = next_completions(pair.client_evds.request.get(), kSends);
  for (int i = 0; i < kSends; ++i) {
    const auto& completion = completions[static_cast<std::size_t>(i)];
    EXPECT_EQ(completion.user_cookie.as_64, static_cast<DAT_UINT64>(i));
    EXPECT_EQ(completion.status, DAT_DTO_ERR_FLUSHED) << i;
  }
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
}

TEST_P(EpDisconnect, AfterTheFirstFailureEverythingFails) {
  // EP-DISC-3, DTO-46: wherever the cut falls, successes come before failures, in both directions.
  for (int round = 0; round < 10; ++round) {
    const Pair pair = make_connected_pair();
    constexpr int kCount = 30;
    post_recv(pair.server, server_buffers, 0, kCount);
    post_send(pair.client, client_buffers, 0, kCount, kBytes);
    const Ep& closing = round % 2 == 0 ? pair.client : pair.server;
    ASSERT_THAT(dat_ep_disconnect(closing.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    expect_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    expect_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    for (const DAT_EVD_HANDLE evd : {pair.server_evds.recv.get(), pair.client_evds.request.get()}) {
      bool failed = false;
      const auto completions = next_completions(evd, kCount);
      for (int i = 0; i < kCount; ++i) {
        const auto& completion = completions[static_cast<std::size_t>(i)];
        EXPECT_EQ(completion.user_cookie.as_64, static_cast<DAT_UINT64>(i));
        EXPECT_FALSE(failed && completion.status == DAT_DTO_SUCCESS) << i;
        failed = failed || completion.status != DAT_DTO_SUCCESS;
      }
      EXPECT_FALSE(poll_event(evd));
    }
  }
}

TEST_P(EpDisconnect, GracefullyFinishesWhatWasPosted) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // EP-DISC-4, EP-DISC-6, EP-DISC-10, CONN-SEQ-13
  const Pair pair = make_connected_pair();
  post_recv(pair.client, client_buffers, 40, 2);
  post_large_sends(pair.client, 3);
  post_send(pair.client, client_buffers, 10, 5);
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  EXPECT_EQ(pair.client.state(), DAT_EP_STATE_DISCONNECT_PENDING);
  EXPECT_FALSE(poll_event(pair.client_evds.connect.get()));
  EXPECT_FALSE(poll_event(pair.client_evds.recv.get())) << "receives are flushed at the end, not before";
  for (DAT_UINT64 i = 0; i < 3; ++i) {
    post_large_recv(pair.server, i);
  }
  post_recv(pair.server, server_buffers, 10, 7);
  expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.client.get());
  EXPECT_EQ(pair.client.state(), DAT_EP_STATE_DISCONNECTED);
  expect_completions(pair.client_evds.request.get(), 8);
  expect_completions(pair.client_evds.recv.get(), 2, DAT_DTO_ERR_FLUSHED);
  expect_completions(pair.server_evds.recv.get(), 8);
  for (int i = 10; i < 15; ++i) {
    EXPECT_TRUE(has_pattern(server_buffers[i].first(32), static_cast<DAT_UINT64>(i)));
  }
  expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.server.get());
  expect_completions(pair.server_evds.recv.get(), 2, DAT_DTO_ERR_FLUSHED);
}

TEST_P(EpDisconnect, AnIdleGracefulOneIsSoonOver) {
  // EP-DISC-4, EP-DISC-10
  const Pair pair = make_connected_pair();
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.client.get());
  expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.server.get());
}

TEST_P(EpDisconnect, WhilePendingMessagesStillArrive) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // EP-DISC-5, RECV-2
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_DISCONNECT_PENDING);
  for (int i = 0; i < 2; ++i) {
    DAT_LMR_TRIPLET segment = server_buffers.triplet(i);
    ASSERT_THAT(
        dat_ep_post_recv(ep.get(), 1, &segment, cookie(static_cast<DAT_UINT64>(i)), DAT_COMPLETION_DEFAULT_FLAG),
        Succeeds());
  }
  post_send(ep.peer(), client_buffers, 7);
  EXPECT_EQ(expect_completion(ep.evds().recv.get()).user_cookie.as_64, 0u);
  EXPECT_TRUE(has_pattern(server_buffers[0].first(32), 7));
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECT_PENDING);
  EXPECT_EQ(expect_completion(ep.evds().recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 1u);  // at the end
}

TEST_P(EpDisconnect, AbruptlyWhilePendingGivesUpTheRest) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // EP-DISC-7, EP-DISC-2
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_DISCONNECT_PENDING);
  ASSERT_THAT(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_connection_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, ep.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
  expect_completion(ep.evds().request.get(), DAT_DTO_ERR_FLUSHED);
  expect_no_event(ep.evds().connect.get());
}

TEST_P(EpDisconnect, OnOneEvdTheEventComesLast) {
  // EP-DISC-11, STAT-16, SRQ-TAKE-3
  const Evd all(client.ia, static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG));
  for (const DAT_CLOSE_FLAGS flags : {DAT_CLOSE_GRACEFUL_FLAG, DAT_CLOSE_ABRUPT_FLAG}) {
    const Ep ep(client.ia, client.pz, {.recv = all.get(), .request = all.get(), .connect = all.get()},
                default_ep_attr());
    const OwnEvds evds(server);
    const Ep peer(server.ia, server.pz, evds, default_ep_attr());
    connect_pair(server, peer.get(), ep.get());
    post_recv(peer, server_buffers, 0, 5);
    post_recv(ep, client_buffers, 10, 3);
    post_send(ep, client_buffers, 0, 5);
    ASSERT_THAT(dat_ep_disconnect(ep.get(), flags), Succeeds());
    expect_event(evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    ASSERT_TRUE(eventually([&] { return ep.state() == DAT_EP_STATE_DISCONNECTED; }));
    int completions = 0;
    while (true) {
      const auto event = wait_event(all.get());
      ASSERT_TRUE(event);
      if (event->event_number == DAT_CONNECTION_EVENT_DISCONNECTED) {
        break;
      }
      ASSERT_EQ(event->event_number, DAT_DTO_COMPLETION_EVENT);
      ++completions;
    }
    EXPECT_EQ(completions, 8);
    expect_no_event(all.get());
  }
}

TEST_P(EpDisconnect, AbortedAttemptsFlushTheirReceives) {
  // EP-DISC-14, EP-DISC-9
  for (const DAT_EP_STATE state : {DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, DAT_EP_STATE_COMPLETION_PENDING}) {
    if (!can_hold(server.ia, state)) {
      continue;
    }
    for (const DAT_CLOSE_FLAGS flags : {DAT_CLOSE_GRACEFUL_FLAG, DAT_CLOSE_ABRUPT_FLAG}) {
      SCOPED_TRACE(testing::Message() << state_name(state) << ", flags " << flags);
      HeldEp ep(server, client, GetParam(), state);
      DAT_LMR_TRIPLET segment = server_buffers.triplet(0);
      ASSERT_THAT(dat_ep_post_recv(ep.get(), 1, &segment, cookie(8), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
      ASSERT_THAT(dat_ep_disconnect(ep.get(), flags), Succeeds());
      expect_connection_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, ep.get());
      EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
      EXPECT_EQ(expect_completion(ep.evds().recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 8u);
      if (state == DAT_EP_STATE_COMPLETION_PENDING) {
        ep.remote().resume();  // what it then says about the attempt reaches no endpoint
      }
      expect_no_event(ep.evds().connect.get());
    }
  }
}

TEST_P(EpDisconnect, AnAbortedActiveAttemptFailsTheAccept) {
  ANYDAT_NEEDS_CONFIRMED_ACCEPTS(server.ia)
  // EP-DISC-15, CR-ACC-5, CONN-SEQ-9
  const Ep active(client);
  const Ep passive(server);
  ASSERT_THAT(try_connect(active.get(), server.listen()), Succeeds());
  const DAT_CR_HANDLE request = expect_request(server.requests.get()).cr_handle;
  ASSERT_THAT(dat_ep_disconnect(active.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_connection_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, active.get());
  ASSERT_THAT(dat_cr_accept(request, passive.get(), 0, nullptr), Succeeds());
  expect_connection_event(server.connect.get(), DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, passive.get());
  EXPECT_EQ(passive.state(), DAT_EP_STATE_DISCONNECTED);
  expect_no_event(client.connect.get());
}

TEST_P(EpDisconnect, AnAbortedAcceptRefusesTheActiveSide) {
  // EP-DISC-15, CONN-SEQ-10
  ANYDAT_NEEDS_CONFIRMED_ACCEPTS(server.ia)
  HeldEp ep(server, client, GetParam(), DAT_EP_STATE_COMPLETION_PENDING);
  ASSERT_THAT(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  ep.remote().resume();
  const DAT_EVENT_NUMBER first = ep.remote().next_event();
  if (first == DAT_CONNECTION_EVENT_ESTABLISHED) {
    EXPECT_EQ(ep.remote().next_event(), DAT_CONNECTION_EVENT_DISCONNECTED);
  } else {
    EXPECT_EQ(first, DAT_CONNECTION_EVENT_NON_PEER_REJECTED) << event_name(first);
  }
}

TEST_P(EpDisconnect, ChecksItsArguments) {
  // EP-DISC-16, GEN-2
  const Pair pair = make_connected_pair();
  for (const int bad : {2, 3, -1}) {
    EXPECT_THAT(dat_ep_disconnect(pair.client.get(), static_cast<DAT_CLOSE_FLAGS>(bad)),
                HasType(DAT_INVALID_PARAMETER));
  }
  EXPECT_EQ(pair.client.state(), DAT_EP_STATE_CONNECTED);
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), client.pz.get()}) {
    const DAT_RETURN rc = dat_ep_disconnect(bad, DAT_CLOSE_ABRUPT_FLAG);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
  }
  expect_working(pair);
}

TEST_P(EpDisconnect, BothSidesAtOnceGetOneEventEach) {
  // EP-DISC-17, INV-4
  for (int round = 0; round < 12; ++round) {
    const Pair pair = make_connected_pair();
    const auto flags = [&](int bit) { return (round & bit) != 0 ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG; };
    std::thread other([&] { EXPECT_THAT(dat_ep_disconnect(pair.client.get(), flags(1)), Succeeds()); });
    EXPECT_THAT(dat_ep_disconnect(pair.server.get(), flags(2)), Succeeds());
    other.join();
    expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.client.get());
    expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.server.get());
    EXPECT_EQ(pair.client.state(), DAT_EP_STATE_DISCONNECTED);
    EXPECT_EQ(pair.server.state(), DAT_EP_STATE_DISCONNECTED);
    EXPECT_FALSE(poll_event(pair.client_evds.connect.get()));
    EXPECT_FALSE(poll_event(pair.server_evds.connect.get()));
  }
}

TEST_P(EpDisconnect, ReceivesPostedMeanwhileAreFlushedOnceEach) {
  // RECV-3, DTO-20, INV-2: another thread posts before, while and after the connection ends.
  constexpr DAT_UINT64 kPosts = 200;  // more than the queue holds, so the last ones come after the end
  for (int round = 0; round < 20; ++round) {
    const Pair pair = make_connected_pair();
    std::thread poster([&] {
      const auto deadline = std::chrono::steady_clock::now() + patience();
      for (DAT_UINT64 posted = 0; posted < kPosts && std::chrono::steady_clock::now() < deadline;) {
        DAT_LMR_TRIPLET segment = server_buffers.triplet(0);
        const DAT_RETURN rc =
            dat_ep_post_recv(pair.server.get(), 1, &segment, cookie(posted), DAT_COMPLETION_DEFAULT_FLAG);
        if (rc == DAT_SUCCESS) {
          ++posted;
        } else {
          EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES));
        }
      }
    });
    EXPECT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    poster.join();
    for (DAT_UINT64 i = 0; i < kPosts; ++i) {
      ASSERT_EQ(expect_completion(pair.server_evds.recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, i);
    }
    EXPECT_FALSE(poll_event(pair.server_evds.recv.get()));
    expect_terminal_event(pair.server_evds.connect.get(), pair.server.get());
  }
}

TEST_P(EpDisconnect, APeerThatNeverPostsReceivesDoesNotHoldItUpForEver) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // EP-DISC-18, EP-SM-21
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_DISCONNECT_PENDING);
  expect_connection_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, ep.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
  const auto completion = expect_event(ep.evds().request.get(), DAT_DTO_COMPLETION_EVENT);
  EXPECT_NE(completion.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
  expect_terminal_event(ep.peer_evds().connect.get(), ep.peer().get());
}

ANYDAT_OVER_ALL_WIRES(EpDisconnect);

}  // namespace
}  // namespace anydat::test
