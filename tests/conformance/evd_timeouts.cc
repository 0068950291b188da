// SPDX-License-Identifier: BSD-3-Clause
// Time-outs of dat_evd_wait and dat_cno_wait: section 1.7 of part 1. That the clock is not the wall clock (TMO-3) needs
// a privilege to show; the rest of the rule is shown here.
#include "evd_fixture.h"

namespace anydat::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

DAT_TIMEOUT to_dat(microseconds time) {
  return static_cast<DAT_TIMEOUT>(time.count());
}

const DAT_TIMEOUT kNotable[] = {0,          1,          999'999,    1'000'000,  0x7FFFFFFF,
                                0x80000000, 4294967,    4294968,    0xFFFF0000, 0xFFFFFFFD,
                                0xFFFFFFFE, 0xFFFFFFFF, 2147483647, 4294000000, DAT_TIMEOUT_INFINITE};

class EvdTimeouts : public EvdTest {
 protected:
  Cno cno{ia};
  Evd noting{ia, DAT_EVD_SOFTWARE_FLAG, kLength, cno.get()};
};

// EVD-WAIT-19: by the end of a wait that began later, one without a limit goes on.
TEST_P(EvdTimeouts, AnInfiniteWaitIsEndedByAnEventOnly) {
  BlockedWait forever(evd.get(), 1, DAT_TIMEOUT_INFINITE);
  EXPECT_THAT(wait_evd(noting.get(), to_dat(milliseconds(200))).rc, HasType(DAT_TIMEOUT_EXPIRED));
  EXPECT_FALSE(forever.returned_within(quiet_time()));
  post(evd.get());
  EXPECT_THAT(forever.result().rc, Succeeds());
}

// TMO-8, TMO-1, CNO-WAIT-4
TEST_P(EvdTimeouts, EveryValueIsValid) {
  std::vector<DAT_TIMEOUT> values(std::begin(kNotable), std::end(kNotable));
  for (int bit = 0; bit < 32; ++bit) {
    values.push_back(DAT_TIMEOUT{1} << bit);
  }
  for (const DAT_TIMEOUT timeout : values) {
    post(evd.get());
    EXPECT_THAT(wait_evd(evd.get(), timeout).rc, Succeeds()) << timeout;
    post(noting.get());
    EXPECT_THAT(wait_cno(cno.get(), timeout).rc, Succeeds()) << timeout;
    take(noting.get());
  }
}

// TMO-1: none of the long ones overflows into a short one.
TEST_P(EvdTimeouts, LongestWaitsBlock) {
  for (const DAT_TIMEOUT timeout : {0x7FFFFFFFu, 0x80000000u, 4294967u * 1000u, 0xFFFFFFFEu, 0xFFFFFFFFu}) {
    BlockedWait waiter(evd.get(), 1, timeout);
    BlockedCnoWait cno_waiter(cno.get(), timeout);
    EXPECT_FALSE(waiter.returned_within(quiet_time())) << timeout;
    EXPECT_FALSE(cno_waiter.returned_within(quiet_time())) << timeout;
    post(evd.get());
    post(noting.get());
    EXPECT_THAT(waiter.result().rc, Succeeds());
    EXPECT_THAT(cno_waiter.result().rc, Succeeds());
    take(noting.get());
  }
}

// TMO-2, EVD-WAIT-18, CNO-WAIT-3, CNO-WAIT-4
TEST_P(EvdTimeouts, ZeroPolls) {
  EXPECT_THAT(wait_evd(evd.get(), 0).rc, HasType(DAT_TIMEOUT_EXPIRED));
  EXPECT_THAT(wait_cno(cno.get(), 0).rc, HasType(DAT_QUEUE_EMPTY));
  post(evd.get());
  post(noting.get());
  EXPECT_THAT(wait_evd(evd.get(), 0).rc, Succeeds());
  EXPECT_THAT(wait_cno(cno.get(), 0).rc, Succeeds());
}

// TMO-3
TEST_P(EvdTimeouts, NoneComesEarly) {
  for (const microseconds time : {microseconds(1), microseconds(300), microseconds(5'000), microseconds(40'000)}) {
    Clock::time_point start = Clock::now();
    EXPECT_THAT(wait_evd(evd.get(), to_dat(time)).rc, HasType(DAT_TIMEOUT_EXPIRED));
    EXPECT_GE(Clock::now() - start, time);
    start = Clock::now();
    EXPECT_THAT(wait_cno(cno.get(), to_dat(time)).rc, HasType(DAT_QUEUE_EMPTY));
    EXPECT_GE(Clock::now() - start, time);
  }
}

