// SPDX-License-Identifier: BSD-3-Clause
// dat_rmr_bind as a post: section 6.6 of the rules, and its row of table 2.2. What a binding grants is in
// rmr_access.cc.
#include <cstring>

#include "ep_states.h"
#include "rmr_fixture.h"
#include "support/properties.h"
#include "support/versions.h"
#include "support/waiter.h"

namespace anydat::test {
namespace {

class RmrBind : public RmrTest {};

TEST_P(RmrBind, CompletesOnTheRequestEvd) {
  // RMR-BIND-1, RMR-BIND-4, STAT-20, TYPE-5
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  DAT_RMR_CONTEXT context = 0;
  constexpr DAT_UINT64 kCookie = 0xFEDCBA9876543210;
  ASSERT_THAT(try_bind(rmr, memory.triplet(), kRemoteBoth, pair.server, &context, kCookie), Succeeds());
  EXPECT_NE(context, 0u);
  const auto data = expect_bind(pair.server_evds.request.get());
  EXPECT_EQ(data.rmr_handle, rmr.get());
  EXPECT_EQ(data.user_cookie.as_64, kCookie);
  EXPECT_FALSE(poll_event(pair.server_evds.request.get()));
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
}

TEST_P(RmrBind, CompletesInOrderWithOtherRequests) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // RMR-BIND-3, RMR-BIND-4, DTO-40
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  const Lmr large(server.ia, server.pz, kLarge);
  const Lmr sink(client.ia, client.pz, kLarge);
  post_large_send(pair.server, large, 1);  // stays in progress: the client has no buffer
  DAT_RMR_CONTEXT context = 0;
  ASSERT_THAT(try_bind(rmr, memory.triplet(), kRemoteBoth, pair.server, &context, 2), Succeeds());
  post_send(pair.server, server_buffers, 3);
  expect_no_event(pair.server_evds.request.get());
  DAT_LMR_TRIPLET to = sink.triplet();
  ASSERT_THAT(dat_ep_post_recv(pair.client.get(), 1, &to, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  post_recv(pair.client, client_buffers, 1);
  EXPECT_EQ(expect_completion(pair.server_evds.request.get()).user_cookie.as_64, 1u);
  EXPECT_EQ(expect_bind(pair.server_evds.request.get()).user_cookie.as_64, 2u);
  EXPECT_EQ(expect_completion(pair.server_evds.request.get()).user_cookie.as_64, 3u);
}

TEST_P(RmrBind, ContextMayTravelInTheNextSend) {
  // RMR-BIND-2, RMR-BIND-3: the peer uses it as soon as it learns of it, with no completion reaped.
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  for (DAT_UINT64 round = 1; round <= 30; ++round) {
    fill_pattern(memory.bytes().first(256), round);
    post_recv(pair.client, client_buffers, 0);
    DAT_RMR_CONTEXT context = 0;
    ASSERT_THAT(
        try_bind(rmr, memory.triplet(0, 256), kRemoteRead, pair.server, &context, 1, DAT_COMPLETION_SUPPRESS_FLAG),
        Succeeds());
    std::memcpy(server_buffers[0].data(), &context, sizeof context);
    ASSERT_THAT(try_send(pair.server, server_buffers, 0, sizeof context, DAT_COMPLETION_SUPPRESS_FLAG), Succeeds());
    expect_completion(pair.client_evds.recv.get());
    DAT_RMR_CONTEXT learnt = 0;
    std::memcpy(&learnt, client_buffers[0].data(), sizeof learnt);
    ASSERT_THAT(rdma_read(pair.client, local.triplet(0, 256), remote_triplet(learnt, memory.bytes().data(), 256), 1),
                Succeeds());
    expect_completion(pair.client_evds.request.get());
    ASSERT_TRUE(has_pattern(local.bytes().first(256), round));
  }
}

TEST_P(RmrBind, TakesASlotOfTheRequests) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // RMR-BIND-5, DTO-13, GEN-9
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_request_dtos = 3;
  const Pair pair = make_connected_pair(attr);
  const DAT_COUNT depth = pair.server.query().ep_attr.max_request_dtos;
  const Rmr rmr(server.pz);
  const Lmr large(server.ia, server.pz, kLarge);
  post_large_send(pair.server, large, 0);
  DAT_RMR_CONTEXT context = 0;
  for (DAT_COUNT i = 1; i < depth; ++i) {
    ASSERT_THAT(try_bind(rmr, memory.triplet(), kRemoteRead, pair.server, &context), Succeeds());
  }
  EXPECT_THAT(try_bind(rmr, memory.triplet(), kRemoteRead, pair.server, &context), HasType(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_THAT(try_send(pair.server, server_buffers, 0), HasType(DAT_INSUFFICIENT_RESOURCES));
}

TEST_P(RmrBind, UnknownPrivilegesAreRefused) {
  // RMR-BIND-8
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  DAT_RMR_CONTEXT context = 0;
  for (const int bad : {0x04, 0x08, 0x40, 0x80, 0x400}) {
    if ((static_cast<unsigned>(bad) & kExtensionPrivileges) != 0) continue;
    EXPECT_THAT(
        try_bind(rmr, memory.triplet(), static_cast<DAT_MEM_PRIV_FLAGS>(kRemoteRead | bad), pair.server, &context),
        HasType(DAT_INVALID_PARAMETER))
        << std::hex << bad;
  }
  for (const int good : {0x00, 0x02, 0x20, 0x22, 0x33, 0x11, 0x13}) {
    ASSERT_THAT(try_bind(rmr, memory.triplet(), static_cast<DAT_MEM_PRIV_FLAGS>(good), pair.server, &context),
                Succeeds())
        << std::hex << good;
    expect_bind(pair.server_evds.request.get());
  }
}

TEST_P(RmrBind, RemoteRightsNeedTheLocalOnes) {
  // RMR-BIND-9, PROT-7
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  for (int bits = 0; bits <= DAT_MEM_PRIV_ALL_FLAG; ++bits) {
    if ((bits & ~DAT_MEM_PRIV_ALL_FLAG) != 0) {
      continue;
    }
    const Lmr region(server.ia, server.pz, 64, static_cast<DAT_MEM_PRIV_FLAGS>(bits));
    for (const DAT_MEM_PRIV_FLAGS asked : {DAT_MEM_PRIV_NONE_FLAG, kRemoteRead, kRemoteWrite, kRemoteBoth}) {
      SCOPED_TRACE(testing::Message() << std::hex << "asked 0x" << asked << " of 0x" << bits);
      const bool allowed = ((asked & kRemoteRead) == 0 || (bits & DAT_MEM_PRIV_LOCAL_READ_FLAG) != 0) &&
                           ((asked & kRemoteWrite) == 0 || (bits & DAT_MEM_PRIV_LOCAL_WRITE_FLAG) != 0);
      DAT_RMR_CONTEXT context = 0;
      const DAT_RETURN rc = try_bind(rmr, region.triplet(), asked, pair.server, &context);
      if (allowed) {
        ASSERT_THAT(rc, Succeeds());
        expect_bind(pair.server_evds.request.get());
      } else {
        EXPECT_THAT(rc, HasType(DAT_PRIVILEGES_VIOLATION));
      }
    }
    unbind(pair, rmr);
  }
}

TEST_P(RmrBind, ZonesMustAgree) {
  // RMR-BIND-10, PROT-7
  const Pz other(server.ia);
  const Rmr rmr(server.pz);
  const Rmr foreign_rmr(other);
  const Lmr foreign(server.ia, other, 64);
  const Pair pair = make_connected_pair();
  DAT_RMR_CONTEXT context = 0;
  EXPECT_THAT(try_bind(rmr, foreign.triplet(), kRemoteRead, pair.server, &context), HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_THAT(try_bind(foreign_rmr, foreign.triplet(), kRemoteRead, pair.server, &context),
              HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_THAT(try_bind(foreign_rmr, memory.triplet(0, 64), kRemoteRead, pair.server, &context),
              HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_FALSE(poll_event(pair.server_evds.request.get()));
  EXPECT_EQ(rmr.query().lmr_triplet.segment_length, 0u);
}

TEST_P(RmrBind, TheRangeLiesInTheRegion) {
  // RMR-BIND-11, PROT-7
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  DAT_RMR_CONTEXT context = 0;
  DAT_LMR_TRIPLET before = memory.triplet(0, 10);
  --before.virtual_address;
  DAT_LMR_TRIPLET wrapping = memory.triplet(8, ~DAT_VLEN{0} - 4);
  for (const DAT_LMR_TRIPLET& bad :
       {before, memory.triplet(0, kMemory + 1), memory.triplet(kMemory - 1, 2), memory.triplet(kMemory, 1), wrapping}) {
    EXPECT_THAT(try_bind(rmr, bad, kRemoteRead, pair.server, &context), HasType(DAT_INVALID_PARAMETER));
  }
  DAT_LMR_TRIPLET unknown = memory.triplet();
  unknown.lmr_context = 0xDEADBEEF;
  EXPECT_THAT(try_bind(rmr, unknown, kRemoteRead, pair.server, &context), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_rmr_bind(rmr.get(), nullptr, kRemoteRead, pair.server.get(), rmr_cookie(0),
                           DAT_COMPLETION_DEFAULT_FLAG, &context),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_FALSE(poll_event(pair.server_evds.request.get()));
}

TEST_P(RmrBind, FlagsAreThoseOfRequests) {
  // RMR-BIND-12, DTO-30, DTO-31, DTO-35, DTO-37
  DAT_EP_ATTR attr = default_ep_attr();
  attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
  const Pair pair = make_connected_pair(attr);
  const Pair plain = make_connected_pair();
  const Rmr rmr(server.pz);
  DAT_RMR_CONTEXT context = 0;
  const auto with = [&](const Pair& on, int flags) {
    return try_bind(rmr, memory.triplet(), kRemoteRead, on.server, &context, 1,
                    static_cast<DAT_COMPLETION_FLAGS>(flags));
  };
  for (const int good : {DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG,
                         DAT_COMPLETION_BARRIER_FENCE_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG}) {
    ASSERT_THAT(with(pair, good), Succeeds()) << good;
    expect_bind(pair.server_evds.request.get());
  }
  ASSERT_THAT(with(pair, DAT_COMPLETION_SUPPRESS_FLAG), Succeeds());
  ASSERT_THAT(with(pair, DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  expect_bind(pair.server_evds.request.get());
  EXPECT_FALSE(poll_event(pair.server_evds.request.get())) << "the suppressed one completed";
  for (const int bad : {static_cast<int>(DAT_COMPLETION_EVD_THRESHOLD_FLAG), 0x20, 0x40}) {
    EXPECT_THAT(with(pair, bad), HasType(DAT_INVALID_PARAMETER)) << bad;
  }
  EXPECT_THAT(with(plain, DAT_COMPLETION_UNSIGNALLED_FLAG), HasType(DAT_INVALID_PARAMETER));
  // By default it notifies.
  Waiter waiter(plain.server_evds.request.get());
  ASSERT_THAT(with(plain, DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_THAT(waiter.result().rc, Succeeds());
}

TEST_P(RmrBind, AFlushedBindChangesNothing) {
  // RMR-BIND-13, STAT-20, STAT-4
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  const DAT_RMR_CONTEXT bound = bind(pair, rmr, memory.triplet(0, 64));
  ASSERT_THAT(dat_ep_disconnect(pair.server.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  DAT_RMR_CONTEXT context = 0;
  ASSERT_THAT(try_bind(rmr, memory.triplet(100, 64), kRemoteRead, pair.server, &context, 5), Succeeds());
  EXPECT_EQ(expect_bind(pair.server_evds.request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 5u);
  // The first binding still stands.
  expect_granted(Rdma::kRead, bound, memory.bytes().data(), 64);
}

TEST_P(RmrBind, ABindThatFailsLaterBreaksTheConnection) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // RMR-BIND-14, STAT-13, STAT-15, STAT-20, EVT-16
  const Pair pair = make_connected_pair();
  const Lmr large(server.ia, server.pz, kLarge);
  const Lmr sink(client.ia, client.pz, kLarge);
  DAT_RMR_CONTEXT context = 0;
  Lmr region(server.ia, server.pz, 64);
  const Rmr rmr(server.pz);
  const DAT_RMR_CONTEXT bound = bind(pair, rmr, memory.triplet(0, 64));
  // More than any wire has on its way at once, so that the bind waits behind them.
  constexpr int kAhead = 15;
  for (int i = 0; i < kAhead; ++i) {
    post_large_send(pair.server, large, 1);
  }
  ASSERT_THAT(try_bind(rmr, region.triplet(), kRemoteRead, pair.server, &context, 2), Succeeds());
  if (region.free() != DAT_SUCCESS) {
    GTEST_SKIP() << "the region is in use from the call on, so the bind cannot fail any more";
  }
  DAT_LMR_TRIPLET to = sink.triplet();
  for (int i = 0; i < kAhead; ++i) {
    ASSERT_THAT(dat_ep_post_recv(pair.client.get(), 1, &to, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    expect_completion(pair.server_evds.request.get());
  }
  expect_bind(pair.server_evds.request.get(), DAT_RMR_OPERATION_FAILED);
  expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_BROKEN, pair.server.get());
  EXPECT_EQ(pair.server.state(), DAT_EP_STATE_DISCONNECTED);
  expect_terminal_event(pair.client_evds.connect.get(), pair.client.get());
  // It has not begun, so what was bound before still is (R90).
  expect_granted(Rdma::kRead, bound, memory.bytes().data(), 64);
  EXPECT_THAT(dat_lmr_free(memory.get()), HasSubtype(DAT_INVALID_STATE_LMR_IN_USE));
}

TEST_P(RmrBind, AnUnbindShowsNothingFromTheCallOn) {
  // RMR-BIND-7, RMR-QUERY-2: also of the context and the address that come with it.
  const Pair pair = make_connected_pair();
  const Lmr large(server.ia, server.pz, kLarge);
  const Lmr sink(client.ia, client.pz, kLarge);
  const Rmr rmr(server.pz);
  bind(pair, rmr, memory.triplet(0, 64));
  // More than any wire has on its way at once, so that the unbind waits behind them.
  constexpr int kAhead = 15;
  for (int i = 0; i < kAhead; ++i) {
    post_large_send(pair.server, large, 1);
  }
  DAT_RMR_CONTEXT context = 0;
  ASSERT_THAT(try_bind(rmr, memory.triplet(0, 0), kRemoteRead, pair.server, &context, 2), Succeeds());
  const auto expect_nothing = [&] {
    const DAT_RMR_PARAM param = rmr.query();
    EXPECT_EQ(param.lmr_triplet.lmr_context, 0u);
    EXPECT_EQ(param.lmr_triplet.virtual_address, 0u);
    EXPECT_EQ(param.lmr_triplet.segment_length, 0u);
    EXPECT_EQ(param.mem_priv, DAT_MEM_PRIV_NONE_FLAG);
    EXPECT_EQ(param.rmr_context, 0u);
  };
  expect_nothing();
  DAT_LMR_TRIPLET to = sink.triplet();
  for (int i = 0; i < kAhead; ++i) {
    ASSERT_THAT(dat_ep_post_recv(pair.client.get(), 1, &to, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    expect_completion(pair.server_evds.request.get());
  }
  expect_bind(pair.server_evds.request.get());
  expect_nothing();
}

TEST_P(RmrBind, UsesTheRegionWhileBound) {
  // RMR-BIND-15, LMR-FREE-1
  const Pair pair = make_connected_pair();
  Lmr first(server.ia, server.pz, 64);
  Lmr second(server.ia, server.pz, 64);
  const Rmr rmr(server.pz);
  const Rmr other(server.pz);
  bind(pair, rmr, first.triplet());
  bind(pair, other, first.triplet());
  const DAT_RETURN rc = first.free();
  EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_LMR_IN_USE));
  bind(pair, rmr, second.triplet());
  EXPECT_THAT(first.free(), HasType(DAT_INVALID_STATE)) << "the other window is still bound to it";
  unbind(pair, other);
  EXPECT_THAT(first.free(), Succeeds());
  EXPECT_THAT(second.free(), HasType(DAT_INVALID_STATE));
  unbind(pair, rmr);
  EXPECT_THAT(second.free(), Succeeds());
}

TEST_P(RmrBind, ARefusedFreeLeavesTheRegionAsItWas) {
  // LMR-FREE-1: what uses it, through the window or by its own context, here or there, still can.
  const Pair pair = make_connected_pair();
  Lmr region(server.ia, server.pz, 64);
  const Rmr rmr(server.pz);
  const DAT_RMR_CONTEXT window = bind(pair, rmr, region.triplet());
  ASSERT_THAT(region.free(), HasSubtype(DAT_INVALID_STATE_LMR_IN_USE));
  for (const Rdma kind : kBothRdma) {
    expect_granted(kind, window, region.bytes().data(), 64);
    expect_granted(kind, region.rmr_context(), region.bytes().data(), 64);
  }
  post_recv(pair.client, client_buffers, 0);
  DAT_LMR_TRIPLET source = region.triplet();
  ASSERT_THAT(dat_ep_post_send(pair.server.get(), 1, &source, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  expect_completion(pair.server_evds.request.get());
  expect_completion(pair.client_evds.recv.get());
  DAT_LMR_PARAM param{};
  EXPECT_THAT(dat_lmr_query(region.get(), DAT_LMR_FIELD_ALL, &param), Succeeds());
  unbind(pair, rmr);
  EXPECT_THAT(region.free(), Succeeds());
}

TEST_P(RmrBind, ChecksItsHandles) {
  // RMR-BIND-17, GEN-2, GEN-12
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  const DAT_LMR_TRIPLET segment = memory.triplet();
  DAT_RMR_CONTEXT context = 0;
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), memory.get()}) {
    const DAT_RETURN rc = dat_rmr_bind(bad, &segment, kRemoteRead, pair.server.get(), rmr_cookie(0),
                                       DAT_COMPLETION_DEFAULT_FLAG, &context);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_RMR));
  }
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), memory.get(), pair.client.get()}) {
    const DAT_RETURN rc =
        dat_rmr_bind(rmr.get(), &segment, kRemoteRead, bad, rmr_cookie(0), DAT_COMPLETION_DEFAULT_FLAG, &context);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
  }
}

TEST_P(RmrBind, ContextCanBeHadByQuery) {
  // RMR-BIND-17
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  ASSERT_THAT(try_bind(rmr, memory.triplet(), kRemoteRead, pair.server, nullptr), Succeeds());
  expect_bind(pair.server_evds.request.get());
  expect_granted(Rdma::kRead, rmr.query().rmr_context, memory.bytes().data(), 64);
}

class RmrStates : public EpStateTest {};

TEST_P(RmrStates, BoundWhenConnectedAndFlushedWhenDisconnected) {
  // EP-SM-4 (note 4), EP-SM-27, RMR-BIND-13
  const Lmr region(server.ia, server.pz, 64);
  for (const DAT_EP_STATE state : states_to_hold(server.ia)) {
    SCOPED_TRACE(state_name(state));
    HeldEp ep(server, client, GetParam(), state);
    if (state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
      ep.configure();
    }
    const Rmr rmr(server.pz);
    const DAT_LMR_TRIPLET segment = region.triplet();
    DAT_RMR_CONTEXT context = 0;
    const DAT_RETURN rc =
        dat_rmr_bind(rmr.get(), &segment, kRemoteRead, ep.get(), rmr_cookie(9), DAT_COMPLETION_DEFAULT_FLAG, &context);
    if (state == DAT_EP_STATE_CONNECTED || state == DAT_EP_STATE_DISCONNECTED) {
      expect_unchanged(ep, state, rc);
      EXPECT_EQ(
          expect_bind(ep.evds().request.get(), state == DAT_EP_STATE_CONNECTED ? DAT_DTO_SUCCESS : DAT_DTO_ERR_FLUSHED)
              .user_cookie.as_64,
          9u);
    } else {
      expect_refused(ep, state, rc);
    }
  }
}

ANYDAT_OVER_ALL_WIRES(RmrBind);
ANYDAT_OVER_ALL_WIRES(RmrStates);

}  // namespace
}  // namespace anydat::test
