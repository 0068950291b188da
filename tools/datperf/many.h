// SPDX-License-Identifier: BSD-3-Clause
// Many connections from several processes into one process and one shared receive queue: what a connection costs to
// make, in memory, and in the rate of messages, beside a run with few connections.
#ifndef ANYDAT_TOOLS_DATPERF_MANY_H
#define ANYDAT_TOOLS_DATPERF_MANY_H

#include <cstdint>
#include <string>
#include <vector>

#include "common/connection.h"
#include "datperf/run.h"

namespace datperf {

struct ManyOptions {
  std::uint32_t endpoints = 10'000;  // in all
  std::uint32_t clients = 4;
  std::uint32_t burst = 16;
  std::uint64_t size = 8;
  std::uint64_t iters = 2'000'000;  // in all
  std::string wire = wanted_wire();
  std::string ia = tools::kDefaultIa;
  std::vector<int> cpus;
  bool json = false;
};

int run_many(const ManyOptions& options);

}  // namespace datperf

#endif
