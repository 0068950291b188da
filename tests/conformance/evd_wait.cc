// SPDX-License-Identifier: BSD-3-Clause
// dat_evd_wait without time-outs, signals and completion flags: section 7.6 of part 1.
#include <atomic>
#include <climits>
#include <cstring>
#include <thread>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

class EvdWait : public EvdTest {};

// EVD-WAIT-1, EVD-WAIT-2, EVT-1, EVT-2, EVT-37
TEST_P(EvdWait, EventIsTheHeadOfTheQueueAndFilledInFull) {
  post_range(evd.get(), 0xDEADBEEF, 2);
  for (const std::uintptr_t expected : {0xDEADBEEFu, 0xDEADBEF0u}) {
    DAT_EVENT event;
    std::memset(&event, 0xA5, sizeof event);
    DAT_COUNT more = -1;
    ASSERT_THAT(dat_evd_wait(evd.get(), 0, 1, &event, &more), Succeeds());
    EXPECT_EQ(event.event_number, DAT_SOFTWARE_EVENT);
    EXPECT_EQ(event.evd_handle, evd.get());
    EXPECT_EQ(value_of(event), expected);
  }
  EXPECT_FALSE(poll_event(evd.get()));
}

// EVD-WAIT-3, EVM-36, EVM-37
TEST_P(EvdWait, ConditionThatHoldsAtEntryNeedsNoWaiting) {
  post_range(evd.get(), 1, 3);
  for (const DAT_TIMEOUT timeout : {DAT_TIMEOUT_INFINITE, DAT_TIMEOUT{0}, DAT_TIMEOUT{1}}) {
    EXPECT_THAT(wait_evd(evd.get(), timeout, 1).rc, Succeeds());
  }
  post_range(evd.get(), 1, 3);
  const EvdResult result = wait_evd(evd.get(), DAT_TIMEOUT_INFINITE, 3);
  EXPECT_THAT(result.rc, Succeeds());
  EXPECT_EQ(result.more, 2);
}

// EVD-WAIT-4, EVM-27, EVM-29, EVM-40
TEST_P(EvdWait, BlocksUntilEnoughEventsAreQueuedAndTakesOne) {
  BlockedWait waiter(evd.get(), 3);
  post(evd.get(), 1);
  post(evd.get(), 2);
  EXPECT_TRUE(waiter.stays_blocked()) << "two of three";
  post(evd.get(), 3);
  const EvdResult result = waiter.result();
  ASSERT_THAT(result.rc, Succeeds());
  EXPECT_EQ(value_of(result.event), 1u);
  EXPECT_EQ(result.event.evd_handle, evd.get());
  EXPECT_EQ(take_all(evd.get()), (std::vector<std::uintptr_t>{2, 3}));
}

// EVD-WAIT-5, EVD-WAIT-6
TEST_P(EvdWait, NmoreIsWhatIsLeft) {
  post_range(evd.get(), 1, 5);
  for (const DAT_COUNT threshold : {1, 2, 3}) {
    const DAT_COUNT before = queued(evd.get());
    const EvdResult result = wait_evd(evd.get(), 0, threshold);
    ASSERT_THAT(result.rc, Succeeds());
    EXPECT_EQ(result.more, before - 1);
    EXPECT_GE(result.more, threshold - 1);
  }
  post(evd.get(), 6);
  EXPECT_EQ(queued(evd.get()), 3) << "more have come since";
}

// EVD-WAIT-7, EVD-WAIT-18, TMO-2
TEST_P(EvdWait, TooFewEventsGiveTimeoutWithTheirNumber) {
  EXPECT_THAT(wait_evd(evd.get(), 0, 1).rc, HasType(DAT_TIMEOUT_EXPIRED));
  post_range(evd.get(), 1, 2);
  for (const DAT_TIMEOUT timeout : {0, 1, 1000}) {
    DAT_COUNT more = -1;
    DAT_EVENT event{};
    EXPECT_THAT(dat_evd_wait(evd.get(), timeout, 3, &event, &more), HasType(DAT_TIMEOUT_EXPIRED)) << timeout;
    EXPECT_EQ(more, 2) << timeout;
  }
  EXPECT_THAT(wait_evd(evd.get(), 0, 2).rc, Succeeds());
  EXPECT_EQ(take_all(evd.get()), (std::vector<std::uintptr_t>{2})) << "none was removed";
}

