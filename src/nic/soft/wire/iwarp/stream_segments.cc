// SPDX-License-Identifier: BSD-3-Clause
// The receiving side of a connection over TCP: segments, and where their payload goes.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "nic/soft/adapter.h"
#include "nic/soft/copy.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

void TcpStream::enter_segment() {
  begin_segment();
  if (!stuck_) step_ = payload_left_ > 0 ? Step::payload : Step::trailer;
}

void TcpStream::begin_segment() {
  if (discards_ && segment_.opcode != Opcode::terminate) {
    into_ = Into::nothing;
    return;
  }
  // What the peer takes is known when the connection stands (D2-EXT-8), so a hello is heard first.
  if (!first_frame_seen_ && !is_hello()) {
    expect_of_any_peer();
    first_frame();
  }
  if (closed_) return;
  if (is_extension(segment_.opcode) && (peer_ != Peer::ours || peer_takes_ == 0)) {
    refuse(rdmap_error::kUnexpectedOpcode);
    return;
  }
  switch (segment_.opcode) {
    case Opcode::write:
      begin_write();
      return;
    case Opcode::read_response:
      begin_read_response();
      return;
    case Opcode::immediate:
    case Opcode::immediate_solicited:
      begin_immediate();
      return;
    case Opcode::atomic_response:
      begin_atomic_response();
      return;
    case Opcode::read_request:
    case Opcode::atomic_request: {
      const std::size_t bytes = segment_.opcode == Opcode::read_request ? kReadRequestBytes : kAtomicRequestBytes;
      // One segment, and each in its turn.
      if (segment_.sequence != responder_.expected()) {
        refuse(ddp_error::kSequenceRange);
      } else if (segment_.offset != 0) {
        refuse(ddp_error::kInvalidOffset);
      } else if (!segment_.last || payload_bytes_ > bytes) {
        refuse(ddp_error::kMessageTooLong);
      } else if (payload_bytes_ < bytes) {
        refuse(rdmap_error::kOperationUnspecified);
      } else {
        into_ = Into::control;
      }
      return;
    }
    case Opcode::terminate:
      // The first and only message of its queue, in one segment (RFC 5040, section 4.8).
      if (segment_.sequence != kFirstSequence) {
        refuse(ddp_error::kSequenceRange);
      } else if (segment_.offset != 0) {
        refuse(ddp_error::kInvalidOffset);
      } else if (!segment_.last) {
        refuse(ddp_error::kMessageTooLong);
      } else {
        into_ = Into::control;
      }
      return;
    default:
      begin_send();
  }
}

// The first frame of one of ours: a Write of length 0 that only says so.
bool TcpStream::is_hello() const {
  if (segment_.opcode != Opcode::write || payload_bytes_ != 0) return false;
  return segment_.stag == kServiceStag ||
         (segment_.stag == kSignalStag && segment_.tagged_offset >> 32 == static_cast<std::uint32_t>(Signal::hello));
}

// A message of its own among the Sends.
void TcpStream::begin_immediate() {
  if ((queue_pair_.takes() & ability::kImmediate) == 0) {
    refuse(rdmap_error::kUnexpectedOpcode);
  } else if (segment_.sequence != sends_expected_ || message_bytes_ != 0 || current_ ||
             (!parked_.empty() && !parked_.newest().whole)) {
    refuse(ddp_error::kSequenceRange);
  } else if (segment_.offset != 0) {
    refuse(ddp_error::kInvalidOffset);
  } else if (!segment_.last || payload_bytes_ > kImmediateBytes) {
    refuse(ddp_error::kMessageTooLong);
  } else if (payload_bytes_ < kImmediateBytes) {
    refuse(rdmap_error::kOperationUnspecified);
  } else {
    into_ = Into::control;
  }
}

void TcpStream::immediate_ended() {
  ++sends_expected_;
  const std::span<const std::byte> payload = std::span(control_).first(kImmediateBytes);
  const ImmediateData data = parse_immediate(payload);
  const bool solicited = is_solicited(segment_.opcode);
  if (parked_.empty()) {
    if (receives_.deliver_immediate(data.length, data.value, solicited)) return message_delivered(0);
    if (closed_) return;
    if (!looks_past_ && !hung_up_) be_patient();
    receives_.wait_for_buffer();
    if (closed_) return;
  }
  parked_.add(solicited);
  parked_.append(payload);
  parked_.newest().whole = parked_.newest().immediate = true;
}

void TcpStream::begin_atomic_response() {
  if (const auto wrong = requester_.begin_atomic_response(segment_, payload_bytes_)) return refuse(*wrong);
  into_ = Into::control;
}

