// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

namespace anydat::base {

// An always-on count with one writer at a time (its owner holds a lock), so adding is a plain load and store rather
// than a locked instruction; readers in other threads see some recent value.
class Counter {
 public:
  explicit Counter(std::uint64_t start = 0) : value_(start) {}
  [[gnu::always_inline]] void add(std::uint64_t n = 1) { set(get() + n); }
  void set(std::uint64_t v) { value_.store(v, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }
  // The same where a reader that sees the count is to see what is counted.
  void publish(std::uint64_t v) { value_.store(v, std::memory_order_release); }
  std::uint64_t seen() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> value_;
};

}  // namespace anydat::base