// EVD-WAIT-9, EVD-WAIT-10, EVD-WAIT-12
TEST_P(EvdWait, ThresholdLiesBetweenOneAndTheQueueLength) {
  const DAT_COUNT length = evd.qlen();
  post_range(evd.get(), 1, 2);
  for (const DAT_COUNT threshold : {0, -1, INT_MIN, length + 1, INT_MAX}) {
    for (const DAT_TIMEOUT timeout : {DAT_TIMEOUT{0}, DAT_TIMEOUT_INFINITE}) {
      EXPECT_THAT(wait_evd(evd.get(), timeout, threshold).rc, HasType(DAT_INVALID_PARAMETER)) << threshold;
    }
  }
  EXPECT_EQ(queued(evd.get()), 2) << "none was removed";
  post_range(evd.get(), 3, length - 2);
  const EvdResult result = wait_evd(evd.get(), 0, length);
  EXPECT_THAT(result.rc, Succeeds());
  EXPECT_EQ(result.more, length - 1);
}

// EVD-WAIT-10, ruling A57: the length that counts is the one the query reports.
TEST_P(EvdWait, ThresholdFollowsAResize) {
  const DAT_COUNT before = evd.qlen();
  EXPECT_THAT(wait_evd(evd.get(), 0, before + 1).rc, HasType(DAT_INVALID_PARAMETER));
  ASSERT_THAT(dat_evd_resize(evd.get(), before + 1), Succeeds());
  EXPECT_THAT(wait_evd(evd.get(), 0, before + 1).rc, HasType(DAT_TIMEOUT_EXPIRED));
}

// EVD-WAIT-9, EVD-WAIT-13
TEST_P(EvdWait, ResultsMayNotBeNull) {
  post(evd.get());
  DAT_EVENT event{};
  DAT_COUNT more = 0;
  EXPECT_THAT(dat_evd_wait(evd.get(), 0, 1, nullptr, &more), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_evd_wait(evd.get(), 0, 1, &event, nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(queued(evd.get()), 1);
}

// EVD-WAIT-9, EVD-WAIT-14, EVD-DEQ-4, EVM-39
TEST_P(EvdWait, BlockedWaiterOwnsTheEvd) {
  BlockedWait waiter(evd.get(), 3);
  post_range(evd.get(), 1, 2);
  for (const DAT_TIMEOUT timeout : {DAT_TIMEOUT{0}, DAT_TIMEOUT{1}, DAT_TIMEOUT_INFINITE}) {
    for (const DAT_COUNT threshold : {1, 2, 3}) {
      const DAT_RETURN rc = wait_evd(evd.get(), timeout, threshold).rc;
      EXPECT_THAT(rc, HasType(DAT_INVALID_STATE)) << "although enough may be queued";
      EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_EVD_WAITER));
    }
  }
  DAT_EVENT event{};
  EXPECT_THAT(dat_evd_dequeue(evd.get(), &event), HasType(DAT_INVALID_STATE));
  post(evd.get(), 3);
  EXPECT_THAT(waiter.result().rc, Succeeds());
  EXPECT_EQ(take_all(evd.get()), (std::vector<std::uintptr_t>{2, 3})) << "the refused calls took nothing";
}

