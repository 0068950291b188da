// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/counter.h"
#include "nic/receive_queue.h"

namespace anydat::nic {

// Counts the receives of a shared queue whose completions have been reaped, wholly or in part.
class ReapCount {
 public:
  explicit ReapCount(ReceiveQueue& whose) : queue(whose) {}
  // By a thread that takes a completion off its event queue, or knows that it will never be taken.
  void add() {
    if (!one_writer_) [[unlikely]]
      return queue.reaped();
    count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  std::uint64_t get() const { return count_.load(std::memory_order_acquire); }
  // From now on only those that come by one event queue, and with its lock held: then adding needs no locked operation.
  void belong_to_one() { one_writer_ = true; }

  ReceiveQueue& queue;

 private:
  std::atomic<std::uint64_t> count_{0};
  bool one_writer_ = false;  // fixed before it is used
};

// By what the outstanding receives of a pool become fewer: a posted receive is outstanding until it has been reaped
// (SRQ-ACC-9, SRQ-ACC-12). What has been reaped, ever, is the sum of several counts, apart, so that reaping changes
// nothing else and mostly needs no locked operation.
//
// Thread safety: from any thread, but for what says otherwise.
class OutstandingReceives {
 public:
  explicit OutstandingReceives(ReceiveQueue& pool)
      : counts_{{ReapCount{pool}, ReapCount{pool}, ReapCount{pool}, ReapCount{pool}}}, any_{pool} {}

  void reaped() { others_.fetch_add(1, std::memory_order_release); }
  // By the thread that takes, which needs no locked operation for it.
  void reaped_by_taker() { by_taker_.publish(by_taker_.get() + 1); }
  // One for each of the first few queues that completions go to, and for all others one that costs a locked operation.
  // With the engine held.
  ReapCount& reap_count(const CompletionQueue* queue) {
    for (std::size_t i = 0; queue && i < kCounts; ++i) {
      if (!queues_[i]) {
        queues_[i] = queue;
        counts_[i].belong_to_one();
      }
      // The address of a queue that has gone may be another's: what has gone reaps no more.
      if (queues_[i] == queue) return counts_[i];
    }
    return any_;
  }
  // Acquire: what the reaper of a receive did with its buffer comes before the buffer's next use.
  std::uint64_t all_reaped() const {
    std::uint64_t all = others_.load(std::memory_order_acquire) + by_taker_.seen();
    for (const ReapCount& count : counts_) all += count.get();
    return all;
  }

 private:
  static constexpr std::size_t kCounts = 4;

  std::atomic<std::uint64_t> others_{0};
  base::Counter by_taker_;
  std::array<ReapCount, kCounts> counts_;
  std::array<const CompletionQueue*, kCounts> queues_{};  // whose they are, from the first on; with the engine
  ReapCount any_;
};

}  // namespace anydat::nic
