// SPDX-License-Identifier: BSD-3-Clause
// Completion flags of Sends and Receives: section 4.1 of the rules. Flags of RDMA are in rdma_posting.cc.
#include "ep_fixture.h"
#include "support/properties.h"
#include "support/waiter.h"

namespace anydat::test {
namespace {

DAT_EP_ATTR attributes(DAT_COMPLETION_FLAGS recv, DAT_COMPLETION_FLAGS request) {
  DAT_EP_ATTR attr = default_ep_attr();
  attr.recv_completion_flags = recv;
  attr.request_completion_flags = request;
  return attr;
}

class DtoFlags : public EpTest {
 protected:
  static DAT_RETURN try_recv_with(const Ep& ep, const Buffers& buffers, int index, int flags) {
    DAT_LMR_TRIPLET segment = buffers.triplet(index);
    return dat_ep_post_recv(ep.get(), 1, &segment, cookie(static_cast<DAT_UINT64>(index)), flags_of(flags));
  }
  // True once only that many are posted: the completions of the rest are there, or about to be.
  static bool eventually_received(const Ep& ep, DAT_COUNT still_posted) {
    return eventually([&] {
      DAT_COUNT held = -1;
      require(dat_ep_recv_query(ep.get(), &held, nullptr), "dat_ep_recv_query");
      return held == still_posted;
    });
  }
};

TEST_P(DtoFlags, SuppressHidesSuccessOnly) {
  // DTO-30
  const Pair pair = make_connected_pair();
  post_recv(pair.server, server_buffers, 0, 4);
  post_send(pair.client, client_buffers, 0, 3, 32, DAT_COMPLETION_SUPPRESS_FLAG);
  post_send(pair.client, client_buffers, 3);
  EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, 3u)
      << "the only one that is not hidden";
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
  expect_completions(pair.server_evds.recv.get(), 4);  // the other side sees them all
}

TEST_P(DtoFlags, SuppressDoesNotHideAFlush) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // DTO-30
  const Pair pair = make_connected_pair();
  const Lmr large(client.ia, client.pz, kLarge);
  for (DAT_UINT64 i = 0; i < 3; ++i) {
    DAT_LMR_TRIPLET segment = large.triplet();
    ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &segment, cookie(i), DAT_COMPLETION_SUPPRESS_FLAG), Succeeds());
  }
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  for (DAT_UINT64 i = 0; i < 3; ++i) {
    EXPECT_EQ(expect_completion(pair.client_evds.request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, i);
  }
}

TEST_P(DtoFlags, SuppressDoesNotHideAFailure) {
  // DTO-30, STAT-18
  const Pair pair = make_connected_pair();
  const Lmr large(client.ia, client.pz, kLarge);
  post_recv(pair.server, server_buffers, 0);  // too small for it
  DAT_LMR_TRIPLET segment = large.triplet();
  ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &segment, cookie(5), DAT_COMPLETION_SUPPRESS_FLAG), Succeeds());
  expect_terminal_event(pair.client_evds.connect.get(), pair.client.get());
  // Where the transport found the failure before the Send had completed, the event is there (STAT-14).
  if (const auto event = poll_event(pair.client_evds.request.get())) {
    EXPECT_NE(event->event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
    EXPECT_EQ(event->event_data.dto_completion_event_data.user_cookie.as_64, 5u);
  }
}

