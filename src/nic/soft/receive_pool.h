// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <new>
#include <span>

#include "base/list.h"
#include "base/lock.h"
#include "nic/adapter.h"

namespace anydat::nic::soft {

class SoftQueuePair;

inline constexpr std::uint32_t kSegmentsMax = 64;

// What a posted receive is besides its segments, as in RecvRequest.
struct PostedReceive {
  std::uint64_t cookie = 0;
  std::uint64_t regions_seen = 0;
  ZoneId zone = kNoZone;
  std::uint32_t segment_count = 0;
  bool unsignalled = false;
};

// A posted receive, copied out of its pool.
struct Receive : PostedReceive {
  Segment segments[kSegmentsMax];

  std::span<const Segment> all() const { return {segments, segment_count}; }
};

// Posted receives in posting order: a shared receive queue, or the private one of a queue pair. The one home of taking,
// counting, arming and resizing.
//
// Thread safety: any thread may call any method; lock_ is a leaf.
// Always true:   available <= outstanding <= depth, also in every snapshot (SRQ-ACC-4, SRQ-ACC-13): a receive can be
//                reaped only after it was taken, and taken only after it was posted.
class ReceivePool final : public ReceiveQueue {
 public:
  // Storage for `depth` receives of up to `segments` segments is allocated here; posting and taking allocate nothing.
  // Null when out of memory. `events` may be null (private queues are never armed).
  static std::unique_ptr<ReceivePool> create(Engine& engine, std::uint32_t depth, std::uint32_t segments, ZoneId zone,
                                             ReceiveQueueEvents* events);
  ~ReceivePool() override ANYDAT_NO_ANALYSIS;  // Requires: the engine is held and no queue pair uses the pool.

  Status post(const RecvRequest& request) override;
  Status resize(std::uint32_t depth) override;
  void arm(std::uint32_t watermark) override;
  Counts counts() const override;
  void reaped() override { reaped_.fetch_add(1, std::memory_order_release); }
  const Counters& counters() const override { return counters_; }

  // A receive in its pool.
  struct Slot : PostedReceive {
    Segment* segments() { return reinterpret_cast<Segment*>(this + 1); }
    std::span<const Segment> all() const { return {reinterpret_cast<const Segment*>(this + 1), segment_count}; }
  };

  // Takes the oldest receive into `out`. False if there is none.
  bool take(Receive& out);
  // The parts of take(), for a batch that holds the lock over several messages. The receive is there until the lock is
  // released; null if there is none. `undercut`: report() is due after that.
  base::SpinLock& lock() ANYDAT_RETURN_CAPABILITY(lock_) { return lock_; }
  const Slot* take_locked(bool& undercut) ANYDAT_REQUIRES(lock_);
  // What would be taken next.
  const Slot* next_locked() ANYDAT_REQUIRES(lock_) { return taken_ != posted_ ? &slot(taken_) : nullptr; }
  void report() { events_->on_low_watermark(); }
  ZoneId zone() const { return zone_; }
  std::uint32_t largest_segment_count() const;
  Status set_segments(std::uint32_t segments);

  // A queue pair whose message found the pool empty is served in the order of asking (SRQ-ORD-5).
  // The three are called with the engine held.
  struct Asker {
    explicit Asker(SoftQueuePair& who) : queue_pair(who) {}
    SoftQueuePair& queue_pair;
    base::ListLinks<Asker> place;
  };
  void wait_for_receive(Asker& asker);
  void stop_waiting(Asker& asker);
  bool anybody_waits_before(const Asker& asker) const;

 private:
  ReceivePool(Engine& engine, ZoneId zone, ReceiveQueueEvents* events);
  static std::size_t stride_of(std::uint32_t segments) { return sizeof(Slot) + segments * sizeof(Segment); }
  Slot& slot(std::uint64_t number) ANYDAT_REQUIRES(lock_) {
    return *reinterpret_cast<Slot*>(ring_.get() + (number & mask_) * stride_);
  }
  Status rebuild(std::uint32_t depth, std::uint32_t segments);
  void serve_waiting();

  Engine& engine_;              // fixed at creation
  ReceiveQueueEvents* events_;  // fixed at creation; called with lock_ released
  const ZoneId zone_;

  mutable base::SpinLock lock_;
  std::unique_ptr<std::byte[]> ring_ ANYDAT_GUARDED_BY(lock_);
  std::size_t stride_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::uint32_t depth_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::uint64_t mask_ ANYDAT_GUARDED_BY(lock_) = 0;  // the ring has mask_ + 1 >= depth_ slots
  std::uint32_t segments_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::uint64_t posted_ ANYDAT_GUARDED_BY(lock_) = 0;           // ever; receives taken_ .. posted_ - 1 are in the ring
  std::uint64_t taken_ ANYDAT_GUARDED_BY(lock_) = 0;            // ever
  std::uint32_t watermark_ ANYDAT_GUARDED_BY(lock_) = 0;        // 0: not armed
  base::Nanoseconds empty_since_ ANYDAT_GUARDED_BY(lock_) = 0;  // 0: not empty, or never taken from
  Counters counters_;                                           // written under lock_

  std::atomic<std::uint64_t> reaped_{0};  // ever; apart, because reaping needs no other change

  base::List<Asker, &Asker::place> waiting_;  // held with the engine
  const Asker* served_ = nullptr;             // likewise; whose turn it is, no longer in waiting_
  std::atomic<bool> somebody_waits_{false};
  Task serve_;
};

}  // namespace anydat::nic::soft