void TcpStream::begin_send() {
  if (segment_.sequence != sends_expected_) {
    refuse(ddp_error::kSequenceRange);
    return;
  }
  if (segment_.offset != message_bytes_) {
    refuse(ddp_error::kInvalidOffset);
    return;
  }
  // All segments of a message name the same (RFC 5040, section 4.4).
  const bool begins = message_bytes_ == 0 && !current_ && (parked_.empty() || parked_.newest().whole);
  if (begins
          ? invalidates(segment_.opcode) && !queue_pair_.connection().windows().may_invalidate(segment_.stag)
          : segment_.stag != arriving_invalidates() || invalidates(segment_.opcode) != (arriving_invalidates() != 0)) {
    refuse(rdmap_error::kCannotInvalidate, CloseReason::remote_access);
    return;
  }
  // A peer that sends before its hello is none of ours, and there is nothing left to wait for. A message has its
  // receive with a connection that stands, which it may end (STAT-18): what it fails for would end nothing before.
  if (phase_ == Phase::greeting) {
    note_peer(Peer::other);
    greeted(0);
    if (closed_) return;
  }
  into_ = Into::message;
  const std::uint64_t length = message_bytes_ + payload_bytes_;
  const bool solicited = is_solicited(segment_.opcode);
  if (current_) {
    if (!receives_.extend(*current_, length)) return;
  } else if (parked_.empty()) {
    current_ = receives_.begin(length, solicited);
    if (!current_ && !closed_) {
      wait_for_buffer(solicited);
    }
    if (current_ && segment_.stag != 0) current_->invalidate(segment_.stag);
  } else if (parked_.newest().whole) {
    parked_.add(solicited, segment_.stag);
  }
}

// What the message that is arriving is to invalidate, or 0.
std::uint32_t TcpStream::arriving_invalidates() {
  if (!current_) return parked_.newest().invalidates;
  return current_->kind == WorkKind::recv_invalidate ? current_->value : 0;
}

bool TcpStream::may_write(std::uint64_t at, std::uint64_t length, std::uint64_t& where) {
  const RegionCheck check = fabric_.adapter().regions().resolve(segment_.stag, at, length, queue_pair_.memory().user(),
                                                                access::kRemoteWrite, where);
  if (check != RegionCheck::ok) refuse(refusal_of(check, false), CloseReason::remote_access);
  return check == RegionCheck::ok;
}

void TcpStream::begin_write() {
  // Of length 0 it may name any memory (RFC 5040, section 5.1).
  if (payload_bytes_ == 0) return;
  if (segment_.tagged_offset + payload_bytes_ < segment_.tagged_offset) {
    refuse(ddp_error::kOffsetWraps, CloseReason::remote_access);
    return;
  }
  std::uint64_t where = 0;
  if (!may_write(segment_.tagged_offset, payload_bytes_, where)) return;
  into_ = Into::memory;
}

void TcpStream::begin_read_response() {
  bool wanted = false;
  if (const auto wrong = requester_.begin_read_response(segment_, payload_bytes_, wanted)) return refuse(*wrong);
  into_ = wanted ? Into::read : Into::nothing;
}

// Where the rest of the segment goes, or its next bytes. None: it goes nowhere, and perhaps the connection has broken;
// or it waits for memory.
std::size_t TcpStream::aim(std::span<iovec> pieces, std::size_t count) {
  const std::size_t used = find_target(pieces, count);
  return used == 0 || can_be_written(pieces.first(used)) ? used : 0;
}

std::size_t TcpStream::find_target(std::span<iovec> pieces, std::size_t count) {
  const std::size_t skipped = payload_bytes_ - payload_left_;
  switch (into_) {
    case Into::message:
      return current_ ? receives_.aim(*current_, count, pieces) : 0;
    case Into::read: {
      const std::optional<std::size_t> used = requester_.aim(skipped, count, pieces);
      if (!used) {
        into_ = Into::nothing;  // the rest of it is heard, and forgotten
        return 0;
      }
      if (*used == 0) refuse(rdmap_error::kStreamCatastrophic);
      return *used;
    }
    case Into::memory: {
      // It may have been withdrawn since the segment began.
      std::uint64_t where = 0;
      if (!may_write(segment_.tagged_offset + skipped, payload_left_, where)) return 0;
      pieces[0] = {reinterpret_cast<void*>(where), count};
      return 1;
    }
    default:
      return 0;
  }
}

void TcpStream::landed(std::size_t count) {
  if (into_ == Into::message) current_->placed += count;
  payload_left_ -= count;
  if (payload_left_ == 0) step_ = Step::trailer;
}

