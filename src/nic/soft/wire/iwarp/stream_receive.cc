// SPDX-License-Identifier: BSD-3-Clause
// The receiving side of a connection over TCP: what is read where, and frames.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/big_endian.h"
#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/sockets.h"
#include "nic/soft/wire/iwarp/stream.h"

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

// `told`: epoll has just named it, and those that it names have had word in that order.
bool TcpStream::receive(bool told) {
  bool any = false;
  turn_.begin();
  read_at_ = fabric_.engine().ticks();
  if (!held_.empty() && !closed_ && !reads_no_more()) {
    any = true;
    or_break([this] { take_held(); });
    if (owes_word_) confirm();
    if (turn_.over() && !closed_) {
      turn_.want_behind_others();
      return any;
    }
  }
  std::size_t total = 0;
  for (int i = 0; i < budget::kReadsPerTurn && total < budget::kReadPerTurn; ++i) {
    // Set-up reads what is there, once; whatever follows belongs to what comes of it.
    if (closed_ || ended_ || !socket_ || phase_ == Phase::connecting) return any;
    if (reads_no_more()) return any;
    // What had been read is used up, and ended with a message.
    if (any && turn_.ends_with_message()) break;
    std::size_t wanted = 0;
    turn_.reads(std::exchange(told, false));
    const ssize_t count = read_some(wanted);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      turn_.end_early();
      return any;
    }
    any = true;
    if (count < 0) {
      lost(errno);
      return any;
    }
    if (count == 0) {
      if (const int error = loss_told_to_sender(); error != 0) {
        lost(error);
      } else {
        end_of_stream();
      }
      return any;
    }
    fabric_.adapter().batch().flush();
    if (owes_word_) confirm();
    total += static_cast<std::size_t>(count);
    if (turn_.over() || (total >= budget::kReadWhileOthersWait && turn_.others_wait())) {
      if (!closed_) turn_.want_behind_others();
      return any;
    }
    // Less than was asked for: that was all, but for an end of the stream, of which there has been word.
    if (static_cast<std::size_t>(count) < wanted && !hung_up_) {
      turn_.end_early();
      return any;
    }
  }
  turn_.want_behind_others();
  return any;
}

// What recv(2) says. `wanted`: how much there was room for.
ssize_t TcpStream::read_some(std::size_t& wanted) {
  const std::span<std::byte> staging = fabric_.staging();
  std::array<iovec, kSegmentsMax + 1> pieces;
  std::size_t used = 0;
  if (step_ == Step::payload && payload_bytes_ >= kLargeSegment && payload_left_ >= kDirectMin) {
    used = aim(std::span(pieces).first(kSegmentsMax), payload_left_);
    if (closed_ || awaits_memory_) {
      errno = EAGAIN;
      return -1;
    }
  }
  std::size_t direct = 0;
  for (const iovec& piece : std::span(pieces).first(used)) direct += piece.iov_len;
  const std::size_t room = std::min(staging.size(), staged_bytes(used > 0));
  pieces[used] = {staging.data(), room};
  wanted = direct + room;
  const ssize_t count = used == 0 ? receive_now(socket_.get(), staging.first(room))
                                  : receive_now(socket_.get(), std::span(pieces).first(used + 1));
  if (count <= 0) return count;
  order_.seen();
  read_at_ = fabric_.engine().ticks();
  const std::size_t placed = std::min(direct, static_cast<std::size_t>(count));
  if (placed > 0) {
    if (crc_) {
      std::size_t left = placed;
      for (const iovec& piece : std::span(pieces).first(used)) {
        const std::size_t part = std::min(left, piece.iov_len);
        sum_ = crc32c(sum_, {static_cast<const std::byte*>(piece.iov_base), part});
        left -= part;
      }
    }
    landed(placed);
  }
  turn_.has_read();
  or_break([&] {
    const std::span<const std::byte> rest = consume(staging.first(static_cast<std::size_t>(count) - placed));
    if ((stuck_ || turn_.over() || awaits_memory_) && !closed_) hold(rest);
  });
  return count;
}

