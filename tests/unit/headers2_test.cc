// SPDX-License-Identifier: BSD-3-Clause
// The headers of uDAPL 2.0 as a C++ program uses them: one include (D2-HDR-1), C linkage (D2-HDR-4), the macros.
#include <dat2/udat.h>
// After udat.h (D2-HDR-1).
#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "unit/abi_table.h"

namespace anydat::test {
namespace {

#define EXPANDED(text) #text
#define EXPAND(text) EXPANDED(text)

// D2-HDR-6, D2-HDR-7: the 73 calls of 1.2 but dats_get_ia_handle, which no header declares, dat_extension_op, and the
// ten that no library exported.
TEST(Headers2, EveryCallIsDeclared) {
  std::vector<std::string> declared;
#define ABI_SYMBOL(name)                             \
  static_assert(std::is_function_v<decltype(name)>); \
  declared.emplace_back(#name);
#include "unit/abi2_facts.inc"
  std::vector<std::string> expected;
  for (const AbiRow& row : abi_rows("func", kAbi2Table)) {
    if ((row[2] == "symbol" || row[2] == "declared") && row[4] != "-") expected.push_back(row[1]);
  }
  EXPECT_EQ(declared, expected);
  EXPECT_EQ(declared.size(), 72U + 1 + 10);
}

// D2-HDR-2, D2-REG-1: what dat_ia_open really calls.
TEST(Headers2, IaOpenAddsVersionAndThreadSafety) {
  EXPECT_STREQ(EXPAND(dat_ia_open(name, length, evd, ia)),
               "dat_ia_openv((name), (length), (evd), (ia), (2), (0), (DAT_FALSE))");
}

// RC-4, D2-RC-1: the macros that take a return code apart; DAT_NOT_IMPLEMENTED survives them.
TEST(Headers2, ReturnCodesComeApart) {
  const DAT_RETURN code = DAT_CLASS_ERROR | DAT_NOT_IMPLEMENTED | DAT_INVALID_STATE_SRQ_ERROR;
  EXPECT_EQ(DAT_GET_TYPE(code), DAT_NOT_IMPLEMENTED);
  EXPECT_EQ(DAT_GET_SUBTYPE(code), DAT_INVALID_STATE_SRQ_ERROR);
  EXPECT_EQ(DAT_IS_WARNING(code), 0U);
  EXPECT_NE(DAT_IS_WARNING(DAT_CLASS_WARNING | DAT_QUEUE_FULL), 0U);
}

TEST(Headers2, TheTableIsInTheFirstWordOfAnObject) {
  DAT_PROVIDER provider{};
  DAT_PROVIDER* object[] = {&provider, nullptr};
  EXPECT_EQ(DAT_HANDLE_TO_PROVIDER(object), &provider);
}

TEST(Headers2, AnIaHandleIsANumberAndBack) {
  const DAT_IA_HANDLE ia = DAT_UL_TO_IA_HANDLE(0x1234);
  EXPECT_EQ(DAT_IA_HANDLE_TO_UL(ia), 0x1234U);
}

// All function-like macros of the table that are neither redirects nor extensions have a test above.
TEST(Headers2, AllOtherMacrosAreTested) {
  std::vector<std::string> macros;
#define ABI_MACRO(name) macros.emplace_back(#name);
#include "unit/abi2_facts.inc"
  EXPECT_THAT(macros, testing::ElementsAre("DAT_IA_HANDLE_TO_UL", "DAT_UL_TO_IA_HANDLE", "DAT_IS_WARNING",
                                           "DAT_GET_TYPE", "DAT_GET_SUBTYPE", "dat_ia_open", "DAT_HANDLE_TO_PROVIDER"));
}

// D2-EXT-4: each macro of the extension takes the arguments of the table, and names the operation of the table. That
// the clock is set by the operation for it is ruling B4.
TEST(Headers2, ExtensionsNameTheirOperation) {
  int checked = 0;
#define ABI_EXTENSION(macro, operation, arguments)                                                                   \
  {                                                                                                                  \
    const std::string call = EXPAND(macro arguments);                                                                \
    const std::string expected =                                                                                     \
        #macro == std::string("dat_ib_collective_set_clock") ? "DAT_IB_COLLECTIVE_SET_CLOCK_OP" : EXPAND(operation); \
    EXPECT_THAT(call, testing::StartsWith("dat_extension_op("));                                                     \
    EXPECT_THAT(call, testing::ContainsRegex(", " + expected + "[,)]"));                                             \
    ++checked;                                                                                                       \
  }
#include "unit/abi2_facts.inc"
  EXPECT_EQ(checked, 32);  // as many as there are operations
}

// HDR-6: in C++ the structure can be declared and assigned.
TEST(Headers2, ProviderAttributesAreAssignable) {
  DAT_PROVIDER_ATTR from;
  std::memset(&from, 0, sizeof from);
  from.evd_stream_merging_supported[5][0] = DAT_TRUE;
  DAT_PROVIDER_ATTR to;
  to = from;
  EXPECT_EQ(to.evd_stream_merging_supported[5][0], DAT_TRUE);
}

// D2-HDR-8, HDR-7: names from before.
TEST(Headers2, OldNamesAreTheNewOnes) {
  DAT_IA_ATTR ia{};
  ia.max_rdma_read_per_ep = 4;
  EXPECT_EQ(ia.max_rdma_read_per_ep_in, 4);
  DAT_EP_ATTR ep{};
  ep.max_mtu_size = 4096;
  EXPECT_EQ(ep.max_message_size, 4096U);
  EXPECT_EQ(DAT_CONNECT_MULTIPATH_FLAG, DAT_CONNECT_MULTIPATH_REQUESTED_FLAG);
}

// The words for what an operation of the extension answers.
TEST(Headers2, ExtensionStatusHasWords) {
  const char* words = nullptr;
  EXPECT_EQ(dat_strerror_ext_status(DAT_OP_SUCCESS, &words), DAT_SUCCESS);
  EXPECT_STREQ(words, " ");
  EXPECT_EQ(dat_strerror_ext_status(DAT_IB_OP_ERR, &words), DAT_SUCCESS);
  EXPECT_STREQ(words, "DAT_IB_OP_ERR");
  EXPECT_EQ(dat_strerror_ext_status(DAT_IB_COLL_COMP_ERR, &words), DAT_INVALID_PARAMETER);
  EXPECT_STREQ(words, "unknown extension status");
  EXPECT_EQ(dat_strerror_extension(DAT_IB_ERR, &words), DAT_SUCCESS);
  EXPECT_STREQ(words, "DAT_IB_ERR");
}

}  // namespace
}  // namespace anydat::test
