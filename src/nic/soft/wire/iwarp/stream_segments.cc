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
  if (!waiting_.stuck()) reader_.enter_payload();
}

void TcpStream::begin_segment() {
  if (discards_ && reader_.header().opcode != Opcode::terminate) {
    reader_.go_into(Into::nothing);
    return;
  }
  if (!negotiation_.first_frame_seen()) {
    negotiation_.first_segment_begins(reader_.header(), reader_.payload_bytes());
  }
  if (closed_) return;
  if (is_extension(reader_.header().opcode) && !negotiation_.peer_takes_extensions()) {
    refuse(rdmap_error::kUnexpectedOpcode);
    return;
  }
  switch (reader_.header().opcode) {
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
      const std::size_t bytes =
          reader_.header().opcode == Opcode::read_request ? kReadRequestBytes : kAtomicRequestBytes;
      // One segment, and each in its turn.
      if (reader_.header().sequence != responder_.expected()) {
        refuse(ddp_error::kSequenceRange);
      } else if (reader_.header().offset != 0) {
        refuse(ddp_error::kInvalidOffset);
      } else if (!reader_.header().last || reader_.payload_bytes() > bytes) {
        refuse(ddp_error::kMessageTooLong);
      } else if (reader_.payload_bytes() < bytes) {
        refuse(rdmap_error::kOperationUnspecified);
      } else {
        reader_.go_into(Into::control);
      }
      return;
    }
    case Opcode::terminate:
      // The first and only message of its queue, in one segment (RFC 5040, section 4.8).
      if (reader_.header().sequence != kFirstSequence) {
        refuse(ddp_error::kSequenceRange);
      } else if (reader_.header().offset != 0) {
        refuse(ddp_error::kInvalidOffset);
      } else if (!reader_.header().last) {
        refuse(ddp_error::kMessageTooLong);
      } else {
        reader_.go_into(Into::control);
      }
      return;
    default:
      begin_send();
  }
}

// A message of its own among the Sends.
void TcpStream::begin_immediate() {
  if ((queue_pair_.takes() & ability::kImmediate) == 0) {
    refuse(rdmap_error::kUnexpectedOpcode);
  } else if (reader_.header().sequence != sends_expected_ || message_bytes_ != 0 || current_ ||
             (!waiting_.parked().empty() && !waiting_.parked().newest().whole)) {
    refuse(ddp_error::kSequenceRange);
  } else if (reader_.header().offset != 0) {
    refuse(ddp_error::kInvalidOffset);
  } else if (!reader_.header().last || reader_.payload_bytes() > kImmediateBytes) {
    refuse(ddp_error::kMessageTooLong);
  } else if (reader_.payload_bytes() < kImmediateBytes) {
    refuse(rdmap_error::kOperationUnspecified);
  } else {
    reader_.go_into(Into::control);
  }
}

void TcpStream::immediate_ended() {
  ++sends_expected_;
  const std::span<const std::byte> payload = reader_.control().first(kImmediateBytes);
  const ImmediateData data = parse_immediate(payload);
  const bool solicited = is_solicited(reader_.header().opcode);
  if (waiting_.parked().empty()) {
    if (queue_pair_.receives().deliver_immediate(data.length, data.value, solicited)) return message_delivered(0);
    if (closed_) return;
    if (!waiting_.looks_past() && !hung_up_) waiting_.be_patient();
    queue_pair_.receives().not_ready().wait_for_buffer();
    if (closed_) return;
  }
  waiting_.parked().add(solicited);
  waiting_.parked().append(payload);
  waiting_.parked().newest().whole = waiting_.parked().newest().immediate = true;
}

void TcpStream::begin_atomic_response() {
  if (const auto wrong = requester_.begin_atomic_response(reader_.header(), reader_.payload_bytes()))
    return refuse(*wrong);
  reader_.go_into(Into::control);
}

