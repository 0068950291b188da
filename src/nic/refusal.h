// SPDX-License-Identifier: BSD-3-Clause
// What a rejection over iWARP tells a peer that is one of ours, in its private data (DAT's own rejections have none):
// why, and where to ask instead. Others see a rejection. All adapters that speak iWARP say it alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/big_endian.h"

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
  base::store_big(bytes.data(), refusal_detail::kMagic);
  base::store_big(bytes.data() + 8, static_cast<std::uint32_t>(refusal.why));
  base::store_big(bytes.data() + 12, refusal.qual);
  return bytes;
}

inline std::optional<Refusal> parse_refusal(std::span<const std::byte> private_data) {
  if (private_data.size() != Refusal::kBytes) return std::nullopt;
  const auto qual = base::load_big<std::uint32_t>(private_data.data() + 12);
  if (base::load_big<std::uint64_t>(private_data.data()) != refusal_detail::kMagic || qual > 0xffff) {
    return std::nullopt;
  }
  return Refusal{static_cast<Refusal::Why>(base::load_big<std::uint32_t>(private_data.data() + 8)), qual};
}

}  // namespace anydat::nic
