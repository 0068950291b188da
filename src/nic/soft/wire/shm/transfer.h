// SPDX-License-Identifier: BSD-3-Clause
// Leave to use another process's memory, and how it is withdrawn.
//
// Whoever lets a peer copy from or to its memory puts a word into a leaf of its own segment and tells the peer which
// one. The word holds a number that no other leave had, and a state. Reading is checked afterwards: what was read
// counts only if the leave still stood when it had been read, so it can be withdrawn at any moment. Writing is
// announced before: the writer marks the leaf busy around each stretch, and whoever withdraws the leave waits for the
// mark to go. Nothing is read or written through a leave after its withdrawal has returned that anybody would notice.
//
// RDMA needs no leave: the peer checks the region table of the memory's owner, which it has mapped to read. For each
// stretch it copies it first notes the region's key in a slot of the owner's segment, then checks, copies, and clears
// the slot. The owner takes the key out of the table first, then waits until no slot holds it: whoever noted it later
// finds it gone.
#pragma once

#include <atomic>
#include <cstdint>

#include "nic/soft/wire/shm/layout.h"

namespace anydat::nic::soft::shm {

inline constexpr std::uint64_t kLeaveBusy = 1;  // in the low bit
inline constexpr std::uint64_t kLeaveStep = 2;  // from one leave to the next

// The owner's side: which leaves are in use. Not thread safe.
class LeaveBook {
 public:
  // A leaf and its new word, published in the segment; false if all are in use.
  bool issue(SegmentHeader& header, std::uint32_t& leaf, std::uint64_t& word) {
    if (used_ == ~std::uint64_t{0}) return false;
    leaf = static_cast<std::uint32_t>(__builtin_ctzll(~used_));
    used_ |= std::uint64_t{1} << leaf;
    last_ += kLeaveStep;
    word = last_;
    header.leaves[leaf].store(word, std::memory_order_release);
    return true;
  }
  // Withdraws it for reading, or once it is known to be over. Sequentially consistent, so that the reader's check that
  // follows its reading cannot miss it.
  void withdraw(SegmentHeader& header, std::uint32_t leaf) {
    header.leaves[leaf].store(0);
    used_ &= ~(std::uint64_t{1} << leaf);
  }
  // Withdraws it for writing, unless a writer is busy: then false, and try again.
  bool try_withdraw(SegmentHeader& header, std::uint32_t leaf, std::uint64_t word) {
    std::uint64_t expected = word;
    if (!header.leaves[leaf].compare_exchange_strong(expected, 0) && expected == (word | kLeaveBusy)) return false;
    used_ &= ~(std::uint64_t{1} << leaf);
    return true;
  }

 private:
  std::uint64_t used_ = 0;
  std::uint64_t last_ = 0;
};

// The peer's side.
inline bool leave_stands(const SegmentHeader& header, std::uint32_t leaf, std::uint64_t word) {
  return header.leaves[leaf].load() == word;
}
inline bool begin_writing(SegmentHeader& header, std::uint32_t leaf, std::uint64_t word) {
  std::uint64_t expected = word;
  return header.leaves[leaf].compare_exchange_strong(expected, word | kLeaveBusy);
}
inline void end_writing(SegmentHeader& header, std::uint32_t leaf, std::uint64_t word) {
  header.leaves[leaf].store(word);
}

// A stretch of RDMA on memory of a peer; null if others occupy all slots. `hint` spreads connections over them.
class RdmaUse {
 public:
  RdmaUse(SegmentHeader& header, std::uint32_t key, std::uint32_t hint) {
    if (mark(header.rdma_keys[hint % kRdmaSlots], key)) [[likely]]
      return;
    for (std::uint32_t i = 1; i < kRdmaSlots && !slot_; ++i) mark(header.rdma_keys[(hint + i) % kRdmaSlots], key);
  }
  ~RdmaUse() {
    if (slot_) slot_->store(0, std::memory_order_release);
  }
  RdmaUse(const RdmaUse&) = delete;
  RdmaUse& operator=(const RdmaUse&) = delete;
  explicit operator bool() const { return slot_ != nullptr; }

 private:
  bool mark(std::atomic<std::uint64_t>& slot, std::uint32_t key) {
    std::uint64_t free = 0;
    // Sequentially consistent: the check of the table comes after it.
    const bool marked = slot.compare_exchange_strong(free, key);
    if (marked) slot_ = &slot;
    return marked;
  }

  std::atomic<std::uint64_t>* slot_ = nullptr;
};

// The owner's side: does anybody use the region? Key 0: any region.
inline bool in_rdma_use(const SegmentHeader& header, std::uint32_t key) {
  for (const std::atomic<std::uint64_t>& slot : header.rdma_keys) {
    const std::uint64_t used = slot.load();
    if (used != 0 && (key == 0 || used == key)) return true;
  }
  return false;
}

}  // namespace anydat::nic::soft::shm
