// SPDX-License-Identifier: BSD-3-Clause
// How threads wait for an engine, with a clock and sleeps that the test plays: who looks when, and who sleeps for what.
#include "nic/waiting.h"

#include <gtest/gtest.h>

#include "nic/engine.h"
#include "system/played_system.h"

namespace anydat::nic {
namespace {

using test::PlayedSleep;
using test::PlayedSystem;
using test::SleepEnd;
using Where = test::PlayedSleep::Where;

constexpr os::Nanoseconds kMicrosecond = 1'000;
constexpr os::Nanoseconds kSpin = 50 * kMicrosecond;  // DAT_SPIN_US, if it is not set
constexpr os::Nanoseconds kTick = Waiting::kTick;
constexpr os::Nanoseconds kLong = 100 * kTick;

struct Source final : PollSource {
  bool poll() override {
    ++polls;
    return std::exchange(has_something, false);
  }
  void arm() override { armed = true; }
  void disarm() override { armed = false; }
  int polls = 0;
  bool has_something = false;
  bool armed = false;
};

class PlayedWaiting : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(engine_.start(), Status::ok);
    engine_.lock();
    engine_.add_source(source_);
    engine_.unlock();
    progress_ = system_.let_other_run(SleepEnd::woken);
    ASSERT_EQ(progress_.where, Where::bell) << "the progress thread leads";
    ASSERT_TRUE(source_.armed);
  }
  void TearDown() override {
    system_.let_other_go();
    engine_.waiting().stop();
    engine_.lock();
    engine_.remove_source(source_);
    engine_.unlock();
  }

  WaitResult wait_for(os::Nanoseconds time) { return engine_.waiting().wait(waiter_, system_.now() + time); }
  // What happens while the test's thread sleeps until the progress thread has made way for it, and then.
  void when_leading(std::function<SleepEnd(const PlayedSleep&)> then) {
    system_.asleep = [this, then = std::move(then)](const PlayedSleep& sleep) {
      if (sleep.where != Where::bed) return then(sleep);
      progress_ = system_.let_other_run(SleepEnd::woken);
      return SleepEnd::woken;
    };
  }

  PlayedSystem system_;
  Engine engine_;
  Source source_;
  Waiter waiter_;
  PlayedSleep progress_{};  // what the progress thread sleeps for
};

TEST_F(PlayedWaiting, AThreadSpinsLetsOthersHaveTheProcessorAndSleeps) {
  const os::Nanoseconds start = system_.now();
  when_leading([&](const PlayedSleep&) {
    EXPECT_TRUE(source_.armed);
    return SleepEnd::timed_out;
  });
  EXPECT_EQ(wait_for(kLong), WaitResult::timed_out);
  ASSERT_EQ(system_.sleeps.size(), 2u);
  EXPECT_EQ(system_.sleeps[0].where, Where::bed);
  EXPECT_EQ(system_.sleeps[0].until, start + kLong);
  EXPECT_EQ(system_.sleeps[1].where, Where::bell);
  EXPECT_NEAR(static_cast<double>(system_.sleeps[1].until), static_cast<double>(start + kLong), kMicrosecond);
  EXPECT_GE(system_.now(), start + kLong);
  ASSERT_FALSE(system_.yields.empty());
  EXPECT_GE(system_.yields.back(), start + kSpin - kMicrosecond);
  EXPECT_LE(system_.yields.back(), start + kSpin + kMicrosecond);
}

TEST_F(PlayedWaiting, ADeadlineWithinTheSpinEndsIt) {
  const os::Nanoseconds start = system_.now();
  EXPECT_EQ(wait_for(20 * kMicrosecond), WaitResult::timed_out);
  EXPECT_TRUE(system_.sleeps.empty());
  EXPECT_LE(system_.now(), start + 21 * kMicrosecond);
}

TEST_F(PlayedWaiting, ALeaderWakesUpByTheBell) {
  when_leading([&](const PlayedSleep&) {
    waiter_.notify();
    return SleepEnd::woken;
  });
  EXPECT_EQ(wait_for(kLong), WaitResult::notified);
}

// TMO-6
TEST_F(PlayedWaiting, ASignalEndsTheWaitOfALeaderAndOfAFollower) {
  when_leading([](const PlayedSleep&) { return SleepEnd::interrupted; });
  EXPECT_EQ(wait_for(kLong), WaitResult::interrupted);
  waiter_.rearm();
  system_.let_other_run(SleepEnd::timed_out);  // the progress thread leads again
  system_.asleep = [](const PlayedSleep& sleep) {
    EXPECT_EQ(sleep.where, Where::bed);
    return SleepEnd::interrupted;
  };
  EXPECT_EQ(wait_for(kLong), WaitResult::interrupted);
}

