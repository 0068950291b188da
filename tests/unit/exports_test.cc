// SPDX-License-Identifier: BSD-3-Clause
// libdat.so as a linker sees it (HDR-4): its name, and exactly the symbols it should have, each in its version node.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "unit/abi_table.h"
#include "unit/elf_exports.h"

namespace anydat::test {
namespace {

// Every `func ... symbol` row of the ABI table, with its version.
std::map<std::string, std::string> standard_symbols() {
  std::map<std::string, std::string> symbols;
  for (const AbiRow& row : abi_rows("func")) {
    if (row[2] == "symbol") symbols[row[1]] = row[3];
  }
  return symbols;
}

TEST(Exports, TheLibraryHasTheNameThatBinariesNeed) {
  EXPECT_EQ(elf_exports(ANYDAT_LIBDAT).soname, "libdat.so.1");
}

// HDR-9 too: the calls that 1.2 added are among the rows.
TEST(Exports, EveryCallOfTheTableIsFoundUnderItsVersion) {
  void* library = dlopen(ANYDAT_LIBDAT, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const std::map<std::string, std::string> symbols = standard_symbols();
  EXPECT_EQ(symbols.size(), 73U);
  for (const auto& [name, version] : symbols) {
    EXPECT_NE(dlvsym(library, name.c_str(), version.c_str()), nullptr) << name << "@" << version;
  }
  dlclose(library);
}

// ADM-4: another registry finds the two calls of a Provider. Programs find our extensions.
TEST(Exports, NothingElseIsVisible) {
  std::map<std::string, std::string> expected = standard_symbols();
  expected["dat_provider_init"] = "DAT_1.2";
  expected["dat_provider_fini"] = "DAT_1.2";
  expected["anydat_get_counters"] = "ANYDAT_1";
  expected["anydat_alloc_shareable"] = "ANYDAT_1";
  expected["anydat_ep_wire"] = "ANYDAT_1";
  expected["anydat_free_shareable"] = "ANYDAT_1";
  expected["anydat_get_environment"] = "ANYDAT_1";
  expected["anydat_last_error"] = "ANYDAT_1";
  expected["anydat_evd_dequeue_many"] = "ANYDAT_1";
  expected["anydat_srq_post_recvs"] = "ANYDAT_1";
  expected["anydat_ep_post_sends"] = "ANYDAT_1";
  expected["anydat_ep_post_recvs"] = "ANYDAT_1";
  EXPECT_THAT(elf_exports(ANYDAT_LIBDAT).version_of, testing::ContainerEq(expected));
}

}  // namespace
}  // namespace anydat::test
