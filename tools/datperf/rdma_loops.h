// SPDX-License-Identifier: BSD-3-Clause
// The measuring loops of the operations "write" and "read". As those of "send", each handles `count` operations, spread
// round-robin over the endpoints, and returns false when the run broke.
#ifndef ANYDAT_TOOLS_DATPERF_RDMA_LOOPS_H
#define ANYDAT_TOOLS_DATPERF_RDMA_LOOPS_H

#include "datperf/loops.h"
#include "datperf/rdma_side.h"

namespace datperf {

// lat, read: from the post to the completion, and the look at what came; one time stamp.
template <bool kBlock>
bool ping_by_reads(RdmaSide& side, std::uint64_t first, std::uint64_t count, std::uint32_t* samples) {
  Turn turn(side, first);
  std::uint64_t last = tools::ticks();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t endpoint = turn.next();
    if (!side.transfer<kBlock>(endpoint, first + i) || !side.settle<kBlock>(endpoint)) return false;
    samples[i] = sample(last);
  }
  return side.bad() == 0 || side.corrupt();
}

// What follows a Write, and how its arrival is learnt of.
inline bool told(RdmaSide& side, std::uint32_t endpoint) {
  return !side.params().notices || side.post_notice(endpoint);
}
template <bool kBlock>
bool await(RdmaSide& side, std::uint32_t endpoint, std::uint64_t sequence) {
  return side.params().notices ? side.await_notice<kBlock>(endpoint, sequence) : side.await_write(endpoint, sequence);
}

// lat, write, client: one message into the peer's memory, its answer into ours, one time stamp. Each message is
// prepared while the answer to the one before it is on its way, on this side as on the other.
template <bool kBlock>
bool ping_by_writes(RdmaSide& side, std::uint64_t first, std::uint64_t count, std::uint32_t* samples) {
  Turn turn(side, first);
  std::uint32_t endpoint = turn.next();
  RdmaSide::Transfer next;
  if (count > 0 && !side.prepare<kBlock>(endpoint, first, next)) return false;
  std::uint64_t last = tools::ticks();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t asked = endpoint;
    if (!side.post(next) || !told(side, asked)) return false;
    endpoint = turn.next();
    if (i + 1 < count && !side.prepare<kBlock>(endpoint, first + i + 1, next)) return false;
    if (!await<kBlock>(side, asked, first + i)) return false;
    samples[i] = sample(last);
  }
  return true;
}

template <bool kBlock>
bool ping(RdmaSide& side, std::uint64_t first, std::uint64_t count, std::uint32_t* samples) {
  return side.params().op == Op::read ? ping_by_reads<kBlock>(side, first, count, samples)
                                      : ping_by_writes<kBlock>(side, first, count, samples);
}

// lat, write, server: answers each message with one of the same number. For reads it has nothing to do.
template <bool kBlock>
bool echo(RdmaSide& side, std::uint64_t count) {
  Turn turn(side, 0);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t endpoint = turn.next();
    RdmaSide::Transfer answer;
    if (!side.prepare<kBlock>(endpoint, i, answer) || !await<kBlock>(side, endpoint, i) || !side.post(answer) ||
        !told(side, endpoint))
      return false;
  }
  return true;
}

// bw and rate, client: transfers as fast as slots come free.
template <bool kBlock>
bool stream(RdmaSide& side, std::uint64_t first, std::uint64_t count) {
  Turn turn(side, first);
  auto* const lanes = side.lanes();
  const std::uint64_t batch = batch_of(side.params(), count);
  for (std::uint64_t i = 0; i < count;) {
    for (const std::uint64_t end = std::min(count, i + batch); i < end; ++i) {
      const std::uint32_t endpoint = turn.next();
      if (!side.transfer<kBlock>(lanes[endpoint], endpoint, first + i)) return false;
    }
    if (batch < count && !side.look()) return false;
  }
  return side.bad() == 0 || side.corrupt();
}

}  // namespace datperf

#endif
