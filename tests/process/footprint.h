// SPDX-License-Identifier: BSD-3-Clause
// What a process holds of the system: to see that nothing is left behind.
#pragma once

#include <dat/udat.h>
#include <sys/types.h>

#include <chrono>
#include <ostream>

#include "support/dat_events.h"

namespace anydat::test {

// Open descriptors, mappings of our shared segments, and threads of one process.
struct Footprint {
  int descriptors = 0;
  int segments = 0;
  int threads = 0;

  static Footprint here();
  bool operator==(const Footprint&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Footprint& footprint);

// Fails unless this process comes back to `before`: what a peer's death releases is released a moment later.
void expect_back_to(const Footprint& before, Caller caller = Caller::here());

// Local sockets of this host that carry the name of the service point `qualifier`: the listening one, and one for each
// link that came in through it.
int sockets_of(DAT_CONN_QUAL qualifier);

// That this process has used, in all threads and in the kernel. Allocates nothing.
std::chrono::microseconds processor_time();

// Files that anybody could have left where named shared memory lives.
int files_left();

}  // namespace anydat::test
