// SPDX-License-Identifier: BSD-3-Clause
// A shared receive queue, as a DAT object sees that of a NIC.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/counter.h"
#include "nic/types.h"

namespace anydat::nic {

class CompletionQueue;
class ReapCount;

class ReceiveQueueEvents {
 public:
  virtual ~ReceiveQueueEvents() = default;
  // The NIC's queue has failed, with the connections that used it. What was posted and had not completed is posted
  // still.
  virtual void on_fault() = 0;
  // The armed low watermark was undercut. May come from a thread that does not hold the engine.
  virtual void on_low_watermark() = 0;
};

// A pool of posted receives: a shared receive queue.
//
// Thread safety: every method may be called by any thread, engine held or not.
class ReceiveQueue {
 public:
  struct Counts {
    std::uint32_t depth;        // entries in all
    std::uint32_t available;    // posted and not taken
    std::uint32_t outstanding;  // posted and not reaped
  };
  struct Counters {
    base::Counter posted;
    base::Counter posted_bytes;
    base::Counter taken;
    base::Counter lowest_available;  // since the first take
    base::Counter times_empty;       // a take left nothing
    base::Counter empty_ns;          // time spent empty, whole spells only
    base::Counter low_watermark_events;
  };

  virtual ~ReceiveQueue() = default;
  virtual Status post(const RecvRequest& request) = 0;
  // As if post() had them one by one, until one finds no room. How many have.
  virtual std::size_t post_row(const RecvRow& row) {
    std::size_t posted = 0;
    while (posted < row.receives.size() && post(row.request(posted)) == Status::ok) ++posted;
    return posted;
  }
  // queue_full if more than `depth` are outstanding; nothing has changed then.
  virtual Status resize(std::uint32_t depth) = 0;
  // One report the first time fewer than `watermark` are available from now on; at once if so already.
  virtual void arm(std::uint32_t watermark) = 0;
  // One consistent snapshot of all three.
  virtual Counts counts() const = 0;
  // The consumer has taken a completion of this queue off its event dispatcher, or can never do so.
  virtual void reaped() = 0;
  // What counts the same for completions that go to `queue`. With the engine held.
  virtual ReapCount& reap_count(const CompletionQueue* queue) = 0;
  virtual const Counters& counters() const = 0;
};

}  // namespace anydat::nic
