// SPDX-License-Identifier: BSD-3-Clause
// Children of the test's process that have been started by whatever call.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "support/caller.h"
#include "support/patience.h"

namespace anydat::test {

// How it has ended, as waitpid(2) says it. One that does not end in time is killed, which fails the test and is its
// end.
int end_of(pid_t child, std::chrono::milliseconds time = patience(), Caller caller = Caller::here());

}  // namespace anydat::test
