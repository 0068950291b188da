// SPDX-License-Identifier: BSD-3-Clause
#include "os/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace anydat::os {

FutexResult futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec& deadline) {
  const long rc = syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_BITSET_PRIVATE, expected,
                          &deadline, nullptr, FUTEX_BITSET_MATCH_ANY);
  if (rc == 0) return FutexResult::woken;
  if (errno == EAGAIN) return FutexResult::changed;
  if (errno == ETIMEDOUT) return FutexResult::timed_out;
  return FutexResult::interrupted;
}

void futex_wake(std::atomic<std::uint32_t>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace anydat::os
