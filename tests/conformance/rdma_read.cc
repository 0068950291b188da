// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_post_rdma_read: section 4.4 of the rules. What the target refuses is in rdma_protection.cc.
#include "rdma_fixture.h"

namespace anydat::test {
namespace {

class RdmaRead : public RdmaTest {};

TEST_P(RdmaRead, FetchesTheRemoteSegment) {
  // RDR-1, RDR-3, DTO-1, DTO-3
  const Pair pair = make_connected_pair();
  fill_pattern(target.bytes(), 1);
  for (const std::size_t length : {std::size_t{1}, std::size_t{64}, std::size_t{4097}, kSize}) {
    std::fill(local.bytes().begin(), local.bytes().end(), std::byte{0});
    ASSERT_THAT(rdma_read(pair.client, local.triplet(0, length), target.remote(0, length), length), Succeeds());
    const auto dto = expect_completion(pair.client_evds.request.get());
    EXPECT_EQ(dto.ep_handle, pair.client.get());
    EXPECT_EQ(dto.user_cookie.as_64, length);
    EXPECT_EQ(dto.transfered_length, length);
    EXPECT_TRUE(has_pattern(local.bytes().first(length), 1)) << length;
  }
}

TEST_P(RdmaRead, ScattersInVectorOrder) {
  // RDR-1, DTO-15
  const Pair pair = make_connected_pair();
  fill_pattern(target.bytes(), 2);
  std::fill(local.bytes().begin(), local.bytes().end(), std::byte{0x42});
  DAT_LMR_TRIPLET to[4] = {local.triplet(1000, 10), local.triplet(0, 500), local.triplet(2000, 0),
                           local.triplet(3000, 300)};
  DAT_RMR_TRIPLET from = target.remote(100, 700);
  ASSERT_THAT(dat_ep_post_rdma_read(pair.client.get(), 4, to, cookie(0), &from, DAT_COMPLETION_DEFAULT_FLAG),
              Succeeds());
  EXPECT_EQ(expect_completion(pair.client_evds.request.get()).transfered_length, 700u);
  const auto same = [&](std::size_t at, std::size_t offset, std::size_t length) {
    return std::equal(local.bytes().begin() + static_cast<std::ptrdiff_t>(at),
                      local.bytes().begin() + static_cast<std::ptrdiff_t>(at + length),
                      target.bytes().begin() + static_cast<std::ptrdiff_t>(100 + offset));
  };
  EXPECT_TRUE(same(1000, 0, 10));
  EXPECT_TRUE(same(0, 10, 500));
  EXPECT_TRUE(same(3000, 510, 190));
  EXPECT_EQ(local.bytes()[3190], std::byte{0x42}) << "the surplus stays untouched";
  EXPECT_EQ(local.bytes()[1010], std::byte{0x42});
}

TEST_P(RdmaRead, NeedsRoomForTheRemoteSegment) {
  // RDR-2, DTO-2
  const Pair pair = make_connected_pair();
  const DAT_RETURN rc = rdma_read(pair.client, local.triplet(0, 99), target.remote(0, 100), 0);
  EXPECT_THAT(rc, HasType(DAT_LENGTH_ERROR));
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
  std::fill(local.bytes().begin(), local.bytes().end(), std::byte{0x42});
  ASSERT_THAT(rdma_read(pair.client, local.triplet(0, 101), target.remote(0, 100), 0), Succeeds());
  EXPECT_EQ(expect_completion(pair.client_evds.request.get()).transfered_length, 100u);
  EXPECT_EQ(local.bytes()[100], std::byte{0x42});
}

TEST_P(RdmaRead, NeedsARemoteSegment) {
  // RDR-4
  const Pair pair = make_connected_pair();
  DAT_LMR_TRIPLET segment = local.triplet();
  EXPECT_THAT(dat_ep_post_rdma_read(pair.client.get(), 1, &segment, cookie(0), nullptr, DAT_COMPLETION_DEFAULT_FLAG),
              HasType(DAT_INVALID_PARAMETER));
  expect_working(pair);
}

TEST_P(RdmaRead, OfNothingSucceedsWithoutAnyCheckOfTheTarget) {
  // RDR-5, DTO-4
  const Pair pair = make_connected_pair();
  DAT_RMR_TRIPLET nothing = remote_triplet(0xDEADBEEF, reinterpret_cast<const void*>(std::uintptr_t{4711}), 0);
  ASSERT_THAT(rdma_read(pair.client, local.triplet(), nothing, 1), Succeeds());
  EXPECT_EQ(expect_completion(pair.client_evds.request.get()).transfered_length, 0u);
  ASSERT_THAT(dat_ep_post_rdma_read(pair.client.get(), 0, nullptr, cookie(2), &nothing, DAT_COMPLETION_DEFAULT_FLAG),
              Succeeds());
  EXPECT_EQ(expect_completion(pair.client_evds.request.get()).transfered_length, 0u);
  EXPECT_EQ(pair.client.state(), DAT_EP_STATE_CONNECTED);
}

TEST_P(RdmaRead, NeedsTheRightToWriteLocally) {
  // RDR-6, DTO-11, ATTR-1 (rdma_write_for_rdma_read_req is FALSE: no remote right is needed)
  ASSERT_EQ(client.ia.provider().rdma_write_for_rdma_read_req, DAT_FALSE);
  const Pair pair = make_connected_pair();
  const Lmr read_only(client.ia, client.pz, 64,
                      static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_ALL_FLAG & ~DAT_MEM_PRIV_LOCAL_WRITE_FLAG));
  EXPECT_THAT(rdma_read(pair.client, read_only.triplet(), target.remote(0, 64), 0), HasType(DAT_PRIVILEGES_VIOLATION));
  const Lmr write_only(client.ia, client.pz, 64, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  ASSERT_THAT(rdma_read(pair.client, write_only.triplet(), target.remote(0, 64), 0), Succeeds());
  expect_completion(pair.client_evds.request.get());
}

TEST_P(RdmaRead, TheTargetNoticesNothing) {
  // RDR-8
  const Pair pair = make_connected_pair();
  ASSERT_THAT(rdma_read(pair.client, local.triplet(), target.remote(0, kSize), 0), Succeeds());
  expect_completion(pair.client_evds.request.get());
  EXPECT_FALSE(poll_event(pair.server_evds.recv.get()));
  EXPECT_FALSE(poll_event(pair.server_evds.request.get()));
  expect_no_event(pair.server_evds.connect.get());
  // A posted receive is not used.
  post_recv(pair.server, server_buffers, 0);
  ASSERT_THAT(rdma_read(pair.client, local.triplet(), target.remote(0, kSize), 0), Succeeds());
  expect_completion(pair.client_evds.request.get());
  EXPECT_FALSE(poll_event(pair.server_evds.recv.get()));
}

TEST_P(RdmaRead, ReadsBeyondTheDepthWaitInOrder) {
  // RDR-10, DTO-40
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_rdma_read_out = 1;
  attr.max_rdma_read_in = 1;
  const Pair pair = make_connected_pair(attr, attr);
  fill_pattern(target.bytes(), 3);
  constexpr std::size_t kPiece = 1024;
  for (std::size_t i = 0; i < 60; ++i) {
    ASSERT_THAT(rdma_read(pair.client, local.triplet(i * kPiece, kPiece), target.remote(i * kPiece, kPiece), i),
                Succeeds());
  }
  for (DAT_UINT64 i = 0; i < 60; ++i) {
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, i);
  }
  EXPECT_TRUE(has_pattern(local.bytes().first(60 * kPiece), 3));
}

TEST_P(RdmaRead, UnequalDepthsBreakOrAreAgreedUpon) {
  // RDR-11, EP-CONN-18
  DAT_EP_ATTR little = default_ep_attr();
  little.max_rdma_read_in = 1;
  DAT_EP_ATTR much = default_ep_attr();
  much.max_rdma_read_out = 8;
  const Pair pair = make_pair(little, much);
  ASSERT_THAT(try_connect(pair.client.get(), server.listen()), Succeeds());
  ASSERT_THAT(dat_cr_accept(expect_request(server.requests.get()).cr_handle, pair.server.get(), 0, nullptr),
              Succeeds());
  const auto outcome = wait_event(pair.client_evds.connect.get());
  ASSERT_TRUE(outcome);
  if (outcome->event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
    EXPECT_EQ(outcome->event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    return;
  }
  for (DAT_UINT64 i = 0; i < 20; ++i) {
    if (rdma_read(pair.client, local.triplet(), target.remote(0, kSize), i) != DAT_SUCCESS) {
      break;  // it has broken already
    }
  }
  const auto first =
      expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
  if (first.status == DAT_DTO_SUCCESS && pair.client.state() == DAT_EP_STATE_CONNECTED) {
    int succeeded = 1;
    while (succeeded < 20) {
      const auto dto =
          expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
      if (dto.status != DAT_DTO_SUCCESS) {
        break;
      }
      ++succeeded;
    }
    if (succeeded == 20) {
      return;  // agreed upon
    }
  }
  expect_terminal_event(pair.client_evds.connect.get(), pair.client.get());
}

TEST_P(RdmaRead, FromATargetThatAllowsNoneFails) {
  // RDR-12, STAT-9
  DAT_EP_ATTR none = default_ep_attr();
  none.max_rdma_read_in = 0;
  const Pair pair = make_connected_pair(none);
  const DAT_RETURN rc = rdma_read(pair.client, local.triplet(), target.remote(0, kSize), 0);
  ASSERT_THAT(rc, Succeeds());
  const auto dto =
      expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
  if (pair.server.query().ep_attr.max_rdma_read_in > 0) {
    EXPECT_EQ(dto.status, DAT_DTO_SUCCESS) << "the Provider has raised it";
    return;
  }
  EXPECT_TRUE(dto.status == DAT_DTO_ERR_REMOTE_RESPONDER || dto.status == DAT_DTO_ERR_REMOTE_ACCESS) << dto.status;
  expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_BROKEN, pair.client.get());
  expect_terminal_event(pair.server_evds.connect.get(), pair.server.get());
}

TEST_P(RdmaRead, OfAnEndpointThatMayHaveNoneUnderWayFailsLocally) {
  // STAT-5: the endpoint contradicts itself, and its peer has nothing to do with it.
  DAT_EP_ATTR none = default_ep_attr();
  none.max_rdma_read_out = 0;
  const Pair pair = make_connected_pair(default_ep_attr(), none);
  if (pair.client.query().ep_attr.max_rdma_read_out != 0) GTEST_SKIP() << "the adapter has given it some all the same";
  const DAT_RETURN rc = rdma_read(pair.client, local.triplet(0, 8), target.remote(0, 8), 7);
  if (rc != DAT_SUCCESS) GTEST_SKIP() << "the adapter refuses the post: " << describe(rc);
  EXPECT_EQ(expect_completion(pair.client_evds.request.get(), DAT_DTO_ERR_LOCAL_EP).user_cookie.as_64, 7u);
  expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_BROKEN, pair.client.get());
  expect_terminal_event(pair.server_evds.connect.get(), pair.server.get());
}

TEST_P(RdmaRead, WorksInBothDirectionsAtOnce) {
  // RDR-1, DTO-45
  const Pair pair = make_connected_pair();
  const Lmr server_sink(server.ia, server.pz, kSize);
  const Lmr client_target(client.ia, client.pz, kSize);
  fill_pattern(target.bytes(), 1);
  fill_pattern(client_target.bytes(), 2);
  ASSERT_THAT(rdma_read(pair.client, local.triplet(), target.remote(0, kSize), 1), Succeeds());
  ASSERT_THAT(rdma_read(pair.server, server_sink.triplet(), client_target.remote(0, kSize), 2), Succeeds());
  expect_completion(pair.client_evds.request.get());
  expect_completion(pair.server_evds.request.get());
  EXPECT_TRUE(has_pattern(local.bytes(), 1));
  EXPECT_TRUE(has_pattern(server_sink.bytes(), 2));
}

ANYDAT_OVER_ALL_WIRES(RdmaRead);

}  // namespace
}  // namespace anydat::test
