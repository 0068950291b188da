// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/receive_pool.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "os/cancel.h"

namespace anydat::nic::verbs {

namespace {

constexpr std::size_t kSegmentsMax = 64;

}  // namespace

Status ReceivePool::init(std::uint32_t depth, std::uint32_t segments) {
  counters_.lowest_available.set(depth);
  return rebuild(depth, segments);
}

// Slots are as many as receives may be posted and not completed. Those in use keep their numbers, which the device has,
// so the table never shrinks.
Status ReceivePool::rebuild(std::uint32_t depth, std::uint32_t segments) {
  try {
    os::Guard guard(lock_);
    // SRQ-RESIZE-14: the comparison and the change are one step.
    if (posted_ - reaped_.load(std::memory_order_acquire) > depth) return Status::queue_full;
    const auto before = static_cast<std::uint32_t>(slots_.size());
    const std::uint32_t after = std::max(before, depth);
    free_.reserve(after);
    std::vector<Segment> all(std::size_t{after} * std::max(segments, 1u));
    std::vector<Slot> slots(after);
    Row waiting(after, waiting_);
    std::copy(slots_.begin(), slots_.end(), slots.begin());
    for (std::uint32_t i = 0; i < before; ++i) {
      if (!slots_[i].used) continue;
      if (slots_[i].segment_count > std::max(segments, 1u)) return Status::queue_full;
      std::copy_n(segments_of(i), slots_[i].segment_count, &all[std::size_t{i} * std::max(segments, 1u)]);
    }
    slots_.swap(slots);
    segments_.swap(all);
    std::swap(waiting_, waiting);
    segments_max_ = std::max(segments, 1u);
    for (std::uint32_t i = after; i > before; --i) free_.push_back(i - 1);
    depth_ = depth;
    return Status::ok;
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

Status ReceivePool::resize(std::uint32_t depth) {
  return rebuild(depth, segments_max_);
}

Status ReceivePool::post(const RecvRequest& request) {
  os::Guard guard(lock_);
  // Acquire: what the reaper of a receive did with its buffer comes before the buffer's next use.
  if (posted_ - reaped_.load(std::memory_order_acquire) >= depth_ || free_.empty()) return Status::queue_full;
  // The limit that the caller has checked may be another by now.
  if (request.segments.size() > segments_max_) return Status::queue_full;
  const std::uint32_t index = free_.back();
  free_.pop_back();
  slots_[index] = {posted_, request.cookie, static_cast<std::uint32_t>(request.segments.size()), request.unsignalled,
                   true};
  std::copy(request.segments.begin(), request.segments.end(), segments_of(index));
  ++posted_;
  counters_.posted.add();
  for (const Segment& segment : request.segments) counters_.posted_bytes.add(segment.length);
  if (empty_since_ != 0) [[unlikely]] {
    counters_.empty_ns.add(static_cast<std::uint64_t>(os::now_ns() - empty_since_));
    empty_since_ = 0;
  }
  if (waiting_.empty() && at_device_ < room_ && hand_over(index)) [[likely]]
    return Status::ok;
  waiting_.push_back(index);
  return Status::ok;
}

bool ReceivePool::hand_over(std::uint32_t index) {
  const Slot& slot = slots_[index];
  std::array<ibv_sge, kSegmentsMax> list;
  ibv_recv_wr request{};
  request.wr_id = WorkId{use_ == Use::own ? WorkId::Queue::recv : WorkId::Queue::shared, tag_, index}.packed();
  request.sg_list = list.data();
  request.num_sge = device_.fill(list.data(), {segments_of(index), slot.segment_count});
  if (request.num_sge == 0 && device_.is_iwarp()) {
    list[0] = {};  // soft-iWARP takes a receive without segments for none
    request.num_sge = 1;
  }
  ibv_recv_wr* bad = nullptr;
  const os::CancelOff off;  // as for ibv_post_send()
  const int error = srq_ ? ibv_post_srq_recv(srq_, &request, &bad) : ibv_post_recv(qp_, &request, &bad);
  if (error != 0) return false;
  ++at_device_;
  return true;
}

bool ReceivePool::usable(std::uint32_t index, ZoneId zone) {
  const std::span<const Segment> segments(segments_of(index), slots_[index].segment_count);
  return std::all_of(segments.begin(), segments.end(), [this, zone](const Segment& segment) {
    return segment.length == 0 || device_.regions().check(segment.key, segment.address, segment.length, zone,
                                                          access::kLocalWrite) == RegionCheck::ok;
  });
}

void ReceivePool::feed_locked() {
  while (!waiting_.empty() && at_device_ < room_ && hand_over(waiting_.front())) waiting_.pop_front();
}

void ReceivePool::attach(ibv_qp* qp, std::uint32_t tag, std::uint32_t room) {
  os::Guard guard(lock_);
  qp_ = qp;
  tag_ = tag;
  room_ = room;
  feed_locked();
}

void ReceivePool::attach(ibv_srq* srq, std::uint32_t room) {
  os::Guard guard(lock_);
  srq_ = srq;
  room_ = room;
  feed_locked();
}

void ReceivePool::close() {
  os::Guard guard(lock_);
  qp_ = nullptr;
  srq_ = nullptr;
  room_ = 0;
}

void ReceivePool::detach() {
  close();
  os::Guard guard(lock_);
  if (at_device_ == 0) return;
  at_device_ = 0;
  waiting_.clear();
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].used) waiting_.push_back(i);
  }
  waiting_.sort([this](std::uint32_t a, std::uint32_t b)
                    ANYDAT_NO_ANALYSIS { return slots_[a].number < slots_[b].number; });
}

