// SPDX-License-Identifier: BSD-3-Clause
#include "base/biased_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace anydat::base {
namespace {

constexpr int kEnoughForABias = 65;  // takes by one thread
constexpr Nanoseconds kPatienceForABias = 20'000'000'000;

template <typename Lock>
class BiasedLockTest : public testing::Test {
 protected:
  BiasedLockTest() { allow_bias(); }

  static void take(Biased<Lock>& lock, int times = 1) ANYDAT_NO_ANALYSIS {
    for (int i = 0; i < times; ++i) {
      lock.lock();
      lock.unlock();
    }
  }
  // Until the calling thread has the bias: biases may be resting.
  static void earn(Biased<Lock>& lock) {
    for (const Nanoseconds deadline = now_ns() + kPatienceForABias; !lock.mine();) {
      ASSERT_LT(now_ns(), deadline) << "no bias";
      take(lock, kEnoughForABias);
    }
  }
  static void in_another_thread(const std::function<void()>& action) { std::thread(action).join(); }
  static bool try_to_take(Biased<Lock>& lock) ANYDAT_NO_ANALYSIS {
    if (!lock.try_lock()) return false;
    lock.unlock();
    return true;
  }
};
using LocksUnderneath = testing::Types<SpinLock, Mutex>;
TYPED_TEST_SUITE(BiasedLockTest, LocksUnderneath);

TYPED_TEST(BiasedLockTest, IsTheThreadsThatTakesItManyTimesInARow) {
  Biased<TypeParam> lock;
  this->take(lock);
  EXPECT_FALSE(lock.mine());
  this->earn(lock);
  this->in_another_thread([&] { EXPECT_FALSE(lock.mine()); });
}

TYPED_TEST(BiasedLockTest, TurnsOfTwoThreadsEarnNoBias) {
  Biased<TypeParam> lock;
  std::atomic<int> turn{0};
  const auto take_turns = [&](int mine) {
    for (int i = 0; i < 2 * kEnoughForABias; ++i) {
      spin_while([&] { return turn.load() != mine; });
      this->take(lock);
      EXPECT_FALSE(lock.mine());
      turn.store(1 - mine);
    }
  };
  std::thread other(take_turns, 1);
  take_turns(0);
  other.join();
}

TYPED_TEST(BiasedLockTest, AnotherThreadThatTakesItEndsTheBias) {
  Biased<TypeParam> lock;
  this->earn(lock);
  this->in_another_thread([&] { this->take(lock); });
  EXPECT_FALSE(lock.mine());
  this->take(lock);
}

TYPED_TEST(BiasedLockTest, AnotherThreadThatTriesItEndsTheBias) {
  Biased<TypeParam> lock;
  this->earn(lock);
  this->in_another_thread([&] { EXPECT_TRUE(this->try_to_take(lock)); });
  EXPECT_FALSE(lock.mine());
  EXPECT_TRUE(this->try_to_take(lock));
}

TYPED_TEST(BiasedLockTest, IsNotToBeHadWhileItsThreadHoldsIt) {
  Biased<TypeParam> lock;
  this->earn(lock);
  [&]() ANYDAT_NO_ANALYSIS {
    lock.lock();
    this->in_another_thread([&] { EXPECT_FALSE(this->try_to_take(lock)); });
    this->in_another_thread([&] { EXPECT_FALSE(this->try_to_take(lock)); });  // when the bias has gone
    lock.unlock();
  }();
  this->in_another_thread([&] { EXPECT_TRUE(this->try_to_take(lock)); });
}

TYPED_TEST(BiasedLockTest, WaitsForTheThreadThatHoldsItByItsBias) {
  Biased<TypeParam> lock;
  std::atomic<bool> tried{false}, taken{false};
  this->earn(lock);
  std::thread other;
  [&]() ANYDAT_NO_ANALYSIS {
    lock.lock();
    other = std::thread([&] {
      tried.store(true);
      this->take(lock);
      taken.store(true);
    });
    spin_while([&] { return !tried.load(); });
    // It takes the bias away as soon as it comes, and waits.
    spin_while([&] { return lock.mine(); });
    EXPECT_FALSE(taken.load());
    lock.unlock();
  }();
  other.join();
  EXPECT_TRUE(taken.load());
}

TYPED_TEST(BiasedLockTest, IsNotTheHoldersToTakeAgain) {
  Biased<TypeParam> lock;
  [&]() ANYDAT_NO_ANALYSIS {
    lock.lock();
    EXPECT_FALSE(lock.try_lock());
    lock.unlock();
    this->earn(lock);
    lock.lock();
    EXPECT_FALSE(lock.try_lock());
    lock.unlock();
    EXPECT_TRUE(lock.mine());
    ASSERT_TRUE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock());
    lock.unlock();
  }();
  this->in_another_thread([&] { EXPECT_TRUE(this->try_to_take(lock)); });
}

