// SPDX-License-Identifier: BSD-3-Clause
// Full fences between threads, also of several processes: one's own, and those that are paid for by the other side.
//
// Where one side does something often and the other seldom, and each must see what the other did before (Dekker), the
// side that is often there needs no fence if the other calls remote_fence(), or thread_fence() in the same process.
#pragma once

#include <atomic>

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
bool allow_remote_fences();

// When it returns, each thread of each process that allows it has been through a full fence, as has the caller. Takes
// some microseconds.
void remote_fence();

// Lets thread_fence() reach this process. False: this kernel has no such thing.
bool allow_thread_fences();

// When it returns, each thread of this process has been through a full fence, as has the caller. Takes a microsecond,
// or some tens of them if other threads run. Requires: allow_thread_fences() has said so.
void thread_fence();

}  // namespace anydat::base
