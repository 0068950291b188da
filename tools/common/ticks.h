// SPDX-License-Identifier: BSD-3-Clause
// A cheap time stamp for measuring loops.
//
// Reading the processor's time stamp counter costs a third of a clock call, which matters when a whole round trip is
// some 200 ns. The counter's rate is not assumed: TickScale compares it with the system clock over the very run that
// is measured. Where there is no such counter the system clock itself counts, in nanoseconds.
#ifndef ANYDAT_TOOLS_COMMON_TICKS_H
#define ANYDAT_TOOLS_COMMON_TICKS_H

#include <chrono>
#include <cstdint>

namespace tools {

inline std::uint64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return now_ns();
#endif
}

class TickScale {
 public:
  TickScale() : start_ns_(now_ns()), start_ticks_(ticks()) {}

  // Requires: enough time has passed since construction to measure a rate.
  double ns_per_tick() const {
    const double elapsed_ticks = static_cast<double>(ticks() - start_ticks_);
    return elapsed_ticks > 0 ? static_cast<double>(now_ns() - start_ns_) / elapsed_ticks : 1.0;
  }

 private:
  std::uint64_t start_ns_;
  std::uint64_t start_ticks_;
};

}  // namespace tools

#endif
