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
  if (disconnection_.discards() && reader_.header().opcode != Opcode::terminate) {
    reader_.go_into(Into::nothing);
    return;
  }
  if (!negotiation_.first_frame_seen()) {
    negotiation_.first_segment_begins(reader_.header(), reader_.payload_bytes());
  }
  if (over()) return;
  if (is_extension(reader_.header().opcode) && !negotiation_.peer_takes_extensions()) {
    disconnection_.refuse(rdmap_error::kUnexpectedOpcode);
    return;
  }
  switch (reader_.header().opcode) {
    case Opcode::write:
      placement_.begin_write();
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
        disconnection_.refuse(ddp_error::kSequenceRange);
      } else if (reader_.header().offset != 0) {
        disconnection_.refuse(ddp_error::kInvalidOffset);
      } else if (!reader_.header().last || reader_.payload_bytes() > bytes) {
        disconnection_.refuse(ddp_error::kMessageTooLong);
      } else if (reader_.payload_bytes() < bytes) {
        disconnection_.refuse(rdmap_error::kOperationUnspecified);
      } else {
        reader_.go_into(Into::control);
      }
      return;
    }
    case Opcode::terminate:
      // The first and only message of its queue, in one segment (RFC 5040, section 4.8).
      if (reader_.header().sequence != kFirstSequence) {
        disconnection_.refuse(ddp_error::kSequenceRange);
      } else if (reader_.header().offset != 0) {
        disconnection_.refuse(ddp_error::kInvalidOffset);
      } else if (!reader_.header().last) {
        disconnection_.refuse(ddp_error::kMessageTooLong);
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
    return disconnection_.refuse(*wrong);
  reader_.go_into(Into::control);
}

void TcpStream::begin_read_response() {
  bool wanted = false;
  if (const auto wrong = requester_.begin_read_response(reader_.header(), reader_.payload_bytes(), wanted))
    return disconnection_.refuse(*wrong);
  reader_.go_into(wanted ? Into::read : Into::nothing);
}

void TcpStream::end_segment() {
  if (disconnection_.discards()) return end_discarded();
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
      if (const auto wrong = responder_.read_asked(reader_.control())) disconnection_.refuse(*wrong);
      return;
    case Opcode::atomic_request:
      if (const auto wrong = responder_.atomic_asked(reader_.control())) disconnection_.refuse(*wrong);
      return;
    case Opcode::atomic_response:
      if (const auto wrong = requester_.atomic_response_ended(reader_.control())) disconnection_.refuse(*wrong);
      return;
    case Opcode::immediate:
    case Opcode::immediate_solicited:
      messages_.immediate_ended();
      return;
    case Opcode::terminate:
      disconnection_.terminated(reader_.control().first(std::min(reader_.payload_bytes(), reader_.control().size())));
      return;
    default:
      messages_.send_ended();
  }
}

void TcpStream::end_discarded() {
  if (reader_.header().opcode == Opcode::terminate) {
    disconnection_.terminated(reader_.control().first(std::min(reader_.payload_bytes(), reader_.control().size())));
  } else if (reader_.header().opcode == Opcode::write && reader_.payload_bytes() == 0 &&
             reader_.header().stag == kSignalStag) {
    const bool graceful = reader_.header().tagged_offset == (static_cast<std::uint64_t>(Signal::goodbye) << 32 |
                                                             static_cast<std::uint32_t>(CloseReason::graceful));
    if (graceful) {
      // It left in order, but not all of what it sent has been delivered.
      disconnection_.set_over();
      queue_pair_.connection().peer_lost(WorkStatus::transport);
    } else {
      signalled(reader_.header().tagged_offset);
    }
  }
}

void TcpStream::signalled(std::uint64_t offset) {
  switch (static_cast<Signal>(offset >> 32)) {
    case Signal::hello:
    case Signal::takes:
      return;  // has been noticed
    case Signal::delivered:
      requester_.delivered_up_to(static_cast<std::uint32_t>(offset));
      return;
    case Signal::goodbye:
      disconnection_.peer_said_goodbye(static_cast<std::uint32_t>(offset));
      return;
  }
}

}  // namespace anydat::nic::soft::iwarp
