// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <memory>
#include <new>
#include <optional>

#include "nic/types.h"
#include "nic/verbs/resources.h"

namespace anydat::nic::verbs {

class VerbsWindow;

// The requests of one queue pair that have not completed, in posting order. The device has them all but those that
// follow one that cannot be done, and but binds, which need nothing of it. Fixed storage; not thread safe.
class SendRing {
 public:
  struct Bind {
    VerbsWindow* window = nullptr;
    void* owner = nullptr;
    std::uint64_t tag = 0;
    Segment part{};
    MemoryRegion memory;  // what the window shows once the bind is done; none: nothing
  };
  struct Entry {
    std::uint64_t cookie = 0;
    std::uint64_t length = 0;
    WorkKind kind = WorkKind::send;
    WorkFlags flags{};
    WorkStatus status = WorkStatus::success;
    bool finished = false;
    bool at_device = false;
    std::unique_ptr<Bind> bind;
  };

  // Requires: empty.
  bool reserve(std::uint32_t depth) {
    const std::uint64_t slots = std::bit_ceil(std::max<std::uint64_t>(depth, 1));
    std::unique_ptr<Entry[]> ring(new (std::nothrow) Entry[slots]);
    if (!ring) return false;
    ring_ = std::move(ring);
    depth_ = depth;
    mask_ = slots - 1;
    return true;
  }

  bool empty() const { return next_ == first_; }
  bool full() const { return next_ - first_ >= depth_; }
  std::uint64_t next() const { return next_; }
  std::uint32_t depth() const { return depth_; }
  Entry& front() { return ring_[first_ & mask_]; }
  Entry& last() { return ring_[(next_ - 1) & mask_]; }
  // The entry whose number has these low bits.
  Entry* find(std::uint32_t low_bits) {
    const std::uint64_t number = first_ + (low_bits - static_cast<std::uint32_t>(first_));
    return number < next_ ? &ring_[number & mask_] : nullptr;
  }
  // Requires: not full.
  Entry& append(std::uint64_t cookie, std::uint64_t length, WorkKind kind, WorkFlags flags) {
    Entry& entry = ring_[next_++ & mask_];
    entry.cookie = cookie;
    entry.length = length;
    entry.kind = kind;
    entry.flags = flags;
    entry.status = WorkStatus::success;
    entry.finished = false;
    entry.at_device = false;
    return entry;
  }
  void drop_first() { ring_[first_++ & mask_].bind.reset(); }

 private:
  std::unique_ptr<Entry[]> ring_;
  std::uint32_t depth_ = 0;
  std::uint64_t mask_ = 0;  // the ring has mask_ + 1 >= depth_ entries
  std::uint64_t first_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace anydat::nic::verbs
