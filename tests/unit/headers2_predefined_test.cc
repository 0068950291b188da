// SPDX-License-Identifier: BSD-3-Clause
// What a program may define before it includes the header of uDAPL 2.0: here all of it is defined.
#define DAT_THREADSAFE DAT_TRUE
#define DAT_EXTENSIONS 2
#define DAT_OPTIMAL_ALIGNMENT 64
#define DAT_HANDLE_TO_PROVIDER(handle) table_of(handle)
#define IN /* the program's */
#include <dat2/udat.h>
#include <gtest/gtest.h>

namespace {

int lookups;
DAT_PROVIDER table;
DAT_PROVIDER* table_of(DAT_HANDLE) {
  ++lookups;
  return &table;
}

// D2-HDR-2, ruling A3.
TEST(PredefinedNames2, AreTheProgramsChoice) {
  EXPECT_EQ(DAT_THREADSAFE, DAT_TRUE);
  EXPECT_EQ(DAT_EXTENSIONS, 2);
  EXPECT_EQ(DAT_OPTIMAL_ALIGNMENT, 64);
}

TEST(PredefinedNames2, MacrosFindTheTableTheProgramsWay) {
  table.csp_free_func = [](DAT_CSP_HANDLE) -> DAT_RETURN { return DAT_SUCCESS; };
  EXPECT_EQ(DAT_CSP_FREE(DAT_HANDLE_NULL), DAT_SUCCESS);
  EXPECT_EQ(lookups, 1);
}

}  // namespace
