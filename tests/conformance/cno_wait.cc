// SPDX-License-Identifier: BSD-3-Clause
// dat_cno_wait and when an event triggers a CNO: sections 5.7 and 8.5 of part 1. Time-outs and signals have files of
// their own.
#include <algorithm>
#include <memory>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

class CnoWait : public EvdTest {
 protected:
  Cno cno{ia};
  Evd one{ia, DAT_EVD_SOFTWARE_FLAG, kLength, cno.get()};
  Evd two{ia, DAT_EVD_SOFTWARE_FLAG, kLength, cno.get()};
};

// CNO-WAIT-1, EVM-43
TEST_P(CnoWait, TriggerIsLatchedAndTakenOnce) {
  post(one.get());
  EXPECT_THAT(wait_cno(cno.get(), long_timeout()).rc, Succeeds());
  EXPECT_THAT(wait_cno(cno.get(), 0).rc, HasType(DAT_QUEUE_EMPTY)) << "although the event is still queued";
  EXPECT_EQ(queued(one.get()), 1);
}

// EVM-43
TEST_P(CnoWait, SeveralTriggersBeforeAWaitCountAsOne) {
  post_range(one.get(), 1, 3);
  post_range(two.get(), 1, 2);
  EXPECT_TRUE(take_trigger(cno.get()));
  EXPECT_FALSE(take_trigger(cno.get()));
  EXPECT_EQ(take_all(one.get()).size(), 3u);
  EXPECT_EQ(take_all(two.get()).size(), 2u);
}

// CNO-WAIT-1, CNO-WAIT-2
TEST_P(CnoWait, BlockedThreadIsToldTheEvd) {
  for (const Evd* evd_ : {&one, &two}) {
    BlockedCnoWait waiter(cno.get());
    post(evd_->get());
    const CnoResult result = waiter.result();
    EXPECT_THAT(result.rc, Succeeds());
    EXPECT_EQ(result.evd, evd_->get());
    EXPECT_FALSE(take_trigger(cno.get())) << "the waiter has had it";
  }
}

// CNO-WAIT-3, CNO-WAIT-4, RC-3
TEST_P(CnoWait, TimeoutIsAnEmptyQueueWithoutAnEvd) {
  for (const DAT_TIMEOUT timeout : {0u, 1u, 2000u}) {
    DAT_EVD_HANDLE evd_ = one.get();
    EXPECT_THAT(dat_cno_wait(cno.get(), timeout, &evd_), HasType(DAT_QUEUE_EMPTY)) << timeout;
    EXPECT_EQ(evd_, DAT_HANDLE_NULL) << timeout;
  }
}

// CNO-WAIT-5, EVM-41, EVM-42: a disabled EVD, or one that a thread waits on, triggers nothing, then or later.
TEST_P(CnoWait, DisabledAndWaitedOnEvdsDeliverNoTrigger) {
  ASSERT_THAT(dat_evd_disable(one.get()), Succeeds());
  post(one.get());
  EXPECT_FALSE(take_trigger(cno.get()));
  BlockedWait waiter(two.get(), 2);
  post(two.get());
  EXPECT_FALSE(take_trigger(cno.get()));
  post(two.get());
  EXPECT_THAT(waiter.result().rc, Succeeds());
  EXPECT_FALSE(take_trigger(cno.get()));
  ASSERT_THAT(dat_evd_enable(one.get()), Succeeds());
  EXPECT_FALSE(take_trigger(cno.get()));
  post(two.get());
  EXPECT_TRUE(take_trigger(cno.get())) << "nobody waits on it any more";
}

// CNO-WAIT-6, CNO-WAIT-15
TEST_P(CnoWait, EachTriggerReleasesAtLeastOneOfSeveralThreads) {
  std::vector<std::unique_ptr<BlockedCnoWait>> waiters;
  for (int i = 0; i < 3; ++i) {
    waiters.push_back(std::make_unique<BlockedCnoWait>(cno.get()));
  }
  const auto returned = [&] {
    return std::count_if(waiters.begin(), waiters.end(),
                         [](auto& waiter) { return waiter->returned_within(std::chrono::milliseconds(0)); });
  };
  for (int i = 1; i <= 3; ++i) {
    post(one.get());
    EXPECT_TRUE(eventually([&] { return returned() >= i; })) << "after trigger " << i;
  }
  for (auto& waiter : waiters) {
    EXPECT_EQ(waiter->result().evd, one.get());
  }
}

