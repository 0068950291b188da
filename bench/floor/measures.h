// SPDX-License-Identifier: BSD-3-Clause
// What floor measures, one function for each way of bytes.
#ifndef ANYDAT_BENCH_FLOOR_MEASURES_H
#define ANYDAT_BENCH_FLOOR_MEASURES_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/summary.h"

namespace bench {

struct How {
  std::vector<int> cpus;     // the one that answers, the one that asks; none: wherever the system likes
  std::uint64_t rounds = 0;  // round trips, or messages
};

// Half a round trip, in ns.
tools::Summary ring_latency(const How& how, std::size_t bytes);
tools::Summary stripped_latency(const How& how, std::size_t bytes);
tools::Summary write_latency(const How& how);  // of 8 bytes into memory that both processes have mapped

// Messages a second of 8 bytes.
double ring_rate(const How& how);
double stripped_rate(const How& how);

// Bytes a second. `set` is the memory that is cycled through at either end: one message, or many.
double two_copies(const How& how, std::size_t bytes, std::size_t set, std::size_t ring_bytes);
double one_copy(const How& how, std::size_t bytes, std::size_t set);

}  // namespace bench

#endif
