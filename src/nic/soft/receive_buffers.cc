// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/receive_buffers.h"

#include <algorithm>

#include "nic/soft/queue_pair.h"
#include "nic/soft/scatter.h"

namespace anydat::nic::soft {

Status ReceiveBuffers::init(Engine& engine, const QueuePairLimits& limits) {
  if (shared_) return Status::ok;
  own_ = ReceivePool::create(engine, limits.recv_depth, limits.recv_segments, kNoZone, nullptr);
  return own_ ? Status::ok : Status::no_memory;
}

Status ReceiveBuffers::set_limits(const QueuePairLimits& limits) {
  if (shared_) return Status::ok;
  return own_->set_limits(limits.recv_depth, limits.recv_segments);
}

ZoneId ReceiveBuffers::zone() const {
  return shared_ ? shared_->zone() : queue_pair_.memory().zone();
}

QueuePair::PostedReceives ReceiveBuffers::posted() const {
  if (!own_) return {0, 0};
  const ReceiveQueue::Counters& counters = own_->counters();
  return {counters.posted.get(), counters.posted_bytes.get()};
}

std::uint32_t ReceiveBuffers::largest_posted_segments() const {
  return own_ ? own_->largest_segment_count() : 0;
}

WorkStatus ReceiveBuffers::check(const PostedReceive& receive, std::span<const Segment> segments,
                                 std::uint64_t length) const {
  const bool checked = still_checked(receive, zone());
  std::uint64_t room = 0;
  for (const Segment& segment : segments) {
    room += segment.length;
    if (checked || segment.length == 0) continue;
    const RegionCheck check =
        regions_.covers(segment.key, segment.address, segment.length, zone(), access::kLocalWrite);
    if (check != RegionCheck::ok) return WorkStatus::local_protection;
  }
  return length > room ? WorkStatus::local_length : WorkStatus::success;
}

bool ReceiveBuffers::next_takes(std::uint64_t length) {
  const ReceivePool::Slot* const receive = next();
  return !receive || check(*receive, receive->all(), length) == WorkStatus::success;
}

std::size_t ReceiveBuffers::aim_next(std::size_t count, std::span<iovec> pieces) {
  const ReceivePool::Slot* const receive = next();
  if (!receive) return 0;
  const std::span<const Segment> segments = receive->all();
  if (segments.size() == 1 && count > 0) [[likely]] {
    pieces[0] = {reinterpret_cast<void*>(segments[0].address), std::min<std::uint64_t>(count, segments[0].length)};
    return 1;
  }
  return pieces_of(segments, 0, count, pieces);
}

}  // namespace anydat::nic::soft
