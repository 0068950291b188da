// SPDX-License-Identifier: BSD-3-Clause
// What a rejection over iWARP has for private data. That of a program has the program's. A refusal of ours tells a peer
// that is one of ours why, and where to ask instead; others see a rejection. All adapters that speak iWARP say it
// alike.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/big_endian.h"
#include "nic/private_data_limits.h"
#include "nic/qualifier_ports.h"
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
inline constexpr std::uint64_t kPlainMagic = 0x616e'7964'6174'2d70;  // "anydat-p"
inline constexpr std::size_t kMagicBytes = 8;
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

// A program's rejection, as it travels: its private data, and eight characters before those that begin like a refusal
// of ours or with these very characters (D2-CR-6).
using RejectionBytes = SizedBytes<refusal_detail::kMagicBytes + kPrivateDataMax>;

inline RejectionBytes write_rejection(std::span<const std::byte> data) {
  using namespace refusal_detail;
  assert(data.size() <= kPrivateDataMax);
  const std::uint64_t begin = data.size() >= kMagicBytes ? base::load_big<std::uint64_t>(data.data()) : 0;
  const std::size_t front = begin == kMagic || begin == kPlainMagic ? kMagicBytes : 0;
  RejectionBytes bytes(front + data.size());
  if (front > 0) base::store_big(bytes.data(), kPlainMagic);
  std::copy(data.begin(), data.end(), bytes.data() + front);
  return bytes;
}

// The program's private data in a rejection that is no refusal: a part of what came. A stranger's are cut off at
// kPrivateDataMax.
inline std::span<const std::byte> parse_rejection(std::span<const std::byte> came) {
  using namespace refusal_detail;
  if (came.size() >= kMagicBytes && base::load_big<std::uint64_t>(came.data()) == kPlainMagic)
    came = came.subspan(kMagicBytes);
  return came.first(std::min(came.size(), kPrivateDataMax));
}

}  // namespace anydat::nic
