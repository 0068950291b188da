// SPDX-License-Identifier: BSD-3-Clause
// Order of RDMA among requests: section 4.1 of the rules.
#include "rdma_fixture.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

class RdmaOrder : public RdmaTest {};

TEST_P(RdmaOrder, CompletionsComeInPostingOrder) {
  // DTO-40
  const Pair pair = make_connected_pair();
  const Lmr sink(client.ia, client.pz, kSize);  // Writes leave their source meanwhile
  post_recv(pair.server, server_buffers, 0, 10);
  for (int i = 0; i < 30; ++i) {
    const auto number = static_cast<DAT_UINT64>(i);
    const std::size_t length = i % 2 == 0 ? kSize : 16;
    if (i % 3 == 0) {
      ASSERT_THAT(rdma_read(pair.client, sink.triplet(0, length), target.remote(0, length), number), Succeeds());
    } else if (i % 3 == 1) {
      ASSERT_THAT(rdma_write(pair.client, local.triplet(0, length), target.remote(0, length), number), Succeeds());
    } else {
      ASSERT_THAT(try_send(pair.client, client_buffers, i), Succeeds());
    }
  }
  for (DAT_UINT64 i = 0; i < 30; ++i) {
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, i);
  }
  expect_completions(pair.server_evds.recv.get(), 10);
}

TEST_P(RdmaOrder, AWriteIsThereWhenTheNextSendArrives) {
  // DTO-43, SRQ-ORD-6
  const Pair pair = make_connected_pair();
  for (DAT_UINT64 round = 1; round <= 100; ++round) {
    const std::size_t length = round % 3 == 0 ? kSize : round * 7;
    fill_pattern(local.bytes().first(length), round);
    post_recv(pair.server, server_buffers, 0);
    ASSERT_THAT(rdma_write(pair.client, local.triplet(0, length), target.remote(0, length), round,
                           DAT_COMPLETION_SUPPRESS_FLAG),
                Succeeds());
    ASSERT_THAT(try_send(pair.client, client_buffers, 0), Succeeds());
    expect_completion(pair.server_evds.recv.get());
    ASSERT_TRUE(has_pattern(target.bytes().first(length), round)) << length;
    expect_completion(pair.client_evds.request.get());
  }
}

TEST_P(RdmaOrder, WritesTakeEffectInOrder) {
  // DTO-40, RDW-1
  const Pair pair = make_connected_pair();
  for (DAT_UINT64 i = 0; i < 20; ++i) {
    const Lmr& source = local;
    fill_pattern(source.bytes().subspan(i * 1024, 1024), i);
    ASSERT_THAT(rdma_write(pair.client, source.triplet(i * 1024, 1024), target.remote(0, 1024), i), Succeeds());
  }
  expect_completions(pair.client_evds.request.get(), 20);
  pass_message(pair);
  EXPECT_TRUE(has_pattern(target.bytes().first(1024), 19)) << "the last one stands";
}

TEST_P(RdmaOrder, AReadSeesWhatWasWrittenBefore) {
  // DTO-40: requests start in posting order.
  const Pair pair = make_connected_pair();
  const Lmr back(client.ia, client.pz, kSize);
  for (DAT_UINT64 round = 1; round <= 20; ++round) {
    fill_pattern(local.bytes(), round);
    ASSERT_THAT(rdma_write(pair.client, local.triplet(), target.remote(0, kSize), 1), Succeeds());
    ASSERT_THAT(rdma_read(pair.client, back.triplet(), target.remote(0, kSize), 2), Succeeds());
    expect_completions(pair.client_evds.request.get(), 2);
    ASSERT_TRUE(has_pattern(back.bytes(), round)) << round;
  }
}

TEST_P(RdmaOrder, AFencedRequestSeesTheReadsBefore) {
  // DTO-33, DTO-44: the data of the Reads is what the fenced Send and Write carry.
  const Pair pair = make_connected_pair();
  const Lmr echo(server.ia, server.pz, kSize);
  for (DAT_UINT64 round = 1; round <= 50; ++round) {
    fill_pattern(target.bytes(), round);
    post_recv(pair.server, server_buffers, 0);
    ASSERT_THAT(rdma_read(pair.client, local.triplet(), target.remote(0, kSize), 1), Succeeds());
    ASSERT_THAT(rdma_write(pair.client, local.triplet(), echo.remote(0, kSize), 2, DAT_COMPLETION_BARRIER_FENCE_FLAG),
                Succeeds());
    DAT_LMR_TRIPLET start = local.triplet(0, kBytes);
    ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &start, cookie(3), DAT_COMPLETION_BARRIER_FENCE_FLAG),
                Succeeds());
    for (DAT_UINT64 i = 1; i <= 3; ++i) {
      ASSERT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, i);
    }
    expect_completion(pair.server_evds.recv.get());
    ASSERT_TRUE(has_pattern(server_buffers[0], round));
    ASSERT_TRUE(has_pattern(echo.bytes(), round));
  }
}

TEST_P(RdmaOrder, AnUnfencedSendsCompletionStillComesAfterTheReads) {
  // DTO-44
  const Pair pair = make_connected_pair();
  post_recv(pair.server, server_buffers, 0, 20);
  for (int i = 0; i < 20; ++i) {
    ASSERT_THAT(rdma_read(pair.client, local.triplet(), target.remote(0, kSize), static_cast<DAT_UINT64>(100 + i)),
                Succeeds());
    post_send(pair.client, client_buffers, i);
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, static_cast<DAT_UINT64>(100 + i));
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, static_cast<DAT_UINT64>(i));
  }
  expect_completions(pair.server_evds.recv.get(), 20);
}

TEST_P(RdmaOrder, ADisconnectWaitsForRdmaToo) {
  // EP-DISC-4, EP-DISC-5 (remote RDMA is still served while a disconnect pends)
  const Pair pair = make_connected_pair();
  fill_pattern(target.bytes(), 4);
  ASSERT_THAT(rdma_read(pair.client, local.triplet(), target.remote(0, kSize), 1), Succeeds());
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  expect_completion(pair.client_evds.request.get());
  EXPECT_TRUE(has_pattern(local.bytes(), 4));
  expect_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);

  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  const Pair held = make_connected_pair();
  const Lmr large(server.ia, server.pz, kLarge);
  post_large_send(held.server, large, 1);  // holds the server's endpoint in DISCONNECT_PENDING
  ASSERT_THAT(dat_ep_disconnect(held.server.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  ASSERT_EQ(held.server.state(), DAT_EP_STATE_DISCONNECT_PENDING);
  ASSERT_THAT(rdma_read(held.client, local.triplet(), target.remote(0, kSize), 1), Succeeds());
  expect_completion(held.client_evds.request.get());
  ASSERT_THAT(rdma_write(held.client, local.triplet(), target.remote(0, kSize), 2), Succeeds());
  expect_completion(held.client_evds.request.get());
}

ANYDAT_OVER_ALL_WIRES(RdmaOrder);

}  // namespace
}  // namespace anydat::test