std::uint32_t ReceivePool::at_device() const {
  os::Guard guard(lock_);
  return at_device_;
}

std::uint32_t ReceivePool::room() const {
  os::Guard guard(lock_);
  return room_;
}

// True if the armed watermark is undercut by it.
bool ReceivePool::count_completion_locked() {
  ++completed_;
  const std::uint64_t available = posted_ - completed_;
  counters_.taken.add();
  if (available < counters_.lowest_available.get()) counters_.lowest_available.set(available);
  if (available == 0) [[unlikely]] {
    counters_.times_empty.add();
    empty_since_ = os::now_ns();
  }
  // SRQ-LW-17: the decrement and the test are one step.
  if (available >= watermark_) [[likely]]
    return false;
  watermark_ = 0;
  counters_.low_watermark_events.add();
  return true;
}

std::optional<ReceivePool::Done> ReceivePool::complete(std::uint32_t index, bool failed, ZoneId zone) {
  bool undercut = false;
  Done done;
  {
    os::Guard guard(lock_);
    if (index >= slots_.size() || !slots_[index].used || at_device_ == 0) return std::nullopt;
    Slot& slot = slots_[index];
    done = {slot.cookie, slot.unsignalled, !failed || usable(index, zone)};
    slot.used = false;
    free_.push_back(index);
    --at_device_;
    undercut = count_completion_locked();
    if (!waiting_.empty()) [[unlikely]]
      feed_locked();
  }
  if (undercut) [[unlikely]]
    events_->on_low_watermark();
  return done;
}

std::optional<ReceivePool::Done> ReceivePool::take_waiting() {
  os::Guard guard(lock_);
  if (waiting_.empty()) return std::nullopt;
  const std::uint32_t index = waiting_.front();
  waiting_.pop_front();
  const Done done{slots_[index].cookie, slots_[index].unsignalled, true};
  slots_[index].used = false;
  free_.push_back(index);
  ++completed_;
  return done;
}

void ReceivePool::arm(std::uint32_t watermark) {
  bool undercut = false;
  {
    os::Guard guard(lock_);
    undercut = posted_ - completed_ < watermark;  // SRQ-LW-3
    watermark_ = undercut ? 0 : watermark;
    if (undercut) counters_.low_watermark_events.add();
    if (srq_) {
      // The device sees a message sooner than we do, as long as it has all receives; and it is only to be sooner.
      ibv_srq_attr attributes{};
      attributes.srq_limit = depth_ <= room_ ? watermark_ : 0;
      ibv_modify_srq(srq_, &attributes, IBV_SRQ_LIMIT);
    }
  }
  if (undercut) events_->on_low_watermark();
}

void ReceivePool::device_undercut() {
  {
    os::Guard guard(lock_);
    // After a resize that the device could not follow it has fewer than there are: then the completions tell.
    if (watermark_ == 0 || !srq_ || depth_ > room_) return;
    // The event may be of an arming before the last one: then the device's limit still stands.
    ibv_srq_attr attributes{};
    if (ibv_query_srq(srq_, &attributes) != 0 || attributes.srq_limit != 0) return;
    watermark_ = 0;
    counters_.low_watermark_events.add();
  }
  events_->on_low_watermark();
}

ReceiveQueue::Counts ReceivePool::counts() const {
  os::Guard guard(lock_);
  const std::uint64_t reaped = reaped_.load(std::memory_order_acquire);
  return {depth_, static_cast<std::uint32_t>(posted_ - completed_), static_cast<std::uint32_t>(posted_ - reaped)};
}

std::uint32_t ReceivePool::largest_segment_count() const {
  os::Guard guard(lock_);
  std::uint32_t largest = 0;
  for (const Slot& slot : slots_) {
    if (slot.used) largest = std::max(largest, slot.segment_count);
  }
  return largest;
}

}  // namespace anydat::nic::verbs
