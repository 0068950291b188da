// SPDX-License-Identifier: BSD-3-Clause
// Grants to use another process's memory, and how they are withdrawn.
//
// Whoever lets a peer copy from or to its memory puts a word into a grant slot of its own segment and tells the peer
// which one. The word holds a number that no other grant had, and a state. Reading is checked afterwards: what was read
// counts only if the grant still stood when it had been read, so it can be withdrawn at any moment. Writing is
// announced before: the writer marks the slot busy around each stretch, and whoever withdraws the grant waits for the
// mark to go. Nothing is read or written through a grant after its withdrawal has returned that anybody would notice.
//
// RDMA needs no grant: the peer checks the region table of the memory's owner, which it has mapped to read. For each
// stretch it copies it first notes the region's key, and by which connection, in a slot of the owner's segment, then
// checks, copies, and clears the slot. The owner takes the key out of the table first, then waits until no slot holds
// it: whoever noted it later finds it gone. Noting must not be overtaken by the check. A slot that a connection has for
// itself is written by a plain store, since RDMAs are many and regions that go are few: the owner fences all peers
// before it looks. Such a slot is for one region, whose key is announced before, so that the end of all others costs no
// fence.
#pragma once

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <iterator>

#include "base/annotations.h"
#include "base/biased_lock.h"
#include "base/fence.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/segment.h"

namespace anydat::nic::soft::shm {

inline constexpr std::uint64_t kGrantBusy = 1;  // in the low bit
inline constexpr std::uint64_t kGrantStep = 2;  // from one grant to the next

// The owner's side: which grants are in use. From any thread: its lock is the one under which the link sends, so that
// the message that tells of a grant may get it while it is written.
class GrantTable {
 public:
  // `header`: of the owner's segment.
  GrantTable(SegmentHeader& header, base::Biased<base::SpinLock>& sending) : header_(header), sending_(sending) {}
  GrantTable(const GrantTable&) = delete;
  GrantTable& operator=(const GrantTable&) = delete;

  // A slot and its new word, published in the segment; false if all are in use.
  bool issue(std::uint32_t& slot, std::uint64_t& word) {
    base::Guard guard(sending_);
    return issue_locked(slot, word);
  }
  // The same inside a fill() of the link, which holds the lock.
  bool issue_in_fill(std::uint32_t& slot, std::uint64_t& word) ANYDAT_NO_ANALYSIS { return issue_locked(slot, word); }
  // Withdraws it for reading, or once it is known to be over. Sequentially consistent, so that the reader's check that
  // follows its reading cannot miss it.
  void withdraw(std::uint32_t slot) {
    base::Guard guard(sending_);
    header_.grants[slot].store(0);
    used_ &= ~(std::uint64_t{1} << slot);
  }
  // Withdraws it for writing, unless a writer is busy: then false, and try again.
  bool try_withdraw(std::uint32_t slot, std::uint64_t word) {
    base::Guard guard(sending_);
    std::uint64_t expected = word;
    if (!header_.grants[slot].compare_exchange_strong(expected, 0) && expected == (word | kGrantBusy)) return false;
    used_ &= ~(std::uint64_t{1} << slot);
    return true;
  }

 private:
  bool issue_locked(std::uint32_t& slot, std::uint64_t& word) ANYDAT_REQUIRES(sending_) {
    if (used_ == ~std::uint64_t{0}) return false;
    slot = static_cast<std::uint32_t>(__builtin_ctzll(~used_));
    used_ |= std::uint64_t{1} << slot;
    last_ += kGrantStep;
    word = last_;
    header_.grants[slot].store(word, std::memory_order_release);
    return true;
  }

  SegmentHeader& header_;
  base::Biased<base::SpinLock>& sending_;
  std::uint64_t used_ ANYDAT_GUARDED_BY(sending_) = 0;
  std::uint64_t last_ ANYDAT_GUARDED_BY(sending_) = 0;
};

// The peer's side.
inline bool grant_stands(const SegmentHeader& header, std::uint32_t slot, std::uint64_t word) {
  return header.grants[slot].load() == word;
}
inline bool begin_writing(SegmentHeader& header, std::uint32_t slot, std::uint64_t word) {
  std::uint64_t expected = word;
  return header.grants[slot].compare_exchange_strong(expected, word | kGrantBusy);
}
// False: the owner has lost patience and withdrawn it all the same, and does not count what was written.
inline bool end_writing(SegmentHeader& header, std::uint32_t slot, std::uint64_t word) {
  std::uint64_t expected = word | kGrantBusy;
  return header.grants[slot].compare_exchange_strong(expected, word);
}

// The owner's side. Whether the peer is writing by any grant.
inline bool grants_in_use(const SegmentHeader& header) {
  return std::any_of(std::begin(header.grants), std::end(header.grants),
                     [](const std::atomic<std::uint64_t>& word) { return (word.load() & kGrantBusy) != 0; });
}

// Slots that belong to one connection each. Not thread safe.
class RdmaLanes {
 public:
  // A slot for a connection alone. 0, which is shared: none is left.
  std::uint32_t take() {
    for (std::uint32_t lane = 0; lane < kCount; ++lane) {
      if (taken_[lane]) continue;
      taken_[lane] = true;
      // Those that are taken one after the other lie in different cache lines.
      return kSharedRdmaSlots + lane % kLines * kPerLine + lane / kLines;
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
inline void announce_lane(SegmentHeader& header, std::uint32_t slot, std::uint32_t key) {
  header.rdma_lane_keys[slot - kSharedRdmaSlots].store(key);
}

// The owner's side. Whether peers have to be fenced after the key has gone, or with 0 when RDMA of a connection or of
// the link is over, and before the look at who uses it.
inline bool needs_fence(const SegmentHeader& header, std::uint32_t key) {
  if (header.rdma_lanes.load() == 0) return false;
  return key == 0 ||
         std::any_of(std::begin(header.rdma_lane_keys), std::end(header.rdma_lane_keys),
                     [key](const std::atomic<std::uint32_t>& announced) { return announced.load() == key; });
}
inline void fence_rdma_users(const SegmentHeader& header, std::uint32_t key) {
  if (needs_fence(header, key)) base::remote_fence();
}
// Is any slot in use by what is meant?
template <typename Meant>
bool in_rdma_use_by(const Segment& segment, Meant&& meant) {
  const SegmentHeader& header = segment.header();
  const std::size_t slots = header.rdma_lanes.load() != 0 ? kRdmaSlots : kSharedRdmaSlots;
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
