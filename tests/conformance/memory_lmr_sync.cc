// SPDX-License-Identifier: BSD-3-Clause
// dat_lmr_sync_rdma_read and dat_lmr_sync_rdma_write: section 6.4 of the rules.
#include "ep_fixture.h"

namespace anydat::test {
namespace {

class LmrSync : public EpTest {};

using Sync = DAT_RETURN (*)(DAT_IA_HANDLE, const DAT_LMR_TRIPLET*, DAT_VLEN);

TEST_P(LmrSync, SyncIsHarmlessWhereMemoryIsCoherent) {
  // LMR-SYNC-1, LMR-SYNC-7, ATTR-1
  const Pz other(server.ia);
  const Lmr one(server.ia, server.pz, 256);
  const Lmr two(server.ia, other, 256);
  fill_pattern(one.bytes(), 1);
  DAT_LMR_TRIPLET segments[4] = {one.triplet(), two.triplet(), one.triplet(10, 20), two.triplet(255, 1)};
  for (const Sync sync : {&dat_lmr_sync_rdma_read, &dat_lmr_sync_rdma_write}) {
    EXPECT_THAT(sync(server.ia.get(), segments, 4), Succeeds());
  }
  EXPECT_TRUE(has_pattern(one.bytes(), 1));
}

TEST_P(LmrSync, SyncChecksItsArguments) {
  // LMR-SYNC-8, LMR-SYNC-9, GEN-2
  const Lmr lmr(server.ia, server.pz, 256);
  for (const Sync sync : {&dat_lmr_sync_rdma_read, &dat_lmr_sync_rdma_write}) {
    for (DAT_LMR_TRIPLET bad : {lmr.triplet(0, 257), lmr.triplet(256, 1), lmr.triplet(0, ~DAT_VLEN{0})}) {
      const DAT_RETURN rc = sync(server.ia.get(), &bad, 1);
      EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
      EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG2));
    }
    DAT_LMR_TRIPLET unknown = lmr.triplet();
    unknown.lmr_context = 0xDEADBEEF;
    DAT_RETURN rc = sync(server.ia.get(), &unknown, 1);
    EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG2));
    unknown.segment_length = 0;  // skipped
    EXPECT_THAT(sync(server.ia.get(), &unknown, 1), Succeeds());
    DAT_LMR_TRIPLET good = lmr.triplet();
    EXPECT_THAT(sync(server.ia.get(), &good, 0), Succeeds());
    EXPECT_THAT(sync(server.ia.get(), nullptr, 0), Succeeds());
    EXPECT_THAT(sync(server.ia.get(), nullptr, 1), HasType(DAT_INVALID_PARAMETER));
    rc = sync(server.pz.get(), &good, 1);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_IA));
    EXPECT_THAT(sync(DAT_HANDLE_NULL, &good, 1), HasType(DAT_INVALID_HANDLE));
  }
}

ANYDAT_OVER_ALL_WIRES(LmrSync);

}  // namespace
}  // namespace anydat::test
