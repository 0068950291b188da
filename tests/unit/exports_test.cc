// SPDX-License-Identifier: BSD-3-Clause
// The libraries as a linker sees them (HDR-4): the name, and exactly the symbols it should have, each in its version
// node.
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

// D2-HDR-6, D2-HDR-7: 74 calls that OpenFabrics' library exports, and ten that it only declares.
std::map<std::string, std::string> symbols_of_version2() {
  std::map<std::string, std::string> symbols;
  for (const AbiRow& row : abi_rows("func", kAbi2Table)) {
    if (row[2] == "symbol" || row[2] == "declared") symbols[row[1]] = "DAT_2.0";
  }
  return symbols;
}

TEST(Exports, EveryCallOfTheOtherVersionIsFoundUnderItsOwn) {
  EXPECT_EQ(elf_exports(ANYDAT_LIBDAT2).soname, "libdat2.so.2");
  void* library = dlopen(ANYDAT_LIBDAT2, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const std::map<std::string, std::string> symbols = symbols_of_version2();
  EXPECT_EQ(symbols.size(), 84U);
  for (const auto& [name, version] : symbols) {
    EXPECT_NE(dlvsym(library, name.c_str(), version.c_str()), nullptr) << name << "@" << version;
  }
  dlclose(library);
}

// What both libraries have beside the standard's calls: ours by another version in each, so that where both are in one
// process each caller finds its own (D2-HDR-10).
std::map<std::string, std::string> with_ours(std::map<std::string, std::string> symbols, const char* version,
                                             const char* version_of_ours) {
  symbols["dat_provider_init"] = version;
  symbols["dat_provider_fini"] = version;
  for (const char* ours : {"anydat_get_counters", "anydat_alloc_shareable", "anydat_ep_wire", "anydat_free_shareable",
                           "anydat_get_environment", "anydat_last_error", "anydat_evd_dequeue_many",
                           "anydat_srq_post_recvs", "anydat_ep_post_sends", "anydat_ep_post_recvs"}) {
    symbols[ours] = version_of_ours;
  }
  return symbols;
}

// ADM-4: another registry finds the two calls of a Provider. Programs find our extensions.
TEST(Exports, NothingElseIsVisible) {
  EXPECT_THAT(elf_exports(ANYDAT_LIBDAT).version_of,
              testing::ContainerEq(with_ours(standard_symbols(), "DAT_1.2", "ANYDAT_1")));
  EXPECT_THAT(elf_exports(ANYDAT_LIBDAT2).version_of,
              testing::ContainerEq(with_ours(symbols_of_version2(), "DAT_2.0", "ANYDAT2_1")));
}

}  // namespace
}  // namespace anydat::test
