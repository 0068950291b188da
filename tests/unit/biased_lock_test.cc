// SPDX-License-Identifier: BSD-3-Clause
#include "os/biased_lock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "os/clock.h"

namespace anydat::os {
namespace {

constexpr int kEnoughForABias = 65;  // takes by one thread
constexpr Nanoseconds kPatienceForABias = 60'000'000'000;

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
      this->take(lock, 2);
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
TYPED_TEST(BiasedLockTest, BiasesRestForAllThatHaveBeenTakenAway) {
  constexpr int kLost = 40;
  std::array<Biased<TypeParam>, kLost> lost;
  Biased<TypeParam> other;
  for (auto& lock : lost) this->earn(lock);
  std::array<Nanoseconds, kLost> took;
  Nanoseconds end = 0;
  this->in_another_thread([&] {
    for (int i = 0; i < kLost; ++i) {
      const Nanoseconds start = now_ns();
      this->take(lost[i]);
      end = now_ns();
      took[i] = end - start;
    }
  });
  std::nth_element(took.begin(), took.begin() + kLost / 2, took.end());
  this->earn(other);
  // Of what was measured outside, only a part is what it took.
  EXPECT_GE(now_ns() - end, 32 * kLost * took[kLost / 2]);
}

// What only one thread may be in at a time, and how often two were. Without a read-modify-write, which would be a
// fence.
class Inside {
 public:
  void enter_and_leave() {
    if (there_.load(std::memory_order_relaxed)) met_.fetch_add(1);
    there_.store(true, std::memory_order_relaxed);
    for (int pause = 0; pause < 20; ++pause) base::compiler_fence();
    there_.store(false, std::memory_order_relaxed);
  }
  int met() const { return met_.load(); }

 private:
  std::atomic<bool> there_{false};
  std::atomic<int> met_{0};
};

// Of more threads than can have the bias, each takes it many times and then lets others. A thread may lose the bias,
// and another one earn it, while it is anywhere on its way in.
TYPED_TEST(BiasedLockTest, OneThreadIsInItWhoeverHasTheBias) {
  constexpr Nanoseconds kDuration = 2'000'000'000;
  constexpr int kThreads = 6;
  Biased<TypeParam> lock;
  Inside inside;
  std::atomic<int> biased{0};
  const Nanoseconds end = now_ns() + kDuration;
  const auto take_many = [&]() ANYDAT_NO_ANALYSIS {
    while (now_ns() < end) {
      for (int i = 0; i < 300; ++i) {
        lock.lock();
        inside.enter_and_leave();
        lock.unlock();
      }
      if (lock.mine()) biased.fetch_add(1);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(take_many);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(inside.met(), 0);
  EXPECT_GT(biased.load(), 0) << "this has shown nothing";
}

// The thread with the bias is at it all the time, on a processor of its own.
TYPED_TEST(BiasedLockTest, OneThreadIsInItWhenAnotherComesNowAndThen) {
  constexpr Nanoseconds kDuration = 1'000'000'000;
  Biased<TypeParam> lock;
  Inside inside;
  std::atomic<bool> over{false};
  const auto take_one = [&]() ANYDAT_NO_ANALYSIS {
    lock.lock();
    inside.enter_and_leave();
    lock.unlock();
  };
  std::thread other([&] {
    for (unsigned round = 0; !over.load(); ++round) {
      take_one();
      for (unsigned pause = 0; pause < round % 512; ++pause) cpu_relax();
    }
  });
  for (const Nanoseconds end = now_ns() + kDuration; now_ns() < end;)
    for (int i = 0; i < 100; ++i) take_one();
  over.store(true);
  other.join();
  EXPECT_EQ(inside.met(), 0);
}

TYPED_TEST(BiasedLockTest, AFewThreadsEachMayHaveItsBias) {
  Biased<TypeParam> lock;
  std::atomic<int> turn{0};
  std::vector<std::thread> threads;
  std::array<bool, 5> had{};
  for (int i = 0; i < 5; ++i) {  // all alive, so that none has the address of another
    threads.emplace_back([&, i] {
      spin_while([&] { return turn.load() != i; });
      this->take(lock, kEnoughForABias);
      const Nanoseconds deadline = now_ns() + (i < 4 ? kPatienceForABias : 100'000'000);
      while (!lock.mine() && now_ns() < deadline) this->take(lock, kEnoughForABias);
      had[i] = lock.mine();
      turn.store(i + 1);
      spin_while([&] { return turn.load() != 5; });
      this->take(lock, 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(had, (std::array{true, true, true, true, false}));
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
    // By one of the three threads, and soon.
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
}  // namespace anydat::os
