// SPDX-License-Identifier: BSD-3-Clause
// What holds for both RDMA posts: sections 4.1, 4.4 and 4.5 of the rules, and their row of table 2.2.
#include <cstring>
#include <limits>

#include "ep_states.h"
#include "rdma_fixture.h"
#include "support/properties.h"
#include "support/versions.h"
#include "support/waiter.h"

namespace anydat::test {
namespace {

class RdmaPosting : public RdmaTest {
 protected:
  static DAT_RETURN post(Rdma kind, const Ep& ep, DAT_COUNT count, DAT_LMR_TRIPLET* local_iov, DAT_RMR_TRIPLET remote,
                         int flags = DAT_COMPLETION_DEFAULT_FLAG) {
    const auto completion_flags = static_cast<DAT_COMPLETION_FLAGS>(flags);
    return kind == Rdma::kRead
               ? dat_ep_post_rdma_read(ep.get(), count, local_iov, cookie(1), &remote, completion_flags)
               : dat_ep_post_rdma_write(ep.get(), count, local_iov, cookie(1), &remote, completion_flags);
  }
  // DTO-2
  void expect_nothing_posted(const Pair& pair, Caller caller = Caller::here()) {
    const testing::ScopedTrace trace(caller.file, caller.line, "after refused posts");
    DAT_BOOLEAN idle = DAT_FALSE;
    require(dat_ep_get_status(pair.client.get(), nullptr, nullptr, &idle), "dat_ep_get_status");
    EXPECT_EQ(idle, DAT_TRUE);
    EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
    expect_working(pair);
  }
};

TEST_P(RdmaPosting, SegmentCountsAreChecked) {
  // DTO-2, DTO-5, RDR-13, RDW-10
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_request_iov = 5;
  attr.max_rdma_read_iov = 2;
  attr.max_rdma_write_iov = 3;
  const Pair pair = make_connected_pair(default_ep_attr(), attr);
  for (const Rdma kind : kBothRdma) {
    SCOPED_TRACE(rdma_name(kind));
    const DAT_COUNT limit = kind == Rdma::kRead ? 2 : 3;
    std::vector<DAT_LMR_TRIPLET> segments(6, local.triplet(0, 10));
    const DAT_RMR_TRIPLET remote = target.remote(0, kind == Rdma::kRead ? 10 : 100);
    EXPECT_THAT(post(kind, pair.client, -1, segments.data(), remote), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(post(kind, pair.client, 1, nullptr, remote), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(post(kind, pair.client, limit + 1, segments.data(), remote), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(post(kind, pair.client, std::numeric_limits<DAT_COUNT>::max(), segments.data(), remote),
                HasType(DAT_INVALID_PARAMETER));
    expect_nothing_posted(pair);
    ASSERT_THAT(post(kind, pair.client, limit, segments.data(), remote), Succeeds());
    expect_completion(pair.client_evds.request.get());
  }
}

TEST_P(RdmaPosting, AnUnsetVectorLimitIsThatOfRequests) {
  // DTO-5
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_request_iov = 5;
  attr.max_rdma_read_iov = 0;
  attr.max_rdma_write_iov = 0;
  const Pair pair = make_connected_pair(default_ep_attr(), attr);
  const DAT_COUNT limit = pair.client.query().ep_attr.max_request_iov;
  for (const Rdma kind : kBothRdma) {
    SCOPED_TRACE(rdma_name(kind));
    std::vector<DAT_LMR_TRIPLET> segments(static_cast<std::size_t>(limit) + 1, local.triplet(0, 10));
    const DAT_RMR_TRIPLET remote = target.remote(0, kind == Rdma::kRead ? 10 : 100);
    EXPECT_THAT(post(kind, pair.client, limit + 1, segments.data(), remote), HasType(DAT_INVALID_PARAMETER));
    ASSERT_THAT(post(kind, pair.client, limit, segments.data(), remote), Succeeds());
    expect_completion(pair.client_evds.request.get());
  }
}

TEST_P(RdmaPosting, LengthsAreChecked) {
  // DTO-7, DTO-8, DTO-2
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_rdma_size = 1000;
  const Pair pair = make_connected_pair(default_ep_attr(), attr);
  for (const Rdma kind : kBothRdma) {
    SCOPED_TRACE(rdma_name(kind));
    DAT_LMR_TRIPLET overflowing[2] = {local.triplet(0, 10), local.triplet(0, 10)};
    overflowing[0].segment_length = kSegmentLengthMax;
    EXPECT_THAT(post(kind, pair.client, 2, overflowing, target.remote(0, 10)), HasType(DAT_INVALID_PARAMETER));
    DAT_LMR_TRIPLET segment = local.triplet(0, 1001);
    EXPECT_THAT(post(kind, pair.client, 1, &segment, target.remote(0, 1001)), HasType(DAT_INVALID_PARAMETER));
    expect_nothing_posted(pair);
    segment = local.triplet(0, 1000);
    ASSERT_THAT(post(kind, pair.client, 1, &segment, target.remote(0, 1000)), Succeeds());
    expect_completion(pair.client_evds.request.get());
  }
}

TEST_P(RdmaPosting, AMaximumSizeOfZeroSetsNoLimit) {
  // DTO-8 (R61), EP-CREATE-10
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_rdma_size = 0;
  const Pair pair = make_connected_pair(default_ep_attr(), attr);
  EXPECT_EQ(pair.client.query().ep_attr.max_rdma_size, 0u);
  for (const Rdma kind : kBothRdma) {
    SCOPED_TRACE(rdma_name(kind));
    DAT_LMR_TRIPLET segment = local.triplet(0, 1000);
    ASSERT_THAT(post(kind, pair.client, 1, &segment, target.remote(0, 1000)), Succeeds());
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).transfered_length, 1000u);
  }
}

TEST_P(RdmaPosting, LocalMemoryIsChecked) {
  // DTO-6, DTO-9, DTO-10, DTO-11, DTO-12, PROT-1
  const Pz other(client.ia);
  const Lmr foreign(client.ia, other, 64);
  const Pair pair = make_connected_pair();
  for (const Rdma kind : kBothRdma) {
    SCOPED_TRACE(rdma_name(kind));
    for (DAT_LMR_TRIPLET outside : {local.triplet(kSize - 1, 2), local.triplet(kSize, 1)}) {
      EXPECT_THAT(post(kind, pair.client, 1, &outside, target.remote(0, 1)), HasType(DAT_INVALID_PARAMETER));
    }
    DAT_LMR_TRIPLET segment = foreign.triplet();
    EXPECT_THAT(post(kind, pair.client, 1, &segment, target.remote(0, 64)), HasType(DAT_PROTECTION_VIOLATION));
    segment = local.triplet(0, 64);
    segment.lmr_context = 0xDEADBEEF;
    EXPECT_THAT(post(kind, pair.client, 1, &segment, target.remote(0, 64)), HasType(DAT_PRIVILEGES_VIOLATION));
    expect_nothing_posted(pair);
    DAT_LMR_TRIPLET with_empty[2] = {segment, local.triplet(0, 64)};
    with_empty[0].segment_length = 0;
    ASSERT_THAT(post(kind, pair.client, 2, with_empty, target.remote(0, 64)), Succeeds());
    expect_completion(pair.client_evds.request.get());
  }
}

TEST_P(RdmaPosting, SharesTheQueueOfRequests) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // DTO-13, DTO-14, GEN-9
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_request_dtos = 4;
  const Pair pair = make_connected_pair(default_ep_attr(), attr);
  const DAT_COUNT depth = pair.client.query().ep_attr.max_request_dtos;
  const Lmr large(client.ia, client.pz, kLarge);
  post_large_send(pair.client, large, 0);  // stays in progress: the server has no buffer
  for (DAT_COUNT i = 1; i < depth; ++i) {
    ASSERT_THAT(rdma(i % 2 == 0 ? Rdma::kRead : Rdma::kWrite, pair.client, local.triplet(0, 64), target.remote(0, 64),
                     static_cast<DAT_UINT64>(i)),
                Succeeds());
  }
  for (const Rdma kind : kBothRdma) {
    EXPECT_THAT(rdma(kind, pair.client, local.triplet(0, 64), target.remote(0, 64), 99),
                HasType(DAT_INSUFFICIENT_RESOURCES));
  }
  const Lmr sink(server.ia, server.pz, kLarge);
  DAT_LMR_TRIPLET segment = sink.triplet();
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  for (DAT_COUNT i = 0; i < depth; ++i) {
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, static_cast<DAT_UINT64>(i));
  }
  ASSERT_THAT(rdma_write(pair.client, local.triplet(0, 64), target.remote(0, 64), 100), Succeeds());
  expect_completion(pair.client_evds.request.get());
}

TEST_P(RdmaPosting, VectorAndTripletAreTheConsumersAtReturn) {
  // DTO-16
  const Pair pair = make_connected_pair();
  fill_pattern(local.bytes(), 1);
  for (const Rdma kind : kBothRdma) {
    DAT_LMR_TRIPLET segment = local.triplet();
    DAT_RMR_TRIPLET remote = target.remote(0, kSize);
    const DAT_RETURN rc =
        kind == Rdma::kRead
            ? dat_ep_post_rdma_read(pair.client.get(), 1, &segment, cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG)
            : dat_ep_post_rdma_write(pair.client.get(), 1, &segment, cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG);
    std::memset(static_cast<void*>(&segment), 0xEE, sizeof segment);
    std::memset(static_cast<void*>(&remote), 0xEE, sizeof remote);
    ASSERT_THAT(rc, Succeeds());
    expect_completion(pair.client_evds.request.get());
  }
}

TEST_P(RdmaPosting, FlagsAreThoseOfRequests) {
  // DTO-31, DTO-32, DTO-35, DTO-36, RDR-13, RDW-10
  DAT_EP_ATTR attr = default_ep_attr();
  attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
  const Pair plain = make_connected_pair();
  const Pair pair = make_connected_pair(default_ep_attr(), attr);
  constexpr int kAll = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
                       DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;
  DAT_LMR_TRIPLET segment = local.triplet(0, 64);
  for (const Rdma kind : kBothRdma) {
    for (int bits = 0; bits < 0x80; ++bits) {
      SCOPED_TRACE(testing::Message() << rdma_name(kind) << " with flags 0x" << std::hex << bits);
      const DAT_RETURN rc = post(kind, pair.client, 1, &segment, target.remote(0, 64), bits);
      if ((bits & ~kAll) != 0) {
        EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
        continue;
      }
      ASSERT_THAT(rc, Succeeds());
      if ((bits & DAT_COMPLETION_SUPPRESS_FLAG) == 0) {
        // Polled for, since an unsignalled one would not wake a waiter.
        std::optional<DAT_EVENT> event;
        ASSERT_TRUE(eventually([&] { return (event = poll_event(pair.client_evds.request.get())).has_value(); }));
        ASSERT_EQ(event->event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
      }
    }
    EXPECT_THAT(post(kind, plain.client, 1, &segment, target.remote(0, 64), DAT_COMPLETION_UNSIGNALLED_FLAG),
                HasType(DAT_INVALID_PARAMETER));
  }
  ASSERT_THAT(post(Rdma::kWrite, pair.client, 1, &segment, target.remote(0, 64)), Succeeds());
  expect_completion(pair.client_evds.request.get());
  EXPECT_FALSE(poll_event(pair.client_evds.request.get())) << "a suppressed one completed";
}

TEST_P(RdmaPosting, UnsignalledOnesWakeNobody) {
  // DTO-32, DTO-37
  DAT_EP_ATTR attr = default_ep_attr();
  attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
  const Pair pair = make_connected_pair(default_ep_attr(), attr);
  for (const Rdma kind : kBothRdma) {
    SCOPED_TRACE(rdma_name(kind));
    Waiter waiter(pair.client_evds.request.get());
    ASSERT_THAT(rdma(kind, pair.client, local.triplet(), target.remote(0, kSize), 1, DAT_COMPLETION_UNSIGNALLED_FLAG),
                Succeeds());
    EXPECT_TRUE(waiter.stays_blocked());
    ASSERT_THAT(rdma(kind, pair.client, local.triplet(), target.remote(0, kSize), 2), Succeeds());
    EXPECT_EQ(waiter.result().event.event_data.dto_completion_event_data.user_cookie.as_64, 1u);
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, 2u);
  }
}

TEST_P(RdmaPosting, HandlesAreChecked) {
  // DTO-21, GEN-2
  DAT_LMR_TRIPLET segment = local.triplet(0, 8);
  DAT_RMR_TRIPLET remote = target.remote(0, 8);
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), client.pz.get()}) {
    for (const DAT_RETURN rc :
         {dat_ep_post_rdma_read(bad, 1, &segment, cookie(0), &remote, DAT_COMPLETION_DEFAULT_FLAG),
          dat_ep_post_rdma_write(bad, 1, &segment, cookie(0), &remote, DAT_COMPLETION_DEFAULT_FLAG)}) {
      EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
      EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
    }
  }
}

