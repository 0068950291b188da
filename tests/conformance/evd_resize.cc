// SPDX-License-Identifier: BSD-3-Clause
// dat_evd_resize: section 7.9 of part 1.
#include <climits>
#include <numeric>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

class EvdResize : public EvdTest {
 protected:
  DAT_RETURN resize(DAT_COUNT length) { return dat_evd_resize(evd.get(), length); }
};

// EVD-RESIZE-1, EVD-POST-13
TEST_P(EvdResize, QueueThenHoldsWhatWasAskedAndReportsIt) {
  for (const DAT_COUNT length : {64, 3, 1000, 1}) {
    ASSERT_THAT(resize(length), Succeeds());
    const DAT_COUNT reported = query_evd(evd.get()).evd_qlen;
    ASSERT_GE(reported, length);
    post_range(evd.get(), 1, reported);
    EXPECT_THAT(try_post(evd.get()), HasType(DAT_QUEUE_FULL));
    EXPECT_EQ(take_all(evd.get()).size(), static_cast<std::size_t>(reported));
  }
}

// EVD-RESIZE-2: the queue is resized with its head at every place.
TEST_P(EvdResize, QueuedEventsStayInOrder) {
  std::uintptr_t next = 1;
  for (int round = 0; round < 40; ++round) {
    std::vector<std::uintptr_t> expected(5);
    std::iota(expected.begin(), expected.end(), next);
    post_range(evd.get(), next, 5);
    next += 5;
    ASSERT_THAT(resize(5 + round % 3), Succeeds());
    ASSERT_THAT(resize(9 - round % 2), Succeeds());
    ASSERT_EQ(take_all(evd.get()), expected) << "round " << round;
  }
}

// EVD-RESIZE-2, THR-7
TEST_P(EvdResize, LosesAndRepeatsNothingBesidePostsAndDequeues) {
  constexpr std::uintptr_t kEvents = 5000;
  ASSERT_THAT(resize(64), Succeeds());
  const auto deadline = std::chrono::steady_clock::now() + patience();
  const auto in_time = [&] { return std::chrono::steady_clock::now() < deadline; };
  std::atomic<bool> done = false;
  std::thread poster([&] {
    for (std::uintptr_t i = 1; i <= kEvents && in_time();) {
      if (try_post(evd.get(), i) == DAT_SUCCESS) ++i;
    }
  });
  std::thread resizer([&] {
    for (DAT_COUNT length = 32; !done; length = length == 32 ? 128 : 32) {
      const DAT_RETURN rc = resize(length);
      EXPECT_TRUE(rc == DAT_SUCCESS || is_type(rc, DAT_INVALID_STATE)) << describe(rc);
    }
  });
  std::uintptr_t expected = 1;
  while (expected <= kEvents && in_time()) {
    if (const auto event = poll_event(evd.get())) {
      if (value_of(*event) != expected) {
        ADD_FAILURE() << "event " << value_of(*event) << " where " << expected << " was due";
        break;
      }
      ++expected;
    }
  }
  done = true;
  poster.join();
  resizer.join();
  EXPECT_EQ(expected, kEvents + 1);
}

// EVD-RESIZE-3
TEST_P(EvdResize, StateFlagsAndCnoStay) {
  const Cno cno(ia);
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), cno.get()), Succeeds());
  ASSERT_THAT(dat_evd_disable(evd.get()), Succeeds());
  ASSERT_THAT(dat_evd_set_unwaitable(evd.get()), Succeeds());
  const DAT_EVD_PARAM before = query_evd(evd.get());
  ASSERT_THAT(resize(50), Succeeds());
  const DAT_EVD_PARAM after = query_evd(evd.get());
  EXPECT_EQ(after.evd_state, before.evd_state);
  EXPECT_EQ(after.evd_flags, before.evd_flags);
  EXPECT_EQ(after.cno_handle, cno.get());
  EXPECT_EQ(after.ia_handle, ia.get());
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), DAT_HANDLE_NULL), Succeeds());
}

// EVD-RESIZE-3: an EVD that is fed stays fed.
TEST_P(EvdResize, StreamsStayAttached) {
  const Evd requests(ia, DAT_EVD_CR_FLAG, 4);
  const Psp psp(ia, requests);
  ASSERT_THAT(dat_evd_resize(requests.get(), 8), Succeeds());
  EXPECT_THAT(dat_evd_free(requests.get()), HasType(DAT_INVALID_STATE));
}

