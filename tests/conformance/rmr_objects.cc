// SPDX-License-Identifier: BSD-3-Clause
// Creating, querying and freeing memory windows: section 6.5 of the rules.
#include <thread>

#include "rmr_fixture.h"
#include "support/properties.h"
#include "support/versions.h"

namespace anydat::test {
namespace {

class RmrObjects : public RmrTest {};

TEST_P(RmrObjects, AreCreatedUnbound) {
  // RMR-CREATE-1, RMR-QUERY-2
  const Rmr rmr(server.pz);
  DAT_RMR_PARAM param{};
  ASSERT_THAT(dat_rmr_query(rmr.get(), DAT_RMR_FIELD_ALL, &param), Succeeds());
  EXPECT_EQ(param.ia_handle, server.ia.get());
  EXPECT_EQ(param.pz_handle, server.pz.get());
  EXPECT_EQ(param.lmr_triplet.segment_length, 0u);
  EXPECT_EQ(param.mem_priv, DAT_MEM_PRIV_NONE_FLAG);
  EXPECT_EQ(param.rmr_context, 0u);
  DAT_HANDLE_TYPE type{};
  ASSERT_THAT(dat_get_handle_type(rmr.get(), &type), Succeeds());
  EXPECT_EQ(type, DAT_HANDLE_TYPE_RMR);
}

TEST_P(RmrObjects, CreatingChecksItsArguments) {
  // RMR-CREATE-2, GEN-2
  Pz freed(server.ia);
  const DAT_PZ_HANDLE stale = freed.get();
  freed.reset();
  DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, server.ia.get(), memory.get()}) {
    const DAT_RETURN rc = dat_rmr_create(bad, &rmr);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_PZ));
  }
  EXPECT_THAT(dat_rmr_create(server.pz.get(), nullptr), HasType(DAT_INVALID_PARAMETER));
}

class RmrLimit : public RmrObjects {};

TEST_P(RmrLimit, NumberIsLimitedByTheAdapter) {
  // RMR-CREATE-2, GEN-9
  const DAT_COUNT most = server.ia.attributes().max_rmrs;
  std::vector<Rmr> all;
  for (DAT_COUNT i = 0; i < most; ++i) {
    all.emplace_back(server.pz);
  }
  DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_rmr_create(server.pz.get(), &rmr), HasType(DAT_INSUFFICIENT_RESOURCES));
}

TEST_P(RmrObjects, QueryShowsTheBinding) {
  // RMR-QUERY-1, RMR-QUERY-3, GEN-7
  static_assert(DAT_RMR_FIELD_IA_HANDLE == 0x1 && DAT_RMR_FIELD_PZ_HANDLE == 0x2 && DAT_RMR_FIELD_LMR_TRIPLET == 0x4 &&
                DAT_RMR_FIELD_MEM_PRIV == 0x8 && DAT_RMR_FIELD_RMR_CONTEXT == 0x10 && DAT_RMR_FIELD_ALL == (kIsVersion1 ? 0x1F : 0x7F));
  const Pair pair = make_connected_pair();
  const Rmr rmr(server.pz);
  for (const std::size_t offset : {std::size_t{0}, std::size_t{100}}) {
    const DAT_LMR_TRIPLET segment = memory.triplet(offset, 50 + offset);
    const DAT_RMR_CONTEXT context = bind(pair, rmr, segment, kRemoteRead);
    const DAT_RMR_PARAM param = rmr.query();
    EXPECT_EQ(param.lmr_triplet.lmr_context, segment.lmr_context);
    EXPECT_EQ(param.lmr_triplet.virtual_address, segment.virtual_address);
    EXPECT_EQ(param.lmr_triplet.segment_length, segment.segment_length);
    EXPECT_EQ(param.mem_priv, kRemoteRead);
    EXPECT_EQ(param.rmr_context, context);
  }
}

TEST_P(RmrObjects, QueryChecksItsArguments) {
  // RMR-QUERY-3, GEN-2, GEN-7
  const Rmr rmr(server.pz);
  DAT_RMR_PARAM param{};
  EXPECT_THAT(dat_rmr_query(rmr.get(), static_cast<DAT_RMR_PARAM_MASK>(DAT_RMR_FIELD_ALL + 1), &param), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_rmr_query(rmr.get(), DAT_RMR_FIELD_ALL, nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_rmr_query(rmr.get(), static_cast<DAT_RMR_PARAM_MASK>(0), &param), Succeeds());
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), memory.get(), server.pz.get()}) {
    const DAT_RETURN rc = dat_rmr_query(bad, DAT_RMR_FIELD_ALL, &param);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_RMR));
  }
}

