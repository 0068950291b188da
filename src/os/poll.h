// SPDX-License-Identifier: BSD-3-Clause
// Sleeping until something happens on descriptors.
#pragma once

#include <poll.h>

#include <cstdint>
#include <span>

#include "os/clock.h"

namespace anydat::os {

// As poll(2), but no cancellation point: how many are ready, 0 when the time is over (< 0: never), -1 with errno set.
int poll(std::span<pollfd> entries, int milliseconds);

enum class PollEnd : std::uint8_t { ready_or_timed_out, interrupted };
// Until the descriptor is readable, -1 standing for none, or the time is over (kForever: never), or a signal comes. A
// cancellation point: within a CancelOn (os/cancel.h) the thread may end here, which unwinds the stack.
PollEnd sleep_until_readable(int fd, Nanoseconds time);

}  // namespace anydat::os
