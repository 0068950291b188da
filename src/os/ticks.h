// SPDX-License-Identifier: BSD-3-Clause
// The cheapest clock there is, for those who look at it all the time.
#pragma once

#include <cstdint>

#include "os/clock.h"

namespace anydat::os {

// Whether the processor has a counter that runs at one speed, whatever the processor does. On any other, and where a
// supervisor hides it, the system's clock serves.
bool has_steady_counter();

// In units of its own: how many of them a nanosecond has is found out by comparing it with the system's clock.
inline std::uint64_t ticks([[maybe_unused]] bool steady_counter) {
#if defined(__x86_64__)
  if (steady_counter) [[likely]]
    return __builtin_ia32_rdtsc();
#endif
  return static_cast<std::uint64_t>(now_ns());
}

}  // namespace anydat::os
