// SPDX-License-Identifier: BSD-3-Clause
// The table of habits: what each setting of DAT_COMPAT allows, and what a refusal says of the others.
#include "face/habits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

namespace anydat::test {
namespace {

using face::Compat;
using testing::HasSubstr;

TEST(Habits, EachSettingAllowsWhatThoseBeforeItAllow) {
  const dapl::Habits strict = face::habits(Compat::strict);
  const dapl::Habits usual = face::habits(Compat::default_);
  const dapl::Habits openfabrics = face::habits(Compat::openfabrics);
  int allowed_by_default = 0;
  for (const face::HabitRow& row : face::habit_table()) {
    if (!row.decision) {
      EXPECT_EQ(row.from, Compat::strict) << row.habit << ": nobody decides, so it holds always";
      continue;
    }
    EXPECT_FALSE(strict.*row.decision) << row.habit;
    EXPECT_TRUE(openfabrics.*row.decision) << row.habit;
    EXPECT_EQ((usual.*row.decision).allowed, row.from == Compat::default_) << row.habit;
    allowed_by_default += row.from == Compat::default_ ? 1 : 0;
  }
  EXPECT_EQ(allowed_by_default, 3);
}

TEST(Habits, ARefusalNamesTheSettingThatWouldAllowIt) {
  const dapl::Habits strict = face::habits(Compat::strict);
  const dapl::Habits openfabrics = face::habits(Compat::openfabrics);
  for (const face::HabitRow& row : face::habit_table()) {
    if (!row.decision) continue;
    EXPECT_THAT((strict.*row.decision).hint,
                HasSubstr(row.from == Compat::default_ ? "DAT_COMPAT=default" : "DAT_COMPAT=openfabrics"));
    EXPECT_STREQ((openfabrics.*row.decision).hint, "");
  }
}

TEST(Habits, EveryRowDecidesSomethingElseAndSaysWhatWhoAndWhy) {
  std::set<std::string> habits;
  std::set<dapl::Habit*> decided;
  dapl::Habits some;
  for (const face::HabitRow& row : face::habit_table()) {
    for (const char* text : {row.habit, row.who, row.reason, row.test, row.told}) EXPECT_STRNE(text, "");
    EXPECT_TRUE(habits.insert(row.habit).second) << row.habit;
    if (!row.decision) continue;
    EXPECT_TRUE(decided.insert(&(some.*row.decision)).second) << row.habit;
  }
  EXPECT_EQ(decided.size(), sizeof some / sizeof(dapl::Habit)) << "each decision has its row";
}

TEST(Habits, TheVariableDecidesAndIsDefaultOtherwise) {
  const char* before = std::getenv("DAT_COMPAT");
  const std::string kept = before ? before : "";
  const auto with = [](const char* value) {
    ::setenv("DAT_COMPAT", value, 1);
    return face::habits();
  };
  EXPECT_TRUE(with("openfabrics").short_remote_segment);
  EXPECT_FALSE(with("default").short_remote_segment);
  EXPECT_TRUE(with("default").sends_without_local_read);
  EXPECT_FALSE(with("strict").sends_without_local_read);
  EXPECT_TRUE(with("").sends_without_local_read);
  EXPECT_FALSE(with("Strict").short_remote_segment) << "means nothing, so the default holds";
  EXPECT_TRUE(with("Strict").sends_without_local_read);
  before ? ::setenv("DAT_COMPAT", kept.c_str(), 1) : ::unsetenv("DAT_COMPAT");
}

}  // namespace
}  // namespace anydat::test
