// SPDX-License-Identifier: BSD-3-Clause
// How a thread of another PID namespace is found among those of its process.
#include "os/thread_numbers.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace anydat::os {
namespace {

constexpr pid_t kFirst = 5000;

std::vector<pid_t> threads(std::size_t count) {
  std::vector<pid_t> all(count);
  std::iota(all.begin(), all.end(), kFirst);
  return all;
}

TEST(ThreadNumbers, AreFoundByAFewQuestions) {
  const std::vector<pid_t> here = threads(1024);
  for (pid_t there = 1; there <= 1024; ++there) {
    int questions = 0;
    const auto ask = [&](pid_t thread) {
      ++questions;
      return thread - kFirst + 1;
    };
    EXPECT_EQ(find_thread_number(here, there, ask), kFirst + there - 1);
    EXPECT_LE(questions, 11);
  }
}

// The namespace has begun anew with small numbers: its order is another than ours.
TEST(ThreadNumbers, AreFoundBehindANewBeginning) {
  const std::vector<pid_t> here = threads(60);
  const auto ask = [](pid_t thread) { return thread < kFirst + 50 ? thread - kFirst + 1000 : thread - kFirst - 40; };
  for (const pid_t thread : here) EXPECT_EQ(find_thread_number(here, ask(thread), ask), thread);
}

TEST(ThreadNumbers, OfNoThreadCostNoMore) {
  int questions = 0;
  const auto ask = [&](pid_t thread) {
    ++questions;
    return thread % 7 == 0 ? 0 : thread;  // some have ended
  };
  EXPECT_EQ(find_thread_number(threads(1024), 1, ask), 0);
  EXPECT_LE(questions, 110);
  EXPECT_EQ(find_thread_number({}, 1, ask), 0);
}

}  // namespace
}  // namespace anydat::os
