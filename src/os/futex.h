// SPDX-License-Identifier: BSD-3-Clause
// The two futex operations we use, within one process.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace anydat::os {

enum class FutexResult { woken, changed, timed_out, interrupted };

// Sleeps while `word` holds `expected`, until the absolute CLOCK_MONOTONIC time `deadline`.
// A deadline is always passed to the kernel: a wait without one is restarted after a signal handler that was
// installed with SA_RESTART, and a blocked DAT call must return instead (TMO-6, ruling A10).
FutexResult futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec& deadline);

void futex_wake(std::atomic<std::uint32_t>& word, int count = INT_MAX);

}  // namespace anydat::os
