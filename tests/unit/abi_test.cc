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

#define ABI_EXPANDED(text) #text
#define ABI_EXPAND(name) ABI_EXPANDED(name)

// What the compiler found, by the row's first columns; the value is the rest of the row, in the table's spelling.
using Facts = std::map<std::string, std::string>;

// A value as data, so that hundreds of rows make a table and no code: magnitude, and whether it is negative.
struct Value {
  std::uint64_t magnitude;
  bool negative;
};

template <typename T>
constexpr Value value_of(T value) {
  if constexpr (std::is_enum_v<T>) {
    return value_of(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_signed_v<T>) {
    return {static_cast<std::uint64_t>(value < 0 ? -static_cast<std::int64_t>(value) : value), value < 0};
  } else {
    return {value, false};
  }
}

// Hexadecimal, or decimal when negative, as the table has it.
std::string text(const Value& value) {
  return value.negative ? fmt::format("-{}", value.magnitude) : fmt::format("{:#x}", value.magnitude);
}

template <typename T>
std::string kind_text() {
  if constexpr (std::is_enum_v<T>) {
    return kind_text<std::underlying_type_t<T>>();
  } else if constexpr (std::is_pointer_v<T>) {
    return "pointer";
  } else if constexpr (std::is_class_v<T> || std::is_union_v<T>) {
    return "aggregate";
  } else {
    return std::is_unsigned_v<T> ? "unsigned" : "signed";
  }
}

template <typename T>
constexpr bool kIsFunctionPointer = std::is_function_v<std::remove_pointer_t<T>>;

template <typename T>
std::string type_text(std::size_t size) {
  std::string text = fmt::format("{}\t{}", size, kind_text<T>());
  if constexpr (kIsFunctionPointer<T>) text += "\tfunction";
  if constexpr (std::is_same_v<T, char(*)[40]>) text += "\tpointer to char[40]";
  return text;
}

Facts constants() {
  struct Row {
    const char* name;
    Value value;
    std::size_t bits;
    const char* enumeration;  // "" for a macro
  };
  static constexpr Row kRows[] = {
#define ABI_ENUMERATOR(name, value, bits, type) {#name, value_of(name), sizeof(name) * 8, "\tenum " #type},
#define ABI_CONST(name, value, bits) {#name, value_of(name), sizeof(name) * 8, ""},
#include "unit/abi_facts.inc"
  };
  Facts facts;
  for (const Row& row : kRows) facts[row.name] = fmt::format("{}\t{}{}", text(row.value), row.bits, row.enumeration);
#define ABI_ENUMERATOR(name, value, bits, type) static_assert(std::is_same_v<decltype(name), type>);
#define ABI_POINTER(name, value) facts[#name] = fmt::format("{:#x}\tptr", reinterpret_cast<std::uintptr_t>(name));
#define ABI_STRING(name, value) facts[#name] = fmt::format("\"{}\"\tstring", name);
#include "unit/abi_facts.inc"
  return facts;
}

Facts types() {
  Facts facts;
#define ABI_TYPE(name, size, kind) facts[#name] = type_text<name>(sizeof(name));
#define ABI_ENUM(name, size, kind, tag)          \
  static_assert(std::is_same_v<name, enum tag>); \
  facts[#name] = type_text<name>(sizeof(name)) + "\tenum\t" #tag;
#include "unit/abi_facts.inc"
  return facts;
}

Facts structs() {
  Facts facts;
#define ABI_STRUCT(name, size, align, tag)  \
  static_assert(std::is_same_v<name, tag>); \
  facts[#name] = fmt::format("{}\t{}\t" #tag, sizeof(name), alignof(name));
#include "unit/abi_facts.inc"
  return facts;
}

Facts fields() {
  struct Row {
    const char* name;
    std::size_t offset, size;
  };
  static constexpr Row kRows[] = {
#define ABI_FIELD(type, field, offset, size) {#type "\t" #field, offsetof(type, field), sizeof(type::field)},
#include "unit/abi_facts.inc"
  };
  Facts facts;
  for (const Row& row : kRows) facts[row.name] = fmt::format("{}\t{}", row.offset, row.size);
  return facts;
}

// REG-TBL-1: a slot has the type named after it, which is the type of the call named after it.
Facts slots() {
  Facts facts;
#define ABI_SLOT(index, field, offset, type, call)                    \
  static_assert(std::is_same_v<decltype(DAT_PROVIDER::field), type>); \
  static_assert(std::is_same_v<decltype(&call), type>);               \
  facts[#index] = fmt::format(#field "\t{}", offsetof(DAT_PROVIDER, field));
#define ABI_OPEN_SLOT(index, field, offset, type)                     \
  static_assert(std::is_same_v<decltype(DAT_PROVIDER::field), type>); \
  facts[#index] = fmt::format(#field "\t{}", offsetof(DAT_PROVIDER, field));
#include "unit/abi_facts.inc"
  return facts;
}

Facts aliases() {
  Facts facts;
#define ABI_ALIAS(name, meaning)                                \
  EXPECT_STREQ(ABI_EXPAND(name), ABI_EXPAND(meaning)) << #name; \
  facts[#name] = #meaning;
#include "unit/abi_facts.inc"
  return facts;
}

// Columns [first, last) of a row as one text.
std::string columns(const AbiRow& row, std::size_t first, std::size_t last) {
  std::string text;
  for (std::size_t i = first; i < last && i < row.size(); ++i) text += (i == first ? "" : "\t") + row[i];
  return text;
}

// Requires that `facts` has exactly the table's rows of `kind`; the first `key_columns` after the kind are the key.
void expect_table(std::string_view kind, const Facts& facts, std::size_t key_columns, std::size_t last_column = 99) {
  const std::vector<AbiRow> rows = abi_rows(kind);
  EXPECT_EQ(facts.size(), rows.size()) << "run scripts/gen-abi-facts.sh";
  for (const AbiRow& row : rows) {
    const auto fact = facts.find(columns(row, 1, 1 + key_columns));
    if (fact == facts.end()) {
      ADD_FAILURE() << kind << " " << row[1] << " is missing: run scripts/gen-abi-facts.sh";
      continue;
    }
    EXPECT_EQ(fact->second, columns(row, 1 + key_columns, last_column)) << kind << " " << fact->first;
  }
}

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
