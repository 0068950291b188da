// SPDX-License-Identifier: BSD-3-Clause
// Protection zones: section 6.1 of the rules.
#include <thread>

#include "ep_fixture.h"

namespace anydat::test {
namespace {

class PzTest : public EpTest {};

TEST_P(PzTest, TiesObjectsTogetherForChecks) {
  // PZ-CREATE-1, PZ-CREATE-3: one zone for many objects; another one never matches.
  const Pz other(server.ia);
  const Buffers mine(server.ia, server.pz, 2, kBytes);
  const Buffers more(server.ia, server.pz, 2, kBytes);
  const Buffers foreign(server.ia, other, 2, kBytes);
  const Srq srq(server.ia, server.pz, 4);
  const Ep one(server);
  const Ep two(server);
  for (const Ep* ep : {&one, &two}) {
    EXPECT_THAT(try_recv(*ep, mine, 0), Succeeds());
    EXPECT_THAT(try_recv(*ep, more, 0), Succeeds());
    EXPECT_THAT(try_recv(*ep, foreign, 0), HasType(DAT_PROTECTION_VIOLATION));
  }
  EXPECT_THAT(more.try_post(srq, 1), Succeeds());
  EXPECT_THAT(foreign.try_post(srq, 1), HasType(DAT_PROTECTION_VIOLATION));
}

TEST_P(PzTest, CreatingChecksItsArguments) {
  // PZ-CREATE-2, GEN-2
  EXPECT_THAT(dat_pz_create(server.ia.get(), nullptr), HasType(DAT_INVALID_PARAMETER));
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.pz.get()}) {
    const DAT_RETURN rc = dat_pz_create(bad, &pz);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_IA));
  }
}

TEST_P(PzTest, NumberIsLimitedByTheAdapter) {
  // PZ-CREATE-2, GEN-9
  const DAT_COUNT most = server.ia.attributes().max_pzs;
  std::vector<DAT_PZ_HANDLE> all;
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  DAT_RETURN rc = DAT_SUCCESS;
  while ((rc = dat_pz_create(server.ia.get(), &pz)) == DAT_SUCCESS && all.size() <= static_cast<std::size_t>(most)) {
    all.push_back(pz);
  }
  EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_EQ(all.size() + 1, static_cast<std::size_t>(most)) << "with the zone that the fixture has made";
  ASSERT_THAT(dat_pz_free(all.back()), Succeeds());
  EXPECT_THAT(dat_pz_create(server.ia.get(), &all.back()), Succeeds());
  for (const DAT_PZ_HANDLE handle : all) {
    EXPECT_THAT(dat_pz_free(handle), Succeeds());
  }
}

TEST_P(PzTest, CannotBeFreedWhileInUse) {
  // PZ-FREE-1, LMR-FREE-10, EP-FREE-6
  Pz pz(server.ia);
  const auto refused = [&] {
    const DAT_RETURN rc = pz.free();
    EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_PZ_IN_USE));
    DAT_PZ_PARAM param{};
    EXPECT_THAT(dat_pz_query(pz.get(), DAT_PZ_FIELD_ALL, &param), Succeeds()) << "it is still there";
  };
  {
    const Lmr lmr(server.ia, pz, 64);
    refused();
  }
  {
    const Ep ep(server.ia, pz, evds_of(server), default_ep_attr());
    refused();
  }
  {
    const Srq srq(server.ia, pz, 4);
    refused();
  }
  EXPECT_THAT(pz.free(), Succeeds());
}

TEST_P(PzTest, FreedItIsNoMore) {
  // PZ-FREE-2, GEN-2, GEN-5
  Pz pz(server.ia);
  const DAT_PZ_HANDLE stale = pz.get();
  ASSERT_THAT(pz.free(), Succeeds());
  DAT_PZ_PARAM param{};
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, server.ia.get(), server.recv.get()}) {
    for (const DAT_RETURN rc : {dat_pz_free(bad), dat_pz_query(bad, DAT_PZ_FIELD_ALL, &param)}) {
      EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
      EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_PZ));
    }
  }
}

TEST_P(PzTest, QueryShowsTheAdapter) {
  // PZ-QUERY-1, GEN-7
  static_assert(DAT_PZ_FIELD_IA_HANDLE == 0x1 && DAT_PZ_FIELD_ALL == 0x1);
  DAT_PZ_PARAM param{};
  ASSERT_THAT(dat_pz_query(server.pz.get(), DAT_PZ_FIELD_IA_HANDLE, &param), Succeeds());
  EXPECT_EQ(param.ia_handle, server.ia.get());
  EXPECT_THAT(dat_pz_query(server.pz.get(), static_cast<DAT_PZ_PARAM_MASK>(0), &param), Succeeds());
  EXPECT_THAT(dat_pz_query(server.pz.get(), static_cast<DAT_PZ_PARAM_MASK>(2), &param), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_pz_query(server.pz.get(), DAT_PZ_FIELD_ALL, nullptr), HasType(DAT_INVALID_PARAMETER));
}

TEST_P(PzTest, CreatingIsSafeFromManyThreads) {
  // MT-1
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        Pz pz(server.ia);
        EXPECT_THAT(pz.free(), Succeeds());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

ANYDAT_OVER_ALL_WIRES(PzTest);

}  // namespace
}  // namespace anydat::test
