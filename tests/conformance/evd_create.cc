// SPDX-License-Identifier: BSD-3-Clause
// dat_evd_create: section 7.1 of part 1.
#include <algorithm>
#include <climits>
#include <mutex>
#include <set>

#include "evd_fixture.h"
#include "support/versions.h"

namespace anydat::test {
namespace {

// The kinds of stream, in the order of the merging matrix.
constexpr unsigned kEvdKinds[] = {DAT_EVD_SOFTWARE_FLAG,   DAT_EVD_CR_FLAG,       DAT_EVD_DTO_FLAG,
                                  DAT_EVD_CONNECTION_FLAG, DAT_EVD_RMR_BIND_FLAG, DAT_EVD_ASYNC_FLAG};
constexpr unsigned kAllKinds = 0x1F1 | kExtensionEvents;

class EvdCreate : public EvdTest {
 protected:
  DAT_RETURN create(DAT_COUNT length, unsigned bits, DAT_CNO_HANDLE cno = DAT_HANDLE_NULL) {
    return dat_evd_create(ia.get(), length, cno, flags(bits), &made_);
  }

  DAT_EVD_HANDLE made_ = DAT_HANDLE_NULL;
};

// EVD-CREATE-1, EVM-22, OBJ-1
TEST_P(EvdCreate, NewEvdIsEmptyEnabledWaitableAndFreeOfStreams) {
  ASSERT_THAT(create(5, DAT_EVD_DTO_FLAG), Succeeds());
  const DAT_EVD_PARAM param = query_evd(made_);
  EXPECT_EQ(param.ia_handle, ia.get());
  EXPECT_EQ(param.evd_state, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE | DAT_EVD_STATE_CONFIG_THRESHOLD);
  EXPECT_EQ(param.cno_handle, DAT_HANDLE_NULL);
  EXPECT_EQ(queued(made_), 0);
  EXPECT_THAT(dat_evd_resize(made_, param.evd_qlen), Succeeds()) << "refused if somebody waited";
  EXPECT_THAT(dat_evd_free(made_), Succeeds()) << "refused if a stream were attached";
}

// EVD-CREATE-2, EVD-POST-13
TEST_P(EvdCreate, QueueHoldsAtLeastWhatWasAsked) {
  for (const DAT_COUNT length : {1, 2, 7, 64, 1000}) {
    const Evd made(ia, DAT_EVD_SOFTWARE_FLAG, length);
    ASSERT_GE(made.qlen(), length);
    for (DAT_COUNT i = 0; i < made.qlen(); ++i) {
      ASSERT_THAT(try_post(made.get(), static_cast<std::uintptr_t>(i)), Succeeds()) << i << " of " << made.qlen();
    }
    EXPECT_THAT(try_post(made.get()), HasType(DAT_QUEUE_FULL)) << "the reported length is the actual one";
  }
}

// EVD-CREATE-2, IA-ATTR-2
TEST_P(EvdCreate, LongestQueueOfTheAdapterCanBeHad) {
  const DAT_COUNT longest = ia.attributes().max_evd_qlen;
  ASSERT_THAT(create(longest, DAT_EVD_SOFTWARE_FLAG), Succeeds());
  EXPECT_GE(query_evd(made_).evd_qlen, longest);
  EXPECT_THAT(dat_evd_free(made_), Succeeds());
}

// EVD-CREATE-3, CNO-FREE-2
TEST_P(EvdCreate, GivenCnoIsAssociatedAndInUse) {
  Cno cno(ia);
  Evd made(ia, DAT_EVD_SOFTWARE_FLAG, 4, cno.get());
  EXPECT_EQ(query_evd(made.get()).cno_handle, cno.get());
  EXPECT_THAT(cno.free(), HasType(DAT_INVALID_STATE));
  post(made.get());
  EXPECT_EQ(wait_cno(cno.get(), 0).evd, made.get());
  made.reset();
  EXPECT_THAT(cno.free(), Succeeds());
}

// EVD-CREATE-4, EVD-CREATE-5, EVD-CREATE-8, EVD-CREATE-17, EVM-17..21: the matrix says which kinds go together, and
// creation agrees with it for every union of kinds.
TEST_P(EvdCreate, AcceptsExactlyTheUnionsThatTheMergingMatrixPermits) {
  const DAT_PROVIDER_ATTR provider = ia.provider();
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(provider.evd_stream_merging_supported[i][i], DAT_TRUE) << i;
    for (int j = 0; j < 6; ++j) {
      EXPECT_EQ(provider.evd_stream_merging_supported[i][j], DAT_TRUE) << i << ", " << j << ": ruling A43";
      EXPECT_EQ(provider.evd_stream_merging_supported[i][j], provider.evd_stream_merging_supported[j][i]);
    }
  }
  for (unsigned chosen = 1; chosen < 64; ++chosen) {
    unsigned bits = 0;
    bool permitted = true;
    for (int i = 0; i < 6; ++i) {
      if ((chosen >> i & 1) == 0) continue;
      bits |= kEvdKinds[i];
      for (int j = 0; j < i; ++j) {
        permitted &= (chosen >> j & 1) == 0 || provider.evd_stream_merging_supported[i][j] == DAT_TRUE;
      }
    }
    const DAT_RETURN rc = create(2, bits);
    if (!permitted) {
      EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER)) << std::hex << bits;
      EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG4)) << std::hex << bits;
      continue;
    }
    ASSERT_THAT(rc, Succeeds()) << std::hex << bits;
    EXPECT_EQ(static_cast<unsigned>(query_evd(made_).evd_flags), bits);
    EXPECT_THAT(dat_evd_free(made_), Succeeds());
  }
}