// CNO-WAIT-6, CNO-WAIT-15, THR-1, EVM-44: threads that wait, drain what they are told of, and wait again meet every
// event.
TEST_P(CnoWait, ManyThreadsMeetAllEvents) {
  constexpr int kEvents = 2000;
  std::atomic<int> taken = 0;
  const auto deadline = std::chrono::steady_clock::now() + patience();
  const auto in_time = [&] { return std::chrono::steady_clock::now() < deadline; };
  in_threads(4, [&](int index) {
    if (index == 0) {
      for (int i = 0; i < kEvents && in_time();) {
        if (try_post(i % 2 == 0 ? one.get() : two.get()) == DAT_SUCCESS) ++i;
      }
      return;
    }
    while (taken < kEvents && in_time()) {
      const CnoResult result = wait_cno(cno.get(), 1000);
      EXPECT_TRUE(result.rc == DAT_SUCCESS || is_type(result.rc, DAT_QUEUE_EMPTY)) << describe(result.rc);
      taken += drain(one.get()) + drain(two.get());
    }
  });
  EXPECT_EQ(taken, kEvents);
}

// EVM-44: a thread that sees the trigger finds the event, if no other takes it.
TEST_P(CnoWait, EventIsQueuedBeforeItsTriggerShows) {
  constexpr std::uintptr_t kEvents = 2000;
  std::atomic<std::uintptr_t> taken = 0;
  const std::jthread poster([&](const std::stop_token& over) {
    for (std::uintptr_t i = 1; i <= kEvents && try_post(one.get(), i) == DAT_SUCCESS; ++i) {
      while (taken < i) {
        if (over.stop_requested()) return;
        std::this_thread::yield();
      }
    }
  });
  for (std::uintptr_t i = 1; i <= kEvents; ++i) {
    // Half of the time the trigger is looked for all the time, so that it is seen as soon as it can be.
    CnoResult result = wait_cno(cno.get(), i % 2 == 0 ? long_timeout() : 0);
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (i % 2 == 1 && is_type(result.rc, DAT_QUEUE_EMPTY) && std::chrono::steady_clock::now() < deadline) {
      result = wait_cno(cno.get(), 0);
    }
    ASSERT_THAT(result.rc, Succeeds());
    ASSERT_EQ(result.evd, one.get());
    // Each event comes after the one before it was taken, so that the trigger is its own.
    ASSERT_THAT(take_all(one.get()), testing::ElementsAre(i));
    taken = i;
  }
}

// CNO-WAIT-8, EVD-FREE-7
TEST_P(CnoWait, AllThreadsAreReleasedWithTheLastEvd) {
  BlockedCnoWait first(cno.get());
  BlockedCnoWait second(cno.get());
  ASSERT_THAT(one.free(), Succeeds());
  EXPECT_TRUE(first.stays_blocked());
  ASSERT_THAT(two.free(), Succeeds());
  for (BlockedCnoWait* waiter : {&first, &second}) {
    const CnoResult result = waiter->result();
    EXPECT_THAT(result.rc, Succeeds());
    EXPECT_EQ(result.evd, DAT_HANDLE_NULL);
  }
}

// CNO-WAIT-17
TEST_P(CnoWait, ReleaseByTheLastEvdIsNotLatched) {
  ASSERT_THAT(one.free(), Succeeds());
  ASSERT_THAT(two.free(), Succeeds());
  EXPECT_FALSE(take_trigger(cno.get()));
}