// How much to read into the staging memory; `directly`: behind the rest of a payload.
std::size_t TcpStream::staged_bytes(bool directly) const {
  const bool goes_on = into_ != Into::control && !segment_.last;
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

// Answers what it could not take yet, which is nothing unless a segment waits or the turn is over.
std::span<const std::byte> TcpStream::consume(std::span<const std::byte> bytes) {
  if (phase_ == Phase::asking) bytes = answer_arrived(bytes);
  while (!bytes.empty() && !closed_ && !stuck_ && !awaits_memory_) {
    if (turn_.others_come_first()) break;
    switch (step_) {
      case Step::front:
        if (front_have_ == 0) {
          if (const std::size_t taken = deliver_whole(bytes); taken > 0) {
            bytes = bytes.subspan(taken);
            turn_.message_over();
            continue;
          }
          fabric_.adapter().batch().flush();
        }
        bytes = take_front(bytes);
        break;
      case Step::payload:
        bytes = take_payload(bytes);
        break;
      case Step::trailer:
        bytes = take_trailer(bytes);
        break;
    }
  }
  return bytes;
}

// The straight path: a small Send that is wholly there and can be delivered at once. 0: it is none.
std::size_t TcpStream::deliver_whole(std::span<const std::byte> bytes) {
  if (bytes.size() < kFrameLengthBytes + kUntaggedHeaderBytes || !first_frame_seen_) return 0;
  const std::size_t segment_bytes = base::load_big<std::uint16_t>(bytes.data());
  const std::size_t whole = frame_bytes(segment_bytes);
  if (segment_bytes < kUntaggedHeaderBytes || bytes.size() < whole) return 0;
  if (!parked_.empty() || current_ || message_bytes_ != 0 || discards_ || peer_ == Peer::unknown) return 0;
  bool solicited = false;
  if (!is_whole_send(bytes.data() + kFrameLengthBytes, sends_expected_, solicited)) return 0;
  const std::size_t summed = whole - kCrcBytes;
  if (crc_ && crc32c(0, bytes.first(summed)) != load_crc(bytes.data() + summed)) return 0;
  if (!next_buffer_there(segment_bytes - kUntaggedHeaderBytes)) return 0;  // it is awaited as those of others are
  whole_ = bytes.data();
  const bool taken = receives_.deliver(bytes.data() + kFrameLengthBytes + kUntaggedHeaderBytes,
                                       segment_bytes - kUntaggedHeaderBytes, solicited);
  whole_ = nullptr;
  if (!taken) return 0;
  ++sends_expected_;
  message_delivered(segment_bytes - kUntaggedHeaderBytes);
  return whole;
}

// ---- frames

std::size_t TcpStream::front_bytes() const {
  if (front_have_ <= kFrameLengthBytes) return kFrameLengthBytes + kSegmentHeaderBytesMax;
  return kFrameLengthBytes + segment_header_bytes(front_[kFrameLengthBytes]);
}

std::size_t TcpStream::trailer_bytes() const {
  return frame_trailer_bytes(segment_bytes_);
}

std::span<const std::byte> TcpStream::take_front(std::span<const std::byte> bytes) {
  const auto take = [&](std::size_t up_to) {
    const std::size_t part = std::min(bytes.size(), up_to - std::min<std::size_t>(up_to, front_have_));
    std::copy_n(bytes.begin(), part, front_.begin() + front_have_);
    front_have_ = static_cast<std::uint8_t>(front_have_ + part);
    bytes = bytes.subspan(part);
    return front_have_ >= up_to;
  };
  if (!take(kFrameLengthBytes)) return bytes;
  segment_bytes_ = base::load_big<std::uint16_t>(front_.data());
  sum_ = 0;
  trailer_have_ = 0;
  payload_bytes_ = payload_left_ = 0;
  into_ = Into::nothing;
  if (segment_bytes_ == 0) {
    // A frame without a segment: the first of a connecting side that has agreed to begin so.
    if (first_frame_seen_) {
      refuse(rdmap_error::kUnexpectedOpcode);
      return {};
    }
    empty_frame_ = true;
    if (crc_) sum_ = crc32c(0, std::span(front_).first(kFrameLengthBytes));
    step_ = Step::trailer;
    return bytes;
  }
  // A segment that ends within its header has no more to come.
  if (!take(kFrameLengthBytes + 1) || !take(std::min(front_bytes(), kFrameLengthBytes + segment_bytes_))) return bytes;
  const std::size_t header_bytes = front_have_ - kFrameLengthBytes;
  if (crc_) sum_ = crc32c(0, std::span(front_).first(front_have_));
  if (const auto wrong = parse_segment_header(std::span(front_).subspan(kFrameLengthBytes, header_bytes), segment_)) {
    refuse(*wrong);
    return {};
  }
  payload_bytes_ = payload_left_ = segment_bytes_ - header_bytes;
  enter_segment();
  return bytes;
}

std::span<const std::byte> TcpStream::take_payload(std::span<const std::byte> bytes) {
  const std::span<const std::byte> part = bytes.first(std::min(bytes.size(), payload_left_));
  switch (into_) {
    case Into::control: {
      if (segment_.opcode == Opcode::atomic_response && requester_.wanted() && !result_there()) return bytes;
      const std::size_t at = payload_bytes_ - payload_left_;
      const std::size_t kept = at < control_.size() ? std::min(part.size(), control_.size() - at) : 0;
      std::copy_n(part.begin(), kept, control_.begin() + static_cast<std::ptrdiff_t>(std::min(at, control_.size())));
      break;
    }
    case Into::message:
      if (!current_) {
        parked_.append(part);
        break;
      }
      [[fallthrough]];
    case Into::read:
    case Into::memory:
      if (!place(part)) return closed_ ? std::span<const std::byte>{} : bytes;
      break;
    case Into::nothing:
      break;
  }
  if (closed_) return {};
  if (crc_) sum_ = crc32c(sum_, part);
  payload_left_ -= part.size();
  if (payload_left_ == 0) step_ = Step::trailer;
  return bytes.subspan(part.size());
}

std::span<const std::byte> TcpStream::take_trailer(std::span<const std::byte> bytes) {
  const std::size_t part = std::min(bytes.size(), trailer_bytes() - trailer_have_);
  std::copy_n(bytes.begin(), part, trailer_.begin() + trailer_have_);
  trailer_have_ = static_cast<std::uint8_t>(trailer_have_ + part);
  if (trailer_have_ < trailer_bytes()) return {};
  const std::size_t padding = trailer_bytes() - kCrcBytes;
  if (crc_ && crc32c(sum_, std::span(trailer_).first(padding)) != load_crc(trailer_.data() + padding)) {
    refuse(mpa_error::kCrc);
    return {};
  }
  step_ = Step::front;
  if (empty_frame_) {
    empty_frame_ = false;
    front_have_ = 0;
    expect_of_any_peer();  // none of ours begins so
    first_frame();
  } else {
    end_segment();
    turn_.segment_over(segment_.last, is_send(segment_.opcode) || is_immediate(segment_.opcode));
    front_have_ = 0;
  }
  return bytes.subspan(part);
}

}  // namespace anydat::nic::soft::iwarp
