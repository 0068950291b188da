// SPDX-License-Identifier: BSD-3-Clause
// The two futex operations we use, within one process.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>

namespace anydat::base {

enum class FutexResult { woken, changed, timed_out, interrupted };

// Sleeps while `word` holds `expected`, until the absolute CLOCK_MONOTONIC time `deadline`.
// A deadline is always passed to the kernel: a wait without one is restarted after a signal handler that was
// installed with SA_RESTART, and a blocked DAT call must return instead (TMO-6, ruling A10).
inline FutexResult futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec& deadline) {
  const long rc = syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_BITSET_PRIVATE, expected,
                          &deadline, nullptr, FUTEX_BITSET_MATCH_ANY);
  if (rc == 0) return FutexResult::woken;
  if (errno == EAGAIN) return FutexResult::changed;
  if (errno == ETIMEDOUT) return FutexResult::timed_out;
  return FutexResult::interrupted;
}

inline void futex_wake(std::atomic<std::uint32_t>& word, int count = INT_MAX) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace anydat::base
