// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace anydat::nic::soft {

namespace detail {

typedef std::uint64_t Vector __attribute__((vector_size(16)));

template <typename Word>
inline void copy_both_ends(std::byte* to, const std::byte* from, std::size_t count) {
  Word first, last;
  std::memcpy(&first, from, sizeof first);
  std::memcpy(&last, from + count - sizeof last, sizeof last);
  std::memcpy(to, &first, sizeof first);
  std::memcpy(to + count - sizeof last, &last, sizeof last);
}

}  // namespace detail

// Copies exactly so many bytes, in whatever order: what a small message brings is there when its completion is. The
// smallest, which are the ones that a call would be felt at, or the start of a string instruction, are copied without.
[[gnu::always_inline]] inline void copy_message(std::byte* to, const std::byte* from, std::size_t count) {
  if (count - 8 <= 8) {
    detail::copy_both_ends<std::uint64_t>(to, from, count);
  } else if (count - 16 <= 16) {
    detail::copy_both_ends<detail::Vector>(to, from, count);
  } else if (count - 32 <= 32) {
    detail::copy_both_ends<detail::Vector>(to, from, 32);
    detail::copy_both_ends<detail::Vector>(to + count - 32, from + count - 32, 32);
  } else if (count - 4 < 4) {
    detail::copy_both_ends<std::uint32_t>(to, from, count);
  } else if (count != 0) {  // a message of nothing may have no place
    // Where the compiler knows the largest message, it takes a string instruction, whose start is dear, for the call.
    asm("" : "+r"(count));
    std::memcpy(to, from, count);
  }
}

}  // namespace anydat::nic::soft
