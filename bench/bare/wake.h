// SPDX-License-Identifier: BSD-3-Clause
// What waking another process costs on this machine, with nothing else in the way: two processes hand a token back and
// forth, sleeping every time: no spinning before the sleep. The floor for anything that blocks.
#ifndef ANYDAT_BENCH_BARE_WAKE_H
#define ANYDAT_BENCH_BARE_WAKE_H

#include <cstdint>
#include <vector>

#include "common/summary.h"

namespace bench {

// Half a round trip, in ns.
tools::Summary wake_by_eventfd(std::uint64_t rounds, const std::vector<int>& cpus);
tools::Summary wake_by_futex(std::uint64_t rounds, const std::vector<int>& cpus);

}  // namespace bench

#endif