TYPED_TEST(BiasedLockTest, ManyOfOneThreadAreHeldTogether) {
  Biased<TypeParam> one, two;
  this->earn(one);
  this->earn(two);
  [&]() ANYDAT_NO_ANALYSIS {
    one.lock();
    two.lock();
    one.unlock();
    this->in_another_thread([&] {
      EXPECT_TRUE(this->try_to_take(one));
      EXPECT_FALSE(this->try_to_take(two));
    });
    two.unlock();
  }();
}

// Otherwise threads that share many locks would do nothing else.
TYPED_TEST(BiasedLockTest, BiasesRestWhenOneHasBeenTakenAway) {
  Biased<TypeParam> lost, other;
  this->earn(lost);
  Nanoseconds start = 0, end = 0;
  this->in_another_thread([&] {
    start = now_ns();
    this->take(lost);
    end = now_ns();
  });
  this->earn(other);
  // Of what was measured outside, only a part is what it took.
  EXPECT_GE(now_ns() - end, (end - start) / 4);
}

TYPED_TEST(BiasedLockTest, OneThreadIsInItWhoeverHasTheBias) {
  constexpr int kRounds = 40'000;
  Biased<TypeParam> lock;
  std::uint64_t counted = 0;  // the lock's
  std::atomic<int> biased{0};
  const auto add = [&](int in_a_row) ANYDAT_NO_ANALYSIS {
    for (int i = 0; i < in_a_row; ++i) {
      lock.lock();
      ++counted;
      lock.unlock();
    }
    if (lock.mine()) biased.fetch_add(1);
  };
  std::vector<std::thread> threads;
  for (const int in_a_row : {1, 100, 1000}) {
    threads.emplace_back([&, in_a_row] {
      for (int i = 0; i < kRounds / in_a_row; ++i) {
        add(in_a_row);
        if (i % 16 == 0) sched_yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counted, 3u * kRounds);
  EXPECT_GT(biased.load(), 0) << "this has shown nothing";
}

// What the engine does with its tasks (nic::Engine::unlock()).
using BiasedMutex = BiasedLockTest<Mutex>;
TEST_F(BiasedMutex, WhatIsLeftForTheHolderIsFound) {
  constexpr int kRounds = 2'000;
  Biased<Mutex> lock;
  std::atomic<bool> left{false};
  std::atomic<int> done{0}, rounds{0};
  std::atomic<bool> over{false};
  const auto leave_lock = [&]() ANYDAT_NO_ANALYSIS {
    do {
      if (left.load()) {
        left.exchange(false);
        done.fetch_add(1);
      }
      lock.unlock_and_look();
    } while (left.load() && lock.try_lock());
  };
  const auto try_it = [&]() ANYDAT_NO_ANALYSIS {
    if (lock.try_lock()) leave_lock();
  };
  // One that takes the lock for a while and then does nothing any more until what was left has been done.
  std::thread holder([&] {
    for (int round = 0; round < kRounds; ++round) {
      for (int i = 0; i < 80; ++i) try_it();
      rounds.store(round + 1);
      spin_while([&] { return done.load() <= round && !over.load(); });
    }
  });
  // One that gets in the way.
  std::thread third([&] {
    while (!over.load()) {
      try_it();
      sched_yield();
    }
  });
  const Nanoseconds deadline = now_ns() + kPatienceForABias;
  for (int round = 0; round < kRounds && now_ns() < deadline; ++round) {
    for (int i = 0; i < round % 64; ++i) cpu_relax();
    left.exchange(true);
    try_it();
    // By somebody, and soon.
    const Nanoseconds soon = now_ns() + kPatienceForABias;
    spin_while([&] { return done.load() <= round && now_ns() < soon; });
    ASSERT_GT(done.load(), round) << "left for nobody";
    spin_while([&] { return rounds.load() <= round; });
  }
  over.store(true);
  holder.join();
  third.join();
}

}  // namespace
}  // namespace anydat::base
