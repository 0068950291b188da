// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "nic/adapter.h"

namespace anydat::nic::soft {

class ReceiveSide;

// Small messages that arrive in a row: their completions are pushed together, under one lock.
//
// With the engine held. Completions are not to be seen before flush(): a receiver that leaves the straight path flushes
// first.
class DeliveryBatch {
 public:
  // Where the next completion is to be written.
  [[gnu::always_inline]] QueuedEvent& add(CompletionQueue& queue, ReceiveSide& receiver) {
    if (queue_ != &queue || count_ == events_.size()) [[unlikely]]
      begin(queue);
    receivers_[count_] = &receiver;
    return events_[count_++];
  }
  bool empty() const { return count_ == 0; }
  void flush() {
    if (count_ > 0) push();
  }

 private:
  void begin(CompletionQueue& queue);
  void push();
  void push_one_by_one(std::size_t count);

  CompletionQueue* queue_ = nullptr;
  std::size_t count_ = 0;
  std::array<QueuedEvent, 32> events_;
  std::array<ReceiveSide*, 32> receivers_;
};

}  // namespace anydat::nic::soft
