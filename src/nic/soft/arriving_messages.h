// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nic/adapter.h"
#include "nic/soft/incoming.h"

namespace anydat::nic::soft {

// The messages of a connection that have their buffers and have not completed, in the order of their numbers, and how
// far the peer's messages have completed. Most messages complete as they arrive and are here only as a number.
//
// Thread safety: info() from any thread; everything else with the engine held. Lives and dies with its receiving side.
class ArrivingMessages {
 public:
  void connection_begins() { finished_ = 0; }

  bool empty() const { return messages_.empty(); }
  std::size_t count() const { return messages_.size(); }
  Incoming& oldest() const { return *messages_.front(); }  // Requires: there is one.
  // The next message to complete is there; where segments overtake each other it may be a later one that is.
  bool next_is_there() const { return !empty() && oldest().number == finished_ + 1; }
  Incoming* find(std::uint64_t number) const;
  // The numbers of the last message that has completed, and of the last that has its buffer.
  std::uint64_t finished() const { return finished_; }
  std::uint64_t newest() const { return empty() ? finished_ : messages_.back()->number; }
  std::uint64_t placed_of_next() const { return empty() ? 0 : oldest().placed; }
  // As QueuePair::recv_info() of a shared queue.
  QueuePair::RecvInfo info() const;

  // ---- a message, from its beginning to its end
  // Whatever memory a message and its end need, before it takes a buffer.
  std::unique_ptr<Incoming> prepare();
  Incoming& begin(std::unique_ptr<Incoming> message, std::uint64_t number, std::uint64_t length, bool solicited);
  std::unique_ptr<Incoming> take_oldest();  // it completes
  void recycle(std::unique_ptr<Incoming> message) { spare_.push_back(std::move(message)); }
  void completed_at_once() { ++finished_; }  // one that is the next, and was never here
  void drop_spare() { spare_.clear(); }

 private:
  std::vector<std::unique_ptr<Incoming>>::const_iterator place_of(std::uint64_t number) const;
  void note_count();

  std::uint64_t finished_ = 0;
  std::vector<std::unique_ptr<Incoming>> messages_;  // by number
  std::vector<std::unique_ptr<Incoming>> spare_;
  // messages_ for others to see: how many in the low half, and in the high one how far they reach (EP-RQ-10).
  std::atomic<std::uint64_t> counted_{0};
};

}  // namespace anydat::nic::soft
