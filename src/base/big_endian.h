// SPDX-License-Identifier: BSD-3-Clause
// Numbers in network byte order, wherever they lie.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace anydat::base {

// From network byte order to this machine's, and back. Compilers make one instruction of it, which they do not of a loop
// over the bytes.
template <std::unsigned_integral Number>
constexpr Number swap_big(Number value) {
  if constexpr (std::endian::native == std::endian::big || sizeof(Number) == 1) {
    return value;
  } else if constexpr (sizeof(Number) == 2) {
    return __builtin_bswap16(value);
  } else if constexpr (sizeof(Number) == 4) {
    return __builtin_bswap32(value);
  } else {
    static_assert(sizeof(Number) == 8);
    return __builtin_bswap64(value);
  }
}

template <std::unsigned_integral Number>
Number load_big(const std::byte* from) {
  Number value = 0;
  std::memcpy(&value, from, sizeof value);
  return swap_big(value);
}

template <std::unsigned_integral Number>
void store_big(std::byte* to, Number value) {
  value = swap_big(value);
  std::memcpy(to, &value, sizeof value);
}

}  // namespace anydat::base
