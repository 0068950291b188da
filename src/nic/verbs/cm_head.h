// SPDX-License-Identifier: BSD-3-Clause
// What travels in the private data of InfiniBand's connection management, before the program's own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "nic/private_data_limits.h"
#include "nic/types.h"

namespace anydat::nic::verbs {

// Messages of InfiniBand's connection manager have private data of a fixed size, padded with zeros, and of 56 bytes
// only in a request. So ours begin with a head that tells the length, and a request whose data are longer comes in
// several attempts: all but the last are rejected with the word to proceed (PD-1, PD-3, ruling A34). iWARP needs none
// of it: there private data are as long as they are.
struct CmHead {
  enum class Kind : std::uint8_t {
    data,      // all of it, or the last part of a request's
    part,      // of a request: more follow
    proceed,   // in a reject: send the next part
    rejected,  // by the program
    refused,   // by us: no room, or no service point listens
    redirect,  // in a reject: ask for the service point `number`
    whose,     // no request: whether the port is that of the service point `number`, which is no port
    here,      // in a reject: it is
    data_to,   // as data, to a service point whose qualifier is no port: its eight bytes come first
    part_to,   // as part, to such a service point
  };
  static constexpr std::array<std::uint8_t, 3> kMagic{0xda, 0x7a, 0x01};

  std::array<std::uint8_t, 3> magic = kMagic;
  Kind kind = Kind::data;
  std::uint16_t length = 0;  // of what follows
  std::uint16_t offset = 0;  // of it in the whole
  std::uint64_t number = 0;  // chosen by the active side for all parts of one request
};
static_assert(sizeof(CmHead) == 16);
static_assert(sizeof(CmHead) + kIbRejectDataMax == 148);  // what a reject has

inline constexpr std::size_t kIbRequestBytes = 56;
inline constexpr std::size_t kPartMax = kIbRequestBytes - sizeof(CmHead);
inline constexpr std::size_t kQualBytes = 8;  // of them, where the qualifier is told

// Private data with a head.
struct CmMessage {
  std::array<std::byte, 196> bytes;
  std::size_t length;
  CmMessage(const CmHead& head, std::span<const std::byte> data);
};

struct CmParsed {
  CmHead head;      // data_to and part_to are data and part here
  ConnQual to = 0;  // the qualifier that the request names; 0: none, the port is meant
  std::span<const std::byte> data;
};
// Nothing if it does not begin with a head of ours, or the head is impossible.
std::optional<CmParsed> parse(std::span<const std::byte> private_data);

}  // namespace anydat::nic::verbs
