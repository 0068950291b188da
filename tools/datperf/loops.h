// SPDX-License-Identifier: BSD-3-Clause
// The measuring loops of the operation "send"; those of "write" and "read" are in rdma_loops.h.
//
// Each loop handles `count` messages, spread round-robin over the endpoints in bursts. Each returns false when the run
// broke; Side::fail() then says why.
#ifndef ANYDAT_TOOLS_DATPERF_LOOPS_H
#define ANYDAT_TOOLS_DATPERF_LOOPS_H

#include <algorithm>
#include <limits>
#include <span>

#include "common/ticks.h"
#include "datperf/side.h"

namespace datperf {

// Which endpoint is next.
class Turn {
 public:
  Turn(const Side& side, std::uint64_t sequence)
      : endpoints_(side.params().endpoints),
        burst_(side.params().burst),
        at_(static_cast<std::uint32_t>(sequence / burst_ % endpoints_)),
        left_(burst_ - static_cast<std::uint32_t>(sequence % burst_)) {}
  std::uint32_t next() {
    const std::uint32_t endpoint = at_;
    if (--left_ == 0) {
      left_ = burst_;
      if (++at_ == endpoints_) at_ = 0;
    }
    return endpoint;
  }
  // Which has the next messages, `most` at most, and how many.
  std::uint32_t next_row(std::uint64_t most, std::uint32_t& count) {
    count = static_cast<std::uint32_t>(std::min<std::uint64_t>(left_, most));
    left_ -= count - 1;
    return next();
  }

 private:
  std::uint32_t endpoints_;
  std::uint32_t burst_;
  std::uint32_t at_;
  std::uint32_t left_;  // of the burst
};

inline std::uint32_t sample(std::uint64_t& last) {
  const std::uint64_t now = tools::ticks();
  const std::uint64_t passed = now - last;
  last = now;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(passed, std::numeric_limits<std::uint32_t>::max()));
}

// lat, client: one message out, its answer in, one time stamp. A sample is the time from one stamp to the next: the
// stamp itself, the reading of the answer and the reposting of its buffer are inside, and nothing is subtracted. The
// buffer goes back while the next message is on its way, on this side as on the other.
template <bool kBlock>
bool ping(Side& side, std::uint64_t first, std::uint64_t count, std::uint32_t* samples) {
  const std::uint64_t size = side.params().size;
  Turn turn(side, first);
  Tally tally;
  std::uint64_t wrong = 0;
  std::uint64_t last = tools::ticks();
  DAT_EVENT event;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t answer = 0;
    if (!side.send<kBlock>(turn.next(), first + i)) return false;
    if (i > 0 && !side.repost(event)) return false;
    if (!side.receive<kBlock>(event) || !side.read(event, tally, answer)) return false;
    wrong += answer != carried(size, first + i);
    samples[i] = sample(last);
  }
  if (count > 0 && !side.repost(event)) return false;
  return (wrong == 0 && tally.bad == 0) || side.corrupt();
}

// lat, server: the answer carries the number of the question, so a question must have been read to be answered.
template <bool kBlock>
bool echo(Side& side, std::uint64_t count, Tally& tally) {
  Turn turn(side, 0);
  for (std::uint64_t i = 0; i < count; ++i) {
    DAT_EVENT event;
    std::uint64_t question = 0;
    if (!side.receive<kBlock>(event) || !side.read(event, tally, question)) return false;
    if (!side.send<kBlock>(turn.next(), question) || !side.repost(event)) return false;
  }
  return true;
}

// How many operations are posted in a row: all, unless the user has said.
inline std::uint64_t batch_of(const Params& params, std::uint64_t count) {
  return params.batch != 0 ? params.batch : count;
}

// bw and rate, client: Sends as fast as slots come free.
template <bool kBlock>
bool stream(Side& side, std::uint64_t first, std::uint64_t count) {
  Turn turn(side, first);
  const std::uint64_t batch = batch_of(side.params(), count);
  for (std::uint64_t i = 0; i < count;) {
    for (const std::uint64_t end = std::min(count, i + batch); i < end; ++i)
      if (!side.send<kBlock>(turn.next(), first + i)) return false;
    if (batch < count && !side.look()) return false;
  }
  return true;
}

// bw and rate, server: read each message and give its buffer back at once, so that the queue stays full.
template <bool kBlock>
bool drain(Side& side, std::uint64_t count, Tally& tally) {
  for (std::uint64_t i = 0; i < count; ++i) {
    DAT_EVENT event;
    std::uint64_t sequence = 0;
    if (!side.receive<kBlock>(event) || !side.read(event, tally, sequence) || !side.repost(event)) return false;
  }
  return true;
}

// The same by calls for many.
inline bool stream_at_once(Side& side, std::uint64_t first, std::uint64_t count) {
  Turn turn(side, first);
  for (std::uint64_t i = 0; i < count;) {
    std::uint32_t in_a_row = 0;
    const std::uint32_t endpoint = turn.next_row(std::min<std::uint64_t>(count - i, side.at_once()), in_a_row);
    if (!side.send_row(endpoint, first + i, in_a_row)) return false;
    i += in_a_row;
  }
  return true;
}
inline bool drain_at_once(Side& side, std::uint64_t count, Tally& tally) {
  for (std::uint64_t i = 0; i < count;) {
    std::span<const DAT_EVENT> events;
    if (!side.receive_row(count - i, events)) return false;
    for (const DAT_EVENT& event : events) {
      std::uint64_t sequence = 0;
      if (!side.read(event, tally, sequence)) return false;
    }
    if (!side.repost_row(events)) return false;
    i += events.size();
  }
  return true;
}

// bw and rate in both directions, either side: Sends as long as there are slots, and what has come from the other side.
// `received` counts over the calls of a phase: in the last one (`all` are due) it waits for all of them.
inline bool exchange(Side& side, std::uint64_t first, std::uint64_t count, std::uint64_t all, Tally& tally,
                     std::uint64_t& received) {
  constexpr std::uint64_t kUsualBatch = 16;
  Turn turn(side, first);
  const std::uint64_t batch = batch_of(side.params(), kUsualBatch);
  std::uint32_t endpoint = count > 0 ? turn.next() : 0;
  const bool last = first + count == all;
  for (std::uint64_t sent = 0; sent < count || (last && received < all);) {
    for (std::uint64_t i = 0; i < batch && sent < count && side.has_slot(endpoint); ++i) {
      if (!side.send<false>(endpoint, first + sent)) return false;
      if (++sent < count) endpoint = turn.next();
    }
    if (!side.look()) return false;
    DAT_EVENT event;
    bool there = true;
    for (std::uint64_t i = 0; i < batch; ++i) {
      if (!side.receive_if_there(event, there)) return false;
      if (!there) break;
      if (Side::is_told(event)) {
        side.note_finish();
      } else {
        std::uint64_t sequence = 0;
        if (!side.read(event, tally, sequence)) return false;
        ++received;
      }
      if (!side.repost(event)) return false;
    }
  }
  return true;
}

}  // namespace datperf

#endif
