// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/segment_receiver.h"

#include <algorithm>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

inline void SegmentReceiver::refuse(TerminateCode code) {
  stream_.disconnection().refuse(code);
}

// ---- frames

std::span<const std::byte> SegmentReceiver::consume(std::span<const std::byte> bytes) {
  TcpStream& stream = stream_;  // looked up once for all messages
  if (stream.negotiation().phase() == Negotiation::Phase::asking) bytes = stream.negotiation().answer_arrived(bytes);
  while (!bytes.empty() && !stream.over() && !stream.waiting().blocked() && !stream.placement().awaits_memory()) {
    if (stream.reading_turn().others_come_first()) break;
    switch (reader_.step()) {
      case Step::front:
        if (reader_.between_frames()) {
          if (const std::size_t taken = stream.messages().deliver_whole(bytes); taken > 0) {
            bytes = bytes.subspan(taken);
            stream.reading_turn().message_over();
            continue;
          }
          stream.fabric().adapter().batch().flush();
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

std::span<const std::byte> SegmentReceiver::take_front(std::span<const std::byte> bytes) {
  TerminateCode wrong{};
  switch (reader_.take_front(bytes, wrong)) {
    case SegmentReader::Front::incomplete:
      return bytes;
    case SegmentReader::Front::empty_frame:
      // A frame without a segment: the first of a connecting side that has agreed to begin so.
      if (stream_.negotiation().first_frame_seen()) {
        refuse(rdmap_error::kUnexpectedOpcode);
        return {};
      }
      return bytes;
    case SegmentReader::Front::malformed:
      refuse(wrong);
      return {};
    case SegmentReader::Front::segment:
      break;
  }
  enter();
  return bytes;
}

std::span<const std::byte> SegmentReceiver::take_payload(std::span<const std::byte> bytes) {
  const std::span<const std::byte> part = bytes.first(std::min(bytes.size(), reader_.payload_left()));
  switch (reader_.into()) {
    case Into::control:
      if (reader_.header().opcode == Opcode::atomic_response && stream_.requester().wanted() &&
          !stream_.placement().result_there())
        return bytes;
      reader_.keep(part);
      break;
    case Into::message:
      if (!stream_.messages().current()) {
        stream_.waiting().backlog().append(part);
        break;
      }
      [[fallthrough]];
    case Into::read:
    case Into::memory:
      if (!stream_.placement().place(part)) return stream_.over() ? std::span<const std::byte>{} : bytes;
      break;
    case Into::nothing:
      break;
  }
  if (stream_.over()) return {};
  reader_.sum(part);
  reader_.go_past(part.size());
  return bytes.subspan(part.size());
}

std::span<const std::byte> SegmentReceiver::take_trailer(std::span<const std::byte> bytes) {
  switch (reader_.take_trailer(bytes)) {
    case SegmentReader::Trailer::incomplete:
      return {};
    case SegmentReader::Trailer::damaged:
      refuse(mpa_error::kCrc);
      return {};
    case SegmentReader::Trailer::empty_frame:
      reader_.end_frame();
      stream_.negotiation().empty_frame_arrived();
      break;
    case SegmentReader::Trailer::segment:
      end_segment();
      stream_.reading_turn().segment_over(reader_.header().last,
                                          is_send(reader_.header().opcode) || is_immediate(reader_.header().opcode));
      reader_.end_frame();
      break;
  }
  return bytes;
}

// ---- segments

void SegmentReceiver::enter() {
  begin_segment();
  if (!stream_.waiting().blocked()) reader_.enter_payload();
}

void SegmentReceiver::begin_segment() {
  if (stream_.disconnection().discards() && reader_.header().opcode != Opcode::terminate) {
    reader_.go_into(Into::nothing);
    return;
  }
  if (!stream_.negotiation().first_frame_seen()) {
    stream_.negotiation().first_segment_begins(reader_.header(), reader_.payload_bytes());
  }
  if (stream_.over()) return;
  if (is_extension(reader_.header().opcode) && !stream_.negotiation().peer_takes_extensions()) {
    refuse(rdmap_error::kUnexpectedOpcode);
    return;
  }
  switch (reader_.header().opcode) {
    case Opcode::write:
      stream_.placement().begin_write();
      return;
    case Opcode::read_response:
      begin_read_response();
      return;
    case Opcode::immediate:
    case Opcode::immediate_solicited:
      stream_.messages().begin_immediate();
      return;
    case Opcode::atomic_response:
      begin_atomic_response();
      return;
    case Opcode::read_request:
    case Opcode::atomic_request:
      begin_request();
      return;
    case Opcode::terminate:
      begin_terminate();
      return;
    default:
      stream_.messages().begin_send();
  }
}

void SegmentReceiver::begin_atomic_response() {
  if (const auto wrong = stream_.requester().begin_atomic_response(reader_.header(), reader_.payload_bytes()))
    return refuse(*wrong);
  reader_.go_into(Into::control);
}

void SegmentReceiver::begin_read_response() {
  bool wanted = false;
  if (const auto wrong = stream_.requester().begin_read_response(reader_.header(), reader_.payload_bytes(), wanted))
    return refuse(*wrong);
  reader_.go_into(wanted ? Into::read : Into::nothing);
}

// One segment, and each in its turn.
void SegmentReceiver::begin_request() {
  const std::size_t bytes = reader_.header().opcode == Opcode::read_request ? kReadRequestBytes : kAtomicRequestBytes;
  if (reader_.header().sequence != stream_.responder().expected()) {
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
}

// The first and only message of its queue, in one segment (RFC 5040, section 4.8).
void SegmentReceiver::begin_terminate() {
  if (reader_.header().sequence != kFirstSequence) {
    refuse(ddp_error::kSequenceRange);
  } else if (reader_.header().offset != 0) {
    refuse(ddp_error::kInvalidOffset);
  } else if (!reader_.header().last) {
    refuse(ddp_error::kMessageTooLong);
  } else {
    reader_.go_into(Into::control);
  }
}

void SegmentReceiver::end_segment() {
  if (stream_.disconnection().discards()) return end_discarded();
  // What ends the stream says nothing of who the peer is, and is no message that a connection begins with.
  if (stream_.negotiation().peer() == Negotiation::Peer::unknown && reader_.header().opcode != Opcode::terminate &&
      stream_.negotiation().hear(reader_.header(), reader_.payload_bytes()))
    return;
  switch (reader_.header().opcode) {
    case Opcode::write:
      if (reader_.payload_bytes() == 0 && reader_.header().stag == kSignalStag)
        signalled(reader_.header().tagged_offset);
      return;
    case Opcode::read_response:
      stream_.requester().read_response_ended(reader_.payload_bytes(), reader_.header().last);
      return;
    case Opcode::read_request:
      if (const auto wrong = stream_.responder().read_asked(reader_.control())) refuse(*wrong);
      return;
    case Opcode::atomic_request:
      if (const auto wrong = stream_.responder().atomic_asked(reader_.control())) refuse(*wrong);
      return;
    case Opcode::atomic_response:
      if (const auto wrong = stream_.requester().atomic_response_ended(reader_.control())) refuse(*wrong);
      return;
    case Opcode::immediate:
    case Opcode::immediate_solicited:
      stream_.messages().immediate_ended();
      return;
    case Opcode::terminate:
      stream_.disconnection().terminated(
          reader_.control().first(std::min(reader_.payload_bytes(), reader_.control().size())));
      return;
    default:
      stream_.messages().send_ended();
  }
}

void SegmentReceiver::signalled(std::uint64_t offset) {
  switch (static_cast<Signal>(offset >> 32)) {
    case Signal::hello:
    case Signal::takes:
      return;  // has been noticed
    case Signal::delivered:
      stream_.requester().delivered_up_to(static_cast<std::uint32_t>(offset));
      return;
    case Signal::close_notify:
      stream_.disconnection().peer_sent_close_notify(static_cast<std::uint32_t>(offset));
      return;
  }
}

// ---- when memory for what arrives never came

void SegmentReceiver::end_discarded() {
  if (reader_.header().opcode == Opcode::terminate) {
    stream_.disconnection().terminated(
        reader_.control().first(std::min(reader_.payload_bytes(), reader_.control().size())));
  } else if (reader_.header().opcode == Opcode::write && reader_.payload_bytes() == 0 &&
             reader_.header().stag == kSignalStag) {
    const bool graceful = reader_.header().tagged_offset == (static_cast<std::uint64_t>(Signal::close_notify) << 32 |
                                                             static_cast<std::uint32_t>(CloseReason::graceful));
    if (graceful) {
      // It left in order, but not all of what it sent has been delivered.
      stream_.disconnection().set_over();
      stream_.queue_pair().connection().peer_lost(WorkStatus::transport);
    } else {
      signalled(reader_.header().tagged_offset);
    }
  }
}

}  // namespace anydat::nic::soft::iwarp
