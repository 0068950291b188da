// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/message_receiver.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/big_endian.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

inline ReceiveSide& MessageReceiver::receives() {
  return stream_.queue_pair().receives();
}

inline ReceiveBacklog& MessageReceiver::backlog() {
  return stream_.waiting().backlog();
}

// ---- what arrives

// The straight path: a small Send that is wholly there and can be delivered at once. 0: it is none.
std::size_t MessageReceiver::deliver_whole(std::span<const std::byte> bytes) {
  TcpStream& stream = stream_;  // looked up once
  SegmentReader& reader = stream.reader();
  if (bytes.size() < kFrameLengthBytes + kUntaggedHeaderBytes || !stream.negotiation().first_frame_seen()) return 0;
  const std::size_t segment_bytes = base::load_big<std::uint16_t>(bytes.data());
  const std::size_t whole = frame_bytes(segment_bytes);
  if (segment_bytes < kUntaggedHeaderBytes || bytes.size() < whole) return 0;
  if (!stream.waiting().backlog().empty() || current_ || message_bytes_ != 0 || stream.disconnection().discards() ||
      stream.negotiation().peer() == Negotiation::Peer::unknown)
    return 0;
  bool solicited = false;
  if (!is_whole_send(bytes.data() + kFrameLengthBytes, sends_expected_, solicited)) return 0;
  const std::size_t summed = whole - kCrcBytes;
  if (reader.crc() && crc32c(0, bytes.first(summed)) != load_crc(bytes.data() + summed)) return 0;
  if (!stream.placement().next_buffer_there(segment_bytes - kUntaggedHeaderBytes))
    return 0;  // it is awaited as those of others are
  reader.goes_straight(bytes.data());
  const bool taken = stream.queue_pair().receives().deliver(bytes.data() + kFrameLengthBytes + kUntaggedHeaderBytes,
                                                            segment_bytes - kUntaggedHeaderBytes, solicited);
  reader.goes_straight(nullptr);
  if (!taken) return 0;
  ++sends_expected_;
  message_delivered(segment_bytes - kUntaggedHeaderBytes);
  return whole;
}

void MessageReceiver::begin_send() {
  SegmentReader& reader = stream_.reader();
  if (reader.header().sequence != sends_expected_) {
    stream_.disconnection().refuse(ddp_error::kSequenceRange);
    return;
  }
  if (reader.header().offset != message_bytes_) {
    stream_.disconnection().refuse(ddp_error::kInvalidOffset);
    return;
  }
  // All segments of a message name the same (RFC 5040, section 4.4).
  const bool begins = message_bytes_ == 0 && !current_ && (backlog().empty() || backlog().newest().whole);
  if (begins ? invalidates(reader.header().opcode) &&
                   !stream_.queue_pair().connection().windows().may_invalidate(reader.header().stag)
             : reader.header().stag != arriving_invalidates() ||
                   invalidates(reader.header().opcode) != (arriving_invalidates() != 0)) {
    stream_.disconnection().refuse(rdmap_error::kCannotInvalidate, CloseReason::remote_access);
    return;
  }
  if (stream_.negotiation().phase() == Negotiation::Phase::greeting) {
    stream_.negotiation().greeted_by_send();
    if (stream_.over()) return;
  }
  reader.go_into(SegmentReader::Into::message);
  const std::uint64_t length = message_bytes_ + reader.payload_bytes();
  const bool solicited = is_solicited(reader.header().opcode);
  if (current_) {
    if (!receives().extend(*current_, length)) return;
  } else if (backlog().empty()) {
    current_ = receives().begin(length, solicited);
    if (!current_ && !stream_.over()) {
      stream_.waiting().wait_for_buffer(solicited);
    }
    if (current_ && reader.header().stag != 0) current_->invalidate(reader.header().stag);
  } else if (backlog().newest().whole) {
    backlog().add(solicited, reader.header().stag);
  }
}

// What the message that is arriving is to invalidate, or 0.
std::uint32_t MessageReceiver::arriving_invalidates() {
  if (!current_) return backlog().newest().invalidates;
  return current_->kind == WorkKind::recv_invalidate ? current_->value : 0;
}

void MessageReceiver::send_ended() {
  message_bytes_ += stream_.reader().payload_bytes();
  if (!stream_.reader().header().last) return;
  ++sends_expected_;
  message_bytes_ = 0;
  if (!current_) {
    backlog().end_newest();
    return;
  }
  Incoming* const message = std::exchange(current_, nullptr);
  const std::uint64_t length = message->length;
  if (finish_message(*message)) message_delivered(length);
}

// False: the connection has ended. Nothing that a window shows to the peer alone can be in use: this side does all that
// the peer asks for, and nothing of it is under way now.
bool MessageReceiver::finish_message(Incoming& message) {
  if (stream_.queue_pair().connection().windows().make_ready(message) == WindowOperations::Readiness::yes) {
    return receives().finish(message);
  }
  stream_.disconnection().refuse(rdmap_error::kCannotInvalidate, CloseReason::remote_access);
  return false;
}

// A message of its own among the Sends.
void MessageReceiver::begin_immediate() {
  SegmentReader& reader = stream_.reader();
  if ((stream_.queue_pair().takes() & ability::kImmediate) == 0) {
    stream_.disconnection().refuse(rdmap_error::kUnexpectedOpcode);
  } else if (reader.header().sequence != sends_expected_ || message_bytes_ != 0 || current_ ||
             (!backlog().empty() && !backlog().newest().whole)) {
    stream_.disconnection().refuse(ddp_error::kSequenceRange);
  } else if (reader.header().offset != 0) {
    stream_.disconnection().refuse(ddp_error::kInvalidOffset);
  } else if (!reader.header().last || reader.payload_bytes() > kImmediateBytes) {
    stream_.disconnection().refuse(ddp_error::kMessageTooLong);
  } else if (reader.payload_bytes() < kImmediateBytes) {
    stream_.disconnection().refuse(rdmap_error::kOperationUnspecified);
  } else {
    reader.go_into(SegmentReader::Into::control);
  }
}

