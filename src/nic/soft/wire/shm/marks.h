// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "nic/soft/wire/shm/layout.h"
#include "os/ticks.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft::shm {

// The bytes by which a writer tells that it has written (layout.h, `Marks`), as seen from either end: of one adapter,
// in memory that all its peers can write.
//
// Thread safety: any thread may call any method but those that attach or move.
class MarkTable {
 public:
  MarkTable() = default;
  MarkTable(MarkTable&& other) noexcept : marks_(std::exchange(other.marks_, nullptr)) {}
  MarkTable& operator=(MarkTable&& other) noexcept {
    std::swap(marks_, other.marks_);
    return *this;
  }
  ~MarkTable();

  // One of our own; `fd` is for the peers. Empty when there is no memory.
  static MarkTable create(os::UniqueFd& fd);
  // A peer's. Empty if the descriptor is not what create() makes.
  static MarkTable attach(int fd);
  explicit operator bool() const { return marks_ != nullptr; }

  // The writer calls it after it has written to the link that has the slot. A number that is no slot's is ignored.
  void mark(std::uint32_t slot) {
    if (slot >= kMarkSlots) return;
    marks_->slots[slot].store(1, std::memory_order_release);
    marks_->groups[slot / kMarkGroup].store(1, std::memory_order_seq_cst);
  }

  // By the adapter whose they are.
  void count_pass() {
    marks_->passes.store(marks_->passes.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  std::uint32_t passes() const { return marks_->passes.load(std::memory_order_relaxed); }

  // The marks are looked at by words, of eight groups each. Those of so many slots are in so many words.
  static constexpr std::uint32_t words_for(std::uint32_t slots) { return (slots + kWordSlots - 1) / kWordSlots; }
  // Whether any slot of the first words may be marked.
  bool any(std::uint32_t words) const {
    for (std::uint32_t at = 0; at < words; ++at) {
      if (word(at) != 0) return true;
    }
    return false;
  }
  // Calls found(slot) for each that is marked among those, and takes the mark away before. What is written after that
  // comes with a mark of its own.
  template <typename Found>
  void take(std::uint32_t words, Found&& found) {
    for (std::uint32_t group = 0; group < words * kWordGroups; ++group) {
      if (marks_->groups[group].load(std::memory_order_relaxed) == 0) continue;
      marks_->groups[group].exchange(0);
      for (std::uint32_t slot = group * kMarkGroup; slot < (group + 1) * kMarkGroup; ++slot) {
        if (marks_->slots[slot].load(std::memory_order_relaxed) == 0) continue;
        marks_->slots[slot].exchange(0);
        found(slot);
      }
    }
  }

 private:
  static constexpr std::uint32_t kWordGroups = 8;
  static constexpr std::uint32_t kWordSlots = kWordGroups * kMarkGroup;
  static_assert(kMarkSlots % kWordSlots == 0);
  typedef std::uint64_t __attribute__((may_alias)) Word;

  explicit MarkTable(void* memory) : marks_(static_cast<Marks*>(memory)) {}
  std::uint64_t word(std::uint32_t at) const {
    return __atomic_load_n(reinterpret_cast<const Word*>(marks_->groups) + at, __ATOMIC_RELAXED);
  }

  Marks* marks_ = nullptr;
};

// Whether a peer's adapter polls, as seen from time to time.
//
// Thread safety: any thread; what several find out at once may be a little old.
class PassWatch {
 public:
  bool polls(const MarkTable& table) {
    const std::uint64_t now = os::ticks(steady_);
    if (now - looked_.load(std::memory_order_relaxed) >= kTicksBetweenLooks) look(table, now);
    return polls_.load(std::memory_order_relaxed);
  }

 private:
  // Ten microseconds at 2 GHz: the line is its writer's, and is dear to read.
  static constexpr std::uint64_t kTicksBetweenLooks = 20'000;
  // What has gone on since a look that is longer ago may have ended since.
  static constexpr std::uint64_t kTicksToTell = 4 * kTicksBetweenLooks;

  void look(const MarkTable& table, std::uint64_t now) {
    const std::uint32_t passes = table.passes();
    const std::uint64_t since = now - looked_.exchange(now, std::memory_order_relaxed);
    const bool goes_on = passes_.exchange(passes, std::memory_order_relaxed) != passes;
    polls_.store(goes_on && since < kTicksToTell, std::memory_order_relaxed);
  }

  const bool steady_ = os::has_steady_counter();
  std::atomic<std::uint64_t> looked_{0};
  std::atomic<std::uint32_t> passes_{0};
  std::atomic<bool> polls_{false};
};

}  // namespace anydat::nic::soft::shm
