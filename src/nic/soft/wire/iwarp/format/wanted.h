// SPDX-License-Identifier: BSD-3-Clause
// What a caller at a derived port wants (nic/service_ports.h): such a port may be anybody's, so the request's private
// data tell the qualifier whole, in front of the program's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/types.h"

namespace anydat::nic::soft::iwarp {

struct Wanted {
  enum class Kind : std::uint16_t {
    whose = 1,       // whether the port is that service point's; answered at once, by a Refusal
    connection = 2,  // a connection to it
  };
  Kind kind = Kind::whose;
  ConnQual qual = 0;                          // no port
  std::span<const std::byte> private_data{};  // the program's, of a connection
};

// Always that many bytes: more than the private data of any DAT program, which so are never taken for it.
inline constexpr std::size_t kWantedBytes = 24 + kPrivateDataMax;

// Requires: no more private data than kPrivateDataMax.
std::array<std::byte, kWantedBytes> write_wanted(const Wanted& wanted);

enum class WantedParsed : std::uint8_t {
  nothing,  // these are private data and nothing else: a port is meant
  good,     // `wanted` is set; its private data are a part of what was parsed
  bad,      // it begins like one and cannot be
};
WantedParsed parse_wanted(std::span<const std::byte> private_data, Wanted& wanted);

}  // namespace anydat::nic::soft::iwarp
