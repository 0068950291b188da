// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/arriving_messages.h"

#include <algorithm>
#include <utility>

namespace anydat::nic::soft {

// Where the message is, or would be.
std::vector<std::unique_ptr<Incoming>>::const_iterator ArrivingMessages::place_of(std::uint64_t number) const {
  return std::lower_bound(
      messages_.begin(), messages_.end(), number,
      [](const std::unique_ptr<Incoming>& message, std::uint64_t wanted) { return message->number < wanted; });
}

Incoming* ArrivingMessages::find(std::uint64_t number) const {
  const auto place = place_of(number);
  return place != messages_.end() && (*place)->number == number ? place->get() : nullptr;
}

QueuePair::RecvInfo ArrivingMessages::info() const {
  const std::uint64_t counted = counted_.load();
  return {static_cast<std::uint32_t>(counted), static_cast<std::uint32_t>(counted >> 32)};
}

// EP-RQ-6, EP-RQ-10: both numbers in one.
void ArrivingMessages::note_count() {
  const std::uint64_t span = empty() ? 0 : messages_.back()->number - finished_;
  counted_.store(span << 32 | messages_.size());
}

std::unique_ptr<Incoming> ArrivingMessages::prepare() {
  messages_.reserve(messages_.size() + 1);
  spare_.reserve(spare_.size() + messages_.size() + 1);
  if (spare_.empty()) return std::make_unique<Incoming>();
  std::unique_ptr<Incoming> message = std::move(spare_.back());
  spare_.pop_back();
  return message;
}

Incoming& ArrivingMessages::begin(std::unique_ptr<Incoming> message, std::uint64_t number, std::uint64_t length,
                                  bool solicited) {
  message->number = number;
  message->length = length;
  message->placed = 0;
  message->solicited = solicited;
  message->kind = WorkKind::recv;
  message->value = 0;
  message->invalidating = false;
  message->end_known = false;
  message->arrived.clear();
  Incoming& begun = *message;
  messages_.insert(place_of(number), std::move(message));
  note_count();
  return begun;
}

std::unique_ptr<Incoming> ArrivingMessages::take_oldest() {
  std::unique_ptr<Incoming> message = std::move(messages_.front());
  messages_.erase(messages_.begin());
  finished_ = message->number;
  note_count();
  return message;
}

}  // namespace anydat::nic::soft
