// SPDX-License-Identifier: BSD-3-Clause
// Numbers in network byte order, wherever they lie.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace anydat::base {

template <std::unsigned_integral Number>
constexpr Number load_big(const std::byte* from) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    value = static_cast<Number>(static_cast<std::uint64_t>(value) << 8 | std::to_integer<std::uint64_t>(from[i]));
  }
  return value;
}

template <std::unsigned_integral Number>
constexpr void store_big(std::byte* to, Number value) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    to[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> 8 * (sizeof(Number) - 1 - i) & 0xff);
  }
}

}  // namespace anydat::base
