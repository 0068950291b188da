// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nic/adapter.h"
#include "nic/region_table.h"
#include "nic/soft/receive_pool.h"

namespace anydat::nic::soft {

class SoftQueuePair;

// Where the messages of a queue pair find their buffers: a pool of receives of its own, or the shared one; and the
// check whether a message may have the next.
//
// Thread safety: as ReceivePool's; what is said of the next receive, with the engine held. Lives and dies with its
// receiving side.
class ReceiveBuffers {
 public:
  // `shared`: null if there is a pool of its own, which init() makes.
  ReceiveBuffers(SoftQueuePair& queue_pair, const RegionTable& regions, ReceivePool* shared)
      : queue_pair_(queue_pair), regions_(regions), shared_(shared) {}
  ReceiveBuffers(const ReceiveBuffers&) = delete;
  ReceiveBuffers& operator=(const ReceiveBuffers&) = delete;
  Status init(Engine& engine, const QueuePairLimits& limits);
  Status set_limits(const QueuePairLimits& limits);

  ReceivePool& pool() { return shared_ ? *shared_ : *own_; }
  ReceivePool* shared() const { return shared_; }  // null: own() serves
  ReceivePool* own() const { return own_.get(); }  // null: shared() does
  // Where what is taken out of `queue` is noted to be reaped; null: an own receive is when it completes (DTO-14).
  ReapCount* reap_count(const CompletionQueue* queue) { return shared_ ? &shared_->reap_count(queue) : nullptr; }
  ZoneId zone() const;
  QueuePair::PostedReceives posted() const;
  std::uint32_t largest_posted_segments() const;

  // The check at the post holds while no region has gone and the endpoint has not changed its zone.
  bool still_checked(const PostedReceive& receive, ZoneId zone) const {
    return receive.regions_seen == regions_.removals() && receive.zone == zone;
  }
  // Whether a message of this length fits, and the memory is still the program's to receive in.
  WorkStatus check(const PostedReceive& receive, std::span<const Segment> segments, std::uint64_t length) const;

  // ---- the next receive
  const ReceivePool::Slot* next() { return pool().next(); }  // null if there is none
  // Its memory if that is in one piece; null also if there is none.
  const Segment* next_piece() {
    const ReceivePool::Slot* const receive = next();
    return receive && receive->segment_count == 1 ? &receive->first() : nullptr;
  }
  // Whether a message of this length fits it; true also if there is none yet.
  bool next_takes(std::uint64_t length);
  // Where the first bytes of a message would go.
  std::size_t aim_next(std::size_t count, std::span<iovec> pieces);

 private:
  SoftQueuePair& queue_pair_;
  const RegionTable& regions_;  // the adapter's
  ReceivePool* const shared_;
  std::unique_ptr<ReceivePool> own_;
};

}  // namespace anydat::nic::soft
