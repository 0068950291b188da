// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/transmitter.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/big_endian.h"
#include "nic/soft/scatter.h"
#include "nic/soft/wire/iwarp/format/mpa.h"
#include "os/socket.h"

namespace anydat::nic::soft::iwarp {

namespace {

constexpr std::size_t kFramesPerCall = 32;
constexpr std::size_t kPiecesPerCall = 256;
constexpr std::size_t kChunksPerCall = 8;
// What the socket does not take has been summed up for nothing, so that is not done far ahead.
constexpr std::uint64_t kSummedPerCall = 1 << 20;

}  // namespace

Transmitter::~Transmitter() {
  while (Chunk* chunk = line_.pop_front()) pool_.give(*chunk);
}

Transmitter::Transmitter(Transmitter&& other) noexcept
    : pool_(other.pool_),
      fd_(std::exchange(other.fd_, -1)),
      crc_(std::exchange(other.crc_, false)),
      blocked_(std::exchange(other.blocked_, false)),
      broken_(std::exchange(other.broken_, false)),
      memory_is_gone_(std::exchange(other.memory_is_gone_, false)),
      amid_frame_(std::exchange(other.amid_frame_, false)),
      loss_(std::exchange(other.loss_, 0)),
      ulpdu_max_(std::exchange(other.ulpdu_max_, 0)),
      line_(std::exchange(other.line_, {})),
      last_(std::exchange(other.last_, nullptr)),
      waiting_(std::exchange(other.waiting_, 0)) {}

std::byte* Transmitter::reserve(std::size_t bytes) {
  if (amid_frame_) return nullptr;  // the peer would take it for the rest
  if (!last_ || last_->room().size() < bytes) {
    Chunk* chunk = pool_.take(static_cast<std::uint32_t>(bytes));
    lacks_memory_ = chunk == nullptr;
    if (!chunk) return nullptr;
    line_.push_back(*chunk);
    last_ = chunk;
  }
  std::byte* const room = last_->room().data();
  last_->end += static_cast<std::uint32_t>(bytes);
  waiting_ += bytes;
  return room;
}

// Length, padding and CRC around a segment that stands in its place in the frame.
void Transmitter::seal(std::byte* frame, std::size_t segment_bytes) const {
  base::store_big(frame, static_cast<std::uint16_t>(segment_bytes));
  std::byte* const padding = frame + kFrameLengthBytes + segment_bytes;
  const std::size_t padded = frame_padding(segment_bytes);
  std::memset(padding, 0, padded);
  const std::size_t summed = kFrameLengthBytes + segment_bytes + padded;
  store_crc(padding + padded, crc_ ? crc32c(0, {frame, summed}) : 0);
}

bool Transmitter::append(const SegmentHeader& header, std::span<const Segment> payload, std::size_t payload_bytes) {
  const std::size_t segment_bytes = segment_header_bytes(header.opcode) + payload_bytes;
  std::byte* const frame = reserve(frame_bytes(segment_bytes));
  if (!frame) return false;
  std::byte* to = frame + kFrameLengthBytes;
  to += write_segment_header(header, {to, kSegmentHeaderBytesMax});
  for_each_piece(payload, 0, payload_bytes, [&](const Piece& piece) {
    std::memcpy(to, piece.bytes(), piece.count);
    to += piece.count;
  });
  seal(frame, segment_bytes);
  return true;
}

bool Transmitter::append(const SegmentHeader& header, std::span<const std::byte> payload) {
  const Segment segment{0, 0, reinterpret_cast<std::uint64_t>(payload.data()), payload.size()};
  return append(header, {&segment, 1}, payload.size());
}

bool Transmitter::append_empty_frame() {
  std::byte* const frame = reserve(frame_bytes(0));
  if (frame) seal(frame, 0);
  return frame != nullptr;
}

bool Transmitter::append_bytes(std::span<const std::byte> bytes) {
  std::byte* const room = reserve(bytes.size());
  if (room) std::memcpy(room, bytes.data(), bytes.size());
  return room != nullptr;
}

bool Transmitter::send_at_once(std::span<const std::byte> bytes) {
  order_.published();
  const ssize_t taken = os::send_now(fd_, bytes);
  if (taken == static_cast<ssize_t>(bytes.size())) return true;
  if (taken < 0) note_failure(errno);
  blocked_ = true;  // the socket says when it has room for the rest
  return append_bytes(bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(taken, 0))));
}

