// SPDX-License-Identifier: BSD-3-Clause
// The header of a DDP segment (RFC 5041, section 4) with the bits in it that are RDMAP's (RFC 5040, section 4.1; RFC
// 7306, section 4), which are never apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/big_endian.h"
#include "nic/soft/wire/iwarp/format/terminate_code.h"

namespace anydat::nic::soft::iwarp {

enum class Opcode : std::uint8_t {
  write = 0,
  read_request = 1,
  read_response = 2,
  send = 3,
  send_invalidate = 4,
  send_solicited = 5,
  send_solicited_invalidate = 6,
  terminate = 7,
  immediate = 8,
  immediate_solicited = 9,
  atomic_request = 10,
  atomic_response = 11,
};

// Queues of untagged messages, each with sequence numbers of its own, which begin with 1 (RFC 5040, section 4.2).
inline constexpr std::uint32_t kSendQueue = 0;
inline constexpr std::uint32_t kReadRequestQueue = 1;
inline constexpr std::uint32_t kTerminateQueue = 2;
inline constexpr std::uint32_t kAtomicResponseQueue = 3;  // RFC 7306, section 5.2; of nothing else
inline constexpr std::uint32_t kQueueCount = 4;
inline constexpr std::uint32_t kFirstSequence = 1;

constexpr bool is_tagged(Opcode opcode) {
  return opcode == Opcode::write || opcode == Opcode::read_response;
}
constexpr bool is_send(Opcode opcode) {
  return opcode >= Opcode::send && opcode < Opcode::terminate;
}
constexpr bool is_solicited(Opcode opcode) {
  return opcode == Opcode::send_solicited || opcode == Opcode::send_solicited_invalidate ||
         opcode == Opcode::immediate_solicited;
}
constexpr bool invalidates(Opcode opcode) {
  return opcode == Opcode::send_invalidate || opcode == Opcode::send_solicited_invalidate;
}
constexpr bool is_immediate(Opcode opcode) {
  return opcode == Opcode::immediate || opcode == Opcode::immediate_solicited;
}
// Of RFC 7306: for peers that have agreed on it.
constexpr bool is_extension(Opcode opcode) {
  return opcode >= Opcode::immediate;
}
// Of an untagged message.
constexpr std::uint32_t queue_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::terminate:
      return kTerminateQueue;
    case Opcode::read_request:
    case Opcode::atomic_request:
      return kReadRequestQueue;
    case Opcode::atomic_response:
      return kAtomicResponseQueue;
    default:
      return kSendQueue;
  }
}

struct SegmentHeader {
  Opcode opcode = Opcode::send;  // also tells whether it is tagged, and of which queue
  bool last = false;             // of its message
  std::uint32_t stag = 0;        // tagged: the memory it goes to; untagged: what is to be invalidated, else 0
  std::uint64_t tagged_offset = 0;
  std::uint32_t sequence = 0;  // untagged: which message of its queue
  std::uint32_t offset = 0;    // untagged: where in the message

  friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};

inline constexpr std::size_t kTaggedHeaderBytes = 14;
inline constexpr std::size_t kUntaggedHeaderBytes = 18;
inline constexpr std::size_t kSegmentHeaderBytesMax = kUntaggedHeaderBytes;

constexpr std::size_t segment_header_bytes(Opcode opcode) {
  return is_tagged(opcode) ? kTaggedHeaderBytes : kUntaggedHeaderBytes;
}
// The same of a segment of which only the first byte is known.
constexpr std::size_t segment_header_bytes(std::byte first) {
  return (first & std::byte{0x80}) != std::byte{0} ? kTaggedHeaderBytes : kUntaggedHeaderBytes;
}

// Reads the header that a segment begins with. The answer is what the peer is to be told is wrong with it; nothing if
// it is well-formed, and only then has `header` been written.
[[nodiscard]] std::optional<TerminateCode> parse_segment_header(std::span<const std::byte> segment,
                                                                SegmentHeader& header);

// Whether the header at the beginning of a segment says that this is the whole of a Send, the one with that number, and
// that it invalidates nothing. False also where a bit is set that parse_segment_header() does not look at. Requires:
// kUntaggedHeaderBytes are there.
inline bool is_whole_send(const std::byte* segment, std::uint32_t sequence, bool& solicited) {
  constexpr std::uint16_t kSend = 0x4140 | static_cast<std::uint16_t>(Opcode::send);  // the last, and both versions
  constexpr std::uint16_t kSolicited = 0x4140 | static_cast<std::uint16_t>(Opcode::send_solicited);
  const auto control = base::load_big<std::uint16_t>(segment);
  solicited = control == kSolicited;
  return (control == kSend || solicited) &&
         base::load_big<std::uint64_t>(segment + 6) == (std::uint64_t{kSendQueue} << 32 | sequence) &&
         base::load_big<std::uint32_t>(segment + 14) == 0;
}

// Writes the header and answers how long it is. Requires: room for it.
std::size_t write_segment_header(const SegmentHeader& header, std::span<std::byte> to);

}  // namespace anydat::nic::soft::iwarp
