// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/receive_pool.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "nic/soft/queue_pair.h"

namespace anydat::nic::soft {

ReceivePool::ReceivePool(Engine& engine, ZoneId zone, ReceiveQueueEvents* events)
    : engine_(engine), events_(events), zone_(zone), serve_{[this] { serve_waiting(); }} {}

std::unique_ptr<ReceivePool> ReceivePool::create(Engine& engine, std::uint32_t depth, std::uint32_t segments,
                                                 ZoneId zone, ReceiveQueueEvents* events) {
  std::unique_ptr<ReceivePool> pool(new (std::nothrow) ReceivePool(engine, zone, events));
  if (!pool || pool->rebuild(depth, segments) != Status::ok) return nullptr;
  pool->counters_.lowest_available.set(depth);
  return pool;
}

ReceivePool::~ReceivePool() {
  engine_.cancel_task(serve_);
}

Status ReceivePool::post(const RecvRequest& request) {
  {
    base::Guard guard(lock_);
    // Acquire: what the reaper of a receive did with its buffer comes before the buffer's next use.
    if (posted_ - reaped_.load(std::memory_order_acquire) >= depth_) return Status::queue_full;
    Slot& entry = slot(posted_);
    static_cast<PostedReceive&>(entry) = {request.cookie, request.regions_seen, request.zone,
                                          static_cast<std::uint32_t>(request.segments.size()), request.unsignalled};
    std::copy(request.segments.begin(), request.segments.end(), entry.segments());
    ++posted_;
    counters_.posted.add();
    if (empty_since_ != 0) [[unlikely]] {
      counters_.empty_ns.add(static_cast<std::uint64_t>(base::now_ns() - empty_since_));
      empty_since_ = 0;
    }
  }
  // Whoever registers as waiting looks at the pool once more afterwards, so a post is seen by one of the two.
  if (somebody_waits_.load()) [[unlikely]]
    engine_.schedule_with_next_poll(serve_);
  return Status::ok;
}

bool ReceivePool::take(Receive& out) {
  bool undercut = false;
  bool taken = false;
  {
    base::Guard guard(lock_);
    if (const Slot* slot = take_locked(undercut)) {
      static_cast<PostedReceive&>(out) = *slot;
      std::copy(slot->all().begin(), slot->all().end(), out.segments);
      taken = true;
    }
  }
  if (undercut) [[unlikely]]
    report();
  return taken;
}

const ReceivePool::Slot* ReceivePool::take_locked(bool& undercut) {
  if (taken_ == posted_) return nullptr;
  const Slot& taken = slot(taken_++);
  const std::uint64_t available = posted_ - taken_;
  counters_.taken.add();
  if (available < counters_.lowest_available.get()) counters_.lowest_available.set(available);
  if (available == 0) [[unlikely]] {
    counters_.times_empty.add();
    empty_since_ = base::now_ns();
  }
  // SRQ-LW-17: the decrement and the test are one step, so exactly one take fires.
  if (available < watermark_) [[unlikely]] {
    undercut = true;
    watermark_ = 0;
    counters_.low_watermark_events.add();
  }
  return &taken;
}

void ReceivePool::arm(std::uint32_t watermark) {
  bool undercut = false;
  {
    base::Guard guard(lock_);
    undercut = posted_ - taken_ < watermark;  // SRQ-LW-3
    watermark_ = undercut ? 0 : watermark;
    if (undercut) counters_.low_watermark_events.add();
  }
  if (undercut) events_->on_low_watermark();
}

ReceiveQueue::Counts ReceivePool::counts() const {
  base::Guard guard(lock_);
  const std::uint64_t reaped = reaped_.load(std::memory_order_acquire);
  return {depth_, static_cast<std::uint32_t>(posted_ - taken_), static_cast<std::uint32_t>(posted_ - reaped)};
}

std::uint32_t ReceivePool::largest_segment_count() const {
  base::Guard guard(lock_);
  std::uint32_t largest = 0;
  for (std::uint64_t n = taken_; n != posted_; ++n) {
    const auto& entry = *reinterpret_cast<const Slot*>(ring_.get() + (n & mask_) * stride_);
    largest = std::max(largest, entry.segment_count);
  }
  return largest;
}

Status ReceivePool::resize(std::uint32_t depth) {
  std::uint32_t segments = 0;
  {
    base::Guard guard(lock_);
    segments = segments_;
  }
  return rebuild(depth, segments);
}

Status ReceivePool::set_segments(std::uint32_t segments) {
  std::uint32_t depth = 0;
  {
    base::Guard guard(lock_);
    depth = depth_;
  }
  return rebuild(depth, segments);
}

Status ReceivePool::rebuild(std::uint32_t depth, std::uint32_t segments) {
  const std::size_t stride = stride_of(segments);
  const std::uint64_t slots = std::bit_ceil(std::max<std::uint64_t>(depth, 1));
  std::unique_ptr<std::byte[]> ring(new (std::nothrow) std::byte[slots * stride]);
  if (!ring) return Status::no_memory;
  base::Guard guard(lock_);
  // SRQ-RESIZE-14: the comparison and the change are one step.
  if (posted_ - reaped_.load(std::memory_order_acquire) > depth) return Status::queue_full;
  for (std::uint64_t n = taken_; n != posted_; ++n) {
    const Slot& from = slot(n);
    std::memcpy(ring.get() + (n & (slots - 1)) * stride, &from, stride_of(from.segment_count));
  }
  ring_.swap(ring);
  stride_ = stride;
  depth_ = depth;
  mask_ = slots - 1;
  segments_ = segments;
  return Status::ok;
}

void ReceivePool::wait_for_receive(Asker& asker) {
  waiting_.push_back(asker);
  somebody_waits_.store(true);
  if (counts().available > 0) engine_.schedule(serve_);
}

void ReceivePool::stop_waiting(Asker& asker) {
  waiting_.remove(asker);
  if (!waiting_.empty()) return;
  somebody_waits_.store(false);
  engine_.cancel_task(serve_);
}

bool ReceivePool::anybody_waits_before(const Asker& asker) const {
  return !waiting_.empty() && waiting_.front() != &asker && served_ != &asker;
}

void ReceivePool::serve_waiting() {
  // Each is served until it has what it asked for; one that still lacks a buffer puts itself back in line.
  for (std::size_t turns = waiting_.size(); turns > 0 && !waiting_.empty() && counts().available > 0; --turns) {
    Asker* const next = waiting_.pop_front();
    somebody_waits_.store(!waiting_.empty());
    served_ = next;
    next->queue_pair.receives_available();
    served_ = nullptr;
  }
}

}  // namespace anydat::nic::soft
