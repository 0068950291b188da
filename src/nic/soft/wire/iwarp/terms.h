// SPDX-License-Identifier: BSD-3-Clause
// What the two sides of a connection agree on while it is set up (RFC 5044, section 7; RFC 6581).
#pragma once

#include <cstdint>

#include "nic/soft/wire/iwarp/format/mpa.h"

namespace anydat::nic::soft::iwarp {

// What this side brings.
struct Offer {
  bool crc = false;
  std::uint16_t reads_in = 0;  // Reads of the peer that it takes at once
  std::uint16_t reads_out = 0;
};

struct Terms {
  bool crc = false;
  std::uint16_t reads_out = 0;   // that may be under way at once, the program's and our own
  bool reads_known = false;      // the peer has said so
  bool peer_begins = false;      // passive side: the peer has promised a first message
  bool begins_by_frame = false;  // active side: the peer wants it to be an empty frame
  bool begins_by_read = false;   // an RDMA Read of length 0
};

// The request of the active side. Revision 2 unless the peer is known not to understand it.
StartUp request_of(const Offer& offer, std::uint8_t revision);
// The answer of the passive side, and what the connection is like if it is an acceptance.
StartUp answer_to(const StartUp& request, const Offer& offer);
Terms terms_of_answerer(const StartUp& request, const Offer& offer);
// The same for the active side. False if the peer wants markers, which we do not do.
bool terms_of_asker(const StartUp& answer, const Offer& offer, Terms& terms);
// The answer says that the peer will have more Reads under way at once than this side has offered to take: the
// connection cannot be (RFC 6581, section 9).
bool asks_for_too_much(const StartUp& answer, const Offer& offer);

// Messages that mean something only to peers of our kind: RDMA Writes of length 0, for which no memory is looked up
// (RFC 5040, section 5.1), so that others do not notice them. The STag says that it is one, the offset says which.
inline constexpr std::uint32_t kSignalStag = 0x414e'5944;  // "ANYD"
enum class Signal : std::uint32_t {
  hello = 1,         // the first message of each side: a peer of our kind
  close_notify = 2,  // the last, with how it ends: an end in order; without it, it is none
  takes = 4,         // passive side, before its hello and to an end that has told as much: `ability`
  delivered = 3,     // the Sends up to this sequence number have been; due after each that is longer than the following
};
// Of a hello of the active side, from this bit on: what it takes (`ability`).
inline constexpr unsigned kHelloTakesAt = 16;
// A hello of the passive side whose service point's qualifier is no port: the offset is all of it.
inline constexpr std::uint32_t kServiceStag = 0x414e'5951;  // "ANYQ"
inline constexpr std::uint64_t kConfirmedAbove = 8192;
constexpr std::uint64_t signal_offset(Signal signal, std::uint32_t value) {
  return std::uint64_t{static_cast<std::uint32_t>(signal)} << 32 | value;
}

}  // namespace anydat::nic::soft::iwarp