// EVD-WAIT-15, EVD-UNW-2
TEST_P(EvdWait, UnwaitableEvdRefusesAtOnce) {
  post_range(evd.get(), 1, 2);
  ASSERT_THAT(dat_evd_set_unwaitable(evd.get()), Succeeds());
  for (const DAT_TIMEOUT timeout : {DAT_TIMEOUT{0}, DAT_TIMEOUT{1}, DAT_TIMEOUT_INFINITE}) {
    for (const DAT_COUNT threshold : {1, 2, 3}) {
      const DAT_RETURN rc = wait_evd(evd.get(), timeout, threshold).rc;
      EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
      EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_EVD_UNWAITABLE));
    }
  }
  EXPECT_EQ(take_all(evd.get()).size(), 2u);
}

// EVD-WAIT-16, EVD-UNW-3
TEST_P(EvdWait, MakingTheEvdUnwaitableReleasesTheWaiterWithoutAnEvent) {
  BlockedWait waiter(evd.get(), 2);
  post(evd.get(), 1);
  ASSERT_THAT(dat_evd_set_unwaitable(evd.get()), Succeeds());
  EXPECT_THAT(waiter.result().rc, HasType(DAT_INVALID_STATE));
  EXPECT_EQ(take_all(evd.get()), (std::vector<std::uintptr_t>{1}));
}

// EVD-WAIT-16, ruling A61
TEST_P(EvdWait, WaiterIsReleasedEvenIfTheEvdIsWaitableAgainAtOnce) {
  for (int round = 0; round < 20; ++round) {
    BlockedWait waiter(evd.get());
    ASSERT_THAT(dat_evd_set_unwaitable(evd.get()), Succeeds());
    ASSERT_THAT(dat_evd_clear_unwaitable(evd.get()), Succeeds());
    EXPECT_THAT(waiter.result().rc, HasType(DAT_INVALID_STATE)) << "round " << round;
  }
}

// EVD-WAIT-17, EVD-FREE-5, EVD-FREE-1
TEST_P(EvdWait, FreeingTheEvdAbortsTheWaiter) {
  BlockedWait waiter(evd.get());
  const DAT_EVD_HANDLE handle = evd.get();
  EXPECT_THAT(evd.free(), Succeeds());
  EXPECT_THAT(waiter.result().rc, HasType(DAT_ABORT));
  EXPECT_THAT(wait_evd(handle, 0).rc, HasType(DAT_INVALID_HANDLE));
}

// EVD-WAIT-17: a thread that is in the call, and not its waiter yet, is aborted as well.
TEST_P(EvdWait, FreeingTheEvdAbortsWhoIsAboutToWait) {
  for (int round = 0; round < 300; ++round) {
    Evd brief(ia, DAT_EVD_SOFTWARE_FLAG, 4);
    std::atomic<bool> begins{false};
    DAT_RETURN rc = DAT_SUCCESS;
    std::thread waiter([&, handle = brief.get()] {
      begins = true;
      rc = wait_evd(handle, long_timeout()).rc;
    });
    while (!begins) std::this_thread::yield();
    std::atomic<int> moment{0};
    while (moment.fetch_add(1) < 4 * round) {
    }
    EXPECT_THAT(brief.free(), Succeeds());
    waiter.join();
    if (DAT_GET_TYPE(rc) != DAT_INVALID_HANDLE) {  // it came too late
      ASSERT_THAT(rc, HasType(DAT_ABORT)) << "round " << round;
    }
  }
}

// EVD-WAIT-20, EVM-42: the events of a waiter that leaves without them never trigger the CNO.
TEST_P(EvdWait, CnoIsNotTriggeredForEventsThatAWaiterLeavesBehind) {
  const Cno cno(ia);
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), cno.get()), Succeeds());
  {
    BlockedWait waiter(evd.get(), 3);
    post_range(evd.get(), 1, 2);
    ASSERT_THAT(dat_evd_set_unwaitable(evd.get()), Succeeds());
    EXPECT_THAT(waiter.result().rc, HasType(DAT_INVALID_STATE));
  }
  EXPECT_FALSE(take_trigger(cno.get()));
  ASSERT_THAT(dat_evd_clear_unwaitable(evd.get()), Succeeds());
  EXPECT_FALSE(take_trigger(cno.get()));
  EXPECT_EQ(take_all(evd.get()).size(), 2u);
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), DAT_HANDLE_NULL), Succeeds());
}

