// SPDX-License-Identifier: BSD-3-Clause
// What a rejection over iWARP tells a peer that is one of ours, in its private data (DAT's own rejections have none):
// why, and where to ask instead. Others see a rejection. All adapters that speak iWARP say it alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/big_endian.h"
#include "nic/service_ports.h"
#include "nic/sized_bytes.h"
#include "nic/types.h"

namespace anydat::nic {

struct Refusal {
  enum class Why : std::uint32_t {
    nobody_listens = 1,
    elsewhere = 2,
    here = 3,  // the service point that was looked for, in answer to the question whose port it is
  };
  Why why;
  ConnQual qual;  // elsewhere, here: which one
};

namespace refusal_detail {
inline constexpr std::uint64_t kMagic = 0x616e'7964'6174'2d31;  // "anydat-1"
inline constexpr std::size_t kShortBytes = 16;
inline constexpr std::size_t kLongBytes = 24;
}  // namespace refusal_detail

// As it travels.
using RefusalBytes = SizedBytes<refusal_detail::kLongBytes>;

// The magic number, why, and the qualifier, each with its highest byte first: a port number in 32 bits; whatever is
// more than that behind 32 bits of zeros, in 64.
inline RefusalBytes write_refusal(const Refusal& refusal) {
  using namespace refusal_detail;
  RefusalBytes bytes(is_port(refusal.qual) ? kShortBytes : kLongBytes);
  base::store_big(bytes.data(), kMagic);
  base::store_big(bytes.data() + 8, static_cast<std::uint32_t>(refusal.why));
  if (is_port(refusal.qual)) {
    base::store_big(bytes.data() + 12, static_cast<std::uint32_t>(refusal.qual));
  } else {
    base::store_big(bytes.data() + 16, refusal.qual);
  }
  return bytes;
}

inline std::optional<Refusal> parse_refusal(std::span<const std::byte> private_data) {
  const bool is_long = private_data.size() == refusal_detail::kLongBytes;
  if (!is_long && private_data.size() != refusal_detail::kShortBytes) return std::nullopt;
  if (base::load_big<std::uint64_t>(private_data.data()) != refusal_detail::kMagic) return std::nullopt;
  const auto port = base::load_big<std::uint32_t>(private_data.data() + 12);
  const ConnQual qual = is_long ? base::load_big<std::uint64_t>(private_data.data() + 16) : port;
  if (is_long ? port != 0 || is_port(qual) : !is_port(qual)) return std::nullopt;
  return Refusal{static_cast<Refusal::Why>(base::load_big<std::uint32_t>(private_data.data() + 8)), qual};
}

}  // namespace anydat::nic
