// SPDX-License-Identifier: BSD-3-Clause
#include "os/processor.h"
#include "os/uncancelled.h"

#include <sched.h>
#include <time.h>

namespace anydat::os {

namespace {

// Long enough for a thread that is switched to and back to do something in between.
constexpr Nanoseconds kAside = 20'000;

bool in_real_time() {
  const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  return policy == SCHED_FIFO || policy == SCHED_RR;
}

}  // namespace

void yield() {
  sched_yield();
}

void step_aside() {
  if (in_real_time()) {
    sleep_for(kAside);
  } else {
    sched_yield();
  }
}

void sleep_for(Nanoseconds time) {
  const timespec left = to_timespec(time);
  uncancelled::nanosleep(&left);
}

}  // namespace anydat::os