// EVD-WAIT-22, ruling A60: only a thread that really blocks owns the EVD.
TEST_P(EvdWait, OverlappingPollsRefuseNoneOfThem) {
  constexpr int kEvents = 400;
  std::atomic<int> taken = 0;
  std::atomic<int> unexpected = 0;
  const auto deadline = std::chrono::steady_clock::now() + patience();
  const auto in_time = [&] { return std::chrono::steady_clock::now() < deadline; };
  std::thread poster([&] {
    for (int i = 0; i < kEvents && in_time();) {
      if (try_post(evd.get()) == DAT_SUCCESS) ++i;
    }
  });
  in_threads(3, [&](int) {
    while (taken < kEvents && in_time()) {
      const DAT_RETURN rc = wait_evd(evd.get(), 0).rc;
      if (rc == DAT_SUCCESS) {
        ++taken;
      } else if (!is_type(rc, DAT_TIMEOUT_EXPIRED)) {
        ++unexpected;
      }
    }
  });
  poster.join();
  EXPECT_EQ(unexpected, 0);
  EXPECT_EQ(taken, kEvents);
}

// EVD-WAIT-23, HND-4
TEST_P(EvdWait, BadHandleIsRefused) {
  for (const DAT_HANDLE bad : {DAT_HANDLE_NULL, ia.get(), DAT_HANDLE{DAT_EVD_ASYNC_EXISTS}}) {
    EXPECT_THAT(wait_evd(bad, 0).rc, HasType(DAT_INVALID_HANDLE));
  }
}

// EVD-WAIT-24, OBJ-6
TEST_P(EvdWait, WorksOnTheAsyncEvd) {
  const AsyncSource source(ia);
  BlockedWait waiter(ia.async_evd(), 2);
  source.fire();
  EXPECT_TRUE(waiter.stays_blocked());
  source.fire();
  const EvdResult result = waiter.result();
  ASSERT_THAT(result.rc, Succeeds());
  EXPECT_EQ(result.event.event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
  EXPECT_EQ(result.event.evd_handle, ia.async_evd());
  EXPECT_EQ(result.more, 1);
  EXPECT_EQ(drain(ia.async_evd()), 1);
}

// EVD-WAIT-24
TEST_P(EvdWait, WorksOnEvdsOfAnyFlags) {
  for (const unsigned bits : {0x001u, 0x010u, 0x020u, 0x040u, 0x080u, 0x100u, 0x1F0u, 0x1F1u}) {
    const Evd any(ia, flags(bits), 3);
    EXPECT_THAT(wait_evd(any.get(), 0, 3).rc, HasType(DAT_TIMEOUT_EXPIRED)) << std::hex << bits;
    BlockedWait waiter(any.get());
    ASSERT_THAT(dat_evd_set_unwaitable(any.get()), Succeeds());
    EXPECT_THAT(waiter.result().rc, HasType(DAT_INVALID_STATE)) << std::hex << bits;
  }
}

// EVD-WAIT-26, EVM-9, EVM-10, EVD-POST-6
TEST_P(EvdWait, EventsOfOneStreamComeInOrderHoweverTheyAreTaken) {
  std::uintptr_t posted = 0;
  std::uintptr_t taken = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 7; ++i) {
      post(evd.get(), ++posted);
    }
    while (taken < posted) {
      const std::uintptr_t value = taken % 2 == 0 ? value_of(wait_evd(evd.get(), 0).event) : take(evd.get());
      ASSERT_EQ(value, ++taken);
    }
  }
}

ANYDAT_OVER_ALL_WIRES(EvdWait);

}  // namespace
}  // namespace anydat::test
