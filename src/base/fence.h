// SPDX-License-Identifier: BSD-3-Clause
// Full fences between threads, also of several processes: one's own, and those that are paid for by the other side.
//
// Where one side does something often and the other seldom, and each must see what the other did before (Dekker), the
// side that is often there needs no fence if the other calls remote_fence(), or thread_fence() in the same process.
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

#include "base/clock.h"

namespace anydat::base {

inline void full_fence() {
#if defined(__x86_64__)
  __builtin_ia32_mfence();  // thread sanitizers do not know std::atomic_thread_fence()
#else
  __sync_synchronize();
#endif
}

// Keeps the compiler from moving memory accesses over it, and nothing else.
inline void compiler_fence() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Lets remote_fence() reach this process. False: this kernel has no such thing, so fences must be one's own.
inline bool allow_remote_fences() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

// When it returns, each thread of each process that allows it has been through a full fence, as has the caller. Takes
// some microseconds.
inline void remote_fence() {
  syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

// Lets thread_fence() reach this process. False: this kernel has no such thing.
inline bool allow_thread_fences() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

// When it returns, each thread of this process has been through a full fence, as has the caller. Takes a microsecond,
// or some tens of them if other threads run. Requires: allow_thread_fences() has said so.
inline void thread_fence() {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) return;
  // The process has forbidden it to itself since. No processor keeps a store to itself for anything like as long as
  // this, and a thread that is taken off its processor leaves nothing behind there.
  constexpr Nanoseconds kLongEnough = 10'000'000;
  for (const Nanoseconds start = now_ns(); now_ns() - start < kLongEnough;) {
    const timespec pause{0, 1'000'000};  // which signals may end, and filters forbid, too
    syscall(SYS_nanosleep, &pause, nullptr);
  }
  full_fence();
}

}  // namespace anydat::base
