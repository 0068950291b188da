// SPDX-License-Identifier: BSD-3-Clause
#include "os/thread.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>

#include "os/clock.h"
#include "os/futex.h"

namespace anydat::os {
namespace {

std::size_t kilobytes_of(const std::string& what) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(what + ":")) return std::stoul(line.substr(what.size() + 1));
  }
  return 0;
}

void give_up_locking() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (::syscall(SYS_capget, &header, sets) != 0) return;
  sets[0].effective &= ~(1u << CAP_IPC_LOCK);
  ::syscall(SYS_capset, &header, sets);
}

bool run_one_by_itself() {
  static std::atomic<std::uint32_t> ran{0};
  ran.store(0);
  Thread thread;
  if (!thread.start([] {
        ran.store(1);
        os::futex_wake(ran);
      }))
    return false;
  thread.detach();
  while (ran.load() == 0) os::futex_wait(ran, 0, os::to_timespec(os::kForever));
  return true;
}

// In a process of its own, which may lock no more memory and has asked that all be locked.
constexpr int kGrows = 1, kNoThread = 2, kNoLocking = 3;
int run_many() {
  ::alarm(60);
  const rlimit little{64u << 10, 64u << 10};
  give_up_locking();
  if (::setrlimit(RLIMIT_MEMLOCK, &little) != 0 || ::mlockall(MCL_FUTURE) != 0) return kNoLocking;
  if (!run_one_by_itself()) return kNoThread;
  const std::size_t before = kilobytes_of("VmSize");
  for (int i = 0; i < 100; ++i) {
    if (!run_one_by_itself()) return kNoThread;
  }
  // Those of the last ones, which may still be ending, stay for the moment. A hundred have 19 MB.
  return kilobytes_of("VmSize") < before + 4'000 ? 0 : kGrows;
}

// Without room for stacks that are locked they have others, which they have to give back themselves.
TEST(Thread, ThatGoesOnByItselfLeavesNoStackBehind) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer maps memory of its own";
#endif
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run_many());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoLocking) GTEST_SKIP() << "there is no leave to lock memory";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: memory grows, 2: no thread";
}

}  // namespace
}  // namespace anydat::os
