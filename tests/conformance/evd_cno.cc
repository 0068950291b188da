// SPDX-License-Identifier: BSD-3-Clause
// dat_evd_modify_cno, dat_evd_enable, dat_evd_disable: sections 7.3 to 7.5 of part 1.
#include "evd_fixture.h"

namespace anydat::test {
namespace {

class EvdCno : public EvdTest {
 protected:
  void associate(const Cno& cno) { ASSERT_THAT(dat_evd_modify_cno(evd.get(), cno.get()), Succeeds()); }
  void dissociate() { ASSERT_THAT(dat_evd_modify_cno(evd.get(), DAT_HANDLE_NULL), Succeeds()); }
  DAT_CNO_HANDLE associated() { return query_evd(evd.get()).cno_handle; }

  Cno first{ia};
  Cno second{ia};

  void TearDown() override { dissociate(); }
};

// EVD-MODCNO-1, OBJ-4: one CNO at a time, the one last given.
TEST_P(EvdCno, LaterNotificationsGoToTheCnoLastGiven) {
  associate(first);
  EXPECT_EQ(associated(), first.get());
  post(evd.get());
  EXPECT_TRUE(take_trigger(first.get()));
  associate(second);
  EXPECT_EQ(associated(), second.get());
  post(evd.get());
  EXPECT_FALSE(take_trigger(first.get()));
  EXPECT_TRUE(take_trigger(second.get()));
  dissociate();
  EXPECT_EQ(associated(), DAT_HANDLE_NULL);
  post(evd.get());
  EXPECT_FALSE(take_trigger(first.get()));
  EXPECT_FALSE(take_trigger(second.get()));
  EXPECT_EQ(queued(evd.get()), 3);
}

// EVD-MODCNO-2
TEST_P(EvdCno, EventDuringTheChangeTriggersOneOfTheTwo) {
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    associate(first);
    std::atomic<int> ready = 0;
    const auto together = [&](const std::function<void()>& action) {
      ++ready;
      while (ready < 2) {
      }
      action();
    };
    std::thread poster([&] { together([&] { post(evd.get()); }); });
    together([&] { associate(second); });
    poster.join();
    const bool old_one = take_trigger(first.get());
    const bool new_one = take_trigger(second.get());
    EXPECT_TRUE(old_one || new_one) << "round " << round;
    take(evd.get());
  }
}

// EVD-MODCNO-4: disabled, changed and enabled, an EVD tells the new CNO of what comes, and the old one of nothing.
TEST_P(EvdCno, ADisabledEvdChangesItsCnoUnnoticed) {
  associate(first);
  ASSERT_THAT(dat_evd_disable(evd.get()), Succeeds());
  post(evd.get(), 1);
  associate(second);
  post(evd.get(), 2);
  ASSERT_THAT(dat_evd_enable(evd.get()), Succeeds());
  post(evd.get(), 3);
  EXPECT_FALSE(take_trigger(first.get()));
  EXPECT_TRUE(take_trigger(second.get()));
  EXPECT_EQ(queued(evd.get()), 3);
}

// EVD-MODCNO-5, EVM-47: what triggered the old CNO can be dequeued, whether or not the trigger still shows.
TEST_P(EvdCno, EventsBehindAnEarlierTriggerStayOnTheEvd) {
  associate(first);
  post(evd.get(), 11);
  dissociate();
  const CnoResult late = wait_cno(first.get(), 0);
  EXPECT_TRUE(late.rc == DAT_SUCCESS || is_type(late.rc, DAT_QUEUE_EMPTY)) << describe(late.rc);
  EXPECT_EQ(take(evd.get()), 11u);
}

// EVD-MODCNO-6, CNO-FREE-2
TEST_P(EvdCno, AssociationCountsMoveWithTheEvd) {
  associate(first);
  EXPECT_THAT(dat_cno_free(first.get()), HasType(DAT_INVALID_STATE));
  associate(second);
  EXPECT_THAT(dat_cno_free(second.get()), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(first.free(), Succeeds());
  dissociate();
  EXPECT_THAT(second.free(), Succeeds());
}

// EVD-MODCNO-7
TEST_P(EvdCno, DissociationReleasesNoWaiterOfTheOldCno) {
  associate(first);
  BlockedCnoWait waiter(first.get());
  dissociate();
  EXPECT_TRUE(waiter.stays_blocked());
  associate(second);
  EXPECT_TRUE(waiter.stays_blocked());
  associate(first);
  post(evd.get());
  EXPECT_EQ(waiter.result().evd, evd.get());
}

// EVD-MODCNO-8, EVM-42
TEST_P(EvdCno, QueuedEventsDoNotTriggerTheNewCno) {
  post_range(evd.get(), 1, 3);
  associate(first);
  EXPECT_FALSE(take_trigger(first.get()));
  BlockedCnoWait waiter(second.get());
  associate(second);
  EXPECT_TRUE(waiter.stays_blocked());
  post(evd.get(), 4);
  EXPECT_THAT(waiter.result().rc, Succeeds());
  EXPECT_EQ(take_all(evd.get()), (std::vector<std::uintptr_t>{1, 2, 3, 4}));
}

// EVD-MODCNO-9, EVD-WAIT-21, EVM-25
TEST_P(EvdCno, QueueStateAndWaiterAreUnaffected) {
  post(evd.get(), 1);
  ASSERT_THAT(dat_evd_disable(evd.get()), Succeeds());
  const DAT_EVD_PARAM before = query_evd(evd.get());
  BlockedWait waiter(evd.get(), 3);
  associate(first);
  associate(second);
  dissociate();
  EXPECT_TRUE(waiter.stays_blocked());
  const DAT_EVD_PARAM after = query_evd(evd.get());
  EXPECT_EQ(after.evd_state, before.evd_state);
  EXPECT_EQ(after.evd_qlen, before.evd_qlen);
  EXPECT_EQ(after.evd_flags, before.evd_flags);
  post_range(evd.get(), 2, 2);
  const EvdResult result = waiter.result();
  EXPECT_EQ(value_of(result.event), 1u);
  EXPECT_EQ(result.more, 2);
}

// EVD-MODCNO-10
TEST_P(EvdCno, SameCnoAgainChangesNothing) {
  associate(first);
  post(evd.get());
  associate(first);
  EXPECT_EQ(associated(), first.get());
  EXPECT_EQ(wait_cno(first.get(), 0).evd, evd.get()) << "the latched trigger is still there";
  dissociate();
  dissociate();
  EXPECT_THAT(first.free(), Succeeds()) << "it counted once";
}

// EVD-MODCNO-11, HND-7, RC-6
TEST_P(EvdCno, BadHandlesLeaveTheAssociationAsItWas) {
  const Ia other(GetParam());
  const Cno foreign(other);
  Cno freed(ia);
  const DAT_CNO_HANDLE stale = freed.get();
  freed.reset();
  associate(first);
  for (const DAT_HANDLE cno : {foreign.get(), stale, evd.get(), ia.get()}) {
    EXPECT_THAT(dat_evd_modify_cno(evd.get(), cno), HasType(DAT_INVALID_HANDLE));
    EXPECT_EQ(associated(), first.get());
  }
  EXPECT_THAT(dat_evd_modify_cno(ia.get(), second.get()), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_evd_modify_cno(DAT_HANDLE_NULL, second.get()), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(second.free(), Succeeds());
  post(evd.get());
  EXPECT_TRUE(take_trigger(first.get()));
}

// EVD-MODCNO-12, CNO-WAIT-16, IA-OPEN-7: any EVD may be given one, the async EVD too, and a CNO may have many.
TEST_P(EvdCno, AnyNumberOfEvdsOfAnyKindMayShareACno) {
  associate(first);
  Evd another(ia, DAT_EVD_SOFTWARE_FLAG, 4, first.get());
  ASSERT_THAT(dat_evd_modify_cno(ia.async_evd(), first.get()), Succeeds());
  post(evd.get());
  EXPECT_EQ(wait_cno(first.get(), 0).evd, evd.get());
  post(another.get());
  EXPECT_EQ(wait_cno(first.get(), 0).evd, another.get());
  const AsyncSource source(ia);
  source.fire();
  EXPECT_EQ(wait_cno(first.get(), long_timeout()).evd, ia.async_evd());
  expect_event(ia.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
  ASSERT_THAT(dat_evd_modify_cno(ia.async_evd(), DAT_HANDLE_NULL), Succeeds());
  EXPECT_THAT(dat_cno_free(first.get()), HasType(DAT_INVALID_STATE));
  another.reset();
  EXPECT_THAT(dat_cno_free(first.get()), HasType(DAT_INVALID_STATE));
}

// EVD-ENA-1, EVD-DIS-1, EVM-41
TEST_P(EvdCno, OnlyAnEnabledEvdTriggersItsCno) {
  associate(first);
  ASSERT_THAT(dat_evd_disable(evd.get()), Succeeds());
  post(evd.get());
  EXPECT_FALSE(take_trigger(first.get()));
  ASSERT_THAT(dat_evd_enable(evd.get()), Succeeds());
  post(evd.get());
  EXPECT_TRUE(take_trigger(first.get()));
}

// EVD-ENA-2, EVD-DIS-2
TEST_P(EvdCno, EnablingAndDisablingTwiceIsHarmless) {
  associate(first);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(dat_evd_enable(evd.get()), Succeeds());
    EXPECT_EQ(query_evd(evd.get()).evd_state & kDeliveryPart, static_cast<unsigned>(DAT_EVD_STATE_ENABLED));
  }
  post(evd.get());
  EXPECT_TRUE(take_trigger(first.get()));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(dat_evd_disable(evd.get()), Succeeds());
    EXPECT_EQ(query_evd(evd.get()).evd_state & kDeliveryPart, static_cast<unsigned>(DAT_EVD_STATE_DISABLED));
  }
  EXPECT_THAT(dat_evd_enable(evd.get()), Succeeds());
  post(evd.get());
  EXPECT_TRUE(take_trigger(first.get())) << "one enable undoes any number of disables";
}

// EVD-ENA-3, EVD-WAIT-20, EVD-WAIT-21: neither does anything to the thread that waits, and while it waits the CNO is
// not triggered.
TEST_P(EvdCno, EnablingAndDisablingLeaveAWaiterAlone) {
  associate(first);
  BlockedWait waiter(evd.get(), 2);
  EXPECT_THAT(dat_evd_disable(evd.get()), Succeeds());
  EXPECT_THAT(dat_evd_enable(evd.get()), Succeeds());
  EXPECT_TRUE(waiter.stays_blocked());
  post(evd.get(), 1);
  EXPECT_FALSE(take_trigger(first.get()));
  EXPECT_THAT(dat_evd_disable(evd.get()), Succeeds());
  post(evd.get(), 2);
  EXPECT_THAT(waiter.result().rc, Succeeds());
  EXPECT_FALSE(take_trigger(first.get()));
}

// EVD-ENA-4
TEST_P(EvdCno, StateIsKeptUntilACnoComes) {
  ASSERT_THAT(dat_evd_disable(evd.get()), Succeeds());
  associate(first);
  post(evd.get());
  EXPECT_FALSE(take_trigger(first.get()));
  dissociate();
  ASSERT_THAT(dat_evd_enable(evd.get()), Succeeds());
  associate(first);
  post(evd.get());
  EXPECT_TRUE(take_trigger(first.get()));
}

// EVD-ENA-5, EVM-42
TEST_P(EvdCno, EnablingDoesNotReplayQueuedEvents) {
  associate(first);
  ASSERT_THAT(dat_evd_disable(evd.get()), Succeeds());
  post_range(evd.get(), 1, 3);
  ASSERT_THAT(dat_evd_enable(evd.get()), Succeeds());
  EXPECT_FALSE(take_trigger(first.get()));
  EXPECT_EQ(take_all(evd.get()).size(), 3u);
}

// EVD-ENA-6, EVD-DIS-6, HND-1
TEST_P(EvdCno, EnablingAndDisablingRefuseBadHandles) {
  for (const DAT_HANDLE bad : {DAT_HANDLE_NULL, ia.get(), first.get()}) {
    EXPECT_THAT(dat_evd_enable(bad), HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(dat_evd_disable(bad), HasType(DAT_INVALID_HANDLE));
  }
}

// EVD-DIS-3, EVD-DIS-4: what triggered before the call is delivered after it.
TEST_P(EvdCno, LatchedTriggerOutlivesDisabling) {
  associate(first);
  post(evd.get());
  ASSERT_THAT(dat_evd_disable(evd.get()), Succeeds());
  EXPECT_EQ(wait_cno(first.get(), 0).evd, evd.get());
  EXPECT_EQ(take(evd.get()), 1u);
}

// EVD-DIS-5, EVM-25
TEST_P(EvdCno, DisabledEvdQueuesDequeuesAndWaitsAsEver) {
  associate(first);
  ASSERT_THAT(dat_evd_disable(evd.get()), Succeeds());
  post_range(evd.get(), 1, 2);
  EXPECT_EQ(take(evd.get()), 1u);
  EXPECT_EQ(value_of(wait_evd(evd.get(), 0).event), 2u);
  BlockedWait waiter(evd.get());
  post(evd.get(), 3);
  EXPECT_EQ(value_of(waiter.result().event), 3u);
}

ANYDAT_OVER_ALL_WIRES(EvdCno);

}  // namespace
}  // namespace anydat::test
