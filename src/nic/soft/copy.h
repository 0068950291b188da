// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace anydat::nic::soft {

// The part of copy_ascending() in pieces of 64 bytes and more. Returns how many bytes it has copied.
std::size_t copy_ascending_wide(std::byte* to, const std::byte* from, std::size_t count);

// Copies so that the bytes become visible in ascending order, the last one last (RDW-11), and aligned words of 8 bytes
// whole: who polls the end of a buffer, or a counter in it, must not be misled.
inline void copy_ascending(std::byte* to, const std::byte* from, std::size_t count) {
  if (count >= 64) {
    const std::size_t copied = copy_ascending_wide(to, from, count);
    to += copied, from += copied, count -= copied;
  }
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, from + i, sizeof word);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(to + i), word, __ATOMIC_RELEASE);
  }
  for (; i < count; ++i) {
    __atomic_store_n(reinterpret_cast<std::uint8_t*>(to + i), static_cast<std::uint8_t>(from[i]), __ATOMIC_RELEASE);
  }
}

// memcpy(3) with its call left out where copying takes less than that.
inline void copy_short(std::byte* to, const std::byte* from, std::size_t count) {
  if (count >= 8 && count <= 16) [[likely]] {
    std::uint64_t first, last;
    std::memcpy(&first, from, sizeof first);
    std::memcpy(&last, from + count - sizeof last, sizeof last);
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + count - sizeof last, &last, sizeof last);
  } else {
    std::memcpy(to, from, count);
  }
}

// From so many bytes on, the string instruction is faster than vectors, by a hundredth. Sanitizers do not see what it
// does.
inline constexpr std::size_t kStringCopyFrom = 512 << 10;
// False: this processor has no fast one, and nothing has been copied.
bool copy_by_string_instruction(std::byte* to, const std::byte* from, std::size_t count);

// Copies in whatever order is fast: what a Read brings is there when its completion is.
inline void copy_unordered(std::byte* to, const std::byte* from, std::size_t count) {
  if (count >= kStringCopyFrom && copy_by_string_instruction(to, from, count)) return;
  copy_ascending(to, from, count);
}

}  // namespace anydat::nic::soft