void TcpStream::begin_send() {
  if (reader_.header().sequence != sends_expected_) {
    refuse(ddp_error::kSequenceRange);
    return;
  }
  if (reader_.header().offset != message_bytes_) {
    refuse(ddp_error::kInvalidOffset);
    return;
  }
  // All segments of a message name the same (RFC 5040, section 4.4).
  const bool begins =
      message_bytes_ == 0 && !current_ && (waiting_.parked().empty() || waiting_.parked().newest().whole);
  if (begins ? invalidates(reader_.header().opcode) &&
                   !queue_pair_.connection().windows().may_invalidate(reader_.header().stag)
             : reader_.header().stag != arriving_invalidates() ||
                   invalidates(reader_.header().opcode) != (arriving_invalidates() != 0)) {
    refuse(rdmap_error::kCannotInvalidate, CloseReason::remote_access);
    return;
  }
  if (negotiation_.phase() == Phase::greeting) {
    negotiation_.greeted_by_send();
    if (closed_) return;
  }
  reader_.go_into(Into::message);
  const std::uint64_t length = message_bytes_ + reader_.payload_bytes();
  const bool solicited = is_solicited(reader_.header().opcode);
  if (current_) {
    if (!queue_pair_.receives().extend(*current_, length)) return;
  } else if (waiting_.parked().empty()) {
    current_ = queue_pair_.receives().begin(length, solicited);
    if (!current_ && !closed_) {
      wait_for_buffer(solicited);
    }
    if (current_ && reader_.header().stag != 0) current_->invalidate(reader_.header().stag);
  } else if (waiting_.parked().newest().whole) {
    waiting_.parked().add(solicited, reader_.header().stag);
  }
}

// What the message that is arriving is to invalidate, or 0.
std::uint32_t TcpStream::arriving_invalidates() {
  if (!current_) return waiting_.parked().newest().invalidates;
  return current_->kind == WorkKind::recv_invalidate ? current_->value : 0;
}

bool TcpStream::may_write(std::uint64_t at, std::uint64_t length, std::uint64_t& where) {
  const RegionCheck check = fabric_.adapter().regions().resolve(
      reader_.header().stag, at, length, queue_pair_.memory().user(), access::kRemoteWrite, where);
  if (check != RegionCheck::ok) refuse(refusal_of(check, false), CloseReason::remote_access);
  return check == RegionCheck::ok;
}

void TcpStream::begin_write() {
  // Of length 0 it may name any memory (RFC 5040, section 5.1).
  if (reader_.payload_bytes() == 0) return;
  if (reader_.header().tagged_offset + reader_.payload_bytes() < reader_.header().tagged_offset) {
    refuse(ddp_error::kOffsetWraps, CloseReason::remote_access);
    return;
  }
  std::uint64_t where = 0;
  if (!may_write(reader_.header().tagged_offset, reader_.payload_bytes(), where)) return;
  reader_.go_into(Into::memory);
}

void TcpStream::begin_read_response() {
  bool wanted = false;
  if (const auto wrong = requester_.begin_read_response(reader_.header(), reader_.payload_bytes(), wanted))
    return refuse(*wrong);
  reader_.go_into(wanted ? Into::read : Into::nothing);
}

// Where the rest of the segment goes, or its next bytes. None: it goes nowhere, and perhaps the connection has broken;
// or it waits for memory.
std::size_t TcpStream::aim(std::span<iovec> pieces, std::size_t count) {
  const std::size_t used = find_target(pieces, count);
  return used == 0 || can_be_written(pieces.first(used)) ? used : 0;
}