// A dead socket takes nothing any more, which its reader finds out; one that cannot take pieces because they are not
// there will not say that it has room. EPIPE tells the reader nothing that it does not know: the peer's end of the
// stream came before, or the loss has been told.
void Transmitter::note_failure(int error) {
  switch (error) {
    case EFAULT:
      broken_ = memory_is_gone_ = true;
      return;
    case EAGAIN:
    case EINTR:
    case ENOBUFS:
    case ENOMEM:
    case EPIPE:
      return;
    default:
      loss_ = static_cast<std::uint16_t>(error);
  }
}

// Gives the socket what it takes of these pieces.
std::size_t Transmitter::give(std::span<iovec> pieces) {
  std::size_t offered = 0;
  for (const iovec& piece : pieces) offered += piece.iov_len;
  ssize_t taken = 0;
  order_.published();
  do {
    taken = pieces.size() == 1 ? os::send_now(fd_, {static_cast<std::byte*>(pieces[0].iov_base), pieces[0].iov_len})
                               : os::send_now(fd_, pieces);
  } while (taken < 0 && errno == EINTR);
  if (taken < 0) note_failure(errno);
  if (taken < static_cast<ssize_t>(offered)) blocked_ = true;
  return static_cast<std::size_t>(std::max<ssize_t>(taken, 0));
}

// Of bytes that the socket took, those that were in line; answers how many were not.
std::size_t Transmitter::take_off_line(std::size_t bytes) {
  while (Chunk* chunk = line_.front()) {
    const std::size_t part = std::min<std::size_t>(bytes, chunk->end - chunk->begin);
    chunk->begin += static_cast<std::uint32_t>(part);
    bytes -= part;
    waiting_ -= part;
    if (chunk->begin != chunk->end) return bytes;
    line_.remove(*chunk);
    if (chunk == last_) last_ = nullptr;
    pool_.give(*chunk);
  }
  return bytes;
}

std::size_t Transmitter::line_up(std::span<iovec> pieces) {
  std::size_t used = 0;
  for (Chunk* chunk = line_.front(); chunk && used < pieces.size(); chunk = line_.after(*chunk)) {
    pieces[used++] = {chunk->data() + chunk->begin, chunk->end - chunk->begin};
  }
  return used;
}

void Transmitter::flush() {
  while (!line_.empty() && !blocked_) {
    std::array<iovec, kChunksPerCall> pieces;
    const std::size_t used = line_up(pieces);
    take_off_line(give(std::span(pieces).first(used)));
  }
}

// The frames of one call, each a row of pieces: its front, its payload, its trailer.
struct Transmitter::Frames {
  struct Frame {
    std::array<std::byte, kFrameLengthBytes + kSegmentHeaderBytesMax> front;
    std::array<std::byte, kFrameTrailerBytesMax> trailer;
    std::size_t first_piece;
    std::size_t payload_bytes;
    std::size_t bytes;
  };
  std::array<Frame, kFramesPerCall> frames;
  std::size_t count = 0;
  std::array<iovec, kPiecesPerCall> pieces;
  std::size_t used = 0;

  void add(const GatheredMessage& message, std::uint64_t offset, std::size_t payload_bytes, bool crc);
  std::size_t pieces_left() const { return pieces.size() - used; }
};