// EVD-CREATE-5
TEST_P(EvdCreate, DefaultFlagIsAllKindsButSoftwareAndAccepted) {
  EXPECT_EQ(static_cast<unsigned>(DAT_EVD_DEFAULT_FLAG), 0x1F0u);
  ASSERT_THAT(create(4, DAT_EVD_DEFAULT_FLAG), Succeeds());
  EXPECT_EQ(query_evd(made_).evd_flags, DAT_EVD_DEFAULT_FLAG);
  EXPECT_THAT(dat_evd_free(made_), Succeeds());
}

// EVD-CREATE-4: nothing that can be done to an EVD changes its flags.
TEST_P(EvdCreate, FlagsNeverChange) {
  const Cno cno(ia);
  const Evd made(ia, flags(DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CR_FLAG), 4);
  EXPECT_THAT(dat_evd_resize(made.get(), 8), Succeeds());
  EXPECT_THAT(dat_evd_modify_cno(made.get(), cno.get()), Succeeds());
  EXPECT_THAT(dat_evd_disable(made.get()), Succeeds());
  EXPECT_THAT(dat_evd_set_unwaitable(made.get()), Succeeds());
  EXPECT_EQ(static_cast<unsigned>(query_evd(made.get()).evd_flags),
            static_cast<unsigned>(DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CR_FLAG));
}

// EVD-CREATE-6, EVD-CREATE-7, ARG-3
TEST_P(EvdCreate, NoFlagsAndUndefinedFlagsAreRefused) {
  EXPECT_THAT(create(4, 0), HasType(DAT_INVALID_PARAMETER));
  for (int bit = 0; bit < 32; ++bit) {
    const unsigned undefined = 1u << bit;
    if ((undefined & kAllKinds) != 0) continue;
    EXPECT_THAT(create(4, undefined), HasType(DAT_INVALID_PARAMETER)) << std::hex << undefined;
    EXPECT_THAT(create(4, undefined | DAT_EVD_SOFTWARE_FLAG), HasType(DAT_INVALID_PARAMETER)) << std::hex << undefined;
  }
}

// EVD-CREATE-9
TEST_P(EvdCreate, LengthMustBePositive) {
  for (const DAT_COUNT length : {0, -1, INT_MIN}) {
    const DAT_RETURN rc = create(length, DAT_EVD_SOFTWARE_FLAG);
    EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER)) << length;
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG2)) << length;
  }
}

// EVD-CREATE-10
TEST_P(EvdCreate, LengthAboveTheAdaptersIsOutOfResources) {
  for (const DAT_COUNT length : {ia.attributes().max_evd_qlen + 1, INT_MAX}) {
    const DAT_RETURN rc = create(length, DAT_EVD_SOFTWARE_FLAG);
    EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES)) << length;
    EXPECT_THAT(rc, HasSubtype(DAT_RESOURCE_TEVD)) << length;
  }
}

// EVD-CREATE-11, HND-7
TEST_P(EvdCreate, CnoMustBeALiveOneOfTheInstance) {
  const Ia other(GetParam());
  const Cno foreign(other);
  Cno freed(ia);
  const DAT_CNO_HANDLE stale = freed.get();
  freed.reset();
  for (const DAT_HANDLE cno : {foreign.get(), stale, evd.get(), ia.get()}) {
    const DAT_RETURN rc = create(4, DAT_EVD_SOFTWARE_FLAG, cno);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_CNO));
  }
  const DAT_RETURN rc = dat_evd_create(evd.get(), 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &made_);
  EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_IA));
}

