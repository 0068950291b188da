// SPDX-License-Identifier: BSD-3-Clause
// The receiving side of a connection over TCP: segments, and where their payload goes.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

void TcpStream::enter_segment() {
  begin_segment();
  if (!stuck_) step_ = payload_left_ > 0 ? Step::payload : Step::trailer;
}

void TcpStream::begin_segment() {
  if (!first_frame_seen_) first_frame();
  if (closed_) return;
  switch (segment_.opcode) {
    case Opcode::write:
      begin_write();
      return;
    case Opcode::read_response:
      begin_read_response();
      return;
    case Opcode::read_request:
      // One segment, and each in its turn.
      if (segment_.sequence != requests_expected_) {
        refuse(ddp_error::kSequenceRange);
      } else if (segment_.offset != 0) {
        refuse(ddp_error::kInvalidOffset);
      } else if (!segment_.last || payload_bytes_ > kReadRequestBytes) {
        refuse(ddp_error::kMessageTooLong);
      } else if (payload_bytes_ < kReadRequestBytes) {
        refuse(rdmap_error::kOperationUnspecified);
      } else {
        into_ = Into::control;
      }
      return;
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

void TcpStream::begin_send() {
  if (invalidates(segment_.opcode)) {
    refuse(rdmap_error::kCannotInvalidate, CloseReason::remote_access);  // nothing here is invalidated by a peer
    return;
  }
  if (segment_.sequence != sends_expected_) {
    refuse(ddp_error::kSequenceRange);
    return;
  }
  if (segment_.offset != message_bytes_) {
    refuse(ddp_error::kInvalidOffset);
    return;
  }
  into_ = Into::message;
  const std::uint64_t length = message_bytes_ + payload_bytes_;
  const bool solicited = is_solicited(segment_.opcode);
  if (current_) {
    if (!queue_pair_.extend(*current_, length)) return;
  } else if (parked_.empty()) {
    current_ = queue_pair_.begin(length, solicited);
    if (!current_ && !closed_) {
      wait_for_buffer(solicited);
    }
  } else if (parked_.newest().whole) {
    parked_.add(solicited);
  }
}

bool TcpStream::may_write(std::uint64_t address, std::uint64_t length) {
  const RegionCheck check =
      fabric_.adapter().regions().check(segment_.stag, address, length, queue_pair_.zone(), access::kRemoteWrite);
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
  if (!may_write(segment_.tagged_offset, payload_bytes_)) return;
  into_ = Into::memory;
}

void TcpStream::begin_read_response() {
  Asked asked{};
  {
    base::Guard guard(tx_lock_);
    if (!asked_.empty()) asked = asked_.front();
  }
  const std::uint64_t end = answer_bytes_ + payload_bytes_;
  if (asked.stag == 0 || segment_.stag != asked.stag) {
    refuse(ddp_error::kInvalidStag);
  } else if (asked.length == 0 && segment_.last) {
    // Linux's soft-iWARP, when it is busy, answers a Read of nothing with bytes of what it sent before (6.1).
    into_ = Into::nothing;
  } else if (segment_.tagged_offset != answer_bytes_ || end > asked.length || (segment_.last && end != asked.length)) {
    refuse(ddp_error::kBaseOrBounds);
  } else {
    into_ = answer_unwanted_ ? Into::nothing : Into::read;
  }
}

// Where the rest of the segment goes. None: it goes nowhere, and perhaps the connection has broken.
std::size_t TcpStream::aim(std::span<iovec> pieces) {
  const std::size_t skipped = payload_bytes_ - payload_left_;
  switch (into_) {
    case Into::message:
      return current_ ? queue_pair_.aim(*current_, payload_left_, pieces) : 0;
    case Into::read: {
      const std::optional<std::size_t> used = queue_pair_.aim_read(answer_bytes_ + skipped, payload_left_, pieces);
      if (!used) {
        // The rest of it is heard, and forgotten.
        into_ = Into::nothing;
        answer_unwanted_ = true;
        queue_pair_.read_failed(WorkStatus::local_protection);
        return 0;
      }
      if (*used == 0) refuse(rdmap_error::kStreamCatastrophic);
      return *used;
    }
    case Into::memory:
      // It may have been withdrawn since the segment began.
      if (!may_write(segment_.tagged_offset + skipped, payload_left_)) return 0;
      pieces[0] = {reinterpret_cast<void*>(segment_.tagged_offset + skipped), payload_left_};
      return 1;
    default:
      return 0;
  }
}

void TcpStream::landed(std::size_t count) {
  if (into_ == Into::message) current_->placed += count;
  payload_left_ -= count;
  if (payload_left_ == 0) step_ = Step::trailer;
}

void TcpStream::place(std::span<const std::byte> bytes) {
  std::array<iovec, kSegmentsMax> pieces;
  const std::size_t used = aim(pieces);
  const std::size_t count = bytes.size();
  for (const iovec& piece : std::span(pieces).first(used)) {
    const std::size_t part = std::min(bytes.size(), piece.iov_len);
    std::memcpy(piece.iov_base, bytes.data(), part);
    bytes = bytes.subspan(part);
  }
  if (into_ == Into::message && current_ && !closed_) current_->placed += count;
}

void TcpStream::end_segment() {
  if (peer_kind() == Peer::unknown) {
    const bool empty_write = segment_.opcode == Opcode::write && payload_bytes_ == 0;
    const bool of_port = empty_write && segment_.stag == kSignalStag &&
                         segment_.tagged_offset >> 32 == static_cast<std::uint32_t>(Signal::hello);
    const bool of_service = empty_write && segment_.stag == kServiceStag;
    know_peer(of_port || of_service ? Peer::ours : Peer::other, of_port      ? segment_.tagged_offset & 0xffff
                                                                : of_service ? segment_.tagged_offset
                                                                             : 0);
    if (closed_) return;
  }
  switch (segment_.opcode) {
    case Opcode::write:
      if (payload_bytes_ == 0 && segment_.stag == kSignalStag) signalled(segment_.tagged_offset);
      return;
    case Opcode::read_response:
      answer_bytes_ += payload_bytes_;
      if (segment_.last) answer_completed();
      return;
    case Opcode::read_request:
      read_request_ended();
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
  if (queue_pair_.finish(*message)) message_delivered(length);
}

void TcpStream::message_delivered(std::uint64_t length) {
  ++sends_delivered_;
  owes_word_ |= length > kConfirmedAbove && peer_kind() == Peer::ours;
}

void TcpStream::confirm() {
  owes_word_ = false;
  if (closed_) return;
  base::Guard guard(tx_lock_);
  say(Signal::delivered, sends_delivered_);
  push_out();
}

void TcpStream::read_request_ended() {
  ++requests_expected_;
  const ReadRequest request = parse_read_request(std::span(control_).first(kReadRequestBytes));
  const std::size_t consumers = static_cast<std::size_t>(
      std::count_if(served_.begin(), served_.end(), [](const Served& read) { return read.request.bytes > 0; }));
  // RDR-11; and what we said we would take (RFC 6581, section 6).
  if ((request.bytes > 0 && consumers >= queue_pair_.reads_in()) || served_.size() > queue_pair_.reads_in()) {
    refuse(ddp_error::kNoBuffer);
    return;
  }
  served_.push_back({request, segment_.sequence, 0});
  serve_reads();
}

}  // namespace anydat::nic::soft::iwarp