void Transmitter::Frames::add(const GatheredMessage& message, std::uint64_t offset, std::size_t payload_bytes,
                              bool crc) {
  Frame& frame = frames[count++];
  frame.first_piece = used;
  frame.payload_bytes = payload_bytes;
  SegmentHeader header = message.first;
  header.last = offset + payload_bytes == message.length;
  header.tagged_offset += offset;
  header.offset = static_cast<std::uint32_t>(offset);
  const std::size_t header_bytes = write_segment_header(header, std::span(frame.front).subspan(kFrameLengthBytes));
  const std::size_t segment_bytes = header_bytes + payload_bytes;
  base::store_big(frame.front.data(), static_cast<std::uint16_t>(segment_bytes));
  pieces[used++] = {frame.front.data(), kFrameLengthBytes + header_bytes};
  std::uint32_t sum = crc ? crc32c(0, std::span(frame.front).first(kFrameLengthBytes + header_bytes)) : 0;
  for_each_piece(message.segments, offset, payload_bytes, [&](const Piece& piece) {
    pieces[used++] = {piece.bytes(), piece.count};
    if (crc) sum = crc32c(sum, {piece.bytes(), piece.count});
  });
  frame.trailer = {};
  const std::size_t padding = frame_padding(segment_bytes);
  if (crc) sum = crc32c(sum, std::span(frame.trailer).first(padding));
  store_crc(frame.trailer.data() + padding, sum);
  pieces[used++] = {frame.trailer.data(), padding + kCrcBytes};
  frame.bytes = frame_bytes(segment_bytes);
}

std::uint64_t Transmitter::send(const GatheredMessage& message, std::uint64_t offset, std::uint64_t limit) {
  const std::size_t payload_max = ulpdu_max_ - segment_header_bytes(message.first.opcode);
  const std::uint64_t end = offset + std::min(limit, message.length - offset);
  while (offset < end && !blocked_ && !amid_frame_) {
    // Nothing goes out before all that is in line.
    if (line_.size() > kChunksPerCall) {
      flush();
      if (!line_.empty()) break;
    }
    Frames batch;
    batch.used = line_up(std::span(batch.pieces).first(kChunksPerCall));
    const std::uint64_t batch_end = crc_ ? std::min(end, offset + kSummedPerCall) : end;
    for (std::uint64_t at = offset; at < batch_end && batch.count < kFramesPerCall;) {
      // A message may have as many pieces as it has segments, and they may all fall into one frame.
      if (batch.pieces_left() < message.segments.size() + 2) break;
      const std::size_t bytes = std::min<std::uint64_t>(payload_max, message.length - at);
      batch.add(message, at, bytes, crc_);
      at += bytes;
    }
    std::size_t taken = take_off_line(give(std::span(batch.pieces).first(batch.used)));
    if (!line_.empty()) break;  // not even that
    for (std::size_t i = 0; i < batch.count && taken > 0; ++i) {
      const Frames::Frame& frame = batch.frames[i];
      const std::size_t end_piece = i + 1 < batch.count ? batch.frames[i + 1].first_piece : batch.used;
      if (taken < frame.bytes &&
          !keep_rest(std::span(batch.pieces).subspan(frame.first_piece, end_piece - frame.first_piece), taken)) {
        // Half a frame is out, and nothing can follow it any more.
        broken_ = amid_frame_ = true;
        return offset;
      }
      offset += frame.payload_bytes;
      taken -= std::min(taken, frame.bytes);
    }
  }
  return offset;
}

bool Transmitter::keep_rest(std::span<const iovec> frame, std::size_t taken) {
  std::size_t rest = 0;
  for (const iovec& piece : frame) rest += piece.iov_len;
  rest -= taken;
  std::byte* to = reserve(rest);
  if (!to) return false;
  for (const iovec& piece : frame) {
    const std::size_t skipped = std::min(taken, piece.iov_len);
    taken -= skipped;
    std::memcpy(to, static_cast<const std::byte*>(piece.iov_base) + skipped, piece.iov_len - skipped);
    to += piece.iov_len - skipped;
  }
  return true;
}

}  // namespace anydat::nic::soft::iwarp
