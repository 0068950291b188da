// SPDX-License-Identifier: BSD-3-Clause
// Grants to use another process's memory, and how they are withdrawn. RDMA needs none (rdma_uses.h).
//
// A process that lets its peer copy from or to its memory puts a word into a grant slot of its own segment and tells
// the peer which one. The word holds a number that no other grant had, and a state. Reading is checked afterwards: what
// was read counts only if the grant still stood when it had been read, so it can be withdrawn at any moment. Writing is
// announced before: the writer marks the slot busy around each stretch, and the owner that withdraws the grant waits
// for the mark to go. After a withdrawal has returned nothing is read or written through the grant that a program would
// notice.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>

#include "base/annotations.h"
#include "nic/soft/wire/shm/layout.h"
#include "os/biased_lock.h"

namespace anydat::nic::soft::shm {

inline constexpr std::uint64_t kGrantBusy = 1;  // in the low bit
inline constexpr std::uint64_t kGrantStep = 2;  // from one grant to the next

// The owner's side: which grants are in use. From any thread: its lock is the one under which the link sends, so that
// the message that tells of a grant may get it while it is written.
class GrantTable {
 public:
  // `header`: of the owner's segment.
  GrantTable(SegmentHeader& header, os::Biased<os::SpinLock>& sending) : header_(header), sending_(sending) {}
  GrantTable(const GrantTable&) = delete;
  GrantTable& operator=(const GrantTable&) = delete;

  // A slot and its new word, published in the segment; false if all are in use.
  bool issue(std::uint32_t& slot, std::uint64_t& word) {
    os::Guard guard(sending_);
    return issue_locked(slot, word);
  }
  // The same inside a fill() of the link, which holds the lock.
  bool issue_in_fill(std::uint32_t& slot, std::uint64_t& word) ANYDAT_NO_ANALYSIS { return issue_locked(slot, word); }
  // Withdraws it for reading, or once it is known to be over. Sequentially consistent, so that the reader's check that
  // follows its reading cannot miss it.
  void withdraw(std::uint32_t slot) {
    os::Guard guard(sending_);
    header_.grants[slot].store(0);
    used_ &= ~(std::uint64_t{1} << slot);
  }
  // Withdraws it for writing, unless a writer is busy: then false, and try again.
  bool try_withdraw(std::uint32_t slot, std::uint64_t word) {
    os::Guard guard(sending_);
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
  os::Biased<os::SpinLock>& sending_;
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

}  // namespace anydat::nic::soft::shm
