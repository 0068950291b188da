// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/cross_copy.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace anydat::nic::soft::shm {
namespace {

TEST(CrossCopy, ProcessThatDiedHasNoMemoryEvenBeforeItsParentHasWaitedForIt) {
  // LMR-FREE-8: whoever waits for a peer to stop writing must notice its death, also if it is the peer's parent.
  char byte = 0;
  const iovec here{&byte, 1};
  if (process_vm_readv(getpid(), &here, 1, &here, 1, 0) < 0 && errno != EFAULT) {
    GTEST_SKIP() << "this system forbids process_vm_readv";
  }
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(kill(child, 0), 0) << "it still takes signals";
  EXPECT_FALSE(has_memory(child));
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(has_memory(getpid()));
}

}  // namespace
}  // namespace anydat::nic::soft::shm
