// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace anydat::nic::soft::iwarp {

// Messages of one connection that were taken in before there were buffers for them, in order. The newest may still be
// arriving. Not thread safe.
class Parked {
 public:
  struct Message {
    std::vector<std::byte> bytes;
    bool solicited = false;
    bool whole = false;
    bool immediate = false;         // its bytes are ImmediateData
    std::uint32_t invalidates = 0;  // the STag that it names, or 0
  };

  explicit Parked(std::size_t& all) : all_(all) {}  // `all`: of all connections; it is kept up to date
  ~Parked() { clear(); }
  Parked(const Parked&) = delete;
  Parked& operator=(const Parked&) = delete;

  bool empty() const { return first_ == messages_.size(); }
  std::size_t cost() const { return cost_; }  // in bytes
  Message& oldest() { return messages_[first_]; }
  Message& newest() { return messages_.back(); }

  void add(bool solicited, std::uint32_t invalidates = 0) {
    messages_.push_back({{}, solicited, false, false, invalidates});
    count(kEach);
  }
  void append(std::span<const std::byte> bytes) {
    newest().bytes.insert(newest().bytes.end(), bytes.begin(), bytes.end());
    count(bytes.size());
  }
  void drop_oldest() {
    const std::size_t bytes = oldest().bytes.size() + kEach;
    cost_ -= bytes;
    all_ -= bytes;
    oldest().bytes = {};
    // Moving up those that are left is put off until it is worth it.
    if (++first_ == messages_.size() || first_ >= kMovedUpAt) {
      messages_.erase(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }
  void clear() {
    while (!empty()) drop_oldest();
  }

 private:
  // A message costs so much more than its bytes, or a peer could make us keep any number of messages of length 0.
  static constexpr std::size_t kEach = 64;
  static constexpr std::size_t kMovedUpAt = 4096;

  void count(std::size_t bytes) {
    cost_ += bytes;
    all_ += bytes;
  }

  std::vector<Message> messages_;
  std::size_t first_ = 0;
  std::size_t cost_ = 0;
  std::size_t& all_;
};

}  // namespace anydat::nic::soft::iwarp