// While another thread polls no bell rings, so a leader looks again after a tick; and relies on the bell once it does
// not any more.
TEST_F(PlayedWaiting, ALeaderLooksEachTickAsLongAsAnotherThreadPolls) {
  int sleeps = 0;
  when_leading([&](const PlayedSleep& sleep) {
    switch (++sleeps) {
      case 1:
        engine_.poll();
        EXPECT_FALSE(source_.armed);
        return SleepEnd::woken;
      case 2:
      case 3:
        EXPECT_FALSE(source_.armed);
        EXPECT_LE(sleep.until, system_.now() + kTick);
        if (sleeps == 2) engine_.poll();
        return SleepEnd::timed_out;
      default:
        EXPECT_TRUE(source_.armed);
        EXPECT_GT(sleep.until, system_.now() + kTick);
        return SleepEnd::timed_out;
    }
  });
  EXPECT_EQ(wait_for(kLong), WaitResult::timed_out);
  EXPECT_EQ(sleeps, 4);
}

TEST_F(PlayedWaiting, WhatWokeALeaderIsFollowedForTheLengthOfASpin) {
  int sleeps = 0;
  os::Nanoseconds woken = 0;
  when_leading([&](const PlayedSleep&) {
    if (++sleeps == 2) return SleepEnd::timed_out;
    source_.has_something = true;
    woken = system_.now();
    return SleepEnd::woken;
  });
  EXPECT_EQ(wait_for(kLong), WaitResult::timed_out);
  EXPECT_EQ(sleeps, 2);
  EXPECT_GE(system_.yields.back(), woken + kSpin - kMicrosecond);
  EXPECT_LE(system_.yields.back(), woken + kSpin + 2 * kMicrosecond);
}

// Waiting::kTick: what a thread that polled has left undone is looked at by the progress thread before two milliseconds
// are over, although no bell rings for it.
TEST_F(PlayedWaiting, TheProgressThreadLooksWithinATickOfTheLastPass) {
  engine_.poll();
  progress_ = system_.let_other_run(SleepEnd::woken);
  ASSERT_EQ(progress_.where, Where::word) << "it rests while another thread polls";
  EXPECT_FALSE(source_.armed);
  // As late as it can be: just before the first rest is over.
  system_.pass(progress_.until - system_.now() - 1);
  engine_.poll();
  const os::Nanoseconds last_pass = system_.now();
  system_.pass(1);
  progress_ = system_.let_other_run(SleepEnd::timed_out);
  ASSERT_EQ(progress_.where, Where::word) << "a thread still polls";
  const int polls = source_.polls;
  system_.pass(progress_.until - system_.now());
  progress_ = system_.let_other_run(SleepEnd::timed_out);
  EXPECT_GT(source_.polls, polls);
  EXPECT_LE(system_.now(), last_pass + kTick);
  EXPECT_EQ(progress_.where, Where::bell) << "it leads once no thread polls";
  EXPECT_TRUE(source_.armed);
  EXPECT_EQ(progress_.until, os::kForever) << "without traffic all sleep for good";
}

TEST_F(PlayedWaiting, TheProgressThreadLooksWithinATickOfAPostThatIsNoted) {
  engine_.note_post();
  progress_ = system_.let_other_run(SleepEnd::woken);  // its bell has rung, for something else
  const os::Nanoseconds noted = system_.now();
  ASSERT_EQ(progress_.where, Where::word) << "the thread that posts is likely to look by itself";
  const int polls = source_.polls;
  system_.pass(progress_.until - system_.now());
  progress_ = system_.let_other_run(SleepEnd::timed_out);
  EXPECT_GT(source_.polls, polls);
  EXPECT_LE(system_.now(), noted + kTick);
  EXPECT_EQ(progress_.where, Where::bell);
}

TEST_F(PlayedWaiting, ATimerEndsTheSleepOfWhoLeads) {
  bool ran = false;
  Timer timer([&] { ran = true; });
  const os::Nanoseconds due = system_.now() + kLong / 2;
  engine_.lock();
  engine_.set_timer(timer, due);
  engine_.unlock();
  progress_ = system_.let_other_run(SleepEnd::woken);
  EXPECT_EQ(progress_.where, Where::bell);
  EXPECT_NEAR(static_cast<double>(progress_.until), static_cast<double>(due), kMicrosecond);
  system_.pass(progress_.until - system_.now() + 1);
  progress_ = system_.let_other_run(SleepEnd::timed_out);
  EXPECT_TRUE(ran);
  EXPECT_EQ(progress_.until, os::kForever);
}

}  // namespace
}  // namespace anydat::nic
