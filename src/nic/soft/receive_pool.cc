// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/receive_pool.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "nic/soft/receiver_not_ready.h"

namespace anydat::nic::soft {

ReceivePool::ReceivePool(Engine& engine, ZoneId zone, ReceiveQueueEvents* events)
    : engine_(engine), events_(events), zone_(zone), serve_{[this] { serve_waiting(); }} {}

std::unique_ptr<ReceivePool> ReceivePool::create(Engine& engine, std::uint32_t depth, std::uint32_t segments,
                                                 ZoneId zone, ReceiveQueueEvents* events) {
  std::unique_ptr<ReceivePool> pool(new (std::nothrow) ReceivePool(engine, zone, events));
  if (!pool || pool->rebuild(depth, segments) != Status::ok) return nullptr;
  pool->counters_.lowest_available.set(depth);
  pool->note_watermark();
  return pool;
}

ReceivePool::~ReceivePool() {
  engine_.cancel_task(serve_);
}

// For how many of so many there is room behind those posted.
inline std::uint64_t ReceivePool::room_locked(std::uint64_t posted, std::uint64_t wanted) {
  // What has been seen reaped may be less than what the pool was made smaller for.
  if (posted - reaped_seen_ + wanted <= depth_) [[likely]]
    return wanted;
  reaped_seen_ = outstanding_.all_reaped();
  return std::min<std::uint64_t>(wanted, depth_ - std::min<std::uint64_t>(depth_, posted - reaped_seen_));
}

// Writes one of a single segment into its slot, where it is not seen before posted_locked(). Returns its length.
inline std::uint64_t ReceivePool::put_one_locked(std::uint64_t number, const RecvRequest& request) {
  Slot& entry = slot(number);
  static_cast<PostedReceive&>(entry) = {request.cookie, request.regions_seen, request.zone, 1, request.unsignalled};
  *entry.segments() = request.segments.front();
  return request.segments.front().length;
}

// The same of any.
inline std::uint64_t ReceivePool::put_any_locked(std::uint64_t number, const RecvRequest& request) {
  Slot& entry = slot(number);
  static_cast<PostedReceive&>(entry) = {request.cookie, request.regions_seen, request.zone,
                                        static_cast<std::uint32_t>(request.segments.size()), request.unsignalled};
  std::uint64_t bytes = 0;
  Segment* to = entry.segments();
  for (const Segment& segment : request.segments) {
    *to++ = segment;
    bytes += segment.length;
  }
  return bytes;
}

// Shows those that have been put behind the first `before`.
inline void ReceivePool::posted_locked(std::uint64_t before, std::uint64_t count, std::uint64_t bytes) {
  if (counters_.taken.seen() == before && before != 0) [[unlikely]] {
    counters_.empty_ns.add(static_cast<std::uint64_t>(os::now_ns() - empty_since_.load(std::memory_order_relaxed)));
  }
  counters_.posted_bytes.add(bytes);
  counters_.posted.publish(before + count);
}

// A waiter that registers looks at the pool once more afterwards, so a post is seen by one of the two.
inline void ReceivePool::serve_if_somebody_waits() {
  if (somebody_waits_.load()) [[unlikely]]
    engine_.schedule_with_next_poll(serve_);
}

Status ReceivePool::post(const RecvRequest& request) {
  {
    os::Guard guard(lock_);
    const std::uint64_t posted = counters_.posted.get();
    if (room_locked(posted, 1) == 0) [[unlikely]]
      return Status::queue_full;
    std::uint64_t bytes = 0;
    if (request.segments.size() == 1) [[likely]] {
      bytes = put_one_locked(posted, request);
    } else {
      // The limit that the caller has checked may be another by now.
      if (request.segments.size() > segments_) return Status::queue_full;
      bytes = put_any_locked(posted, request);
    }
    posted_locked(posted, 1, bytes);
  }
  serve_if_somebody_waits();
  return Status::ok;
}

std::size_t ReceivePool::post_row(const RecvRow& row) {
  std::size_t count = 0;
  {
    os::Guard guard(lock_);
    const std::uint64_t posted = counters_.posted.get();
    count = room_locked(posted, row.receives.size());
    if (count == 0) [[unlikely]]
      return 0;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) bytes += put_one_locked(posted + i, row.request(i));
    posted_locked(posted, count, bytes);
  }
  serve_if_somebody_waits();
  return count;
}

