// SPDX-License-Identifier: BSD-3-Clause
// What becomes of a test that hangs (support/watchdog.h). Those here that do so are run by this program alone.
#include "support/watchdog.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>

#include "support/child.h"
#include "support/patience.h"

namespace anydat::test {
namespace {

struct EndOfProgram {
  int status = -1;
  std::string said;
};

// This program with that test alone, and little patience.
EndOfProgram run_impatiently(const std::string& test) {
  const std::string command = fmt::format(
      "exec env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX -u GTEST_SHARD_STATUS_FILE -u GTEST_OUTPUT "
      "ANYDAT_TEST_TIMEOUT_SCALE=0.01 "
      "'{}' --gtest_brief=1 --gtest_also_run_disabled_tests --gtest_filter={} 2>&1",
      std::filesystem::read_symlink("/proc/self/exe").string(), test);
  EndOfProgram end;
  FILE* const output = ::popen(command.c_str(), "re");
  if (output == nullptr) return end;
  for (int byte = 0; (byte = std::fgetc(output)) != EOF;) end.said += static_cast<char>(byte);
  end.status = ::pclose(output);
  return end;
}

TEST(ImpatientProgram, DISABLED_Hangs) {
  for (;;) ::pause();
}

TEST(ImpatientProgram, DISABLED_HasAskedForTime) {
  give_more_time(20 * patience());
  const auto end = std::chrono::steady_clock::now() + 15 * patience();
  EXPECT_FALSE(eventually([&] { return std::chrono::steady_clock::now() > end; }, 14 * patience()));
}

TEST(ImpatientProgram, DISABLED_HasAChildThatHangs) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  EXPECT_EQ(WTERMSIG(end_of(child)), SIGKILL);
}

TEST(Watchdog, EndsATestThatHangsByItsName) {
  const EndOfProgram end = run_impatiently("ImpatientProgram.DISABLED_Hangs");
  EXPECT_TRUE(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT) << end.status;
  EXPECT_THAT(end.said, testing::HasSubstr("[  FAILED  ] ImpatientProgram.DISABLED_Hangs: it hangs"));
}

TEST(Watchdog, LetsATestTakeTheTimeThatItHasAskedFor) {
  const EndOfProgram end = run_impatiently("ImpatientProgram.DISABLED_HasAskedForTime");
  EXPECT_EQ(end.status, 0) << end.said;
}

TEST(Watchdog, IsNotNeededForAChildThatHangs) {
  const EndOfProgram end = run_impatiently("ImpatientProgram.DISABLED_HasAChildThatHangs");
  EXPECT_TRUE(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 1) << end.status;
  EXPECT_THAT(end.said, testing::HasSubstr("the child hangs"));
}

}  // namespace
}  // namespace anydat::test
