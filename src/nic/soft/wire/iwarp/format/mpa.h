// SPDX-License-Identifier: BSD-3-Clause
// MPA (RFC 5044, and RFC 6581 for the enhanced set-up): the two frames that turn a TCP connection into a stream of
// frames, and the frame around each DDP segment. No markers: this side always declines them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "nic/soft/wire/iwarp/format/crc32c.h"

namespace anydat::nic::soft::iwarp {

// What revision 2 adds to a start-up frame (RFC 6581, section 6): how many RDMA Reads the sender of the frame takes in
// (IRD) and wants to have out (ORD) at once, and how the first message of the connecting side may look.
struct Enhanced {
  std::uint16_t ird = 0;
  std::uint16_t ord = 0;
  bool peer_to_peer = false;
  bool rtr_empty_frame = false;  // ready to receive by a frame of length 0
  bool rtr_write = false;        // by an RDMA Write of length 0
  bool rtr_read = false;         // by an RDMA Read of length 0

  friend bool operator==(const Enhanced&, const Enhanced&) = default;
};
inline constexpr std::uint16_t kReadDepthMax = 0x3fff;  // this value itself: not negotiated here

struct StartUp {
  bool reply = false;
  bool markers = false;   // the sender of this frame wants markers in what it receives
  bool crc = false;       // it wants CRCs; they are used if either side does
  bool rejected = false;  // replies only
  std::uint8_t revision = 1;
  std::optional<Enhanced> enhanced{};  // revision 2 on
  std::span<const std::byte> private_data{};
};

inline constexpr std::size_t kStartUpHeaderBytes = 20;
inline constexpr std::size_t kEnhancedBytes = 4;
inline constexpr std::size_t kStartUpDataBytesMax = 512;  // the Enhanced counts towards it
inline constexpr std::size_t kStartUpBytesMax = kStartUpHeaderBytes + kStartUpDataBytesMax;

enum class Parsed : std::uint8_t { whole, incomplete, malformed };

// Reads the frame that `bytes` begins with. Whole: `frame` and `frame_bytes` are set, and its private data is a part of
// `bytes`. Incomplete: all of `bytes` may begin a frame. Malformed: no more bytes can make a frame of it. A revision
// higher than those known here is left to the caller (RFC 6581, section 7: it is answered with one's own).
Parsed parse_start_up(std::span<const std::byte> bytes, bool reply_expected, StartUp& frame, std::size_t& frame_bytes);

// Writes the frame and answers how long it is. Requires: room for it; private data, and Enhanced, within the limit;
// Enhanced only from revision 2 on.
std::size_t write_start_up(const StartUp& frame, std::span<std::byte> to);

// A frame (FPDU): the segment's length in 16 bits, the segment (ULPDU), padding to a multiple of four, the CRC of all
// of that. The CRC's room is there also where CRCs are not used.
inline constexpr std::size_t kFrameLengthBytes = 2;
inline constexpr std::size_t kSegmentBytesMax = 0xffff;
inline constexpr std::size_t kFrameTrailerBytesMax = 3 + kCrcBytes;

constexpr std::size_t frame_padding(std::size_t segment_bytes) {
  return (0 - (kFrameLengthBytes + segment_bytes)) & 3;
}
constexpr std::size_t frame_trailer_bytes(std::size_t segment_bytes) {
  return frame_padding(segment_bytes) + kCrcBytes;
}
constexpr std::size_t frame_bytes(std::size_t segment_bytes) {
  return kFrameLengthBytes + segment_bytes + frame_trailer_bytes(segment_bytes);
}
// The longest segment whose frame fits into one TCP segment (RFC 5044, section 3: MULPDU without markers).
constexpr std::size_t largest_segment(std::size_t tcp_segment_bytes) {
  const std::size_t around = kFrameLengthBytes + kCrcBytes + tcp_segment_bytes % 4;
  if (tcp_segment_bytes <= around) return 0;
  return tcp_segment_bytes - around < kSegmentBytesMax ? tcp_segment_bytes - around : kSegmentBytesMax;
}
static_assert(frame_bytes(0) == 8 && frame_bytes(2) == 8 && frame_bytes(3) == 12 && frame_bytes(42) == 48);
static_assert(frame_bytes(largest_segment(1460)) == 1460 && frame_bytes(largest_segment(1459)) == 1456);

}  // namespace anydat::nic::soft::iwarp
