// SPDX-License-Identifier: BSD-3-Clause
// Bytes of ours as they travel in private data.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <span>

namespace anydat::nic {

// As many as the message takes, of N that it may take; zeros to begin with.
template <std::size_t N>
class SizedBytes {
 public:
  explicit SizedBytes(std::size_t size) : size_(size) { assert(size <= N); }
  std::byte* data() { return bytes_.data(); }
  const std::byte* data() const { return bytes_.data(); }
  std::size_t size() const { return size_; }
  operator std::span<const std::byte>() const { return std::span(bytes_).first(size_); }

 private:
  std::array<std::byte, N> bytes_{};
  std::size_t size_;
};

}  // namespace anydat::nic