TEST_P(DtoFlags, OnlySolicitedMessagesWakeASolicitedReceiver) {
  ANYDAT_NEEDS_SOLICITED(server.ia)
  // DTO-31, RECV-8
  const Pair pair = make_connected_pair(attributes(DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_DEFAULT_FLAG));
  // So many that what is like the one before goes a shorter way.
  constexpr int kUnsolicited = 6;
  post_recv(pair.server, server_buffers, 0, kUnsolicited + 2);
  Waiter waiter(pair.server_evds.recv.get());
  post_send(pair.client, client_buffers, 0, kUnsolicited);
  ASSERT_TRUE(eventually_received(pair.server, 2));
  EXPECT_TRUE(waiter.stays_blocked());
  post_send(pair.client, client_buffers, kUnsolicited, 1, 32, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  const Waiter::Result result = waiter.result();
  EXPECT_THAT(result.rc, Succeeds());
  EXPECT_EQ(result.event.event_data.dto_completion_event_data.user_cookie.as_64, 0u);
  expect_completions(pair.server_evds.recv.get(), kUnsolicited);
  // The sender's own completion is like any other.
  expect_completions(pair.client_evds.request.get(), kUnsolicited + 1);
}

TEST_P(DtoFlags, SolicitingMeansNothingToOtherReceivers) {
  // DTO-31
  const Pair pair = make_connected_pair();
  post_recv(pair.server, server_buffers, 0, 2);
  Waiter waiter(pair.server_evds.recv.get());
  post_send(pair.client, client_buffers, 0);
  EXPECT_THAT(waiter.result().rc, Succeeds());
  post_send(pair.client, client_buffers, 1, 1, 32, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  expect_completion(pair.server_evds.recv.get());
}

TEST_P(DtoFlags, LargeMessagesSolicitToo) {
  ANYDAT_NEEDS_SOLICITED(server.ia)
  // DTO-31
  const Pair pair = make_connected_pair(attributes(DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_DEFAULT_FLAG));
  const Lmr large(client.ia, client.pz, kLarge);
  const Lmr sink(server.ia, server.pz, kLarge);
  DAT_LMR_TRIPLET to = sink.triplet();
  DAT_LMR_TRIPLET from = large.triplet();
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(
        dat_ep_post_recv(pair.server.get(), 1, &to, cookie(static_cast<DAT_UINT64>(i)), DAT_COMPLETION_DEFAULT_FLAG),
        Succeeds());
  }
  Waiter waiter(pair.server_evds.recv.get());
  ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &from, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_TRUE(eventually_received(pair.server, 1));
  EXPECT_TRUE(waiter.stays_blocked());
  ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &from, cookie(1), DAT_COMPLETION_SOLICITED_WAIT_FLAG), Succeeds());
  EXPECT_THAT(waiter.result().rc, Succeeds());
}

TEST_P(DtoFlags, UnsignalledSendsWakeNobody) {
  // DTO-32, DTO-37
  const Pair pair =
      make_connected_pair(default_ep_attr(), attributes(DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG));
  post_recv(pair.server, server_buffers, 0, 3);
  Waiter waiter(pair.client_evds.request.get());
  post_send(pair.client, client_buffers, 0, 2, 32, DAT_COMPLETION_UNSIGNALLED_FLAG);
  expect_completions(pair.server_evds.recv.get(), 2);
  EXPECT_TRUE(waiter.stays_blocked());
  post_send(pair.client, client_buffers, 2);  // an ordinary one
  const Waiter::Result result = waiter.result();
  EXPECT_THAT(result.rc, Succeeds());
  EXPECT_EQ(result.event.event_data.dto_completion_event_data.user_cookie.as_64, 0u) << "they are queued all the same";
  EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, 1u);
  EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, 2u);
}

TEST_P(DtoFlags, UnsignalledReceivesWakeNobody) {
  // DTO-32, RECV-8
  const Pair pair = make_connected_pair(attributes(DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG));
  ASSERT_THAT(try_recv_with(pair.server, server_buffers, 0, DAT_COMPLETION_UNSIGNALLED_FLAG), Succeeds());
  ASSERT_THAT(try_recv_with(pair.server, server_buffers, 1, DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  Waiter waiter(pair.server_evds.recv.get());
  post_send(pair.client, client_buffers, 0);
  ASSERT_TRUE(eventually_received(pair.server, 1));
  EXPECT_TRUE(waiter.stays_blocked());
  post_send(pair.client, client_buffers, 1);
  const Waiter::Result result = waiter.result();
  EXPECT_THAT(result.rc, Succeeds());
  EXPECT_EQ(result.event.event_data.dto_completion_event_data.user_cookie.as_64, 0u);
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).user_cookie.as_64, 1u);
}

