// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nic/adapter.h"
#include "nic/verbs/device.h"
#include "nic/verbs/work_id.h"
#include "os/lock.h"

namespace anydat::nic::verbs {

// Posted receives, of a queue pair or shared: those that the device has, in slots, and behind them those that it has no
// room for or that wait until there is a device queue. Counting them here makes the counts exact, and lets a queue grow
// whatever the device can.
//
// Thread safety: any thread may call any method; lock_ is a leaf but for the device's own.
// Always true: completed <= posted; reaped <= completed; posted - reaped <= depth.
class ReceivePool {
 public:
  // What a completed receive was posted with.
  struct Done {
    std::uint64_t cookie;
    bool unsignalled;
    bool usable;  // all its memory is there, in the zone that the device looks at; looked at if it failed
  };
  enum class Use : std::uint8_t { own, shared };

  // `watched`: told when a watermark is undercut, with lock_ released; null if none is ever armed.
  ReceivePool(const Device& device, Use use, ReceiveQueueEvents* watched)
      : device_(device), use_(use), events_(watched) {}
  Status init(std::uint32_t depth, std::uint32_t segments);

  Status post(const RecvRequest& request);
  Status resize(std::uint32_t depth);
  // Of its depth, and the segments of each. queue_full: what is posted does not fit them.
  Status set_limits(std::uint32_t depth, std::uint32_t segments) { return rebuild(depth, segments); }
  void arm(std::uint32_t watermark);
  ReceiveQueue::Counts counts() const;
  void reaped() { reaped_.fetch_add(1, std::memory_order_release); }
  std::uint32_t largest_segment_count() const;
  ReceiveQueue::Counters& counters() { return counters_; }

  // From now on up to `room` receives are in the device's queue at a time; `tag` goes into their names.
  void attach(ibv_qp* qp, std::uint32_t tag, std::uint32_t room);
  void attach(ibv_srq* srq, std::uint32_t room);
  // The device's queue is about to go: it gets no more. What it has may still complete.
  void close();
  // The device's queue has gone. What it had comes back to the front of those that wait, in the order of posting.
  void detach();
  std::uint32_t at_device() const;
  std::uint32_t room() const;

  // The device has finished with a slot. Nothing if that was not its own.
  std::optional<Done> complete(std::uint32_t slot, bool failed, ZoneId zone);
  // Takes the oldest that the device has not; nothing if there is none.
  std::optional<Done> take_waiting();
  // The device says that fewer than the armed watermark are left.
  void device_undercut();

 private:
  struct Slot {
    std::uint64_t number;  // of the post
    std::uint64_t cookie;
    std::uint32_t segment_count;
    bool unsignalled;
    bool used;
  };
  // Slots in a row, with room for all of them, so that one can always join.
  class Row {
   public:
    Row() = default;
    Row(std::size_t room, const Row& of) : ring_(room) {
      for (std::size_t i = 0; i < of.count_; ++i) push_back(of.at(i));
    }
    bool empty() const { return count_ == 0; }
    std::uint32_t front() const { return ring_[first_]; }
    void push_back(std::uint32_t slot) { ring_[(first_ + count_++) % ring_.size()] = slot; }
    void pop_front() {
      first_ = (first_ + 1) % ring_.size();
      --count_;
    }
    void clear() { first_ = count_ = 0; }
    // Requires: none has left since it was empty.
    template <typename Before>
    void sort(Before before) {
      std::sort(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(count_), before);
    }

   private:
    std::uint32_t at(std::size_t place) const { return ring_[(first_ + place) % ring_.size()]; }

    std::vector<std::uint32_t> ring_;
    std::size_t first_ = 0;
    std::size_t count_ = 0;
  };
  Segment* segments_of(std::uint32_t slot) { return &segments_[std::size_t{slot} * segments_max_]; }
  Status rebuild(std::uint32_t depth, std::uint32_t segments);
  bool usable(std::uint32_t slot, ZoneId zone) ANYDAT_REQUIRES(lock_);
  void feed_locked() ANYDAT_REQUIRES(lock_);
  bool hand_over(std::uint32_t slot) ANYDAT_REQUIRES(lock_);
  bool count_completion_locked() ANYDAT_REQUIRES(lock_);

  const Device& device_;
  const Use use_;
  ReceiveQueueEvents* const events_;

  mutable os::SpinLock lock_;
  std::uint32_t depth_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::uint32_t segments_max_ = 0;  // changes while nothing is at the device, or not at all
  std::vector<Slot> slots_ ANYDAT_GUARDED_BY(lock_);
  std::vector<Segment> segments_;                             // as lock_ guards slots_
  std::vector<std::uint32_t> free_ ANYDAT_GUARDED_BY(lock_);  // slots
  Row waiting_ ANYDAT_GUARDED_BY(lock_);                      // slots that the device has not, oldest first
  std::uint64_t posted_ ANYDAT_GUARDED_BY(lock_) = 0;         // ever; so are completed_ and reaped_
  std::uint64_t completed_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::atomic<std::uint64_t> reaped_{0};
  std::uint32_t at_device_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::uint32_t watermark_ ANYDAT_GUARDED_BY(lock_) = 0;  // 0: not armed
  os::Nanoseconds empty_since_ ANYDAT_GUARDED_BY(lock_) = 0;
  ReceiveQueue::Counters counters_;  // written under lock_

  ibv_qp* qp_ ANYDAT_GUARDED_BY(lock_) = nullptr;
  ibv_srq* srq_ ANYDAT_GUARDED_BY(lock_) = nullptr;
  std::uint32_t tag_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::uint32_t room_ ANYDAT_GUARDED_BY(lock_) = 0;
};

}  // namespace anydat::nic::verbs
