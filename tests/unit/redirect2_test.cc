// SPDX-License-Identifier: BSD-3-Clause
// The redirecting macros of uDAPL 2.0 (D2-TBL-1, D2-TBL-2): each calls its slot of the table that its handle leads to,
// with all arguments in order.
#include <dat2/udat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "unit/abi_table.h"

namespace anydat::test {
namespace {

#define ABI_FACTS "unit/abi2_facts.inc"
#include "unit/redirect_record.inc"

// The names are passed on as they are, or the preprocessor would take a macro of that name for a call.
#define CHECK_MACRO(macro, slot, arguments)                                \
  {                                                                        \
    const DAT_RETURN direct_return = table.slot arguments;                 \
    const Call direct = last_call;                                         \
    last_call = {};                                                        \
    EXPECT_EQ(macro arguments, direct_return) << #macro;                   \
    EXPECT_EQ(last_call, direct) << #macro;                                \
    EXPECT_EQ(direct.slot_offset, offsetof(DAT_PROVIDER, slot)) << #macro; \
    tested.emplace_back(#macro);                                           \
  }

TEST(RedirectingMacros2, EachCallsItsSlotWithItsArguments) {
  DAT_PROVIDER table = recording_table();
  DAT_PROVIDER* object = &table;
  const DAT_HANDLE handle = &object;
  std::vector<std::string> tested;
#define ABI_REDIRECTION(macro, slot, arguments) CHECK_MACRO(macro, slot, arguments)
#include "unit/abi2_facts.inc"
  // Ruling B4: no argument list can be told from OpenFabrics' own macro, so it has no such row.
  CHECK_MACRO(DAT_IA_HA_RELATED, ia_ha_related_func, (handle, a2, a3))
  EXPECT_EQ(tested.size(), 77U);  // all slots but those that open and close an IA
}

TEST(RedirectingMacros2, SrqCreateLooksAtTheIaAndNotAtItsResult) {
  DAT_PROVIDER table = recording_table();
  DAT_PROVIDER* ia = &table;
  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
  DAT_SRQ_ATTR attributes{};
  EXPECT_EQ(DAT_SRQ_CREATE(&ia, DAT_HANDLE_NULL, &attributes, &srq), offsetof(DAT_PROVIDER, srq_create_func));
}

}  // namespace
}  // namespace anydat::test
