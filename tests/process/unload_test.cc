// SPDX-License-Identifier: BSD-3-Clause
// A program may unload the library with an adapter open: a graceful close that was refused, then the plugin goes.
#include <dat/udat.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <string>

#include "support/child.h"

extern char** environ;

namespace anydat::test {
namespace {

// The library that this program uses: the one that is tested.
std::string libdat() {
  Dl_info info{};
  void* const call = dlsym(RTLD_DEFAULT, "dat_ia_openv");
  return dladdr(call, &info) != 0 ? info.dli_fname : "";
}

TEST(Unload, WithAnAdapterOpenTheThreadGoesOn) {
  std::string program = ANYDAT_BIN "/tests/plugin_host";
  std::string library = libdat();
  std::array<char*, 3> argv{program.data(), library.data(), nullptr};
  pid_t pid = -1;
  ASSERT_EQ(posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv.data(), environ), 0);
  const int status = end_of(pid, 10 * patience());
  EXPECT_FALSE(WIFSIGNALED(status)) << "it died by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace anydat::test
