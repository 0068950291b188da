// SPDX-License-Identifier: BSD-3-Clause
#include "os/membarrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "base/fence.h"
#include "os/clock.h"

namespace anydat::os {

bool allow_remote_fences() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void remote_fence() {
  syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

bool allow_thread_fences() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void thread_fence() {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) return;
  // The process has forbidden it to itself since. No processor keeps a store to itself for anything like as long as
  // this, and a thread that is taken off its processor leaves nothing behind there.
  constexpr Nanoseconds kLongEnough = 10'000'000;
  for (const Nanoseconds start = now_ns(); now_ns() - start < kLongEnough;) {
    const timespec pause{0, 1'000'000};  // which signals may end, and filters forbid, too
    syscall(SYS_nanosleep, &pause, nullptr);
  }
  base::full_fence();
}

}  // namespace anydat::os
