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
      messages_.begin_immediate();
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
      messages_.begin_send();
  }
}

void TcpStream::begin_atomic_response() {
  if (const auto wrong = requester_.begin_atomic_response(reader_.header(), reader_.payload_bytes()))
    return refuse(*wrong);
  reader_.go_into(Into::control);
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
      return messages_.current() ? queue_pair_.receives().aim(*messages_.current(), count, pieces) : 0;
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
  if (reader_.into() == Into::message) messages_.current()->placed += count;
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
  if (reader_.into() == Into::message && messages_.current()) messages_.current()->placed += count;
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
      messages_.immediate_ended();
      return;
    case Opcode::terminate:
      terminated(reader_.control().first(std::min(reader_.payload_bytes(), reader_.control().size())));
      return;
    default:
      messages_.send_ended();
  }
}

}  // namespace anydat::nic::soft::iwarp
