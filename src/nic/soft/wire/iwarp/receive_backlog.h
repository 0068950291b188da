// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <utility>
#include <vector>

#include "base/list.h"
#include "nic/soft/wire/iwarp/turns.h"

namespace anydat::nic::soft::iwarp {

// What all connections of an adapter keep together of such messages as below, and which of them read no more because
// that is as much as they may. With the engine held.
class ReceiveBacklogs {
 public:
  // `call`: has a pass ask for the next for room.
  explicit ReceiveBacklogs(std::function<void()> call) : call_(std::move(call)) {}

  bool full() const { return bytes_ >= kMax; }
  void more(std::size_t bytes) { bytes_ += bytes; }
  void less(std::size_t bytes) {
    const bool was_full = full();
    bytes_ -= bytes;
    if (was_full) call_next();
  }

  void wait_for_room(Turn& turn) {
    if (!turn.place_for_room.listed()) waiting_.push_back(turn);
  }
  void forget(Turn& turn) { waiting_.remove(turn); }
  // Who has waited longest, if there is room; null else. One at a time: what that one reads may be all that there is
  // room for.
  Turn* next_for_room() {
    if (waiting_.empty() || full()) return nullptr;
    Turn* const next = waiting_.pop_front();
    call_next();
    return next;
  }

 private:
  // A connection comes to wait only where there is no room, so those that wait are called when there has come to be
  // some, and not with each message less: the call may be a system call.
  void call_next() {
    if (!waiting_.empty() && !full()) call_();
  }

  static constexpr std::size_t kMax = 64 << 20;

  const std::function<void()> call_;
  std::size_t bytes_ = 0;
  base::List<Turn, &Turn::place_for_room> waiting_;
};

// Messages of one connection that were taken in before there were buffers for them, in order. The newest may still be
// arriving. Not thread safe.
class ReceiveBacklog {
 public:
  struct Message {
    std::vector<std::byte> bytes;
    bool solicited = false;
    bool whole = false;
    bool immediate = false;         // its bytes are ImmediateData
    std::uint32_t invalidates = 0;  // the STag that it names, or 0
  };

  explicit ReceiveBacklog(ReceiveBacklogs& all) : all_(all) {}
  ~ReceiveBacklog() { clear(); }
  ReceiveBacklog(const ReceiveBacklog&) = delete;
  ReceiveBacklog& operator=(const ReceiveBacklog&) = delete;

  bool empty() const { return messages_.empty(); }
  std::size_t cost() const { return cost_; }  // in bytes of memory
  Message& oldest() { return messages_.front(); }
  Message& newest() { return messages_.back(); }

  void add(bool solicited, std::uint32_t invalidates = 0) {
    messages_.push_back({{}, solicited, false, false, invalidates});
    count(kEach);
  }
  void append(std::span<const std::byte> bytes) {
    std::vector<std::byte>& to = newest().bytes;
    const std::size_t before = to.capacity();
    to.insert(to.end(), bytes.begin(), bytes.end());
    count(to.capacity() - before);
  }
  // The newest is whole, and keeps no room for more.
  void end_newest() {
    std::vector<std::byte>& bytes = newest().bytes;
    const std::size_t before = bytes.capacity();
    bytes.shrink_to_fit();
    newest().whole = true;
    discount(before - bytes.capacity());
  }
  void drop_oldest() {
    const std::size_t bytes = oldest().bytes.capacity() + kEach;
    messages_.pop_front();
    discount(bytes);
  }
  void clear() {
    messages_.clear();
    all_.less(std::exchange(cost_, 0));
  }

 private:
  // A message costs so much more than its bytes, or a peer could make us keep any number of messages of length 0.
  static constexpr std::size_t kEach = 64;

  void count(std::size_t bytes) {
    cost_ += bytes;
    all_.more(bytes);
  }
  void discount(std::size_t bytes) {
    cost_ -= bytes;
    all_.less(bytes);
  }

  // What is counted as gone is gone: a row that moves up, or is kept for the next ones, would keep what it had.
  std::list<Message> messages_;
  std::size_t cost_ = 0;
  ReceiveBacklogs& all_;
};

}  // namespace anydat::nic::soft::iwarp
