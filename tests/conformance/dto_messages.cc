// SPDX-License-Identifier: BSD-3-Clause
// What becomes of messages: sections 4.2 and 4.3 of the rules.
#include "ep_states.h"
#include "rdma_fixture.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

class DtoMessages : public EpStateTest {};

TEST_P(DtoMessages, ASendFillsTheNextReceive) {
  // SEND-1, RECV-1, RECV-5
  const Pair pair = make_connected_pair();
  post_recv(pair.server, server_buffers, 0, 3);
  for (int i = 0; i < 3; ++i) {
    post_send(pair.client, client_buffers, 10 + i, 1, static_cast<std::size_t>(50 + i));
    const auto dto = expect_completion(pair.server_evds.recv.get());
    EXPECT_EQ(dto.user_cookie.as_64, static_cast<DAT_UINT64>(i));
    EXPECT_EQ(dto.transfered_length, static_cast<DAT_VLEN>(50 + i));
    EXPECT_TRUE(
        has_pattern(server_buffers[i].first(static_cast<std::size_t>(50 + i)), static_cast<DAT_UINT64>(10 + i)));
  }
}

TEST_P(DtoMessages, AnEmptyMessageUsesAReceive) {
  // SEND-2
  const Pair pair = make_connected_pair();
  post_recv(pair.server, server_buffers, 0, 2);
  std::fill(server_buffers[0].begin(), server_buffers[0].end(), std::byte{0x42});
  post_send(pair.client, client_buffers, 0, 1, 0);
  post_send(pair.client, client_buffers, 1);
  EXPECT_EQ(expect_completion(pair.client_evds.request.get()).transfered_length, 0u);
  const auto empty = expect_completion(pair.server_evds.recv.get());
  EXPECT_EQ(empty.user_cookie.as_64, 0u);
  EXPECT_EQ(empty.transfered_length, 0u);
  EXPECT_EQ(server_buffers[0][0], std::byte{0x42});
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).user_cookie.as_64, 1u);
}

TEST_P(DtoMessages, LengthIsTheMessages) {
  // SEND-3, RECV-5
  const Pair pair = make_connected_pair();
  const Lmr large(client.ia, client.pz, kLarge);
  const Lmr sink(server.ia, server.pz, 2 * kLarge);
  DAT_LMR_TRIPLET to = sink.triplet();
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &to, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  fill_pattern(large.bytes(), 6);
  std::fill(sink.bytes().begin(), sink.bytes().end(), std::byte{0x42});
  post_large_send(pair.client, large, 0);
  EXPECT_EQ(expect_completion(pair.client_evds.request.get()).transfered_length, kLarge);
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).transfered_length, kLarge);
  EXPECT_TRUE(has_pattern(sink.bytes().first(kLarge), 6));
  for (std::size_t i = kLarge; i < 2 * kLarge; ++i) {
    ASSERT_EQ(sink.bytes()[i], std::byte{0x42}) << "the rest of the buffer is untouched: " << i;
  }
}

TEST_P(DtoMessages, ASuccessfulSendFreesItsSource) {
  // SEND-4: the source is overwritten as soon as the completion is seen, received or not.
  const Pair pair = make_connected_pair();
  const bool needs_receive =
      provider_attribute(client.ia, "ANYDAT_SEND_COMPLETES") == "received" || !messages_wait(client.ia);
  for (int i = 0; i < 20; ++i) {
    if (needs_receive) {
      post_recv(pair.server, server_buffers, i);
    }
    post_send(pair.client, client_buffers, 5, 1, kBytes);
    expect_completion(pair.client_evds.request.get());
    std::fill(client_buffers[5].begin(), client_buffers[5].end(), std::byte{0});
    if (!needs_receive) {
      post_recv(pair.server, server_buffers, i);
    }
    expect_completion(pair.server_evds.recv.get());
    EXPECT_TRUE(has_pattern(server_buffers[i], 5)) << i;
  }
}