std::size_t TcpStream::find_target(std::span<iovec> pieces, std::size_t count) {
  const std::size_t skipped = reader_.payload_bytes() - reader_.payload_left();
  switch (reader_.into()) {
    case Into::message:
      return current_ ? queue_pair_.receives().aim(*current_, count, pieces) : 0;
    case Into::read: {
      const std::optional<std::size_t> used = requester_.aim(skipped, count, pieces);
      if (!used) {
        reader_.go_into(Into::nothing);  // the rest of it is heard, and forgotten
        return 0;
      }
      if (*used == 0) refuse(rdmap_error::kStreamCatastrophic);
      return *used;
    }
    case Into::memory: {
      // It may have been withdrawn since the segment began.
      std::uint64_t where = 0;
      if (!may_write(reader_.header().tagged_offset + skipped, reader_.payload_left(), where)) return 0;
      pieces[0] = {reinterpret_cast<void*>(where), count};
      return 1;
    }
    default:
      return 0;
  }
}

void TcpStream::landed(std::size_t count) {
  if (reader_.into() == Into::message) current_->placed += count;
  reader_.go_past(count);
}

// False: it waits for memory, or the connection has ended.
bool TcpStream::place(std::span<const std::byte> bytes) {
  std::array<iovec, kSegmentsMax> pieces;
  const std::size_t used = aim(pieces, bytes.size());
  if (awaits_memory_ || closed_) return false;
  const std::size_t count = bytes.size();
  for (const iovec& piece : std::span(pieces).first(used)) {
    const std::size_t part = std::min(bytes.size(), piece.iov_len);
    if (reader_.into() == Into::memory) {
      copy_ascending(static_cast<std::byte*>(piece.iov_base), bytes.data(), part);  // RDW-11
    } else {
      std::memcpy(piece.iov_base, bytes.data(), part);
    }
    bytes = bytes.subspan(part);
  }
  if (reader_.into() == Into::message && current_) current_->placed += count;
  return true;
}

void TcpStream::end_segment() {
  if (discards_) return end_discarded();
  if (negotiation_.peer() == Peer::unknown && negotiation_.hear(reader_.header(), reader_.payload_bytes())) return;
  switch (reader_.header().opcode) {
    case Opcode::write:
      if (reader_.payload_bytes() == 0 && reader_.header().stag == kSignalStag)
        signalled(reader_.header().tagged_offset);
      return;
    case Opcode::read_response:
      requester_.read_response_ended(reader_.payload_bytes(), reader_.header().last);
      return;
    case Opcode::read_request:
      if (const auto wrong = responder_.read_asked(reader_.control())) refuse(*wrong);
      return;
    case Opcode::atomic_request:
      if (const auto wrong = responder_.atomic_asked(reader_.control())) refuse(*wrong);
      return;
    case Opcode::atomic_response:
      if (const auto wrong = requester_.atomic_response_ended(reader_.control())) refuse(*wrong);
      return;
    case Opcode::immediate:
    case Opcode::immediate_solicited:
      immediate_ended();
      return;
    case Opcode::terminate:
      terminated(reader_.control().first(std::min(reader_.payload_bytes(), reader_.control().size())));
      return;
    default:
      message_bytes_ += reader_.payload_bytes();
      if (reader_.header().last) message_ended();
  }
}

void TcpStream::message_ended() {
  ++sends_expected_;
  message_bytes_ = 0;
  if (!current_) {
    waiting_.parked().newest().whole = true;
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
    return queue_pair_.receives().finish(message);
  }
  refuse(rdmap_error::kCannotInvalidate, CloseReason::remote_access);
  return false;
}

void TcpStream::message_delivered(std::uint64_t length) {
  ++sends_delivered_;
  owes_word_ |= length > kConfirmedAbove && peer_is_ours();
}

// One word tells of all messages up to its own. While the socket takes nothing it would wait in line in vain, and a
// peer that does not listen is owed one word, however much it sends: turn() has it said when there is room.
void TcpStream::confirm() {
  if (closed_) return;
  base::Guard guard(outgoing_.lock());
  if (outgoing_.line().blocked()) return;
  owes_word_ = false;
  outgoing_.say(Signal::delivered, sends_delivered_);
  outgoing_.push_out();
}

}  // namespace anydat::nic::soft::iwarp
