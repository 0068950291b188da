// SPDX-License-Identifier: BSD-3-Clause
// Compares every row of the ABI table of uDAPL 2.0 with what include/dat2 says (D2-HDR-3): abi_test.cc says how.
#include <dat2/udat.h>
// After udat.h, as Providers and programs that use the extension do it (D2-HDR-1).
#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>

#include "unit/abi_table.h"
#include "unit/headers_c.h"

namespace anydat::test {
namespace {

#define ABI_FACTS "unit/abi2_facts.inc"
#define ABI_TABLE kAbi2Table
#include "unit/abi_collect.inc"

// D2-HDR-1, D2-HDR-9 (names), D2-HDR-2 (version macros), D2-RC-1..3, D2-EVT-3, D2-EVT-4, D2-SRQ-1, D2-IA-2, D2-IA-3,
// D2-CONN-5, D2-LMR-8, D2-RMR-8: all values. A macro has no enumeration in its last column but a header, which
// EachNameStandsInItsHeader looks at.
TEST(Abi2Table, EveryConstantHasItsValueWidthAndEnumeration) {
  Facts facts = constants();
  for (const AbiRow& row : abi_rows("const", kAbi2Table)) {
    if (row[4].starts_with("enum ")) continue;
    facts[row[1]] += "\t" + row[4];
  }
  expect_table("const", facts, 1);
}

TEST(Abi2Table, EveryTypeHasItsSizeAndSignedness) {
  expect_table("type", types(), 1);
}

// D2-TYPE-1, D2-TYPE-3, D2-TYPE-7.
TEST(Abi2Table, EveryStructureHasItsSizeAlignmentAndTag) {
  expect_table("struct", structs(), 1);
}
TEST(Abi2Table, EveryMemberHasItsOffsetAndSize) {
  expect_table("field", fields(), 2);
}

// D2-TBL-1, D2-TBL-2.
TEST(Abi2Table, EverySlotHasItsPlaceAndTheTypeOfItsCall) {
  expect_table("slot", slots(), 1, 4);
}

// D2-CR-1, D2-LMR-1, D2-RMR-5, D2-REG-4: the parameters of each call, and of each function that is called back.
TEST(Abi2Table, EveryCallHasItsParameters) {
  Facts facts;
#define ABI_CALL_TYPE(name, ...)                              \
  static_assert(std::is_same_v<decltype(name), __VA_ARGS__>); \
  facts[#name] = #__VA_ARGS__;
#define ABI_POINTER_TYPE(name, ...)                                        \
  static_assert(std::is_same_v<std::remove_pointer_t<name>, __VA_ARGS__>); \
  facts[#name] = #__VA_ARGS__;
#include ABI_FACTS
  expect_table("proto", facts, 1);
}

// D2-HDR-8, TYPE-6. Three aliases cannot be compared as text: see the test after this, and RedirectingMacros2.
TEST(Abi2Table, EveryAliasStandsForItsName) {
  Facts facts = aliases();
  for (const AbiRow& row : abi_rows("alias", kAbi2Table)) {
    if (row[2].find(' ') != std::string::npos) facts[row[1]] = row[2];
  }
  expect_table("alias", facts, 1, 3);
}

// Ruling B4, HDR-8: the name it stood for is defined nowhere; it has the value of what was meant.
TEST(Abi2Table, MaxDtoPerOpIsMaxDtoPerEp) {
  EXPECT_EQ(DAT_IA_FIELD_IA_MAX_DTO_PER_OP, DAT_IA_FIELD_IA_MAX_DTO_PER_EP);
  const DAT_OS_WAIT_PROXY_AGENT agent = DAT_OS_WAIT_PROXY_AGENT_NULL;
  EXPECT_EQ(agent.instance_data, nullptr);
  EXPECT_EQ(agent.proxy_agent_func, nullptr);
}

// Every header that the table names declares what the table says it declares.
TEST(Abi2Table, EachNameStandsInItsHeader) {
  std::map<std::string, std::string> headers;
  const auto text_of = [&headers](const std::string& header) -> const std::string& {
    const auto [entry, is_new] = headers.try_emplace(header);
    if (is_new) entry->second = repository_file("include/dat2/" + header);
    return entry->second;
  };
  for (const AbiRow& row : abi_rows("const", kAbi2Table)) {
    if (row[4].starts_with("enum ")) continue;
    EXPECT_THAT(text_of(row[4]), testing::HasSubstr("#define " + row[1] + " "));
  }
  for (const AbiRow& row : abi_rows("alias", kAbi2Table)) {
    EXPECT_THAT(text_of(row[3]), testing::ContainsRegex("#define " + row[1] + "[ (]"));
  }
  for (const AbiRow& row : abi_rows("func", kAbi2Table)) {
    if ((row[2] == "symbol" || row[2] == "declared") && row[4] != "-") {
      EXPECT_THAT(text_of(row[4]), testing::HasSubstr("DAT_RETURN " + row[1] + "("));
    }
  }
}

// D2-HDR-3, D2-HDR-4, seen by a C compiler: the assertions of headers2_c.c held when it was compiled.
TEST(Headers2InC, MacrosWork) {
  EXPECT_EQ(headers2_c_first_failure(), 0) << "line of headers2_c.c";
}

}  // namespace
}  // namespace anydat::test
