// SPDX-License-Identifier: BSD-3-Clause
// Where a service point listens on wires whose service points have port numbers. A qualifier up to 65535 is the port.
// A larger one may be at any of eight ports, which a rule derives from it (docs/wire-iwarp.md has the rule in words,
// with examples): both ends know them, whatever either has been configured to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "nic/types.h"

namespace anydat::nic {

constexpr bool is_port(ConnQual qual) {
  return qual <= 65535;
}

// The ports lie below those that Linux gives to connections (32768 and up by default), which so seldom take them, and
// above most of those that well-known services listen on.
inline constexpr std::uint16_t kDerivedPortsFirst = 16384;
inline constexpr std::uint16_t kDerivedPortsCount = 16384;  // a power of two, so that any odd step leads to all of them
inline constexpr std::size_t kPortsOfQualifier = 8;

// In the order of preference; all are different. Requires: the qualifier is no port.
constexpr std::array<std::uint16_t, kPortsOfQualifier> derived_ports(ConnQual qual) {
  // The end of MurmurHash3: neighbours among the qualifiers have nothing in common afterwards.
  std::uint64_t mixed = qual;
  mixed = (mixed ^ mixed >> 33) * 0xff51'afd7'ed55'8ccd;
  mixed = (mixed ^ mixed >> 33) * 0xc4ce'b9fe'1a85'ec53;
  mixed ^= mixed >> 33;
  const std::uint64_t step = (mixed >> 32) | 1;
  std::array<std::uint16_t, kPortsOfQualifier> ports{};
  for (std::uint16_t& port : ports) {
    port = static_cast<std::uint16_t>(kDerivedPortsFirst + mixed % kDerivedPortsCount);
    mixed += step;
  }
  return ports;
}

}  // namespace anydat::nic