// EVD-CREATE-12
TEST_P(EvdCreate, ResultMayNotBeNull) {
  EXPECT_THAT(dat_evd_create(ia.get(), 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, nullptr),
              HasType(DAT_INVALID_PARAMETER));
}

// EVD-CREATE-13, IA-ATTR-2
TEST_P(EvdCreate, NoMoreThanTheAdaptersEvdsCanBeMade) {
  const DAT_COUNT most = ia.attributes().max_evds;
  std::vector<DAT_EVD_HANDLE> all;
  DAT_RETURN rc = DAT_SUCCESS;
  while (static_cast<DAT_COUNT>(all.size()) <= most && (rc = create(1, DAT_EVD_SOFTWARE_FLAG)) == DAT_SUCCESS) {
    all.push_back(made_);
  }
  EXPECT_LE(static_cast<DAT_COUNT>(all.size()), most);
  EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_EQ(std::set<DAT_HANDLE>(all.begin(), all.end()).size(), all.size()) << "handles are unique (HND-5)";
  ASSERT_FALSE(all.empty());
  EXPECT_THAT(dat_evd_free(all.back()), Succeeds());
  all.pop_back();
  EXPECT_THAT(create(1, DAT_EVD_SOFTWARE_FLAG), Succeeds()) << "a freed one makes room";
  all.push_back(made_);
  for (const DAT_EVD_HANDLE one : all) {
    ASSERT_THAT(dat_evd_free(one), Succeeds());
  }
}

// EVD-CREATE-14, RC-6
TEST_P(EvdCreate, FailedCallLeavesTheCnoUnassociated) {
  Cno cno(ia);
  EXPECT_THAT(create(0, DAT_EVD_SOFTWARE_FLAG, cno.get()), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(create(4, 0, cno.get()), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(create(INT_MAX, DAT_EVD_SOFTWARE_FLAG, cno.get()), HasType(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_THAT(dat_evd_create(ia.get(), 4, cno.get(), DAT_EVD_SOFTWARE_FLAG, nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(cno.free(), Succeeds()) << "refused if an EVD were associated";
  evd.reset();
  EXPECT_THAT(ia.close(DAT_CLOSE_GRACEFUL_FLAG), Succeeds()) << "refused if an EVD had been made";
}

// EVD-CREATE-15, IA-OPEN-15
TEST_P(EvdCreate, AsyncFlagAloneBringsNoAsyncEvents) {
  const Evd made(ia, DAT_EVD_ASYNC_FLAG, 8);
  const AsyncSource source(ia);
  source.fire();
  expect_event(ia.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
  EXPECT_FALSE(poll_event(made.get())) << "it came where the instance's async events go, and nowhere else";

  DAT_EVD_HANDLE shared = made.get();
  DAT_IA_HANDLE second = DAT_HANDLE_NULL;
  ASSERT_THAT(open_ia(GetParam(), 0, &shared, &second), Succeeds());
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
  DAT_SRQ_ATTR attr{.max_recv_dtos = 2, .max_recv_iov = 1, .low_watermark = 1};
  ASSERT_THAT(dat_pz_create(second, &pz), Succeeds());
  ASSERT_THAT(dat_srq_create(second, pz, &attr, &srq), Succeeds());
  EXPECT_EQ(
      expect_event(made.get(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR).event_data.asynch_error_event_data.dat_handle,
      srq);
  EXPECT_THAT(dat_ia_close(second, DAT_CLOSE_ABRUPT_FLAG), Succeeds());
}

// EVD-CREATE-16, THR-8, HND-5
TEST_P(EvdCreate, ManyThreadsCreateAtOnce) {
  std::mutex lock;
  std::vector<DAT_EVD_HANDLE> all;
  const Cno cno(ia);
  in_threads(4, [&](int) {
    for (int i = 0; i < 100; ++i) {
      DAT_EVD_HANDLE made = DAT_HANDLE_NULL;
      const DAT_RETURN rc = dat_evd_create(ia.get(), 3, cno.get(), DAT_EVD_SOFTWARE_FLAG, &made);
      const std::lock_guard guard(lock);
      EXPECT_THAT(rc, Succeeds());
      all.push_back(made);
    }
  });
  EXPECT_EQ(std::set<DAT_HANDLE>(all.begin(), all.end()).size(), 400u);
  for (const DAT_EVD_HANDLE one : all) {
    post(one);
    EXPECT_EQ(take(one), 1u);
    EXPECT_THAT(dat_evd_free(one), Succeeds());
  }
}

ANYDAT_OVER_ALL_WIRES(EvdCreate);

}  // namespace
}  // namespace anydat::test
