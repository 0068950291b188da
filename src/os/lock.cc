// SPDX-License-Identifier: BSD-3-Clause
#include "os/lock.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace anydat::os {

void pause_in_spin(unsigned round) {
  if (round < 64) {
    sched_yield();
  } else {
    // The other was preempted by a thread that outranks us both; yielding alone would never let it run.
    const unsigned doublings = (round - 64) / 16;
    const timespec pause{0, 50'000L << (doublings < 4 ? doublings : 4)};
    // Not nanosleep(): that is a cancellation point.
    syscall(SYS_nanosleep, &pause, nullptr);
  }
}

}  // namespace anydat::os
