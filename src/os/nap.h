// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <semaphore.h>

#include <cstdint>

#include "os/clock.h"

namespace anydat::os {

// A bed for one thread, which another wakes. A futex would do but for this: the sleep is a cancellation point.
class Nap {
 public:
  Nap();
  ~Nap();
  Nap(const Nap&) = delete;
  Nap& operator=(const Nap&) = delete;

  enum class End : std::uint8_t { woken, timed_out, interrupted };
  // Until wake(), also one that came before, or the time `deadline`, or a signal. A deadline is always passed to the
  // kernel: a sleep without one is gone on with after a signal handler that was installed with SA_RESTART, and a
  // blocked DAT call must return instead (TMO-6, ruling A10).
  End sleep(Nanoseconds deadline);
  void wake();

 private:
  sem_t semaphore_;
};

}  // namespace anydat::os
