// SPDX-License-Identifier: BSD-3-Clause
// Signals that interrupt dat_evd_wait and dat_cno_wait: section 1.7 of part 1.
#include <unistd.h>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

class EvdSignals : public EvdTest {
 protected:
  Cno cno{ia};
  Evd noting{ia, DAT_EVD_SOFTWARE_FLAG, kLength, cno.get()};
};

// TMO-6, TMO-7, EVD-WAIT-8
TEST_P(EvdSignals, SignalInterruptsAnEvdWaitWhichTakesNothing) {
  const CountedSignal signal(SIGUSR1);
  for (const DAT_TIMEOUT timeout : {long_timeout(), DAT_TIMEOUT_INFINITE}) {
    post_range(evd.get(), 1, 2);
    BlockedWait waiter(evd.get(), 3, timeout);
    ASSERT_TRUE(interrupt(waiter, signal));
    const EvdResult result = waiter.result();
    EXPECT_THAT(result.rc, HasType(DAT_INTERRUPTED_CALL));
    EXPECT_EQ(result.more, 2);
    EXPECT_EQ(take_all(evd.get()), (std::vector<std::uintptr_t>{1, 2}));
  }
  EXPECT_GE(signal.count(), 2);
}

// TMO-6, TMO-7, CNO-WAIT-10
TEST_P(EvdSignals, SignalInterruptsACnoWait) {
  const CountedSignal signal(SIGUSR1);
  for (const DAT_TIMEOUT timeout : {long_timeout(), DAT_TIMEOUT_INFINITE}) {
    BlockedCnoWait waiter(cno.get(), timeout);
    ASSERT_TRUE(interrupt(waiter, signal));
    EXPECT_THAT(waiter.result().rc, HasType(DAT_INTERRUPTED_CALL));
    post(noting.get());
    EXPECT_EQ(wait_cno(cno.get(), 0).evd, noting.get());
    take(noting.get());
  }
}

// TMO-6, ruling A10: a handler that asks for system calls to be restarted makes no difference.
TEST_P(EvdSignals, RestartingHandlersInterruptToo) {
  const CountedSignal signal(SIGUSR1, SA_RESTART);
  BlockedWait waiter(evd.get());
  BlockedCnoWait cno_waiter(cno.get());
  ASSERT_TRUE(interrupt(waiter, signal));
  ASSERT_TRUE(interrupt(cno_waiter, signal));
  EXPECT_THAT(waiter.result().rc, HasType(DAT_INTERRUPTED_CALL));
  EXPECT_THAT(cno_waiter.result().rc, HasType(DAT_INTERRUPTED_CALL));
}

// TMO-6: each of several threads that sleep in one adapter is interrupted by its own signal, and no other.
TEST_P(EvdSignals, OnlyTheSignalledThreadReturns) {
  const CountedSignal signal(SIGUSR1);
  const Evd other(ia, DAT_EVD_SOFTWARE_FLAG, 4);
  BlockedWait first(evd.get());
  BlockedWait second(other.get());
  BlockedCnoWait third(cno.get());
  ASSERT_TRUE(interrupt(second, signal));
  EXPECT_THAT(second.result().rc, HasType(DAT_INTERRUPTED_CALL));
  EXPECT_TRUE(first.stays_blocked());
  EXPECT_TRUE(third.stays_blocked());
  ASSERT_TRUE(interrupt(first, signal));
  EXPECT_THAT(first.result().rc, HasType(DAT_INTERRUPTED_CALL));
  EXPECT_TRUE(third.stays_blocked());
  post(noting.get());
  EXPECT_EQ(third.result().evd, noting.get()) << "whoever left, the adapter still moves";
}

// TMO-6, ruling A10
TEST_P(EvdSignals, IgnoredAndBlockedSignalsInterruptNothing) {
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGUSR2, &ignore, &before), 0);
  const CountedSignal signal(SIGUSR1);
  BlockedCall<EvdResult> waiter([&] {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    return wait_evd(evd.get(), long_timeout());
  });
  for (int i = 0; i < 10; ++i) {
    waiter.signal(SIGUSR1);
    waiter.signal(SIGUSR2);
  }
  EXPECT_TRUE(waiter.stays_blocked());
  post(evd.get());
  EXPECT_THAT(waiter.result().rc, Succeeds());
  EXPECT_EQ(signal.count(), 0);
  ::sigaction(SIGUSR2, &before, nullptr);
}

// TMO-7: of a signal and an event that come together the event is never the loser.
TEST_P(EvdSignals, SignalBesideAnEventLosesNeitherEventNorTrigger) {
  const CountedSignal signal(SIGUSR1);
  for (int round = 0; round < 60; ++round) {
    const bool signal_first = round % 2 == 0;
    BlockedWait waiter(evd.get());
    BlockedCnoWait cno_waiter(cno.get());
    if (signal_first) {
      waiter.signal(SIGUSR1);
      cno_waiter.signal(SIGUSR1);
    }
    post(evd.get());
    post(noting.get());
    if (!signal_first) {
      waiter.signal(SIGUSR1);
      cno_waiter.signal(SIGUSR1);
    }
    const EvdResult result = waiter.result();
    EXPECT_EQ(take_all(evd.get()).size(), result.rc == DAT_SUCCESS ? 0u : 1u) << describe(result.rc);
    if (result.rc != DAT_SUCCESS) {
      EXPECT_THAT(result.rc, HasType(DAT_INTERRUPTED_CALL));
    }
    const CnoResult cno_result = cno_waiter.result();
    EXPECT_EQ(take_trigger(cno.get()), cno_result.rc != DAT_SUCCESS) << describe(cno_result.rc);
    if (cno_result.rc != DAT_SUCCESS) {
      EXPECT_THAT(cno_result.rc, HasType(DAT_INTERRUPTED_CALL));
    }
    take(noting.get());
  }
}

// TMO-6: the library's own threads take no signal that is meant for the program.
TEST_P(EvdSignals, SignalToTheProcessReachesTheThreadThatWaits) {
  const CountedSignal signal(SIGUSR1);
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  BlockedWait waiter(evd.get());
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);
  const bool returned = eventually([&] {
    ::kill(::getpid(), SIGUSR1);
    return waiter.returned_within(std::chrono::milliseconds(1));
  });
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  EXPECT_TRUE(returned);
  if (!returned) post(evd.get());
  EXPECT_THAT(waiter.result().rc, HasType(DAT_INTERRUPTED_CALL));
}

ANYDAT_OVER_ALL_WIRES(EvdSignals);

}  // namespace
}  // namespace anydat::test
