// SPDX-License-Identifier: BSD-3-Clause
// The receiving side of a connection over TCP: what is read where, and frames.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/big_endian.h"
#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/sockets.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

// `told`: epoll has just named it, and those that it names have had word in that order.
bool TcpStream::receive(bool told) {
  bool any = false;
  turn_.begin();
  placement_.set_read_at(fabric_.engine().ticks());
  if (waiting_.holds_bytes() && !over() && !waiting_.reads_no_more()) {
    any = true;
    disconnection_.or_break([this] { waiting_.take_in_held(); });
    messages_.confirm_delivered();
    if (turn_.over() && !over()) {
      turn_.want_behind_others();
      return any;
    }
  }
  std::size_t total = 0;
  for (int i = 0; i < budget::kReadsPerTurn && total < budget::kReadPerTurn; ++i) {
    // Set-up reads what is there, once; whatever follows belongs to what comes of it.
    if (over() || disconnection_.input_has_ended() || !socket_ || negotiation_.phase() == Phase::connecting) return any;
    if (waiting_.reads_no_more()) return any;
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
      disconnection_.lost(errno);
      return any;
    }
    if (count == 0) {
      disconnection_.end_of_input();
      return any;
    }
    fabric_.adapter().batch().flush();
    messages_.confirm_delivered();
    total += static_cast<std::size_t>(count);
    if (turn_.over() || (total >= budget::kReadWhileOthersWait && turn_.others_wait())) {
      if (!over()) turn_.want_behind_others();
      return any;
    }
    // Less than was asked for: that was all, but for an end of the stream, of which there has been word.
    if (static_cast<std::size_t>(count) < wanted && !disconnection_.hung_up()) {
      turn_.end_early();
      return any;
    }
  }
  turn_.want_behind_others();
  return any;
}

// What recv(2) says. `wanted`: how much there was room for.
ssize_t TcpStream::read_some(std::size_t& wanted) {
  const std::span<std::byte> staging = fabric_.staging().bytes();
  std::array<iovec, kSegmentsMax + 1> pieces;
  std::size_t used = 0;
  if (reader_.is_worth_reading_directly()) {
    used = placement_.aim(std::span(pieces).first(kSegmentsMax), reader_.payload_left());
    if (over() || placement_.awaits_memory()) {
      errno = EAGAIN;
      return -1;
    }
  }
  std::size_t direct = 0;
  for (const iovec& piece : std::span(pieces).first(used)) direct += piece.iov_len;
  const std::size_t room = std::min(staging.size(), reader_.staged_bytes(used > 0));
  pieces[used] = {staging.data(), room};
  wanted = direct + room;
  const ssize_t count = used == 0 ? receive_now(socket_.get(), staging.first(room))
                                  : receive_now(socket_.get(), std::span(pieces).first(used + 1));
  if (count <= 0) return count;
  order_.seen();
  placement_.set_read_at(fabric_.engine().ticks());
  const std::size_t placed = std::min(direct, static_cast<std::size_t>(count));
  if (placed > 0) {
    if (reader_.crc()) {
      std::size_t left = placed;
      for (const iovec& piece : std::span(pieces).first(used)) {
        const std::size_t part = std::min(left, piece.iov_len);
        reader_.sum({static_cast<const std::byte*>(piece.iov_base), part});
        left -= part;
      }
    }
    placement_.landed(placed);
  }
  turn_.has_read();
  disconnection_.or_break([&] {
    const std::span<const std::byte> rest = consume(staging.first(static_cast<std::size_t>(count) - placed));
    if ((waiting_.stuck() || turn_.over() || placement_.awaits_memory()) && !over()) waiting_.hold(rest);
  });
  return count;
}

// Answers what it could not take yet, which is nothing unless a segment waits or the turn is over.
std::span<const std::byte> TcpStream::consume(std::span<const std::byte> bytes) {
  if (negotiation_.phase() == Phase::asking) bytes = negotiation_.answer_arrived(bytes);
  while (!bytes.empty() && !over() && !waiting_.stuck() && !placement_.awaits_memory()) {
    if (turn_.others_come_first()) break;
    switch (reader_.step()) {
      case Step::front:
        if (reader_.between_frames()) {
          if (const std::size_t taken = messages_.deliver_whole(bytes); taken > 0) {
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

// ---- frames

std::span<const std::byte> TcpStream::take_front(std::span<const std::byte> bytes) {
  TerminateCode wrong{};
  switch (reader_.take_front(bytes, wrong)) {
    case SegmentReader::Front::incomplete:
      return bytes;
    case SegmentReader::Front::empty_frame:
      // A frame without a segment: the first of a connecting side that has agreed to begin so.
      if (negotiation_.first_frame_seen()) {
        disconnection_.refuse(rdmap_error::kUnexpectedOpcode);
        return {};
      }
      return bytes;
    case SegmentReader::Front::malformed:
      disconnection_.refuse(wrong);
      return {};
    case SegmentReader::Front::segment:
      break;
  }
  enter_segment();
  return bytes;
}

std::span<const std::byte> TcpStream::take_payload(std::span<const std::byte> bytes) {
  const std::span<const std::byte> part = bytes.first(std::min(bytes.size(), reader_.payload_left()));
  switch (reader_.into()) {
    case Into::control:
      if (reader_.header().opcode == Opcode::atomic_response && requester_.wanted() && !placement_.result_there())
        return bytes;
      reader_.keep(part);
      break;
    case Into::message:
      if (!messages_.current()) {
        waiting_.parked().append(part);
        break;
      }
      [[fallthrough]];
    case Into::read:
    case Into::memory:
      if (!placement_.place(part)) return over() ? std::span<const std::byte>{} : bytes;
      break;
    case Into::nothing:
      break;
  }
  if (over()) return {};
  reader_.sum(part);
  reader_.go_past(part.size());
  return bytes.subspan(part.size());
}

std::span<const std::byte> TcpStream::take_trailer(std::span<const std::byte> bytes) {
  switch (reader_.take_trailer(bytes)) {
    case SegmentReader::Trailer::incomplete:
      return {};
    case SegmentReader::Trailer::damaged:
      disconnection_.refuse(mpa_error::kCrc);
      return {};
    case SegmentReader::Trailer::empty_frame:
      reader_.end_frame();
      negotiation_.empty_frame_arrived();
      break;
    case SegmentReader::Trailer::segment:
      end_segment();
      turn_.segment_over(reader_.header().last,
                         is_send(reader_.header().opcode) || is_immediate(reader_.header().opcode));
      reader_.end_frame();
      break;
  }
  return bytes;
}

}  // namespace anydat::nic::soft::iwarp