TEST_P(DtoMessages, ReceivesWaitForAMessageInEveryState) {
  // RECV-2, RECV-4
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_RESERVED);
  DAT_LMR_TRIPLET segment = server_buffers.triplet(0);
  ASSERT_THAT(dat_ep_post_recv(ep.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  DAT_RSP_PARAM rsp{};
  require(dat_rsp_query(ep.rsp(), DAT_RSP_FIELD_ALL, &rsp), "dat_rsp_query");
  ASSERT_THAT(try_connect(ep.peer().get(), rsp.conn_qual), Succeeds());
  const DAT_CR_HANDLE request = expect_request(rsp.evd_handle).cr_handle;
  segment = server_buffers.triplet(1);
  ASSERT_THAT(dat_ep_post_recv(ep.get(), 1, &segment, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_THAT(dat_cr_accept(request, DAT_HANDLE_NULL, 0, nullptr), Succeeds());
  segment = server_buffers.triplet(2);
  ASSERT_THAT(dat_ep_post_recv(ep.get(), 1, &segment, cookie(2), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  expect_event(ep.peer_evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  post_send(ep.peer(), client_buffers, 10, 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(expect_completion(ep.evds().recv.get()).user_cookie.as_64, static_cast<DAT_UINT64>(i));
    EXPECT_TRUE(has_pattern(server_buffers[i].first(32), static_cast<DAT_UINT64>(10 + i)));
  }
}

// What is told late, as what has become of a long message is, is told before the end.
TEST_P(DtoMessages, WhatArrivedBeforeAMessageTooLongIsNotToBlame) {
  // RECV-6, STAT-17, DTO-40
  if (!remote_errors_told(client.ia)) GTEST_SKIP() << "the device does not say what was wrong";
  const Pair pair = make_connected_pair();
  const Lmr source(client.ia, client.pz, kLarge);
  const Lmr target(server.ia, server.pz, kLarge);
  const Lmr sink(server.ia, server.pz, kLarge);
  DAT_LMR_TRIPLET whole = sink.triplet(0, kLarge);
  DAT_LMR_TRIPLET small = sink.triplet(0, 8);
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &whole, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &small, cookie(2), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  DAT_LMR_TRIPLET large = source.triplet(0, kLarge);
  DAT_LMR_TRIPLET nine = source.triplet(0, 9);
  ASSERT_THAT(rdma_write(pair.client, source.triplet(0, 8), target.remote(0, 8), 3), Succeeds());
  ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &large, cookie(4), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_THAT(rdma_write(pair.client, source.triplet(0, 8), target.remote(8, 8), 5), Succeeds());
  ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &nine, cookie(6), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  expect_completion(pair.server_evds.recv.get());
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get(), DAT_DTO_ERR_LOCAL_LENGTH).user_cookie.as_64, 2u);
  for (DAT_UINT64 request = 3; request < 6; ++request) {
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, request);
  }
  expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT);
  expect_terminal_event(pair.client_evds.connect.get(), pair.client.get());
}

// And not what came behind it: other requests, and messages that have begun to arrive.
TEST_P(DtoMessages, AMessageThatHasWaitedForABufferTooShortIsToBlameAlone) {
  // RECV-6, STAT-17, DTO-40
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  if (!remote_errors_told(client.ia)) GTEST_SKIP() << "the device does not say what was wrong";
  constexpr DAT_UINT64 kRequests = 12;
  for (const DAT_UINT64 too_long : {1U, 2U}) {
    SCOPED_TRACE(testing::Message() << "message " << too_long);
    const Pair pair = make_connected_pair();
    const Lmr source(client.ia, client.pz, kLarge);
    const Lmr target(server.ia, server.pz, kLarge);
    const Lmr sink(server.ia, server.pz, kLarge);
    post_large_send(pair.client, source, 1);
    post_large_send(pair.client, source, 2);
    ASSERT_THAT(rdma_write(pair.client, source.triplet(0, 8), target.remote(0, 8), 3), Succeeds());
    for (DAT_UINT64 i = 4; i <= kRequests; ++i) post_large_send(pair.client, source, i);
    expect_no_event(pair.server_evds.recv.get());  // over TCP, reading has stopped somewhere in these
    for (DAT_UINT64 i = 1; i <= too_long; ++i) {
      DAT_LMR_TRIPLET buffer = sink.triplet(0, i == too_long ? 8 : kLarge);
      ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &buffer, cookie(i), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    }
    for (DAT_UINT64 i = 1; i <= too_long; ++i) {
      const auto status = i == too_long ? DAT_DTO_ERR_LOCAL_LENGTH : DAT_DTO_SUCCESS;
      EXPECT_EQ(expect_completion(pair.server_evds.recv.get(), status).user_cookie.as_64, i);
    }
    for (DAT_UINT64 i = 1; i <= kRequests; ++i) {
      const auto status = i < too_long    ? DAT_DTO_SUCCESS
                          : i == too_long ? DAT_DTO_ERR_REMOTE_RESPONDER
                                          : DAT_DTO_ERR_FLUSHED;
      EXPECT_EQ(expect_completion(pair.client_evds.request.get(), status).user_cookie.as_64, i);
    }
    expect_terminal_event(pair.client_evds.connect.get(), pair.client.get());
  }
}

// The other way round: the refusal comes when they are in.
TEST_P(DtoMessages, WhatWasSentBeforeAWriteThatIsRefusedArrives) {
  // STAT-8, DTO-40
  for (const std::size_t length : {std::size_t{8}, kLarge}) {
    SCOPED_TRACE(length);
    const Pair pair = make_connected_pair();
    const Lmr source(client.ia, client.pz, kLarge);
    const Lmr target(server.ia, server.pz, kLarge);
    const Lmr sink(server.ia, server.pz, kLarge);
    DAT_LMR_TRIPLET buffer = sink.triplet(0, kLarge);
    ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &buffer, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    post_large_send(pair.client, source, 2);
    DAT_RMR_TRIPLET wrong = target.remote(0, length);
    wrong.rmr_context ^= 0x5a5a;
    ASSERT_THAT(rdma_write(pair.client, source.triplet(0, length), wrong, 3), Succeeds());
    EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).user_cookie.as_64, 1u);
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, 2u);
    const auto dto =
        expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
    EXPECT_EQ(dto.user_cookie.as_64, 3u);
    if (remote_errors_told(client.ia)) {  // else it may have succeeded (STAT-14)
      EXPECT_NE(dto.status, DAT_DTO_SUCCESS);
    }
  }
}

