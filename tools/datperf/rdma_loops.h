// SPDX-License-Identifier: BSD-3-Clause
// The measuring loops of the operations "write" and "read". As those of "send", each handles `count` operations, spread
// round-robin over the endpoints, and returns false when the run broke.
#ifndef ANYDAT_TOOLS_DATPERF_RDMA_LOOPS_H
#define ANYDAT_TOOLS_DATPERF_RDMA_LOOPS_H

#include "datperf/loops.h"
#include "datperf/rdma_side.h"

namespace datperf {

// lat, client. Write: one message into the peer's memory, its answer into ours, one time stamp. Read: from the post to
// the completion, and the look at what came.
template <bool kBlock>
bool ping(RdmaSide& side, std::uint64_t first, std::uint64_t count, std::uint32_t* samples) {
  const bool reads = side.params().op == Op::read;
  Turn turn(side, first);
  std::uint64_t last = tools::ticks();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t endpoint = turn.next();
    if (!side.transfer<kBlock>(endpoint, first + i)) return false;
    if (!(reads ? side.settle<kBlock>(endpoint) : side.await_write(endpoint, first + i))) return false;
    const std::uint64_t now = tools::ticks();
    samples[i] =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(now - last, std::numeric_limits<std::uint32_t>::max()));
    last = now;
  }
  return side.bad() == 0 || side.corrupt();
}

// lat, write, server: answers each message with one of the same number. For reads it has nothing to do.
template <bool kBlock>
bool echo(RdmaSide& side, std::uint64_t count) {
  Turn turn(side, 0);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t endpoint = turn.next();
    if (!side.await_write(endpoint, i) || !side.transfer<kBlock>(endpoint, i)) return false;
  }
  return true;
}

// bw and rate, client: transfers as fast as slots come free.
template <bool kBlock>
bool stream(RdmaSide& side, std::uint64_t first, std::uint64_t count) {
  Turn turn(side, first);
  for (std::uint64_t i = 0; i < count; ++i)
    if (!side.transfer<kBlock>(turn.next(), first + i)) return false;
  return side.bad() == 0 || side.corrupt();
}

}  // namespace datperf

#endif
