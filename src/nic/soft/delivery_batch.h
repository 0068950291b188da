// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "nic/adapter.h"
#include "nic/soft/receive_pool.h"

namespace anydat::nic::soft {

class SoftQueuePair;

// Small messages that arrive in a row: their receives are taken under one lock and their completions pushed under one,
// which is worth more than all the rest of delivering them.
//
// With the engine held. Between the first take() and flush() the pool's lock is held, so nothing else may be done with
// the pool, and completions are not yet to be seen: whoever leaves the straight path flushes first.
class DeliveryBatch {
 public:
  // A receive, which is there until flush(). Null: there is none.
  const ReceivePool::Slot* take(ReceivePool& pool) ANYDAT_NO_ANALYSIS {
    hold(pool);
    return pool.take_locked(undercut_);
  }
  // The receive that take() would give.
  const ReceivePool::Slot* next(ReceivePool& pool) ANYDAT_NO_ANALYSIS {
    hold(pool);
    return pool.next_locked();
  }
  void complete(CompletionQueue& queue, SoftQueuePair& queue_pair, const Completion& completion) {
    if (queue_ != &queue || count_ == completions_.size()) push();
    queue_ = &queue;
    queue_pairs_[count_] = &queue_pair;
    completions_[count_++] = completion;
  }
  void flush() {
    release_pool();
    if (count_ > 0) push();
  }

 private:
  void hold(ReceivePool& pool) ANYDAT_NO_ANALYSIS {
    if (pool_ == &pool) return;
    release_pool();
    pool.lock().lock();
    pool_ = &pool;
  }
  void release_pool() ANYDAT_NO_ANALYSIS;
  void push();

  ReceivePool* pool_ = nullptr;
  bool undercut_ = false;
  CompletionQueue* queue_ = nullptr;
  std::size_t count_ = 0;
  std::array<Completion, 32> completions_;
  std::array<SoftQueuePair*, 32> queue_pairs_;
};

}  // namespace anydat::nic::soft
