// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace anydat::base {

// May a file of this process have so many bytes (RLIMIT_FSIZE)? To be asked before one is made as large: the system
// sends a signal that ends the process instead of refusing (SIGXFSZ).
inline bool file_may_have(std::size_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

}  // namespace anydat::base