// False: it waits for memory, or the connection has ended.
bool TcpStream::place(std::span<const std::byte> bytes) {
  std::array<iovec, kSegmentsMax> pieces;
  const std::size_t used = aim(pieces, bytes.size());
  if (awaits_memory_ || closed_) return false;
  const std::size_t count = bytes.size();
  for (const iovec& piece : std::span(pieces).first(used)) {
    const std::size_t part = std::min(bytes.size(), piece.iov_len);
    if (into_ == Into::memory) {
      copy_ascending(static_cast<std::byte*>(piece.iov_base), bytes.data(), part);  // RDW-11
    } else {
      std::memcpy(piece.iov_base, bytes.data(), part);
    }
    bytes = bytes.subspan(part);
  }
  if (into_ == Into::message && current_) current_->placed += count;
  return true;
}

void TcpStream::end_segment() {
  if (discards_) return end_discarded();
  if (peer_ == Peer::unknown) {
    const bool empty_write = segment_.opcode == Opcode::write && payload_bytes_ == 0;
    const bool of_port = empty_write && segment_.stag == kSignalStag &&
                         segment_.tagged_offset >> 32 == static_cast<std::uint32_t>(Signal::hello);
    const bool of_service = empty_write && segment_.stag == kServiceStag;
    // Before its hello; the sides differ in how they tell.
    if (active_ && empty_write && segment_.stag == kSignalStag &&
        segment_.tagged_offset >> 32 == static_cast<std::uint32_t>(Signal::takes)) {
      peer_takes_ = static_cast<std::uint32_t>(segment_.tagged_offset);
      queue_pair_.sends().set_peer_takes(peer_takes_);
      return;
    }
    if (of_port && !active_) {
      peer_takes_ = static_cast<std::uint32_t>(segment_.tagged_offset) >> kHelloTakesAt;
      queue_pair_.sends().set_peer_takes(peer_takes_);
    }
    // Before first_frame(), after which another thread may send: our hello is the first that a peer of ours hears.
    note_peer(of_port || of_service ? Peer::ours : Peer::other);
    if (!first_frame_seen_) first_frame();
    if (closed_) return;
    // In revision 1 the connection stands before it is heard who has got the request.
    if (phase_ == Phase::greeting || (active_ && (of_port || of_service))) {
      greeted(of_port ? segment_.tagged_offset & 0xffff : of_service ? segment_.tagged_offset : 0);
      if (closed_) return;
    }
  }
  switch (segment_.opcode) {
    case Opcode::write:
      if (payload_bytes_ == 0 && segment_.stag == kSignalStag) signalled(segment_.tagged_offset);
      return;
    case Opcode::read_response:
      requester_.read_response_ended(payload_bytes_, segment_.last);
      return;
    case Opcode::read_request:
      if (const auto wrong = responder_.read_asked(control_)) refuse(*wrong);
      return;
    case Opcode::atomic_request:
      if (const auto wrong = responder_.atomic_asked(control_)) refuse(*wrong);
      return;
    case Opcode::atomic_response:
      if (const auto wrong = requester_.atomic_response_ended(control_)) refuse(*wrong);
      return;
    case Opcode::immediate:
    case Opcode::immediate_solicited:
      immediate_ended();
      return;
    case Opcode::terminate:
      terminated(std::span(control_).first(std::min(payload_bytes_, control_.size())));
      return;
    default:
      message_bytes_ += payload_bytes_;
      if (segment_.last) message_ended();
  }
}

void TcpStream::message_ended() {
  ++sends_expected_;
  message_bytes_ = 0;
  if (!current_) {
    parked_.newest().whole = true;
    return;
  }
  Incoming* const message = std::exchange(current_, nullptr);
  const std::uint64_t length = message->length;
  if (finish_message(*message)) message_delivered(length);
}

// False: the connection has ended. Nothing that a window shows to the peer alone can be in use: this side does all that
// the peer asks for, and nothing of it is under way now.
bool TcpStream::finish_message(Incoming& message) {
  if (queue_pair_.connection().windows().make_ready(message) == WindowOperations::Readiness::yes) {
    return receives_.finish(message);
  }
  refuse(rdmap_error::kCannotInvalidate, CloseReason::remote_access);
  return false;
}

void TcpStream::message_delivered(std::uint64_t length) {
  ++sends_delivered_;
  owes_word_ |= length > kConfirmedAbove && peer_ == Peer::ours;
}

// One word tells of all messages up to its own. While the socket takes nothing it would wait in line in vain, and a
// peer that does not listen is owed one word, however much it sends: turn() has it said when there is room.
void TcpStream::confirm() {
  if (closed_) return;
  base::Guard guard(outgoing_.lock());
  if (outgoing_.line().blocked()) return;
  owes_word_ = false;
  say(Signal::delivered, sends_delivered_);
  outgoing_.push_out();
}

}  // namespace anydat::nic::soft::iwarp
