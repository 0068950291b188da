// SPDX-License-Identifier: BSD-3-Clause
// Giving the processor to others.
#pragma once

#include "os/clock.h"

namespace anydat::os {

// To another thread that is ready to run and not outranked.
void yield();

// To another thread that is ready to run, outranked or not: a thread with a real-time policy sleeps for a moment, since
// yielding would never let one of a lower priority run, which may be the one that it waits for.
void step_aside();

void sleep_for(Nanoseconds time);

}  // namespace anydat::os