TEST_P(DtoFlags, UnsignalledCompletionsTriggerNoCno) {
  // DTO-32, DTO-37
  DAT_CNO_HANDLE handle = DAT_HANDLE_NULL;
  require(dat_cno_create(client.ia.get(), DAT_OS_WAIT_PROXY_AGENT_NULL, &handle), "dat_cno_create");
  const Owner<dat_cno_free> cno(handle);
  const Evd request(client.ia, DAT_EVD_DTO_FLAG, 64, cno.get());
  const Ep ep(client.ia, client.pz,
              {.recv = client.recv.get(), .request = request.get(), .connect = client.connect.get()},
              attributes(DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG));
  const Ep peer(server);
  connect_pair(server, peer.get(), ep.get());
  post_recv(peer, server_buffers, 0, 2);
  DAT_EVD_HANDLE triggered = DAT_HANDLE_NULL;
  post_send(ep, client_buffers, 0, 1, 32, DAT_COMPLETION_UNSIGNALLED_FLAG);
  expect_completion(server.recv.get());
  EXPECT_THAT(dat_cno_wait(cno.get(), 20'000, &triggered), HasType(DAT_QUEUE_EMPTY));
  post_send(ep, client_buffers, 1);
  ASSERT_THAT(dat_cno_wait(cno.get(), long_timeout(), &triggered), Succeeds());
  EXPECT_EQ(triggered, request.get());
  expect_completions(request.get(), 2);
}

TEST_P(DtoFlags, UnsignalledNeedsAnEndpointThatSaysSo) {
  // DTO-32, DTO-2
  const Pair pair = make_connected_pair();
  EXPECT_THAT(try_recv_with(pair.server, server_buffers, 0, DAT_COMPLETION_UNSIGNALLED_FLAG),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(try_send(pair.server, server_buffers, 0, 32, DAT_COMPLETION_UNSIGNALLED_FLAG),
              HasType(DAT_INVALID_PARAMETER));
  expect_working(pair);
  // The flags of one direction say nothing about the other.
  const Pair mixed = make_connected_pair(attributes(DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG),
                                         attributes(DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG));
  EXPECT_THAT(try_send(mixed.server, server_buffers, 0, 32, DAT_COMPLETION_UNSIGNALLED_FLAG),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(try_recv_with(mixed.client, client_buffers, 0, DAT_COMPLETION_UNSIGNALLED_FLAG),
              HasType(DAT_INVALID_PARAMETER));
}

TEST_P(DtoFlags, ReceivesTakeNoFlagsOfRequests) {
  // DTO-34, DTO-35, RECV-11, DTO-2
  const Pair pair = make_connected_pair(attributes(DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG));
  for (int bits = 0; bits < 0x80; ++bits) {
    const DAT_RETURN rc = try_recv_with(pair.server, server_buffers, 0, bits);
    if (bits == DAT_COMPLETION_DEFAULT_FLAG || bits == DAT_COMPLETION_UNSIGNALLED_FLAG) {
      EXPECT_THAT(rc, Succeeds()) << bits;
    } else {
      EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER)) << bits;
    }
  }
  DAT_COUNT posted = 0;
  ASSERT_THAT(dat_ep_recv_query(pair.server.get(), &posted, nullptr), Succeeds());
  EXPECT_EQ(posted, 2);
}

TEST_P(DtoFlags, SendsTakeAnyUnionOfFour) {
  // DTO-35, DTO-36, SEND-6, ATTR-1
  const DAT_EP_ATTR attr = attributes(DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG);
  const Pair pair = make_connected_pair(default_ep_attr(), attr);
  constexpr int kAll = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
                       DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;
  for (int bits = 0; bits < 0x80; ++bits) {
    post_recv(pair.server, server_buffers, 0);
    const DAT_RETURN rc = try_send(pair.client, client_buffers, 1, 32, flags_of(bits));
    if ((bits & ~kAll) != 0) {
      EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER)) << bits;
      post_send(pair.client, client_buffers, 2, 1, 32, DAT_COMPLETION_SUPPRESS_FLAG);  // uses the receive up
    } else {
      EXPECT_THAT(rc, Succeeds()) << bits;
      if ((bits & DAT_COMPLETION_SUPPRESS_FLAG) == 0) {
        expect_completion(pair.client_evds.request.get());
      }
    }
    expect_completion(pair.server_evds.recv.get());
  }
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
}

TEST_P(DtoFlags, OrdinaryCompletionsAlwaysNotify) {
  // DTO-37, RECV-8
  const Pair pair = make_connected_pair();
  post_recv(pair.server, server_buffers, 0);
  Waiter receiver(pair.server_evds.recv.get());
  Waiter sender(pair.client_evds.request.get());
  post_send(pair.client, client_buffers, 0);
  EXPECT_THAT(sender.result().rc, Succeeds());
  EXPECT_THAT(receiver.result().rc, Succeeds());
}

ANYDAT_OVER_ALL_WIRES(DtoFlags);

}  // namespace
}  // namespace anydat::test
