// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <semaphore.h>

#include <cerrno>
#include <cstdint>

#include "base/clock.h"

namespace anydat::os {

// A bed for one thread, which another wakes. A futex would do but for this: the sleep is a cancellation point.
class Nap {
 public:
  Nap() { sem_init(&semaphore_, 0, 0); }
  ~Nap() { sem_destroy(&semaphore_); }
  Nap(const Nap&) = delete;
  Nap& operator=(const Nap&) = delete;

  enum class End : std::uint8_t { woken, timed_out, interrupted };
  // Until wake(), also one that came before, or the time `deadline`, or a signal. A deadline is always passed to the
  // kernel: a sleep without one is gone on with after a signal handler that was installed with SA_RESTART, and a
  // blocked DAT call must return instead (TMO-6, ruling A10).
  End sleep(base::Nanoseconds deadline) {
    const timespec until = base::to_timespec(deadline);
    if (sem_clockwait(&semaphore_, CLOCK_MONOTONIC, &until) == 0) return End::woken;
    return errno == ETIMEDOUT ? End::timed_out : End::interrupted;
  }
  void wake() { sem_post(&semaphore_); }

 private:
  sem_t semaphore_;
};

}  // namespace anydat::os
