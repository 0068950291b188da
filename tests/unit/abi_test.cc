// SPDX-License-Identifier: BSD-3-Clause
// Compares every row of the ABI table with what our headers say.
//
// abi_facts.inc carries the names of the table into the compiler, which measures them here; the expected values are
// read from the table when the test runs. A row that the .inc lacks, or has too many, fails as well, so it cannot go
// stale.
#include <dat/dat_registry.h>
#include <dat/udat.h>
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

#define ABI_FACTS "unit/abi_facts.inc"
#define ABI_TABLE kAbiTable
#include "unit/abi_collect.inc"

// HDR-2 (version macros), HDR-3, SRQ-TYPE-3: all values. A macro has no enumeration in its last column but a header,
// which EachNameStandsInItsHeader looks at.
TEST(AbiTable, EveryConstantHasItsValueWidthAndEnumeration) {
  Facts facts = constants();
  for (const AbiRow& row : abi_rows("const")) {
    if (row[4].starts_with("enum ")) continue;
    facts[row[1]] += "\t" + row[4];
  }
  expect_table("const", facts, 1);
}

TEST(AbiTable, EveryTypeHasItsSizeAndSignedness) {
  expect_table("type", types(), 1);
}

// HDR-3, TYPE-1, SRQ-TYPE-1, SRQ-TYPE-2.
TEST(AbiTable, EveryStructureHasItsSizeAlignmentAndTag) {
  expect_table("struct", structs(), 1);
}
TEST(AbiTable, EveryMemberHasItsOffsetAndSize) {
  expect_table("field", fields(), 2);
}

TEST(AbiTable, EverySlotHasItsPlaceAndTheTypeOfItsCall) {
  expect_table("slot", slots(), 1);
}

// HDR-7, TYPE-6. Two aliases cannot be compared as text: see the test after this.
TEST(AbiTable, EveryAliasStandsForItsName) {
  Facts facts = aliases();
  for (const AbiRow& row : abi_rows("alias")) {
    if (row[1] == "DAT_IA_FIELD_IA_MAX_DTO_PER_OP" || row[1] == "DAT_OS_WAIT_PROXY_AGENT_NULL") facts[row[1]] = row[2];
  }
  expect_table("alias", facts, 1, 3);
}

// HDR-8: the name it stood for is defined nowhere; it has the value of what was meant.
TEST(AbiTable, MaxDtoPerOpIsMaxDtoPerEp) {
  EXPECT_EQ(DAT_IA_FIELD_IA_MAX_DTO_PER_OP, DAT_IA_FIELD_IA_MAX_DTO_PER_EP);
  const DAT_OS_WAIT_PROXY_AGENT agent = DAT_OS_WAIT_PROXY_AGENT_NULL;
  EXPECT_EQ(agent.instance_data, nullptr);
  EXPECT_EQ(agent.proxy_agent_func, nullptr);
}

// Every header that the table names declares what the table says it declares.
TEST(AbiTable, EachNameStandsInItsHeader) {
  std::map<std::string, std::string> headers;
  const auto text_of = [&headers](const std::string& header) -> const std::string& {
    const auto [entry, is_new] = headers.try_emplace(header);
    if (is_new) entry->second = repository_file("include/dat/" + header);
    return entry->second;
  };
  for (const AbiRow& row : abi_rows("const")) {
    if (row[4].starts_with("enum ")) continue;
    EXPECT_THAT(text_of(row[4]), testing::HasSubstr("#define " + row[1] + " "));
  }
  for (const AbiRow& row : abi_rows("alias")) {
    EXPECT_THAT(text_of(row[3]), testing::HasSubstr("#define " + row[1] + " "));
  }
  for (const AbiRow& row : abi_rows("func")) {
    if (row[2] == "symbol" && row[4] != "-") {
      EXPECT_THAT(text_of(row[4]), testing::HasSubstr("DAT_RETURN " + row[1] + "("));
    }
  }
}

// HDR-3, seen by a C compiler: the assertions of headers_c.c held when it was compiled.
TEST(HeadersInC, MacrosWork) {
  EXPECT_EQ(headers_c_first_failure(), 0) << "line of headers_c.c";
}

}  // namespace
}  // namespace anydat::test
