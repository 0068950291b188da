// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "nic/soft/stream.h"
#include "nic/types.h"

namespace anydat::nic::soft {

class SoftWindow;

// What the peer must take for a request of that kind to be carried out; 0: every peer does.
constexpr std::uint32_t ability_for(WorkKind kind) {
  switch (kind) {
    case WorkKind::write_immediate:
      return ability::kImmediate;
    case WorkKind::fetch_add:
    case WorkKind::compare_swap:
      return ability::kAtomics;
    case WorkKind::send_invalidate:
      return ability::kInvalidate;
    default:
      return 0;
  }
}

// It was posted as an ExtendedRequest.
constexpr bool is_extended(WorkKind kind) {
  return ability_for(kind) != 0;
}

// The requests of one queue pair that have not completed, in posting order: first those handed to the stream, then
// those that wait for it. Fixed storage; not thread safe.
//
// Requests are counted from 0 for ever; first_ <= unsent_ <= next_.
class SendRing {
 public:
  struct Entry {
    struct Rdma {
      RemoteSegment remote;
      Progress progress;
      std::uint64_t operand;  // these two as in ExtendedRequest, and only of one
      std::uint64_t compare;
    };
    struct Bind {
      SoftWindow* window;
      void* owner;
      std::uint64_t tag;
      std::uint32_t key;
      std::uint32_t rights;
      bool begun;  // what its window showed is being taken away, or is gone
    };

    std::uint64_t cookie;
    std::uint64_t length;
    std::uint64_t regions_seen;
    union {
      Rdma rdma;  // and a Send, which has progress only
      Bind bind;  // its one segment is the part of the region
    };
    std::uint32_t segment_count;
    WorkFlags flags;
    WorkKind kind;
    bool finished;

    Segment* segments() { return reinterpret_cast<Segment*>(this + 1); }
    std::span<const Segment> all() const { return {reinterpret_cast<const Segment*>(this + 1), segment_count}; }
    SendRequest request() const {
      return {cookie, all(), length, flags, kind, rdma.remote, regions_seen};
    }  // of no bind
    ExtendedRequest extended() const { return {request(), rdma.operand, rdma.compare}; }
  };

  struct Storage {
    std::unique_ptr<std::byte[]> ring;  // null: there is no memory for it
    std::uint32_t depth;
    std::size_t stride;
    std::uint64_t slots;
  };
  static Storage room_for(std::uint32_t depth, std::uint32_t segments) {
    const std::size_t stride = sizeof(Entry) + std::max<std::uint32_t>(segments, 1) * sizeof(Segment);
    const std::uint64_t slots = std::bit_ceil(std::max<std::uint64_t>(depth, 1));
    return {std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[slots * stride]), depth, stride, slots};
  }
  // Keeps what is in it. Requires: there is a ring, size() <= depth, and no entry has more segments than there is room
  // for.
  void move_to(Storage room) {
    const std::size_t kept = std::min(room.stride, stride_);
    for (std::uint64_t n = first_; n != next_; ++n) {
      std::memcpy(room.ring.get() + (n & (room.slots - 1)) * room.stride, &at(n), kept);
    }
    ring_ = std::move(room.ring);
    stride_ = room.stride;
    depth_ = room.depth;
    mask_ = room.slots - 1;
  }
  bool has_room() const { return ring_ != nullptr; }  // of any depth
  // Both. False: there is no memory for it.
  bool reserve(std::uint32_t depth, std::uint32_t segments) {
    Storage room = room_for(depth, segments);
    if (!room.ring) return false;
    move_to(std::move(room));
    return true;
  }

  std::uint32_t depth() const { return depth_; }
  std::uint64_t size() const { return next_ - first_; }
  bool empty() const { return next_ == first_; }
  bool full() const { return size() >= depth_; }
  bool all_sent() const { return unsent_ == next_; }
  std::uint64_t first() const { return first_; }
  std::uint64_t unsent() const { return unsent_; }
  std::uint64_t next() const { return next_; }

  // What has become of one that failed on its own account and has not completed yet.
  static WorkStatus failure_of(const Entry& entry) {
    return entry.finished || entry.kind == WorkKind::bind ? WorkStatus::success : entry.rdma.progress.failure;
  }

  Entry& at(std::uint64_t number) { return *reinterpret_cast<Entry*>(ring_.get() + (number & mask_) * stride_); }
  Entry* find(std::uint64_t number) { return number >= first_ && number < next_ ? &at(number) : nullptr; }

  // Requires: not full.
  Entry& append(const SendRequest& request) {
    Entry& entry = at(next_++);
    entry.cookie = request.cookie;
    entry.length = request.length;
    entry.regions_seen = request.regions_seen;
    entry.rdma.remote = request.remote;
    entry.rdma.progress = {};
    entry.segment_count = static_cast<std::uint32_t>(request.segments.size());
    entry.kind = request.kind;
    entry.flags = request.flags;
    entry.finished = false;
    std::copy(request.segments.begin(), request.segments.end(), entry.segments());
    return entry;
  }
  Entry& append(const ExtendedRequest& request) {
    Entry& entry = append(static_cast<const SendRequest&>(request));
    entry.rdma.operand = request.operand;
    entry.rdma.compare = request.compare;
    return entry;
  }
  void mark_sent() { ++unsent_; }
  void drop_first() {
    ++first_;
    if (unsent_ < first_) unsent_ = first_;
  }
  // A request that was done at once takes a number and no place.
  void skip(std::uint64_t count = 1) {
    first_ += count;
    unsent_ += count;
    next_ += count;
  }

 private:
  std::unique_ptr<std::byte[]> ring_;
  std::size_t stride_ = 0;
  std::uint32_t depth_ = 0;
  std::uint64_t mask_ = 0;  // the ring has mask_ + 1 >= depth_ slots
  std::uint64_t first_ = 0;
  std::uint64_t unsent_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace anydat::nic::soft
