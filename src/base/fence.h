// SPDX-License-Identifier: BSD-3-Clause
// A thread's own fences. Those that it has other threads go through are in os/membarrier.h.
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

}  // namespace anydat::base