class RdmaStates : public EpStateTest {};

TEST_P(RdmaStates, PostedWhenConnectedAndFlushedWhenDisconnected) {
  // EP-SM-4 (note 4), EP-SM-27, RDR-9, RDW-9, DTO-20, DTO-21, STAT-4
  DAT_RMR_TRIPLET nothing{};
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    SCOPED_TRACE(state_name(state));
    const HeldEp ep(server, client, GetParam(), state);
    for (const Rdma kind : kBothRdma) {
      SCOPED_TRACE(rdma_name(kind));
      // Of length 0: so that nothing but the state can be wrong.
      const DAT_RETURN rc =
          kind == Rdma::kRead
              ? dat_ep_post_rdma_read(ep.get(), 0, nullptr, cookie(9), &nothing, DAT_COMPLETION_DEFAULT_FLAG)
              : dat_ep_post_rdma_write(ep.get(), 0, nullptr, cookie(9), &nothing, DAT_COMPLETION_DEFAULT_FLAG);
      if (state == DAT_EP_STATE_CONNECTED || state == DAT_EP_STATE_DISCONNECTED) {
        expect_unchanged(ep, state, rc);
        EXPECT_EQ(expect_completion(ep.evds().request.get(),
                                    state == DAT_EP_STATE_CONNECTED ? DAT_DTO_SUCCESS : DAT_DTO_ERR_FLUSHED)
                      .user_cookie.as_64,
                  9u);
      } else {
        expect_refused(ep, state, rc);
      }
    }
  }
}

ANYDAT_OVER_ALL_WIRES(RdmaPosting);
ANYDAT_OVER_ALL_WIRES(RdmaStates);

}  // namespace
}  // namespace anydat::test
