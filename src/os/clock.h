// SPDX-License-Identifier: BSD-3-Clause
// Monotonic time in nanoseconds (TMO-3: wall-clock changes must not matter).
#pragma once

#include <cstdint>
#include <ctime>

namespace anydat::os {

using Nanoseconds = std::int64_t;

inline constexpr Nanoseconds kNsPerSecond = 1'000'000'000;
inline constexpr Nanoseconds kForever = INT64_MAX;
// As far ahead as a timespec needs to be to never come.
inline constexpr timespec kNever{4'000'000'000, 0};

inline Nanoseconds now_ns() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return ts.tv_sec * kNsPerSecond + ts.tv_nsec;
}

inline timespec to_timespec(Nanoseconds t) {
  if (t == kForever) return kNever;
  return {static_cast<time_t>(t / kNsPerSecond), static_cast<long>(t % kNsPerSecond)};
}

}  // namespace anydat::os
