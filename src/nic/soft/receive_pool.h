// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <span>

#include "base/list.h"
#include "nic/adapter.h"
#include "nic/outstanding_receives.h"
#include "nic/soft/resident_pages.h"
#include "os/biased_lock.h"

namespace anydat::nic::soft {

class ReceiverNotReady;

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
// Thread safety: any thread may post, reap and count; lock_, a leaf, keeps posters and those who count apart. One
// thread at a time takes, arms and resizes: the holder of the engine, or, when the connection of a private one is over,
// of the queue pair's send lock. Taking needs no lock of its own: a slot that has been posted is not written again
// before its receive has been reaped.
// Always true: available <= outstanding <= depth, also in every snapshot (SRQ-ACC-4, SRQ-ACC-13): a receive can be
// reaped only after it was taken, and taken only after it was posted.
class ReceivePool final : public ReceiveQueue {
 public:
  // Storage for `depth` receives of up to `segments` segments is allocated here; posting and taking allocate nothing.
  // Null when out of memory. `events` may be null (private queues are never armed).
  static std::unique_ptr<ReceivePool> create(Engine& engine, std::uint32_t depth, std::uint32_t segments, ZoneId zone,
                                             ReceiveQueueEvents* events);
  ~ReceivePool() override ANYDAT_NO_ANALYSIS;  // Requires: the engine is held and no queue pair uses the pool.

  Status post(const RecvRequest& request) override;
  std::size_t post_row(const RecvRow& row) override;
  Status resize(std::uint32_t depth) override;
  void arm(std::uint32_t watermark) override;
  Counts counts() const override;
  void reaped() override { outstanding_.reaped(); }
  void reaped_by_taker() { outstanding_.reaped_by_taker(); }
  ReapCount& reap_count(const CompletionQueue* queue) override { return outstanding_.reap_count(queue); }
  const Counters& counters() const override { return counters_; }

  // A receive in its pool.
  struct Slot : PostedReceive {
    Segment* segments() { return reinterpret_cast<Segment*>(this + 1); }
    const Segment& first() const { return *reinterpret_cast<const Segment*>(this + 1); }
    std::span<const Segment> all() const { return {reinterpret_cast<const Segment*>(this + 1), segment_count}; }
  };

  // Memory of its receives that has been seen (nic/soft/resident_pages.h). With the engine.
  ResidentPages::Stretch& seen() { return seen_; }

  // What would be taken next; null if there is none. It stays as it is until its receive has been reaped.
  const Slot* next() const ANYDAT_NO_ANALYSIS {
    const std::uint64_t taken = counters_.taken.get();
    return taken != counters_.posted.seen() ? &slot(taken) : nullptr;
  }
  // Takes it.
  void take_next() {
    const std::uint64_t taken = counters_.taken.get() + 1;
    const std::uint64_t available = counters_.posted.get() - taken;
    if (available < notable_) [[unlikely]]
      return take_notable(taken, available);
    counters_.taken.publish(taken);
  }
  // Both in one, copied out. False if there is none.
  bool take(Receive& out);
  // Posts that have begun are seen by what follows; those that begin now see what came before.
  void await_posts() { os::Guard inside_a_post(lock_); }
  ZoneId zone() const { return zone_; }
  std::uint32_t largest_segment_count() const;
  // Of its depth, and the segments of each. queue_full: what is posted does not fit them.
  Status set_limits(std::uint32_t depth, std::uint32_t segments) { return rebuild(depth, segments); }

  // A queue pair whose message found the pool empty is served in the order of asking (SRQ-ORD-5), a message at a time:
  // for the next it asks anew, behind those that wait by then. With the engine held.
  struct BufferWaiter {
    explicit BufferWaiter(ReceiverNotReady& who) : receiver(who) {}
    ReceiverNotReady& receiver;
    base::ListLinks<BufferWaiter> place;
  };
  void wait_for_receive(BufferWaiter& waiter);
  void stop_waiting(BufferWaiter& waiter);
  void turn_is_over() { served_ = nullptr; }  // it has taken a buffer
  bool anybody_waits() const { return !waiting_.empty(); }
  bool anybody_waits_before(const BufferWaiter& waiter) const {
    return !waiting_.empty() && waiting_.front() != &waiter && served_ != &waiter;
  }

 private:
  ReceivePool(Engine& engine, ZoneId zone, ReceiveQueueEvents* events);
  // With room for one segment at least: a post of one is not held against the limit again (put_one_locked()).
  static std::size_t stride_of(std::uint32_t segments) {
    return sizeof(Slot) + std::max<std::size_t>(segments, 1) * sizeof(Segment);
  }
  Slot& slot(std::uint64_t number) const ANYDAT_REQUIRES(lock_) {
    return *reinterpret_cast<Slot*>(ring_.get() + (number & mask_) * stride_);
  }
  void take_notable(std::uint64_t taken, std::uint64_t available);
  void note_watermark();
  std::uint64_t room_locked(std::uint64_t posted, std::uint64_t wanted) ANYDAT_REQUIRES(lock_);
  std::uint64_t put_one_locked(std::uint64_t number, const RecvRequest& request) ANYDAT_REQUIRES(lock_);
  std::uint64_t put_any_locked(std::uint64_t number, const RecvRequest& request) ANYDAT_REQUIRES(lock_);
  void posted_locked(std::uint64_t before, std::uint64_t count, std::uint64_t bytes) ANYDAT_REQUIRES(lock_);
  void serve_if_somebody_waits();
  Status rebuild(std::uint32_t depth, std::uint32_t segments);
  void serve_waiting();

  Engine& engine_;              // fixed at creation
  ReceiveQueueEvents* events_;  // fixed at creation; called with lock_ released
  const ZoneId zone_;

  mutable os::Biased<os::SpinLock> lock_;
  // The ring is replaced by the thread that may take, with lock_ held: either is enough to read it.
  std::unique_ptr<std::byte[]> ring_ ANYDAT_GUARDED_BY(lock_);
  std::size_t stride_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::uint64_t mask_ ANYDAT_GUARDED_BY(lock_) = 0;  // the ring has mask_ + 1 >= depth_ slots
  std::uint32_t depth_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::uint32_t segments_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::uint64_t reaped_seen_ ANYDAT_GUARDED_BY(lock_) = 0;  // so many at least have been reaped
  // Receives counters_.taken .. counters_.posted - 1 are in the ring. What posters count is written with lock_ held,
  // the rest by the thread that takes.
  Counters counters_;
  std::uint32_t watermark_ = 0;  // 0: not armed; this and notable_ are of the thread that takes
  std::uint64_t notable_ = 1;    // a take that leaves fewer has something to note
  // When a take last left nothing, written before that one counts.
  std::atomic<os::Nanoseconds> empty_since_{0};

  OutstandingReceives outstanding_{*this};

  ResidentPages::Stretch seen_;
  base::List<BufferWaiter, &BufferWaiter::place> waiting_;  // held with the engine
  const BufferWaiter* served_ = nullptr;                    // with the engine; whose turn it is, not in waiting_
  std::atomic<bool> somebody_waits_{false};
  Task serve_;
};

}  // namespace anydat::nic::soft
