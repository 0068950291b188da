// SPDX-License-Identifier: BSD-3-Clause
// Counters that begin at 0 again without being written.
#include "dapl/reset_counts.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace anydat::dapl {
namespace {

// Objects are told apart by where they are.
class ResetCountsTest : public testing::Test {
 protected:
  const Object& object(std::size_t i) const { return reinterpret_cast<const Object&>(places_.at(i)); }
  ResetCounts counts;

 private:
  alignas(std::max_align_t) std::array<std::array<std::byte, 64>, 2> places_{};
};

// D2-CNTR-3.
TEST_F(ResetCountsTest, OnlyWhatWasResetBeginsAnew) {
  EXPECT_EQ(counts.since_reset(object(0), 1, 5), 5u);
  counts.reset(object(0), 1, 3, 5);
  EXPECT_EQ(counts.since_reset(object(0), 1, 5), 0u);
  EXPECT_EQ(counts.since_reset(object(0), 1, 12), 7u);
  EXPECT_EQ(counts.since_reset(object(0), 2, 12), 12u);
  EXPECT_EQ(counts.since_reset(object(1), 1, 12), 12u);
  counts.reset(object(0), 1, 3, 12);
  EXPECT_EQ(counts.since_reset(object(0), 1, 13), 1u);
  counts.forget(object(0));
  EXPECT_EQ(counts.since_reset(object(0), 1, 13), 13u);
}

// D2-CNTR-3, ruling B29: a counter that has lost increments stands below what it had reached, and goes on from there.
TEST_F(ResetCountsTest, ACounterThatWentBackGoesOnFromThere) {
  counts.reset(object(0), 0, 1, 100);
  EXPECT_EQ(counts.since_reset(object(0), 0, 90), 0u);
  EXPECT_EQ(counts.since_reset(object(0), 0, 93), 3u);
}

}  // namespace
}  // namespace anydat::dapl