void MessageReceiver::immediate_ended() {
  ++sends_expected_;
  const std::span<const std::byte> payload = stream_.reader().control().first(kImmediateBytes);
  const ImmediateData data = parse_immediate(payload);
  const bool solicited = is_solicited(stream_.reader().header().opcode);
  if (backlog().empty()) {
    if (receives().deliver_immediate(data.length, data.value, solicited)) return message_delivered(0);
    if (stream_.over()) return;
    if (!stream_.waiting().looks_past() && !stream_.disconnection().hung_up()) stream_.waiting().be_patient();
    receives().not_ready().wait_for_buffer();
    if (stream_.over()) return;
  }
  backlog().add(solicited);
  backlog().append(payload);
  backlog().newest().immediate = true;
  backlog().end_newest();
}

// A region went away: what is arriving in it, or waits for its pages, can go no further (LMR-FREE-8).
void MessageReceiver::region_removed() {
  // One at most: what is begun is put in place before the next message arrives in a buffer.
  Incoming* const message = current_ ? current_ : stream_.waiting().begun();
  if (!message) return;
  if (const WorkStatus status = receives().check(*message); status != WorkStatus::success) {
    receives().fail(*message, status);
  }
}

// ---- what has waited for buffers

void MessageReceiver::deliver_backlog() {
  while (!stream_.over() && !backlog().empty() && !current_ && !stream_.placement().awaits_memory()) {
    ReceiveBacklog::Message& message = backlog().oldest();
    const std::size_t bytes = message.bytes.size();
    if (message.immediate) {
      const ImmediateData data = parse_immediate(message.bytes);
      if (!has_buffer(receives().deliver_immediate(data.length, data.value, message.solicited))) return;
      message_delivered(0);
    } else if (message.whole && message.invalidates == 0 && !stream_.waiting().begun() &&
               stream_.placement().next_buffer_surely_there(bytes)) {
      if (!has_buffer(receives().deliver(message.bytes.data(), bytes, message.solicited))) return;
      message_delivered(bytes);
    } else {
      if (!begin_from_backlog(message)) return;
      Incoming& incoming = *stream_.waiting().begun();
      std::array<iovec, kSegmentsMax> pieces;
      const std::size_t used = receives().aim(incoming, bytes, pieces);
      if (stream_.over() || !stream_.placement().can_be_written(std::span(pieces).first(used))) return;
      stream_.waiting().set_begun(nullptr);
      if (!place_from_backlog(message, incoming)) return;
    }
    backlog().drop_oldest();
  }
}

// Of a message that has been given to the receive side. False: it waits for a buffer, or the connection is over.
bool MessageReceiver::has_buffer(bool taken) {
  // One by one: each may be the last for want of a buffer.
  stream_.fabric().adapter().batch().flush();
  if (stream_.over()) return false;
  if (taken) {
    receives().not_ready().stop_waiting();
  } else {
    receives().not_ready().wait_for_buffer();
  }
  return taken;
}

// The buffer is its own before it is known whether its memory is there: the next one is another's.
bool MessageReceiver::begin_from_backlog(ReceiveBacklog::Message& message) {
  if (stream_.waiting().begun()) return true;
  std::uint64_t length = message.bytes.size();
  if (!message.whole) {
    // The rest of it is still arriving, and the segment that is may reach further than what is here.
    const std::uint64_t segment = stream_.reader().amid_message() ? stream_.reader().payload_bytes() : 0;
    length = std::max(message_bytes_ + segment, length);
  }
  Incoming* const incoming = receives().begin(length, message.solicited);
  if (!has_buffer(incoming != nullptr)) return false;
  if (message.invalidates != 0) incoming->invalidate(message.invalidates);
  stream_.waiting().set_begun(incoming);
  return true;
}

// False: the connection has broken.
bool MessageReceiver::place_from_backlog(const ReceiveBacklog::Message& message, Incoming& incoming) {
  if (!receives().place(incoming, message.bytes.data(), message.bytes.size())) return false;
  if (!message.whole) {
    current_ = &incoming;
    return true;
  }
  if (stream_.queue_pair().connection().windows().make_ready(incoming) != WindowOperations::Readiness::yes) {
    stream_.disconnection().refuse_message(rdmap_error::kCannotInvalidate, CloseReason::remote_access);
    return false;
  }
  const bool stands = receives().finish(incoming);
  if (stands) message_delivered(message.bytes.size());
  return stands;
}

// ---- what the peer is told of

void MessageReceiver::message_delivered(std::uint64_t length) {
  ++sends_delivered_;
  owes_word_ |= length > kConfirmedAbove && stream_.negotiation().peer_is_ours();
}

// One word tells of all messages up to its own. While the socket takes nothing it would wait in line in vain, and a
// peer that does not listen is owed one word, however much it sends: turn() has it said when there is room.
void MessageReceiver::confirm() {
  if (stream_.over()) return;
  OutgoingHalf& outgoing = stream_.outgoing();
  os::Guard guard(outgoing.lock());
  if (outgoing.line().blocked()) return;
  owes_word_ = false;
  outgoing.say(Signal::delivered, sends_delivered_);
  outgoing.push_out();
}

void MessageReceiver::say_last(OutgoingHalf& outgoing) {
  if (std::exchange(owes_word_, false)) outgoing.say(Signal::delivered, sends_delivered_);
}

}  // namespace anydat::nic::soft::iwarp
