// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace anydat::nic::soft::iwarp {

inline constexpr std::size_t kCrcBytes = 4;

// CRC32C (RFC 3720, section 12.1) of `before` followed by `bytes`, where `crc` is that of `before`; 0 is that of
// nothing. So a frame may be summed up piece by piece.
std::uint32_t crc32c(std::uint32_t crc, std::span<const std::byte> bytes);

// The same without a library, for processors that have an instruction for it or not; crc32c() is one of the three.
std::uint32_t crc32c_by_table(std::uint32_t crc, std::span<const std::byte> bytes);
std::uint32_t crc32c_by_instruction(std::uint32_t crc, std::span<const std::byte> bytes);  // Requires: it has one
bool processor_has_crc32c();

// On the wire it is the one number that goes with its lowest byte first: the polynomial's highest powers, which come
// first in RFC 3720's order of bits, are the low bits of the reflected sum that processors compute.
inline void store_crc(std::byte* to, std::uint32_t crc) {
  for (std::size_t i = 0; i < kCrcBytes; ++i) to[i] = static_cast<std::byte>(crc >> 8 * i & 0xff);
}
inline std::uint32_t load_crc(const std::byte* from) {
  std::uint32_t crc = 0;
  for (std::size_t i = 0; i < kCrcBytes; ++i) crc |= std::to_integer<std::uint32_t>(from[i]) << 8 * i;
  return crc;
}

}  // namespace anydat::nic::soft::iwarp