TEST_P(DtoMessages, AMessageTooLongForItsBufferFails) {
  // RECV-6, RECV-7, STAT-3, STAT-9, STAT-15, STAT-17, STAT-18, PROT-4
  for (const std::size_t length : {std::size_t{9}, kBytes, kLarge}) {
    SCOPED_TRACE(testing::Message() << length << " bytes");
    const Pair pair = make_connected_pair();
    const Lmr source(client.ia, client.pz, kLarge);
    const Lmr sink(server.ia, server.pz, 64);
    std::fill(sink.bytes().begin(), sink.bytes().end(), std::byte{0x42});
    DAT_LMR_TRIPLET to = sink.triplet(0, 8);
    ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &to, cookie(3), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    DAT_LMR_TRIPLET from = source.triplet(0, length);
    ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &from, cookie(4), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    EXPECT_EQ(expect_completion(pair.server_evds.recv.get(), DAT_DTO_ERR_LOCAL_LENGTH).user_cookie.as_64, 3u);
    expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_BROKEN, pair.server.get());
    EXPECT_EQ(pair.server.state(), DAT_EP_STATE_DISCONNECTED);
    const auto sent =
        expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
    EXPECT_EQ(sent.user_cookie.as_64, 4u);
    EXPECT_TRUE(sent.status == DAT_DTO_ERR_REMOTE_RESPONDER || sent.status == DAT_DTO_SUCCESS ||
                (!remote_errors_told(client.ia) &&
                 (sent.status == DAT_DTO_ERR_TRANSPORT || sent.status == DAT_DTO_ERR_FLUSHED)))
        << sent.status;
    expect_terminal_event(pair.client_evds.connect.get(), pair.client.get());
    EXPECT_EQ(pair.client.state(), DAT_EP_STATE_DISCONNECTED);
    for (std::size_t i = 8; i < 64; ++i) {
      ASSERT_EQ(sink.bytes()[i], std::byte{0x42}) << "a byte behind the buffer was written: " << i;
    }
    expect_no_event(pair.server_evds.connect.get());
    expect_no_event(pair.client_evds.connect.get());
  }
}

TEST_P(DtoMessages, AMessageWithoutAReceiveWaits) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // RECV-10, SRQ-ARR-3, SRQ-ARR-6
  const Pair waiting = make_connected_pair();
  const Pair other = make_connected_pair();
  post_send(waiting.client, client_buffers, 0, 5);
  expect_working(other);
  EXPECT_FALSE(poll_event(waiting.server_evds.recv.get()));
  EXPECT_EQ(waiting.server.state(), DAT_EP_STATE_CONNECTED);
  post_recv(waiting.server, server_buffers, 0, 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(expect_completion(waiting.server_evds.recv.get()).user_cookie.as_64, static_cast<DAT_UINT64>(i));
    EXPECT_TRUE(has_pattern(server_buffers[i].first(32), static_cast<DAT_UINT64>(i)));
  }
}

TEST_P(DtoMessages, ManyMessagesMayWait) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // RECV-10, SRQ-ARR-6: more than any wire keeps in flight.
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_recv_dtos = 2000;
  attr.max_request_dtos = 2000;
  const Pair pair = make_connected_pair(attr, attr);
  constexpr int kMessages = 2000;
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_THAT(try_send(pair.client, client_buffers, i % 10, kBytes, DAT_COMPLETION_SUPPRESS_FLAG), Succeeds()) << i;
  }
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_THAT(try_recv(pair.server, server_buffers, i % 10), Succeeds()) << i;
    ASSERT_EQ(expect_completion(pair.server_evds.recv.get()).transfered_length, kBytes) << i;
  }
}

ANYDAT_OVER_ALL_WIRES(DtoMessages);

}  // namespace
}  // namespace anydat::test