// TMO-3: nor when the thread is woken again and again by what does not end its wait.
TEST_P(EvdTimeouts, NoneComesEarlyUnderTraffic) {
  constexpr milliseconds kTime(60);
  std::atomic<bool> done = false;
  std::thread traffic([&] {
    while (!done) {
      post(evd.get());
      take(evd.get());
    }
  });
  const Evd quiet(ia, DAT_EVD_SOFTWARE_FLAG, 4);
  Clock::time_point start = Clock::now();
  EXPECT_THAT(wait_evd(quiet.get(), to_dat(kTime)).rc, HasType(DAT_TIMEOUT_EXPIRED));
  EXPECT_GE(Clock::now() - start, kTime);
  start = Clock::now();
  EXPECT_THAT(wait_cno(cno.get(), to_dat(kTime)).rc, HasType(DAT_QUEUE_EMPTY));
  EXPECT_GE(Clock::now() - start, kTime);
  done = true;
  traffic.join();
}

// TMO-4, EVD-WAIT-27: events arrive four times in every time-out and are never enough. A wait that began anew at each
// would last until they end.
TEST_P(EvdTimeouts, ArrivalsBelowTheThresholdDoNotProlongTheWait) {
  milliseconds time(40);
  ASSERT_THAT(dat_evd_resize(evd.get(), 100'000), Succeeds());
  const auto waiter = blocked_for(evd.get(), 100'000, time);
  const auto end = Clock::now() + 2 * time + patience();
  while (!waiter->returned_within(time / 4) && Clock::now() < end) {
    post(evd.get());
  }
  EXPECT_TRUE(waiter->returned_within(milliseconds(0)));
  if (!waiter->returned_within(milliseconds(0))) {
    ASSERT_THAT(dat_evd_set_unwaitable(evd.get()), Succeeds());
  }
  EXPECT_THAT(waiter->result().rc, HasType(DAT_TIMEOUT_EXPIRED));
}

// TMO-4: the same for a CNO, whose waiter is woken by nothing but what else happens on the adapter.
TEST_P(EvdTimeouts, OtherActivityDoesNotProlongACnoWait) {
  constexpr milliseconds kTime(400);
  BlockedCnoWait waiter(cno.get(), to_dat(kTime));
  const AsyncSource source(ia);
  const auto end = Clock::now() + patience();
  while (!waiter.returned_within(kTime / 4) && Clock::now() < end) {
    source.fire();
    drain(ia.async_evd());
    post(evd.get());
    take(evd.get());
  }
  ASSERT_TRUE(waiter.returned_within(milliseconds(0)));
  EXPECT_THAT(waiter.result().rc, HasType(DAT_QUEUE_EMPTY));
}

// TMO-5, EVD-WAIT-7: whichever comes first, time or event, the event is handed out once.
TEST_P(EvdTimeouts, EventAtTheLastMomentIsNotLost) {
  for (int round = 0; round < 300; ++round) {
    const microseconds time(50 + round);
    std::thread poster([&] {
      const auto at = Clock::now() + time;
      while (Clock::now() < at) {
      }
      post(evd.get());
    });
    const EvdResult result = wait_evd(evd.get(), to_dat(time));
    poster.join();
    if (result.rc == DAT_SUCCESS) {
      EXPECT_EQ(result.more, 0);
      EXPECT_FALSE(poll_event(evd.get())) << "round " << round;
    } else {
      EXPECT_THAT(result.rc, HasType(DAT_TIMEOUT_EXPIRED));
      EXPECT_EQ(take_all(evd.get()).size(), 1u) << "round " << round;
    }
  }
}

// TMO-5, CNO-WAIT-14: the same for a trigger.
TEST_P(EvdTimeouts, TriggerAtTheLastMomentIsNotLost) {
  for (int round = 0; round < 300; ++round) {
    const microseconds time(50 + round);
    std::thread poster([&] {
      const auto at = Clock::now() + time;
      while (Clock::now() < at) {
      }
      post(noting.get());
    });
    const CnoResult result = wait_cno(cno.get(), to_dat(time));
    poster.join();
    if (result.rc == DAT_SUCCESS) {
      EXPECT_EQ(result.evd, noting.get());
      EXPECT_FALSE(take_trigger(cno.get())) << "round " << round;
    } else {
      EXPECT_THAT(result.rc, HasType(DAT_QUEUE_EMPTY));
      EXPECT_EQ(result.evd, DAT_HANDLE_NULL);
      EXPECT_TRUE(take_trigger(cno.get())) << "round " << round;
    }
    take(noting.get());
  }
}

ANYDAT_OVER_ALL_WIRES(EvdTimeouts);

}  // namespace
}  // namespace anydat::test
