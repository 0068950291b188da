// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/delivery_batch.h"

#include "nic/soft/receive_side.h"

namespace anydat::nic::soft {

void DeliveryBatch::begin(CompletionQueue& queue) {
  flush();
  queue_ = &queue;
}

void DeliveryBatch::push() {
  const std::size_t count = count_;
  count_ = 0;
  if (!queue_->push_quietly(std::span(events_.data(), count))) [[unlikely]]
    push_one_by_one(count);
}

// What may wake a waiter, or find no room. Once one is lost, so are the others.
void DeliveryBatch::push_one_by_one(std::size_t count) {
  std::array<Completion, std::tuple_size_v<decltype(events_)>> all;
  for (std::size_t i = 0; i < count; ++i) {
    const Event& event = events_[i].event;
    all[i] = {event.object,
              event.cookie,
              event.length,
              event.operation,
              event.status,
              (event.notice & Event::kUnsignalled) != 0,
              (event.notice & Event::kSolicited) != 0,
              event.detail,
              events_[i].reaped};
  }
  const std::size_t kept = queue_->push(std::span(all.data(), count));
  for (std::size_t i = kept; i < count; ++i) receivers_[i]->completion_lost(all[i]);
}

}  // namespace anydat::nic::soft
