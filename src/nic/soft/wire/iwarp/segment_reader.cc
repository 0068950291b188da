// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/segment_reader.h"

#include "base/big_endian.h"

namespace anydat::nic::soft::iwarp {

namespace {

// The payload of segments from this size on is read straight to its place, but for so little that it is not worth it.
constexpr std::size_t kLargeSegment = 8 << 10;
constexpr std::size_t kDirectMin = 1024;
// Small messages are read many at a time; of a large one that follows them this much at most is copied.
constexpr std::size_t kStaged = 16 << 10;
// Large messages in small segments, as others than us send them, are all copied.
constexpr std::size_t kStagedOfSegments = 64 << 10;

}  // namespace

bool SegmentReader::is_worth_reading_directly() const {
  return step_ == Step::payload && payload_bytes_ >= kLargeSegment && payload_left_ >= kDirectMin;
}

std::size_t SegmentReader::staged_bytes(bool directly) const {
  const bool goes_on = into_ != Into::control && !header_.last;
  if (payload_bytes_ < kLargeSegment) return goes_on ? kStagedOfSegments : kStaged;
  if (!goes_on) return kStaged;
  // Not more than up to the next payload, so that it also goes straight to its place.
  switch (step_) {
    case Step::front:
      return front_bytes() - front_have_;
    case Step::trailer:
      return trailer_bytes() - trailer_have_ + kFrameLengthBytes + kSegmentHeaderBytesMax;
    default:
      return (directly ? 0 : payload_left_) + trailer_bytes() + kFrameLengthBytes + kSegmentHeaderBytesMax;
  }
}

std::size_t SegmentReader::front_bytes() const {
  if (front_have_ <= kFrameLengthBytes) return kFrameLengthBytes + kSegmentHeaderBytesMax;
  return kFrameLengthBytes + segment_header_bytes(front_[kFrameLengthBytes]);
}

SegmentReader::Front SegmentReader::take_front(std::span<const std::byte>& bytes, TerminateCode& wrong) {
  const auto take = [&](std::size_t up_to) {
    const std::size_t part = std::min(bytes.size(), up_to - std::min<std::size_t>(up_to, front_have_));
    std::copy_n(bytes.begin(), part, front_.begin() + front_have_);
    front_have_ = static_cast<std::uint8_t>(front_have_ + part);
    bytes = bytes.subspan(part);
    return front_have_ >= up_to;
  };
  if (!take(kFrameLengthBytes)) return Front::incomplete;
  segment_bytes_ = base::load_big<std::uint16_t>(front_.data());
  sum_ = 0;
  trailer_have_ = 0;
  payload_bytes_ = payload_left_ = 0;
  into_ = Into::nothing;
  if (segment_bytes_ == 0) {
    empty_frame_ = true;
    if (crc_) sum_ = crc32c(0, std::span(front_).first(kFrameLengthBytes));
    step_ = Step::trailer;
    return Front::empty_frame;
  }
  // A segment that ends within its header has no more to come.
  if (!take(kFrameLengthBytes + 1) || !take(std::min(front_bytes(), kFrameLengthBytes + segment_bytes_))) {
    return Front::incomplete;
  }
  const std::size_t header_bytes = front_have_ - kFrameLengthBytes;
  if (crc_) sum_ = crc32c(0, std::span(front_).first(front_have_));
  if (const auto fault = parse_segment_header(std::span(front_).subspan(kFrameLengthBytes, header_bytes), header_)) {
    wrong = *fault;
    return Front::malformed;
  }
  payload_bytes_ = payload_left_ = segment_bytes_ - header_bytes;
  return Front::segment;
}

void SegmentReader::keep(std::span<const std::byte> part) {
  const std::size_t at = std::min(payload_bytes_ - payload_left_, control_.size());
  std::copy_n(part.begin(), std::min(part.size(), control_.size() - at),
              control_.begin() + static_cast<std::ptrdiff_t>(at));
}

SegmentReader::Trailer SegmentReader::take_trailer(std::span<const std::byte>& bytes) {
  const std::size_t part = std::min(bytes.size(), trailer_bytes() - trailer_have_);
  std::copy_n(bytes.begin(), part, trailer_.begin() + trailer_have_);
  trailer_have_ = static_cast<std::uint8_t>(trailer_have_ + part);
  bytes = bytes.subspan(part);
  if (trailer_have_ < trailer_bytes()) return Trailer::incomplete;
  const std::size_t padding = trailer_bytes() - kCrcBytes;
  if (crc_ && crc32c(sum_, std::span(trailer_).first(padding)) != load_crc(trailer_.data() + padding)) {
    return Trailer::damaged;
  }
  step_ = Step::front;
  if (!empty_frame_) return Trailer::segment;
  empty_frame_ = false;
  return Trailer::empty_frame;
}

void SegmentReader::blame(TerminateCode code, PendingTerminate& terminate) const {
  // What a damaged frame says of itself is not to be repeated, and errors of MPA carry no header at all (RFC 5040,
  // section 4.8).
  if (code.layer == kMpaLayer) return terminate.blame_nobody(code);
  if (whole_) {
    const std::size_t bytes = base::load_big<std::uint16_t>(whole_);
    return terminate.blame(code, std::span(whole_ + kFrameLengthBytes, bytes), bytes);
  }
  const std::size_t header_bytes = front_have_ > kFrameLengthBytes ? front_have_ - kFrameLengthBytes : 0;
  std::array<std::byte, kSegmentHeaderBytesMax + kReadRequestBytes> offender;
  std::copy_n(front_.begin() + kFrameLengthBytes, header_bytes, offender.begin());
  std::size_t known = header_bytes;
  if (into_ == Into::control && header_.opcode == Opcode::read_request && payload_left_ == 0) {
    std::copy_n(control_.begin(), kReadRequestBytes, offender.begin() + static_cast<std::ptrdiff_t>(known));
    known += kReadRequestBytes;
  }
  terminate.blame(code, std::span(offender).first(known), segment_bytes_);
}

}  // namespace anydat::nic::soft::iwarp
