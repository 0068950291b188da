// SPDX-License-Identifier: BSD-3-Clause
// What memory is in use: by this process, and beyond it.
#ifndef ANYDAT_TOOLS_DATPERF_FOOTPRINT_H
#define ANYDAT_TOOLS_DATPERF_FOOTPRINT_H

#include <cstdint>

namespace datperf {

struct Footprint {
  std::uint64_t private_bytes = 0;  // of this process alone
  // Of the whole machine, and so of both ends of a connection: the kernel's objects, shared memory, socket buffers.
  std::uint64_t system_bytes = 0;
};
Footprint footprint();

// Growth; what has shrunk has grown by 0.
Footprint operator-(const Footprint& after, const Footprint& before);

}  // namespace datperf

#endif
