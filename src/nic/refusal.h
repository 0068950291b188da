// SPDX-License-Identifier: BSD-3-Clause
// What a rejection over iWARP tells a peer that is one of ours, in its private data (DAT's own rejections have none):
// why, and where to ask instead. Others see a rejection. All adapters that speak iWARP say it alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace anydat::nic {

struct Refusal {
  enum class Why : std::uint32_t { nobody_listens = 1, elsewhere = 2 };
  static constexpr std::size_t kBytes = 16;
  Why why;
  std::uint32_t qual;  // elsewhere: the port to ask at
};

namespace refusal_detail {
inline constexpr std::uint64_t kMagic = 0x616e'7964'6174'2d31;  // "anydat-1"
}

// The magic number, why and the port, each with its highest byte first.
inline std::array<std::byte, Refusal::kBytes> write_refusal(const Refusal& refusal) {
  std::array<std::byte, Refusal::kBytes> bytes;
  const std::uint64_t rest = std::uint64_t{static_cast<std::uint32_t>(refusal.why)} << 32 | refusal.qual;
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::byte>(refusal_detail::kMagic >> (56 - 8 * i));
    bytes[8 + i] = static_cast<std::byte>(rest >> (56 - 8 * i));
  }
  return bytes;
}

inline std::optional<Refusal> parse_refusal(std::span<const std::byte> private_data) {
  if (private_data.size() != Refusal::kBytes) return std::nullopt;
  std::uint64_t magic = 0;
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    magic = magic << 8 | std::to_integer<std::uint64_t>(private_data[i]);
    rest = rest << 8 | std::to_integer<std::uint64_t>(private_data[8 + i]);
  }
  const auto qual = static_cast<std::uint32_t>(rest);
  if (magic != refusal_detail::kMagic || qual > 0xffff) return std::nullopt;
  return Refusal{static_cast<Refusal::Why>(rest >> 32), qual};
}

}  // namespace anydat::nic
