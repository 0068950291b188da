// SPDX-License-Identifier: BSD-3-Clause
#include "os/ticks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace anydat::os {

bool has_steady_counter() {
#if defined(__x86_64__)
  constexpr unsigned kPowerManagement = 0x80000007;
  constexpr unsigned kInvariantCounter = 1u << 8;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(kPowerManagement, &a, &b, &c, &d) != 0 && (d & kInvariantCounter) != 0;
#else
  return false;
#endif
}

}  // namespace anydat::os