bool ReceivePool::take(Receive& out) {
  const Slot* const slot = next();
  if (!slot) return false;
  static_cast<PostedReceive&>(out) = *slot;
  std::copy(slot->all().begin(), slot->all().end(), out.segments);
  take_next();
  return true;
}

void ReceivePool::take_notable(std::uint64_t taken, std::uint64_t available) {
  const bool lowest = available < counters_.lowest_available.get();
  if (lowest) counters_.lowest_available.set(available);
  if (available == 0) {
    counters_.times_empty.add();
    empty_since_.store(os::now_ns(), std::memory_order_relaxed);
  }
  counters_.taken.publish(taken);
  // SRQ-LW-17: one at a time takes, so exactly one take fires.
  const bool undercut = available < watermark_;
  if (!lowest && !undercut) return;
  if (undercut) watermark_ = 0;
  note_watermark();
  if (!undercut) return;
  counters_.low_watermark_events.add();
  events_->on_low_watermark();
}

void ReceivePool::note_watermark() {
  notable_ = std::max<std::uint64_t>({counters_.lowest_available.get(), watermark_, 1});
}

void ReceivePool::arm(std::uint32_t watermark) {
  const bool undercut = counts().available < watermark;  // SRQ-LW-3
  watermark_ = undercut ? 0 : watermark;
  note_watermark();
  if (!undercut) return;
  counters_.low_watermark_events.add();
  events_->on_low_watermark();
}

ReceiveQueue::Counts ReceivePool::counts() const {
  os::Guard guard(lock_);
  // In this order: whatever has been reaped has been taken, and both may go on meanwhile.
  const std::uint64_t posted = counters_.posted.get();
  const std::uint64_t reaped = outstanding_.all_reaped();
  const std::uint64_t taken = counters_.taken.seen();
  return {depth_, static_cast<std::uint32_t>(posted - taken), static_cast<std::uint32_t>(posted - reaped)};
}

std::uint32_t ReceivePool::largest_segment_count() const {
  os::Guard guard(lock_);
  std::uint32_t largest = 0;
  for (std::uint64_t n = counters_.taken.seen(); n != counters_.posted.get(); ++n) {
    largest = std::max(largest, slot(n).segment_count);
  }
  return largest;
}

Status ReceivePool::resize(std::uint32_t depth) {
  std::uint32_t segments = 0;
  {
    os::Guard guard(lock_);
    segments = segments_;
  }
  return rebuild(depth, segments);
}

Status ReceivePool::rebuild(std::uint32_t depth, std::uint32_t segments) {
  const std::size_t stride = stride_of(segments);
  const std::uint64_t slots = std::bit_ceil(std::max<std::uint64_t>(depth, 1));
  std::unique_ptr<std::byte[]> ring(new (std::nothrow) std::byte[slots * stride]);
  if (!ring) return Status::no_memory;
  os::Guard guard(lock_);
  // SRQ-RESIZE-14: the comparison and the change are one step.
  if (counters_.posted.get() - outstanding_.all_reaped() > depth) return Status::queue_full;
  for (std::uint64_t n = counters_.taken.get(); n != counters_.posted.get(); ++n) {
    const Slot& from = slot(n);
    if (from.segment_count > segments) return Status::queue_full;
    std::memcpy(ring.get() + (n & (slots - 1)) * stride, &from, stride_of(from.segment_count));
  }
  ring_.swap(ring);
  stride_ = stride;
  depth_ = depth;
  mask_ = slots - 1;
  segments_ = segments;
  return Status::ok;
}

void ReceivePool::wait_for_receive(BufferWaiter& waiter) {
  waiting_.push_back(waiter);
  somebody_waits_.store(true);
  if (counts().available > 0) engine_.schedule(serve_);
}

void ReceivePool::stop_waiting(BufferWaiter& waiter) {
  waiting_.remove(waiter);
  if (!waiting_.empty()) return;
  somebody_waits_.store(false);
  engine_.cancel_task(serve_);
}

void ReceivePool::serve_waiting() {
  // Each has a buffer; one that lacks another puts itself back in line.
  for (std::size_t turns = waiting_.size(); turns > 0 && !waiting_.empty() && counts().available > 0; --turns) {
    BufferWaiter* const next = waiting_.pop_front();
    somebody_waits_.store(!waiting_.empty());
    served_ = next;
    next->receiver.buffers_available();
    served_ = nullptr;
  }
}

}  // namespace anydat::nic::soft
