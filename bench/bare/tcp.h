// SPDX-License-Identifier: BSD-3-Clause
// What bare TCP gives on this machine, with nothing of ours in the way: the floor and the ceiling for anything that
// travels over it. Two processes, one loopback connection, both polling and never asleep.
//
//   raw_tcp lat  --size 8         ->  lat median_ns 4102.5 p99_ns 5200.0      half a round trip
//   raw_tcp bw   --size 1MiB      ->  bw gbytes_per_s 6.702                   one write for each message
//   raw_tcp rate --size 8         ->  rate mmsgs_per_s 13.702                 64 messages in each write
//
// Messages are written from, and read into, as many buffers as --buffers says, in turn; the bytes are not looked at.
#ifndef ANYDAT_BENCH_BARE_TCP_H
#define ANYDAT_BENCH_BARE_TCP_H

#include <cstdint>
#include <vector>

#include "common/summary.h"

namespace bench {

struct TcpOptions {
  std::uint64_t size = 8;
  std::uint64_t iters = 20'000;  // messages, or round trips
  std::uint64_t batch = 1;       // messages in one write
  std::uint64_t buffers = 1;     // of one write each
  std::vector<int> cpus;         // the one that answers or reads, the one that asks or writes
};

// Half a round trip, in ns.
tools::Summary tcp_latency(const TcpOptions& options);
// Messages a second.
double tcp_rate(const TcpOptions& options);

}  // namespace bench

#endif
