// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/soft/wire/iwarp/format/crc32c.h"
#include "nic/soft/wire/iwarp/format/ddp.h"
#include "nic/soft/wire/iwarp/format/mpa.h"
#include "nic/soft/wire/iwarp/format/rdmap.h"
#include "nic/soft/wire/iwarp/pending_terminate.h"

namespace anydat::nic::soft::iwarp {

// The segment that is arriving, and the FPDU around it: bytes come in as the socket has them, and this tells what they
// are part of, what the segment's header says, and whether the frame was whole. Where payload goes is its owner's to
// say; what is kept of it here is that of messages which mean something to this side alone.
//
// With the engine held.
class SegmentReader {
 public:
  // What the next byte belongs to. The front is the frame's length and the segment's header, the trailer all behind the
  // payload.
  enum class Step : std::uint8_t { front, payload, trailer };
  // Where the payload goes.
  enum class Into : std::uint8_t { message, read, memory, control, nothing };

  void use_crc(bool crc) { crc_ = crc; }
  bool crc() const { return crc_; }

  Step step() const { return step_; }
  bool between_frames() const { return step_ == Step::front && front_have_ == 0; }
  const SegmentHeader& header() const { return header_; }
  std::size_t payload_bytes() const { return payload_bytes_; }
  std::size_t payload_left() const { return payload_left_; }
  Into into() const { return into_; }
  void go_into(Into into) { into_ = into; }
  bool amid_message() const { return into_ == Into::message && step_ != Step::front; }

  // ---- the parts of a frame, which each take what is theirs off `bytes`
  enum class Front : std::uint8_t { incomplete, empty_frame, segment, malformed };
  Front take_front(std::span<const std::byte>& bytes, TerminateCode& wrong);
  // The owner has looked at the header; the payload is next, if there is any.
  void enter_payload() { step_ = payload_left_ > 0 ? Step::payload : Step::trailer; }
  // Payload that is at its place is summed, and gone past.
  void sum(std::span<const std::byte> part) {
    if (crc_) sum_ = crc32c(sum_, part);
  }
  void go_past(std::size_t count) {
    payload_left_ -= count;
    if (payload_left_ == 0) step_ = Step::trailer;
  }
  enum class Trailer : std::uint8_t { incomplete, empty_frame, segment, damaged };
  Trailer take_trailer(std::span<const std::byte>& bytes);
  void end_frame() { front_have_ = 0; }  // what the segment is for has been done

  // ---- of messages that mean something to this side alone, as much as any of them has
  void keep(std::span<const std::byte> part);
  std::span<const std::byte> control() const { return control_; }

  // ---- how much to read
  // The rest of the payload is worth being read straight to its place.
  bool is_worth_reading_directly() const;
  // Into the staging memory; `directly`: behind the rest of a payload.
  std::size_t staged_bytes(bool directly) const;

  // ---- a segment on the straight path, which leaves no front. Null: it is over.
  void goes_straight(const std::byte* frame) { whole_ = frame; }
  bool straight() const { return whole_; }

  // On the segment that is arriving.
  void blame(TerminateCode code, PendingTerminate& terminate) const;

 private:
  static_assert(kTerminateBytesMax >= std::max(kReadRequestBytes, kImmediateBytes));
  static_assert(kTerminateBytesMax >= std::max(kAtomicRequestBytes, kAtomicResponseBytes));

  std::size_t front_bytes() const;  // as far as can be told
  std::size_t trailer_bytes() const { return frame_trailer_bytes(segment_bytes_); }

  bool crc_ = false;
  Step step_ = Step::front;
  Into into_ = Into::nothing;
  bool empty_frame_ = false;
  std::uint8_t front_have_ = 0;
  std::uint8_t trailer_have_ = 0;
  std::array<std::byte, kFrameLengthBytes + kSegmentHeaderBytesMax> front_;
  std::array<std::byte, kFrameTrailerBytesMax> trailer_;
  std::array<std::byte, kTerminateBytesMax> control_;
  std::uint16_t segment_bytes_ = 0;
  std::uint32_t sum_ = 0;
  const std::byte* whole_ = nullptr;
  SegmentHeader header_;
  std::size_t payload_bytes_ = 0;
  std::size_t payload_left_ = 0;
};

}  // namespace anydat::nic::soft::iwarp
