// SPDX-License-Identifier: BSD-3-Clause
// Which regions a peer uses by RDMA, and how their owner waits for the end of that. It needs no grant: the peer checks
// the region table of the memory's owner, which it has mapped to read. For each stretch it copies it first notes the
// region's key, and by which connection, in a slot of the owner's segment, then checks, copies, and clears the slot.
// The owner takes the key out of the table first, then waits until no slot holds it: a peer that notes it later finds
// it gone. Noting must not be overtaken by the check. A slot that a connection has for itself is written by a plain
// store, since RDMAs are many and regions that go are few: the owner fences all peers before it looks. Such a slot is
// for one region, whose key is announced before, so that the end of all others costs no fence.
#pragma once

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/fence.h"
#include "base/hidden_order.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/segment.h"
#include "os/membarrier.h"

namespace anydat::nic::soft::shm {

// Slots that belong to one connection each. Not thread safe.
class ConnectionSlots {
 public:
  // A slot for a connection alone. 0, which is shared: none is left.
  std::uint32_t take() {
    for (std::uint32_t number = 0; number < kCount; ++number) {
      if (taken_[number]) continue;
      taken_[number] = true;
      // Those that are taken one after the other lie in different cache lines.
      return kSharedRdmaSlots + number % kLines * kPerLine + number / kLines;
    }
    return 0;
  }
  void give_back(std::uint32_t slot) {
    if (slot < kSharedRdmaSlots) return;
    const std::uint32_t place = slot - kSharedRdmaSlots;
    taken_[place % kPerLine * kLines + place / kPerLine] = false;
  }

 private:
  static constexpr std::uint32_t kCount = kRdmaSlots - kSharedRdmaSlots;
  static constexpr std::uint32_t kPerLine = 64 / sizeof(std::uint32_t);
  static constexpr std::uint32_t kLines = kCount / kPerLine;
  static_assert(kCount % kPerLine == 0);

  std::bitset<kCount> taken_;
};

// What a slot holds meanwhile.
constexpr std::uint64_t rdma_use(std::uint32_t key, std::uint32_t connection) {
  return static_cast<std::uint64_t>(connection) << 32 | key;
}

// A stretch of RDMA on memory of a peer; null if others occupy all shared slots.
class RdmaUse {
 public:
  // `use`: rdma_use(). `slot`: the connection's own, which has been announced for the key, or the shared one that is
  // tried first.
  RdmaUse(const Segment& segment, std::uint64_t use, std::uint32_t slot) : order_(segment.order()) {
    SegmentHeader& header = segment.header();
    if (slot >= kSharedRdmaSlots) [[likely]] {
      slot_ = &header.rdma_uses[slot];
      slot_->store(use, std::memory_order_relaxed);
      base::compiler_fence();
    } else {
      share(header, use, slot);
    }
  }
  ~RdmaUse() {
    if (!slot_) return;
    order_.published();
    slot_->store(0, std::memory_order_release);
  }
  RdmaUse(const RdmaUse&) = delete;
  RdmaUse& operator=(const RdmaUse&) = delete;
  explicit operator bool() const { return slot_ != nullptr; }

 private:
  void share(SegmentHeader& header, std::uint64_t use, std::uint32_t first) {
    for (std::uint32_t i = 0; i < kSharedRdmaSlots; ++i) {
      std::atomic<std::uint64_t>& slot = header.rdma_uses[(first + i) % kSharedRdmaSlots];
      std::uint64_t free = 0;
      // Sequentially consistent: the check of the table comes after it.
      if (slot.compare_exchange_strong(free, use)) {
        slot_ = &slot;
        return;
      }
    }
  }

  std::atomic<std::uint64_t>* slot_ = nullptr;
  base::HiddenOrder order_;
};

// The connection's side: its slot notes this key alone from now on; or none, before it is another connection's. What it
// has noted before has gone from there. Sequentially consistent: the check of the table comes after it.
inline void announce_slot_key(SegmentHeader& header, std::uint32_t slot, std::uint32_t key) {
  header.rdma_slot_keys[slot - kSharedRdmaSlots].store(key);
}

// The owner's side. Whether peers have to be fenced after the key has gone, or with 0 when RDMA of a connection or of
// the link is over, and before the look at who uses it.
inline bool needs_fence(const SegmentHeader& header, std::uint32_t key) {
  if (header.rdma_own_slots.load() == 0) return false;
  return key == 0 ||
         std::any_of(std::begin(header.rdma_slot_keys), std::end(header.rdma_slot_keys),
                     [key](const std::atomic<std::uint32_t>& announced) { return announced.load() == key; });
}
inline void fence_rdma_users(const SegmentHeader& header, std::uint32_t key) {
  if (needs_fence(header, key)) os::remote_fence();
}
// Is any slot in use by what is meant?
template <typename Meant>
bool in_rdma_use_by(const Segment& segment, Meant&& meant) {
  const SegmentHeader& header = segment.header();
  const std::size_t slots = header.rdma_own_slots.load() != 0 ? kRdmaSlots : kSharedRdmaSlots;
  const bool used =
      std::any_of(header.rdma_uses, header.rdma_uses + slots, [&](const std::atomic<std::uint64_t>& slot) {
        const std::uint64_t use = slot.load();
        return use != 0 && meant(static_cast<std::uint32_t>(use), static_cast<std::uint32_t>(use >> 32));
      });
  if (!used) segment.order().seen();
  return used;
}
// Does anybody use the region? Key 0: any region.
inline bool in_rdma_use(const Segment& segment, std::uint32_t key) {
  return in_rdma_use_by(segment, [key](std::uint32_t used, std::uint32_t) { return key == 0 || used == key; });
}
// Does the connection that the owner has by this name use any?
inline bool connection_in_rdma_use(const Segment& segment, std::uint32_t name) {
  return in_rdma_use_by(segment, [name](std::uint32_t, std::uint32_t connection) { return connection == name; });
}

}  // namespace anydat::nic::soft::shm
