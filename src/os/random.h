// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace anydat::os {

// Fills it with bytes that no peer can foresee.
void fill_random(std::span<std::byte> bytes);
template <typename Number = std::uint32_t>
Number random_number() {
  Number number = 0;
  fill_random(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

// Unforeseeable numbers, fetched from the system many at a time. Not for two threads at once.
class RandomNumbers {
 public:
  std::uint32_t next() {
    if (used_ == numbers_.size()) {
      fill_random(std::as_writable_bytes(std::span(numbers_)));
      used_ = 0;
    }
    return numbers_[used_++];
  }

 private:
  std::array<std::uint32_t, 64> numbers_{};
  std::size_t used_ = numbers_.size();
};

}  // namespace anydat::os
