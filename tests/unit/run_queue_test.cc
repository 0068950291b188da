// SPDX-License-Identifier: BSD-3-Clause
#include "nic/run_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace anydat::nic {
namespace {

class RunQueueTest : public testing::Test {
 protected:
  std::unique_ptr<Task> task(int number) {
    return std::make_unique<Task>([this, number] { ran.push_back(number); });
  }
  RunQueue queue;
  std::vector<int> ran;
};

TEST_F(RunQueueTest, RunsInTheOrderOfAdding) {
  const auto one = task(1), two = task(2), three = task(3);
  for (Task* each : {two.get(), three.get(), one.get()}) queue.add(*each);
  EXPECT_TRUE(queue.pending());
  queue.run();
  EXPECT_EQ(ran, (std::vector{2, 3, 1}));
  EXPECT_FALSE(queue.pending());
}

TEST_F(RunQueueTest, ATaskIsThereOnceHoweverOftenItIsAdded) {
  const auto one = task(1), two = task(2);
  for (Task* each : {one.get(), two.get(), one.get()}) queue.add(*each);
  queue.run();
  EXPECT_EQ(ran, (std::vector{1, 2}));
}

TEST_F(RunQueueTest, ACancelledTaskDoesNotRunAndMayBeAddedAgain) {
  const auto one = task(1), two = task(2);
  queue.add(*one);
  queue.add(*two);
  queue.cancel(*one);
  queue.cancel(*one);  // which is not there any more
  queue.run();
  EXPECT_EQ(ran, std::vector{2});
  queue.add(*one);
  queue.run();
  EXPECT_EQ(ran, (std::vector{2, 1}));
}

TEST_F(RunQueueTest, ATaskMayAddItselfAndOthersAndCancelThem) {
  const auto last = task(9), never = task(8);
  int left = 3;
  Task again([&] {
    ran.push_back(left);
    queue.cancel(*never);
    if (--left > 0) queue.add(again);
    queue.add(*last);
  });
  queue.add(again);
  queue.add(*never);
  queue.run();
  EXPECT_EQ(ran, (std::vector{3, 2, 9, 1, 9}));
  EXPECT_FALSE(queue.pending());
}

TEST_F(RunQueueTest, ATaskMayEndItself) {
  auto own = std::make_unique<std::unique_ptr<Task>>();
  *own = std::make_unique<Task>([&] { ran.push_back(1); });
  queue.add(**own);
  Task destroyer([&] { own->reset(); });
  queue.add(destroyer);
  queue.run();
  EXPECT_EQ(ran, std::vector{1});
}

TEST_F(RunQueueTest, WithoutMemoryTheOthersRun) {
  Task poor([] { throw std::bad_alloc(); });
  const auto one = task(1);
  queue.add(poor);
  queue.add(*one);
  queue.run();
  EXPECT_EQ(ran, std::vector{1});
}

// A thread that adds a task finds the queue idle, or the one that runs it finds the task: none is left behind.
TEST(RunQueueThreads, NothingIsLeftBehind) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 20'000;
  RunQueue queue;
  std::array<std::atomic<int>, kThreads> ran{};
  std::vector<std::unique_ptr<Task>> tasks;
  for (std::atomic<int>& count : ran) {
    tasks.push_back(std::make_unique<Task>([&count] { count.fetch_add(1); }));
  }
  {
    std::vector<std::jthread> threads;
    std::atomic<int> running{kThreads};
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        const auto index = static_cast<std::size_t>(i);
        for (int round = 0; round < kRounds; ++round) {
          queue.add(*tasks[index]);
          while (ran[index].load() <= round) std::this_thread::yield();
        }
        --running;
      });
    }
    while (running.load() > 0) {
      if (queue.pending_in_order()) {
        queue.run();
      } else {
        std::this_thread::yield();
      }
    }
  }
  for (const std::atomic<int>& count : ran) EXPECT_EQ(count.load(), kRounds);
}

}  // namespace
}  // namespace anydat::nic
