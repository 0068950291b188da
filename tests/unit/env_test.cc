// SPDX-License-Identifier: BSD-3-Clause
// The table of environment variables: what is complained about, and what programs are told of it.
#include "env/environment.h"

#include <anydat/anydat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace anydat::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Environment, NamesOfOthersAreNoneOfOurBusiness) {
  EXPECT_THAT(env::complaint("PATH", "/bin"), IsEmpty());
  EXPECT_THAT(env::complaint("DATA", "1"), IsEmpty());
  EXPECT_THAT(env::complaint("dat_log", "1"), IsEmpty());
}

TEST(Environment, UnknownNameIsComplainedAboutByName) {
  EXPECT_THAT(env::complaint("DAT_SPIN", "50"), AllOf(HasSubstr("DAT_SPIN "), HasSubstr("datinfo --env")));
  EXPECT_THAT(env::complaint("DAT_", ""), HasSubstr("not known"));
}

TEST(Environment, ChoicesAreTheWordsOfTheTable) {
  for (const char* word : {"auto", "shm", "tcp", ""}) EXPECT_THAT(env::complaint("DAT_WIRE", word), IsEmpty()) << word;
  for (const char* word : {"SHM", "sh", "auto, shm", "tcp "}) {
    EXPECT_THAT(env::complaint("DAT_WIRE", word), AllOf(HasSubstr(word), HasSubstr("auto, shm, tcp"))) << word;
  }
}

TEST(Environment, NumbersAreNeitherNegativeNorBeyondReason) {
  for (const char* text : {"0", "1", "50", "1000000000000", ""}) {
    EXPECT_THAT(env::complaint("DAT_SPIN_US", text), IsEmpty()) << text;
  }
  for (const char* text : {"-1", "1000000000001", "99999999999999999999", "1.5", "5us", "soon", "unlimited", " 5"}) {
    EXPECT_THAT(env::complaint("DAT_SPIN_US", text), AllOf(HasSubstr(text), HasSubstr("taking 50"))) << text;
  }
  EXPECT_THAT(env::complaint("DAT_RNR_TIMEOUT_MS", "unlimited"), IsEmpty()) << "the default has a word";
}

TEST(Environment, WhateverHasNoEffectIsAcceptedAsItIs) {
  EXPECT_THAT(env::complaint("DAT_DBG_TYPE", "0xff"), IsEmpty());
  EXPECT_THAT(env::complaint("DAT_DBG_DEST", "whatever"), IsEmpty());
  EXPECT_THAT(env::complaint("DAT_OVERRIDE", "no such file"), IsEmpty()) << "a path is what it is";
}

TEST(Environment, EveryDefaultIsOfTheValuesThatItsVariableCanHave) {
  for (const env::Entry& entry : env::table()) {
    EXPECT_THAT(env::complaint(entry.name, entry.default_value), IsEmpty());
  }
}

TEST(Environment, ProgramsAreToldTheWholeTable) {
  DAT_COUNT count = 0;
  ASSERT_EQ(anydat_get_environment(0, nullptr, &count), DAT_SUCCESS);
  ASSERT_EQ(count, static_cast<DAT_COUNT>(env::table().size()));
  std::vector<ANYDAT_VARIABLE> rows(static_cast<std::size_t>(count) + 1, ANYDAT_VARIABLE{});
  ::setenv("DAT_SPIN_US", "7", 1);
  ::unsetenv("DAT_WIRE");
  ASSERT_EQ(anydat_get_environment(count + 1, rows.data(), &count), DAT_SUCCESS);
  EXPECT_EQ(rows.back().name, nullptr) << "only as many elements are written as there are variables";
  rows.pop_back();
  std::set<std::string> names;
  for (const ANYDAT_VARIABLE& row : rows) {
    names.insert(row.name);
    for (const char* text : {row.values, row.default_value, row.meaning}) EXPECT_STRNE(text, "") << row.name;
    if (std::string(row.name) == "DAT_SPIN_US") {
      EXPECT_STREQ(row.value, "7");
    }
    if (std::string(row.name) == "DAT_WIRE") {
      EXPECT_EQ(row.value, nullptr);
    }
  }
  EXPECT_EQ(names.size(), rows.size());
  ::unsetenv("DAT_SPIN_US");
}

TEST(Environment, AListThatIsTooShortGetsTheFirstRows) {
  ANYDAT_VARIABLE rows[2] = {};
  DAT_COUNT count = 0;
  ASSERT_EQ(anydat_get_environment(1, rows, &count), DAT_SUCCESS);
  EXPECT_GT(count, 1);
  EXPECT_STREQ(rows[0].name, env::table()[0].name);
  EXPECT_EQ(rows[1].name, nullptr);
}

TEST(Environment, BadArgumentsAreRefused) {
  ANYDAT_VARIABLE row{};
  DAT_COUNT count = 0;
  EXPECT_EQ(DAT_GET_TYPE(anydat_get_environment(1, &row, nullptr)), static_cast<unsigned>(DAT_INVALID_PARAMETER));
  EXPECT_EQ(DAT_GET_TYPE(anydat_get_environment(-1, &row, &count)), static_cast<unsigned>(DAT_INVALID_PARAMETER));
  EXPECT_EQ(DAT_GET_TYPE(anydat_get_environment(1, nullptr, &count)), static_cast<unsigned>(DAT_INVALID_PARAMETER));
}

}  // namespace
}  // namespace anydat::test
