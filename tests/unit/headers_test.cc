// SPDX-License-Identifier: BSD-3-Clause
// The headers as a C++ program uses them: one include (HDR-1), C linkage (HDR-5), the macros, the older names.
#include <dat/udat.h>
// After udat.h, as a Provider does it (HDR-1).
#include <dat/dat_registry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "unit/abi_table.h"

namespace anydat::test {
namespace {

#define EXPANDED(text) #text
#define EXPAND(text) EXPANDED(text)

// HDR-1: the two headers declare all calls. HDR-5: with C linkage, else this program would not find them in the
// library. HDR-9: those that 1.2 added are among them.
TEST(Headers, EveryCallIsDeclared) {
  std::vector<std::string> declared;
  std::set<void*> addresses;
#define ABI_SYMBOL(name)                              \
  static_assert(std::is_function_v<decltype(name)>);  \
  addresses.insert(reinterpret_cast<void*>(&(name))); \
  declared.emplace_back(#name);
#include "unit/abi_facts.inc"
  std::vector<std::string> expected;
  for (const AbiRow& row : abi_rows("func")) {
    if (row[2] == "symbol" && row[4] != "-") expected.push_back(row[1]);
  }
  EXPECT_EQ(declared, expected);
  EXPECT_EQ(addresses.size(), declared.size());
}

// HDR-2, HDR-4, ruling A3: what dat_ia_open really calls.
TEST(Headers, IaOpenAddsVersionAndThreadSafety) {
  EXPECT_STREQ(EXPAND(dat_ia_open(name, length, evd, ia)),
               "dat_ia_openv((name), (length), (evd), (ia), (1), (2), (DAT_FALSE))");
}

// RC-4: the macros that take a return code apart.
TEST(Headers, ReturnCodesComeApart) {
  const DAT_RETURN code = DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_SRQ_ERROR;
  EXPECT_EQ(DAT_GET_TYPE(code), DAT_INVALID_STATE);
  EXPECT_EQ(DAT_GET_SUBTYPE(code), DAT_INVALID_STATE_SRQ_ERROR);
  EXPECT_EQ(DAT_IS_WARNING(code), 0U);
  EXPECT_NE(DAT_IS_WARNING(DAT_CLASS_WARNING | DAT_QUEUE_FULL), 0U);
  EXPECT_EQ(DAT_GET_TYPE(-1), DAT_TYPE_MASK);
}

TEST(Headers, TheTableIsInTheFirstWordOfAnObject) {
  DAT_PROVIDER provider{};
  DAT_PROVIDER* object[] = {&provider, nullptr};
  EXPECT_EQ(DAT_HANDLE_TO_PROVIDER(object), &provider);
}

// All function-like macros of the table that are no redirects have a test above.
TEST(Headers, AllOtherMacrosAreTested) {
  std::vector<std::string> macros;
#define ABI_MACRO(name) macros.emplace_back(#name);
#include "unit/abi_facts.inc"
  EXPECT_THAT(macros, testing::ElementsAre("dat_ia_open", "DAT_IS_WARNING", "DAT_GET_TYPE", "DAT_GET_SUBTYPE",
                                           "DAT_HANDLE_TO_PROVIDER"));
}

// HDR-6: in C++ the structure can be declared and assigned.
TEST(Headers, ProviderAttributesAreAssignable) {
  DAT_PROVIDER_ATTR from;
  std::memset(&from, 0, sizeof from);
  from.evd_stream_merging_supported[5][0] = DAT_TRUE;
  DAT_PROVIDER_ATTR to;
  to = from;
  EXPECT_EQ(to.evd_stream_merging_supported[5][0], DAT_TRUE);
}

// HDR-7: members under their older names.
TEST(Headers, OldMemberNamesAreTheNewMembers) {
  DAT_IA_ATTR ia{};
  ia.max_rdma_read_per_ep = 4;
  EXPECT_EQ(ia.max_rdma_read_per_ep_in, 4);
  DAT_EP_ATTR ep{};
  ep.max_mtu_size = 4096;
  EXPECT_EQ(ep.max_message_size, 4096U);
}

// TYPE-4: LSB puts the least significant byte first, MSB the most significant; twice is once undone.
TEST(Headers, ByteOrderHelpersOrderBytes) {
  const auto first_byte = [](auto value) {
    unsigned char byte = 0;
    std::memcpy(&byte, &value, 1);
    return byte;
  };
  EXPECT_EQ(first_byte(DAT_LMRC_TO_LSB(0x01020304)), 4);
  EXPECT_EQ(first_byte(DAT_LMRC_TO_MSB(0x01020304)), 1);
  EXPECT_EQ(first_byte(DAT_RMRC_TO_LSB(0x01020304)), 4);
  EXPECT_EQ(first_byte(DAT_RMRC_TO_MSB(0x01020304)), 1);
  EXPECT_EQ(first_byte(DAT_VADDR_TO_LSB(0x0102030405060708)), 8);
  EXPECT_EQ(first_byte(DAT_VADDR_TO_MSB(0x0102030405060708)), 1);
  EXPECT_EQ(first_byte(DAT_VLEN_TO_LSB(0x0102030405060708)), 8);
  EXPECT_EQ(first_byte(DAT_VLEN_TO_MSB(0x0102030405060708)), 1);
  EXPECT_EQ(DAT_VADDR_TO_MSB(DAT_VADDR_TO_MSB(0x0102030405060708)), 0x0102030405060708U);
  static_assert(sizeof(DAT_LMRC_TO_MSB(0)) == 4 && sizeof(DAT_VLEN_TO_MSB(0)) == 8);
}

// The values that only Solaris' headers have: none of them stands in for a value of the table.
TEST(Headers, SolarisNamesMoveNothing) {
  EXPECT_EQ(DAT_MEM_TYPE_SO_VIRTUAL, 3);
  EXPECT_EQ(DAT_MEM_PRIV_RO_DISABLE_FLAG & DAT_MEM_PRIV_ALL_FLAG, 0);
  EXPECT_EQ(DAT_INVALID_RO_COOKIE, DAT_THREAD_SAFETY_NOT_FOUND + 1);
  EXPECT_EQ(DAT_PZ_SAME, 2);
}

}  // namespace
}  // namespace anydat::test