// CNO-WAIT-9
TEST_P(CnoWait, CnoWithoutEvdsBlocksUntilOneComes) {
  const Cno empty(ia);
  EXPECT_THAT(wait_cno(empty.get(), 1000).rc, HasType(DAT_QUEUE_EMPTY));
  BlockedCnoWait waiter(empty.get());
  EXPECT_TRUE(waiter.stays_blocked());
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), empty.get()), Succeeds());
  EXPECT_TRUE(waiter.stays_blocked());
  post(evd.get());
  EXPECT_EQ(waiter.result().evd, evd.get());
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), DAT_HANDLE_NULL), Succeeds());
}

// CNO-WAIT-11
TEST_P(CnoWait, FreedEvdIsNotReported) {
  post(one.get());
  ASSERT_THAT(one.free(), Succeeds());
  const CnoResult result = wait_cno(cno.get(), 0);
  EXPECT_THAT(result.rc, Succeeds());
  EXPECT_EQ(result.evd, DAT_HANDLE_NULL);
  post(two.get());
  EXPECT_EQ(wait_cno(cno.get(), 0).evd, two.get());
}

// CNO-WAIT-11, EVD-MODCNO-5: nor is one that has left the CNO before.
TEST_P(CnoWait, EvdFreedElsewhereIsNotReported) {
  const Cno other(ia);
  for (const DAT_CNO_HANDLE to : {DAT_CNO_HANDLE{DAT_HANDLE_NULL}, other.get()}) {
    Evd moved(ia, DAT_EVD_SOFTWARE_FLAG, kLength, cno.get());
    post(moved.get());
    ASSERT_THAT(dat_evd_modify_cno(moved.get(), to), Succeeds());
    ASSERT_THAT(moved.free(), Succeeds());
    const CnoResult result = wait_cno(cno.get(), 0);
    // Whether the trigger stays is open; what it names is not.
    if (DAT_GET_TYPE(result.rc) == DAT_SUCCESS) {
      EXPECT_EQ(result.evd, DAT_HANDLE_NULL);
    }
  }
}

// CNO-WAIT-12
TEST_P(CnoWait, BadArgumentsAreRefusedAndTakeNoTrigger) {
  post(one.get());
  for (const DAT_HANDLE bad : {DAT_HANDLE_NULL, ia.get(), one.get()}) {
    EXPECT_THAT(wait_cno(bad, 0).rc, HasType(DAT_INVALID_HANDLE));
  }
  EXPECT_THAT(dat_cno_wait(cno.get(), 0, nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_TRUE(take_trigger(cno.get()));
}

// CNO-WAIT-13, EVM-45
TEST_P(CnoWait, NoEventIsTaken) {
  post_range(one.get(), 1, 3);
  EXPECT_TRUE(take_trigger(cno.get()));
  EXPECT_EQ(take_all(one.get()), (std::vector<std::uintptr_t>{1, 2, 3}));
}

// CNO-WAIT-16, HND-7
TEST_P(CnoWait, EvdOfAnotherInstanceCannotJoin) {
  const Ia other(GetParam());
  const Evd foreign(other, DAT_EVD_SOFTWARE_FLAG, 4);
  EXPECT_THAT(dat_evd_modify_cno(foreign.get(), cno.get()), HasType(DAT_INVALID_HANDLE));
  EXPECT_EQ(query_evd(foreign.get()).cno_handle, DAT_HANDLE_NULL);
}

// CNO-MOD-4: what the agent is has no part in waiting.
TEST_P(CnoWait, ChangingTheAgentTouchesNothingElse) {
  CountingAgent agent;
  post(one.get());
  ASSERT_THAT(dat_cno_modify_agent(cno.get(), agent.agent()), Succeeds());
  EXPECT_EQ(wait_cno(cno.get(), 0).evd, one.get()) << "the latched trigger stays";
  BlockedCnoWait waiter(cno.get());
  ASSERT_THAT(dat_cno_modify_agent(cno.get(), no_agent()), Succeeds());
  EXPECT_TRUE(waiter.stays_blocked());
  EXPECT_EQ(query_evd(one.get()).cno_handle, cno.get());
  post(two.get());
  EXPECT_EQ(waiter.result().evd, two.get());
  EXPECT_EQ(agent.calls(), 0);
}

ANYDAT_OVER_ALL_WIRES(CnoWait);

}  // namespace
}  // namespace anydat::test