TEST_P(RmrObjects, FreeingUnbindsFirst) {
  // RMR-FREE-1, LMR-FREE-1
  const Pair pair = make_connected_pair();
  Lmr region(server.ia, server.pz, 64);
  Rmr rmr(server.pz);
  bind(pair, rmr, region.triplet());
  const DAT_RETURN rc = region.free();
  EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_LMR_IN_USE));
  ASSERT_THAT(rmr.free(), Succeeds());
  EXPECT_THAT(region.free(), Succeeds());
  Rmr unbound(server.pz);
  EXPECT_THAT(unbound.free(), Succeeds());
}

TEST_P(RmrObjects, AFreedWindowIsShut) {
  // RMR-FREE-2, STAT-8
  const Pair pair = make_connected_pair();
  std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{0x42});
  for (const Rdma kind : kBothRdma) {
    DAT_RMR_CONTEXT context = 0;
    {
      const Rmr rmr(server.pz);
      context = bind(pair, rmr, memory.triplet());
      expect_granted(Rdma::kRead, context, memory.bytes().data(), 64);
    }
    expect_refused(kind, context, memory.bytes().data(), 64);
  }
  for (const std::byte byte : memory.bytes()) {
    ASSERT_EQ(byte, std::byte{0x42});
  }
}

TEST_P(RmrObjects, FreedDuringATransferItSucceedsOrFailsCleanly) {
  // RMR-FREE-2, MT-3
  constexpr std::size_t kBig = 1 << 20;
  const Lmr mine(client.ia, client.pz, kBig);
  const Lmr region(server.ia, server.pz, kBig, DAT_MEM_PRIV_ALL_FLAG);
  const Pair binding = make_connected_pair();
  for (int round = 0; round < 12; ++round) {
    const Pair pair = make_connected_pair();
    Rmr rmr(server.pz);
    const DAT_RMR_CONTEXT context = bind(binding, rmr, region.triplet());
    std::thread freeing([&] { EXPECT_THAT(rmr.free(), Succeeds()); });
    const DAT_RETURN rc = rdma(round % 2 == 0 ? Rdma::kRead : Rdma::kWrite, pair.client, mine.triplet(),
                               remote_triplet(context, region.bytes().data(), kBig), 1);
    freeing.join();
    if (rc == DAT_SUCCESS) {
      const auto status = expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT)
                              .event_data.dto_completion_event_data.status;
      EXPECT_TRUE(status == DAT_DTO_SUCCESS || status == DAT_DTO_ERR_REMOTE_ACCESS) << status;
    }
  }
}

TEST_P(RmrObjects, APendingBindIsNeverLost) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // RMR-FREE-3, RMR-BIND-4
  const Pair pair = make_connected_pair();
  const Lmr large(server.ia, server.pz, kLarge);
  const Lmr sink(client.ia, client.pz, kLarge);
  DAT_RMR_CONTEXT context = 0;
  DAT_RMR_HANDLE dead = DAT_HANDLE_NULL;
  {
    const Rmr rmr(server.pz);
    dead = rmr.get();
    post_large_send(pair.server, large, 1);  // the bind waits behind it
    ASSERT_THAT(try_bind(rmr, memory.triplet(), kRemoteRead, pair.server, &context, 2), Succeeds());
  }
  DAT_LMR_TRIPLET to = sink.triplet();
  ASSERT_THAT(dat_ep_post_recv(pair.client.get(), 1, &to, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_EQ(expect_completion(pair.server_evds.request.get()).user_cookie.as_64, 1u);
  const auto completion =
      expect_event(pair.server_evds.request.get(), DAT_RMR_BIND_COMPLETION_EVENT).event_data.rmr_completion_event_data;
  EXPECT_EQ(completion.rmr_handle, dead);
  EXPECT_EQ(completion.user_cookie.as_64, 2u);
  // Whatever became of it: nothing is reachable through a window that is gone.
  expect_refused(Rdma::kRead, context, memory.bytes().data(), 64);
}

TEST_P(RmrObjects, FreeingReleasesTheZone) {
  // RMR-FREE-4, PZ-FREE-1
  Pz pz(server.ia);
  Rmr rmr(pz);
  const DAT_RETURN rc = pz.free();
  EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_PZ_IN_USE));
  ASSERT_THAT(rmr.free(), Succeeds());
  EXPECT_THAT(pz.free(), Succeeds());
}

TEST_P(RmrObjects, FreeingChecksItsHandle) {
  // RMR-FREE-4, GEN-2, GEN-5
  Rmr rmr(server.pz);
  const DAT_RMR_HANDLE stale = rmr.get();
  ASSERT_THAT(rmr.free(), Succeeds());
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, memory.get()}) {
    const DAT_RETURN rc = dat_rmr_free(bad);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_RMR));
  }
}

TEST_P(RmrObjects, CreatingIsSafeFromManyThreads) {
  // MT-1
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        Rmr rmr(server.pz);
        EXPECT_THAT(rmr.free(), Succeeds());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

ANYDAT_OVER_ALL_WIRES(RmrObjects);
ANYDAT_OVER_ONE_WIRE(RmrLimit);

}  // namespace
}  // namespace anydat::test
