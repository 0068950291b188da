// SPDX-License-Identifier: BSD-3-Clause
// What a program may define before it includes the header, and what it gets without: here all of it is defined.
#define DAT_THREADSAFE DAT_TRUE
#define DAT_OPTIMAL_ALIGNMENT 64
#define DAT_HANDLE_TO_PROVIDER(handle) table_of(handle)
#define IN /* the program's */
#include <dat/udat.h>
#include <gtest/gtest.h>

namespace {

int lookups;
DAT_PROVIDER table;
DAT_PROVIDER* table_of(DAT_HANDLE) {
  ++lookups;
  return &table;
}

// Ruling A3: a program that wants a thread-safe Provider says so before the include.
TEST(PredefinedNames, ThreadSafetyIsTheProgramsChoice) {
  EXPECT_EQ(DAT_THREADSAFE, DAT_TRUE);
}

TEST(PredefinedNames, OptimalAlignmentIsTheProgramsChoice) {
  EXPECT_EQ(DAT_OPTIMAL_ALIGNMENT, 64);
}

TEST(PredefinedNames, MacrosFindTheTableTheProgramsWay) {
  table.pz_free_func = [](DAT_PZ_HANDLE) -> DAT_RETURN { return DAT_SUCCESS; };
  EXPECT_EQ(DAT_PZ_FREE(DAT_HANDLE_NULL), DAT_SUCCESS);
  EXPECT_EQ(lookups, 1);
}

}  // namespace