// EVD-RESIZE-4, EVD-RESIZE-5, RC-6
TEST_P(EvdResize, BelowTheQueuedEventsIsRefusedAndAtThemIsNot) {
  post_range(evd.get(), 1, 5);
  const DAT_COUNT before = query_evd(evd.get()).evd_qlen;
  for (const DAT_COUNT length : {4, 1}) {
    EXPECT_THAT(resize(length), HasType(DAT_INVALID_STATE)) << length;
    EXPECT_EQ(query_evd(evd.get()).evd_qlen, before);
  }
  ASSERT_THAT(resize(5), Succeeds());
  if (query_evd(evd.get()).evd_qlen == 5) {
    EXPECT_THAT(try_post(evd.get()), HasType(DAT_QUEUE_FULL));
  }
  EXPECT_EQ(take_all(evd.get()), (std::vector<std::uintptr_t>{1, 2, 3, 4, 5}));
}

// EVD-RESIZE-6, EVD-RESIZE-7
TEST_P(EvdResize, LengthLiesBetweenOneAndTheAdaptersMaximum) {
  const DAT_COUNT before = query_evd(evd.get()).evd_qlen;
  const DAT_COUNT longest = ia.attributes().max_evd_qlen;
  for (const DAT_COUNT length : {0, -1, INT_MIN, longest + 1, INT_MAX}) {
    EXPECT_THAT(resize(length), HasType(DAT_INVALID_PARAMETER)) << length;
    EXPECT_EQ(query_evd(evd.get()).evd_qlen, before);
  }
  EXPECT_THAT(resize(longest), Succeeds());
}

// EVD-RESIZE-9
TEST_P(EvdResize, CurrentLengthChangesNothing) {
  const DAT_COUNT length = query_evd(evd.get()).evd_qlen;
  post_range(evd.get(), 1, length);
  EXPECT_THAT(resize(length), Succeeds());
  EXPECT_EQ(query_evd(evd.get()).evd_qlen, length);
  EXPECT_EQ(take_all(evd.get()).size(), static_cast<std::size_t>(length));
}

// EVD-RESIZE-10
TEST_P(EvdResize, IsRefusedWhileAThreadWaits) {
  const DAT_COUNT before = query_evd(evd.get()).evd_qlen;
  BlockedWait waiter(evd.get());
  for (const DAT_COUNT length : {1, before, before + 10}) {
    const DAT_RETURN rc = resize(length);
    EXPECT_THAT(rc, HasType(DAT_INVALID_STATE)) << length;
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_EVD_WAITER)) << length;
  }
  EXPECT_EQ(query_evd(evd.get()).evd_qlen, before);
  post(evd.get());
  EXPECT_THAT(waiter.result().rc, Succeeds());
  EXPECT_THAT(resize(before + 10), Succeeds());
}

// EVD-RESIZE-11, IA-OPEN-7, OBJ-6
TEST_P(EvdResize, WorksOnEvdsOfAllFlags) {
  for (const unsigned bits : {0x010u, 0x020u, 0x040u, 0x080u, 0x100u, 0x1F1u}) {
    const Evd other(ia, flags(bits), 4);
    EXPECT_THAT(dat_evd_resize(other.get(), 40), Succeeds()) << std::hex << bits;
    EXPECT_GE(other.qlen(), 40);
  }
  const AsyncSource source(ia);
  source.fire();
  source.fire();
  EXPECT_THAT(dat_evd_resize(ia.async_evd(), 1), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(dat_evd_resize(ia.async_evd(), 2), Succeeds());
  EXPECT_THAT(dat_evd_resize(ia.async_evd(), 5000), Succeeds());
  EXPECT_GE(query_evd(ia.async_evd()).evd_qlen, 5000);
  EXPECT_EQ(drain(ia.async_evd()), 2);
}

// EVD-RESIZE-12
TEST_P(EvdResize, BadHandleIsRefused) {
  for (const DAT_HANDLE bad : {DAT_HANDLE_NULL, ia.get()}) {
    EXPECT_THAT(dat_evd_resize(bad, 4), HasType(DAT_INVALID_HANDLE));
  }
}

ANYDAT_OVER_ALL_WIRES(EvdResize);

}  // namespace
}  // namespace anydat::test
