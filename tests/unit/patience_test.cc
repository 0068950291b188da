// SPDX-License-Identifier: BSD-3-Clause
#include "nic/patience.h"

#include <gtest/gtest.h>

namespace anydat::nic {
namespace {

constexpr os::Nanoseconds kSecond = os::kNsPerSecond;

TEST(Patience, EndsWithoutProgress) {
  const Patience patience(2 * kSecond, 60 * kSecond, 100);
  EXPECT_EQ(patience.deadline(), 100 + 2 * kSecond);
  EXPECT_FALSE(patience.over(99 + 2 * kSecond));
  EXPECT_TRUE(patience.over(100 + 2 * kSecond));
}

TEST(Patience, LastsAsLongAsThereIsProgress) {
  Patience patience(2 * kSecond, 60 * kSecond, 0);
  for (os::Nanoseconds now = 0; now < 50 * kSecond; now += kSecond) {
    EXPECT_FALSE(patience.over(now));
    patience.progress(now);
  }
}

TEST(Patience, HasAnEndForWhomeverMakesAsLittleProgressAsWillDo) {
  Patience patience(2 * kSecond, 60 * kSecond, 0);
  os::Nanoseconds now = 0;
  for (; !patience.over(now); now += 19 * kSecond / 10) patience.progress(now);
  EXPECT_GE(now, 60 * kSecond);
  EXPECT_LT(now, 62 * kSecond);
}

TEST(Patience, LooksSeveralTimesBeforeItEnds) {
  const Patience patience(2 * kSecond, 60 * kSecond, 0);
  int looks = 0;
  for (os::Nanoseconds now = 0; !patience.over(now); now = patience.next_look(now)) ++looks;
  EXPECT_GE(looks, 4);
}

}  // namespace
}  // namespace anydat::nic
