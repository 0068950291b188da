// SPDX-License-Identifier: BSD-3-Clause
// What a caller over iWARP wants at a derived port (nic/qualifier_ports.h): such a port may be anybody's, so the
// request's private data tell the qualifier whole, in front of the program's. All adapters that speak iWARP say it
// alike.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/big_endian.h"
#include "nic/private_data_limits.h"
#include "nic/qualifier_ports.h"
#include "nic/sized_bytes.h"
#include "nic/types.h"

namespace anydat::nic {

struct Wanted {
  enum class Kind : std::uint16_t {
    whose = 1,       // whether the port is that service point's; answered at once, by a Refusal
    connection = 2,  // a connection to it
  };
  Kind kind = Kind::whose;
  ConnQual qual = 0;                          // no port
  std::span<const std::byte> private_data{};  // the program's, of a connection
};

namespace wanted_detail {
inline constexpr std::uint64_t kMagic = 0x616e'7964'6174'2d71;  // "anydat-q"
inline constexpr std::size_t kQualAt = 8;
inline constexpr std::size_t kKindAt = 16;
inline constexpr std::size_t kLengthAt = 18;
inline constexpr std::size_t kDataAt = 24;
// The program's data that Linux' own iWARP lets through behind all this.
inline constexpr std::size_t kShortDataMax = 192;
}  // namespace wanted_detail

// It has one of two lengths, whatever the program's data have.
inline constexpr std::size_t kWantedShortBytes = wanted_detail::kDataAt + wanted_detail::kShortDataMax;
inline constexpr std::size_t kWantedLongBytes = wanted_detail::kDataAt + kPrivateDataMax;

// As it travels.
using WantedBytes = SizedBytes<kWantedLongBytes>;

// Requires: no port, and no more private data than kPrivateDataMax.
inline WantedBytes write_wanted(const Wanted& wanted) {
  using namespace wanted_detail;
  const std::span<const std::byte> data = wanted.private_data;
  assert(!is_port(wanted.qual) && data.size() <= kPrivateDataMax);
  WantedBytes bytes(data.size() > kShortDataMax ? kWantedLongBytes : kWantedShortBytes);
  base::store_big(bytes.data(), kMagic);
  base::store_big(bytes.data() + kQualAt, wanted.qual);
  base::store_big(bytes.data() + kKindAt, static_cast<std::uint16_t>(wanted.kind));
  base::store_big(bytes.data() + kLengthAt, static_cast<std::uint16_t>(data.size()));
  std::copy(data.begin(), data.end(), bytes.data() + kDataAt);
  return bytes;
}

enum class WantedParsed : std::uint8_t {
  nothing,  // these are private data and nothing else: a port is meant
  good,     // `wanted` is set; its private data are a part of what was parsed
  bad,      // it begins like one and cannot be
};

inline WantedParsed parse_wanted(std::span<const std::byte> private_data, Wanted& wanted) {
  using namespace wanted_detail;
  const bool is_long = private_data.size() == kWantedLongBytes;
  if (!is_long && private_data.size() != kWantedShortBytes) return WantedParsed::nothing;
  if (base::load_big<std::uint64_t>(private_data.data()) != kMagic) return WantedParsed::nothing;
  const auto qual = base::load_big<std::uint64_t>(private_data.data() + kQualAt);
  const auto kind = base::load_big<std::uint16_t>(private_data.data() + kKindAt);
  const std::size_t length = base::load_big<std::uint16_t>(private_data.data() + kLengthAt);
  const bool known = kind == static_cast<std::uint16_t>(Wanted::Kind::whose) ||
                     kind == static_cast<std::uint16_t>(Wanted::Kind::connection);
  const bool fits = is_long ? length > kShortDataMax && length <= kPrivateDataMax : length <= kShortDataMax;
  if (is_port(qual) || !known || !fits) return WantedParsed::bad;
  wanted = {static_cast<Wanted::Kind>(kind), qual, private_data.subspan(kDataAt, length)};
  return WantedParsed::good;
}

}  // namespace anydat::nic
