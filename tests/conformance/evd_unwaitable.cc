// SPDX-License-Identifier: BSD-3-Clause
// dat_evd_set_unwaitable and dat_evd_clear_unwaitable: sections 7.11 and 7.12 of part 1.
#include "evd_fixture.h"

namespace anydat::test {
namespace {

class EvdUnwaitable : public EvdTest {
 protected:
  void set() { ASSERT_THAT(dat_evd_set_unwaitable(evd.get()), Succeeds()); }
  void clear() { ASSERT_THAT(dat_evd_clear_unwaitable(evd.get()), Succeeds()); }
  unsigned waiting_part() { return query_evd(evd.get()).evd_state & kWaitingPart; }
};

// EVD-UNW-1, EVD-UNW-6, EVD-CLRUNW-1, EVD-CLRUNW-4
TEST_P(EvdUnwaitable, StateShowsItAndRepeatingItIsHarmless) {
  for (int i = 0; i < 2; ++i) {
    set();
    EXPECT_EQ(waiting_part(), static_cast<unsigned>(DAT_EVD_STATE_UNWAITABLE));
  }
  for (int i = 0; i < 2; ++i) {
    clear();
    EXPECT_EQ(waiting_part(), static_cast<unsigned>(DAT_EVD_STATE_WAITABLE));
  }
}

// EVD-UNW-2, EVD-CLRUNW-2
TEST_P(EvdUnwaitable, WaitingIsRefusedUntilItIsCleared) {
  set();
  EXPECT_THAT(wait_evd(evd.get(), DAT_TIMEOUT_INFINITE).rc, HasType(DAT_INVALID_STATE));
  clear();
  BlockedWait waiter(evd.get());
  post(evd.get(), 4);
  EXPECT_EQ(value_of(waiter.result().event), 4u);
}

// EVD-UNW-3: no other action is needed, and the event that was queued is still there.
TEST_P(EvdUnwaitable, BlockedThreadReturnsWithoutAnEvent) {
  BlockedWait waiter(evd.get(), 2);
  post(evd.get(), 1);
  set();
  EXPECT_THAT(waiter.result().rc, HasType(DAT_INVALID_STATE));
  EXPECT_EQ(take(evd.get()), 1u);
}

// EVD-UNW-4, EVD-UNW-5, EVD-CLRUNW-3, EVM-25
TEST_P(EvdUnwaitable, CnoIsNotTouchedAndEventsGoOn) {
  const Cno cno(ia);
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), cno.get()), Succeeds());
  set();
  EXPECT_FALSE(take_trigger(cno.get())) << "the call itself is no event";
  post(evd.get(), 1);
  EXPECT_TRUE(take_trigger(cno.get()));
  EXPECT_EQ(take(evd.get()), 1u);
  clear();
  EXPECT_FALSE(take_trigger(cno.get()));
  post(evd.get(), 2);
  EXPECT_TRUE(take_trigger(cno.get()));
  EXPECT_EQ(take(evd.get()), 2u);
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), DAT_HANDLE_NULL), Succeeds());
}

// EVD-UNW-4: a thread that waits on the CNO goes on waiting (section 10.2).
TEST_P(EvdUnwaitable, CnoWaiterKeepsWaiting) {
  const Cno cno(ia);
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), cno.get()), Succeeds());
  BlockedCnoWait waiter(cno.get());
  set();
  clear();
  EXPECT_TRUE(waiter.stays_blocked());
  set();
  post(evd.get());
  EXPECT_EQ(waiter.result().evd, evd.get());
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), DAT_HANDLE_NULL), Succeeds());
}

// EVD-UNW-7, EVD-CLRUNW-5
TEST_P(EvdUnwaitable, BadHandlesAreRefused) {
  for (const DAT_HANDLE bad : {DAT_HANDLE_NULL, ia.get()}) {
    EXPECT_THAT(dat_evd_set_unwaitable(bad), HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(dat_evd_clear_unwaitable(bad), HasType(DAT_INVALID_HANDLE));
  }
}

// EVD-UNW-7, EVD-CLRUNW-5, THR-1: a thread that waits, one that sets and clears, one that posts.
TEST_P(EvdUnwaitable, MayBeSetAndClearedWhileOthersWaitAndPost) {
  constexpr int kEvents = 300;
  std::atomic<bool> done = false;
  std::atomic<int> taken = 0;
  const auto deadline = std::chrono::steady_clock::now() + patience();
  const auto in_time = [&] { return std::chrono::steady_clock::now() < deadline; };
  std::thread waiter([&] {
    while (taken < kEvents && in_time()) {
      const DAT_RETURN rc = wait_evd(evd.get(), 1000).rc;
      if (rc == DAT_SUCCESS) {
        ++taken;
      } else {
        EXPECT_TRUE(is_type(rc, DAT_INVALID_STATE) || is_type(rc, DAT_TIMEOUT_EXPIRED)) << describe(rc);
      }
    }
    done = true;
  });
  std::thread toggler([&] {
    while (!done) {
      EXPECT_THAT(dat_evd_set_unwaitable(evd.get()), Succeeds());
      EXPECT_THAT(dat_evd_clear_unwaitable(evd.get()), Succeeds());
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < kEvents && in_time();) {
    if (try_post(evd.get()) == DAT_SUCCESS) ++i;
  }
  waiter.join();
  toggler.join();
  EXPECT_EQ(taken, kEvents);
  EXPECT_EQ(queued(evd.get()), 0);
}

ANYDAT_OVER_ALL_WIRES(EvdUnwaitable);

}  // namespace
}  // namespace anydat::test
