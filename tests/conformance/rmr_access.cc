// SPDX-License-Identifier: BSD-3-Clause
// What a binding grants, and how long: sections 6.6 and 6.7 of the rules.
#include <algorithm>

#include "rmr_fixture.h"

namespace anydat::test {
namespace {

class RmrAccess : public RmrTest {};

TEST_P(RmrAccess, OpensWhatWasBound) {
  // RMR-BIND-1, RMR-BIND-9 (the region's remote flags do not matter), RDR-6, RDW-6
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  const DAT_RMR_CONTEXT context = bind(pair, rmr, memory.triplet(100, 200));
  fill_pattern(memory.bytes().subspan(100, 200), 1);
  ASSERT_THAT(
      rdma_read(pair.client, local.triplet(0, 200), remote_triplet(context, memory.bytes().data() + 100, 200), 1),
      Succeeds());
  expect_completion(pair.client_evds.request.get());
  EXPECT_TRUE(has_pattern(local.bytes().first(200), 1));
  fill_pattern(local.bytes().first(50), 2);
  ASSERT_THAT(
      rdma_write(pair.client, local.triplet(0, 50), remote_triplet(context, memory.bytes().data() + 250, 50), 2),
      Succeeds());
  expect_completion(pair.client_evds.request.get());
  pass_message(pair);
  EXPECT_TRUE(has_pattern(memory.bytes().subspan(250, 50), 2));
}

TEST_P(RmrAccess, PrivilegesAreThoseOfTheBind) {
  // RMR-BIND-8, STAT-8
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  for (const DAT_MEM_PRIV_FLAGS privileges : {DAT_MEM_PRIV_NONE_FLAG, kRemoteRead, kRemoteWrite, kRemoteBoth}) {
    SCOPED_TRACE(testing::Message() << std::hex << privileges);
    const DAT_RMR_CONTEXT context = bind(pair, rmr, memory.triplet(), privileges);
    for (const Rdma kind : kBothRdma) {
      const auto needed = kind == Rdma::kRead ? kRemoteRead : kRemoteWrite;
      if ((privileges & needed) != 0) {
        expect_granted(kind, context, memory.bytes().data(), 64);
      } else {
        expect_refused(kind, context, memory.bytes().data(), 64);
      }
    }
  }
}

TEST_P(RmrAccess, BoundsAreExactToTheByte) {
  // RMR-BIND-18, PROT-8
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{0x42});
  const DAT_RMR_CONTEXT context = bind(pair, rmr, memory.triplet(1000, 100));
  std::byte* const start = memory.bytes().data() + 1000;
  std::fill(local.bytes().begin(), local.bytes().end(), std::byte{0x99});
  for (const Rdma kind : kBothRdma) {
    SCOPED_TRACE(rdma_name(kind));
    for (const auto& [offset, length] :
         {std::pair<std::ptrdiff_t, std::size_t>{-1, 1}, {-1, 2}, {99, 2}, {100, 1}, {0, 101}, {-1, 102}}) {
      expect_refused(kind, context, start + offset, length);
    }
    if (kind == Rdma::kWrite) {
      for (const std::byte byte : memory.bytes()) {
        ASSERT_EQ(byte, std::byte{0x42});
      }
    }
    expect_granted(kind, context, start, 1);
    expect_granted(kind, context, start + 99, 1);
    expect_granted(kind, context, start, 100);
  }
}

TEST_P(RmrAccess, EveryBindShutsTheOneBefore) {
  // RMR-BIND-6, STAT-8
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  DAT_RMR_CONTEXT old = bind(pair, rmr, memory.triplet());
  for (int i = 0; i < 4; ++i) {
    const DAT_RMR_CONTEXT now = bind(pair, rmr, memory.triplet());  // to the very same range
    EXPECT_NE(now, old);
    expect_refused(i % 2 == 0 ? Rdma::kRead : Rdma::kWrite, old, memory.bytes().data(), 64);
    expect_granted(Rdma::kRead, now, memory.bytes().data(), 64);
    old = now;
  }
}

TEST_P(RmrAccess, UnbindingShutsTheWindow) {
  // RMR-BIND-7
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  Lmr region(server.ia, server.pz, 64);
  const DAT_RMR_CONTEXT context = bind(pair, rmr, region.triplet());
  DAT_LMR_TRIPLET nothing{};
  nothing.lmr_context = 0xDEADBEEF;  // ignored, as is the address
  nothing.virtual_address = 4711;
  ASSERT_THAT(try_bind(rmr, nothing, kRemoteBoth, pair.server, nullptr, 8), Succeeds());
  EXPECT_EQ(expect_bind(pair.server_evds.request.get()).user_cookie.as_64, 8u);
  for (const Rdma kind : kBothRdma) {
    expect_refused(kind, context, region.bytes().data(), 64);
  }
  EXPECT_THAT(region.free(), Succeeds());
  unbind(pair, rmr);  // once more, to no harm
}

TEST_P(RmrAccess, WorksOnEveryConnectionOfItsZone) {
  // RMR-BIND-16, RMR-CREATE-2
  const Rmr rmr(server.pz);
  DAT_RMR_CONTEXT context = 0;
  {
    const Pair pair = make_connected_pair();
    context = bind(pair, rmr, memory.triplet());
    expect_granted(Rdma::kRead, context, memory.bytes().data(), 64);
  }
  expect_granted(Rdma::kWrite, context, memory.bytes().data(), 64);  // also when the endpoint of the bind is gone
  // An endpoint of another zone does not serve it.
  const Pz other(server.ia);
  Pair foreign = make_pair();
  foreign.server = Ep(server.ia, other, foreign.server_evds, default_ep_attr());
  connect_pair(server, foreign.server.get(), foreign.client.get());
  expect_remote_refusal(
      foreign, Rdma::kRead,
      rdma_read(foreign.client, local.triplet(0, 64), remote_triplet(context, memory.bytes().data(), 64), 1));
}

TEST_P(RmrAccess, WindowAndRegionHaveRightsOfTheirOwn) {
  // PROT-9
  const Pair pair = make_connected_pair();
  const Lmr region(server.ia, server.pz, 256,
                   static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
                                                   DAT_MEM_PRIV_REMOTE_READ_FLAG));
  const Rmr rmr(server.pz);
  const DAT_RMR_CONTEXT window = bind(pair, rmr, region.triplet(0, 64), kRemoteWrite);
  EXPECT_NE(window, region.rmr_context());
  expect_granted(Rdma::kRead, region.rmr_context(), region.bytes().data() + 64, 64);
  expect_refused(Rdma::kWrite, region.rmr_context(), region.bytes().data(), 64);
  expect_granted(Rdma::kWrite, window, region.bytes().data(), 64);
  expect_refused(Rdma::kRead, window, region.bytes().data(), 64);
  unbind(pair, rmr);
  expect_granted(Rdma::kRead, region.rmr_context(), region.bytes().data(), 64);
}

TEST_P(RmrAccess, ContextsOfWindowsAndRegionsAreAllDifferent) {
  // LMR-CREATE-8
  const Pair pair = make_connected_pair();
  std::vector<Lmr> regions;
  std::vector<Rmr> windows;
  std::vector<DAT_RMR_CONTEXT> contexts;
  for (int i = 0; i < 20; ++i) {
    regions.emplace_back(server.ia, server.pz, 64);
    windows.emplace_back(server.pz);
    contexts.push_back(regions.back().rmr_context());
    contexts.push_back(bind(pair, windows.back(), regions.back().triplet()));
  }
  std::sort(contexts.begin(), contexts.end());
  EXPECT_EQ(std::adjacent_find(contexts.begin(), contexts.end()), contexts.end());
  EXPECT_NE(contexts.front(), 0u);
}

ANYDAT_OVER_ALL_WIRES(RmrAccess);

}  // namespace
}  // namespace anydat::test
