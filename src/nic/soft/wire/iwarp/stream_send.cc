// SPDX-License-Identifier: BSD-3-Clause
// The sending side of a connection over TCP.
#include <algorithm>
#include <array>

#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/atomic_word.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

namespace {

static_assert(OutgoingHalf::kSmallMax <= kConfirmedAbove);

SendOutcome never(Progress& progress, WorkStatus status) {
  progress.failure = status;
  return SendOutcome::failed;
}

}  // namespace

SendOutcome TcpStream::send(std::uint64_t number, const SendRequest& message, Progress& progress) {
  const bool rdma = message.kind == WorkKind::rdma_write || message.kind == WorkKind::rdma_read;
  if (rdma && message.length == 0) return SendOutcome::done;  // RDR-5, RDW-5
  if (!sends_.usable(message)) return never(progress, WorkStatus::local_protection);
  base::Guard guard(outgoing_.lock());
  if (!outgoing_.may_send() || outgoing_.line().blocked()) {
    outgoing_.let_wait();
    return SendOutcome::blocked;
  }
  switch (message.kind) {
    case WorkKind::fetch_add:
    case WorkKind::compare_swap:
      return send_atomic(static_cast<const ExtendedRequest&>(message), progress);
    case WorkKind::rdma_write:
    case WorkKind::write_immediate:
      return send_write(message, progress);
    case WorkKind::rdma_read:
      return send_read(message, progress);
    default: {
      const SendOutcome outcome = send_message(number, message, progress);
      if (outcome == SendOutcome::done && message.kind == WorkKind::send &&
          message.length <= outgoing_.whole_max(kUntaggedHeaderBytes)) {
        sends_.lanes().open_send(message, queue_pair_.memory().zone());
      }
      return outcome;
    }
  }
}

bool TcpStream::small_source_there(std::span<const Segment> segments, std::uint64_t length) {
  return sources_.there(segments, {0, length}, length, false, outgoing_.moment());
}

bool TcpStream::send_again(const SingleSend& send) {
  if (send.segment.length > OutgoingHalf::kSmallMax) return false;
  base::Guard guard(outgoing_.lock());
  const std::span<const Segment> segments{&send.segment, 1};
  const std::uint64_t length = send.segment.length;
  if (!outgoing_.may_send() || outgoing_.line().blocked() || length > outgoing_.whole_max(kUntaggedHeaderBytes))
      [[unlikely]] {
    return false;  // send() tells what is in its way
  }
  SegmentHeader header;
  header.opcode = send.flags.solicited() ? Opcode::send_solicited : Opcode::send;
  header.last = true;
  header.sequence = send_sequence_;
  if (!outgoing_.line().append(header, segments, length)) return false;
  ++send_sequence_;
  outgoing_.push_out();
  return true;
}

// Those that go into the line whole, and out of it together.
std::size_t TcpStream::send_row(const SendRow& row) {
  if (!sends_.surely_usable(row)) [[unlikely]]
    return 0;
  base::Guard guard(outgoing_.lock());
  if (!outgoing_.may_send()) return 0;
  const std::uint64_t most = outgoing_.whole_max(kUntaggedHeaderBytes);
  std::size_t sent = 0;
  outgoing_.begin_row();
  while (sent < row.sends.size() && row.sends[sent].segment.length <= most && !outgoing_.line().blocked()) {
    Progress progress;
    if (send_message(0, row.request(sent), progress) != SendOutcome::done) break;  // send() tells what is in its way
    ++sent;
  }
  outgoing_.end_row(sent);
  return sent;
}

// Sends what the socket takes. True if all of the message is out or in line; otherwise it will be asked for again.
bool TcpStream::send_some(const SegmentHeader& first, const SendRequest& message, Progress& progress) {
  const std::size_t payload_max = outgoing_.line().ulpdu_max() - segment_header_bytes(first.opcode);
  if (progress.bytes == 0 && message.length <= outgoing_.whole_max(segment_header_bytes(first.opcode))) {
    if (!small_source_there(message.segments, message.length)) {
      outgoing_.let_wait();
      return false;
    }
    SegmentHeader header = first;
    header.last = true;
    if (outgoing_.line().append(header, message.segments, message.length)) {
      progress.bytes = message.length;
      outgoing_.push_out();
      return true;
    }
  } else {
    // A thread that posts sends for itself. The engine does for all, so each connection has a share of it.
    const bool shared = fabric_.engine().held();
    const std::uint64_t limit = shared ? outgoing_.share_of_pass() : budget::kSentPerTurn;
    if (limit > 0 && fabric_.engine().descriptors_are_ours()) {
      const std::uint64_t before = progress.bytes;
      // A frame goes in whole, so a little more than the limit may be sent.
      const std::uint64_t left = message.length - before;
      if (!sources_.there(message.segments, {before, std::min(left, limit + payload_max)}, left, false)) {
        outgoing_.let_wait();
        return false;
      }
      const bool another_is_to_blame = outgoing_.line().memory_is_gone();
      progress.bytes = outgoing_.line().send({first, message.segments, message.length}, before, limit);
      if (shared) outgoing_.has_sent(progress.bytes - before);
      // turn() ends the connection.
      if (outgoing_.line().memory_is_gone() && !another_is_to_blame) [[unlikely]]
        progress.failure = WorkStatus::local_protection;
      if (progress.bytes == message.length) return true;
    }
  }
  outgoing_.let_wait();
  if (!outgoing_.line().blocked() || outgoing_.line().broken()) fabric_.come_back(turn_);
  return false;
}

SendOutcome TcpStream::send_message(std::uint64_t number, const SendRequest& message, Progress& progress) {
  SegmentHeader first;
  if (message.kind == WorkKind::send_invalidate) [[unlikely]] {
    first.opcode = message.flags.solicited() ? Opcode::send_solicited_invalidate : Opcode::send_invalidate;
    first.stag = message.remote.key;
  } else {
    first.opcode = message.flags.solicited() ? Opcode::send_solicited : Opcode::send;
  }
  first.sequence = send_sequence_;
  const bool confirmed = message.length > kConfirmedAbove && peer_ == Peer::ours;
  if (confirmed && unconfirmed_.size() == unconfirmed_.capacity() && !make_room()) {
    outgoing_.let_wait_for_turn();
    return SendOutcome::blocked;
  }
  if (!send_some(first, message, progress)) return SendOutcome::blocked;
  if (confirmed) unconfirmed_.push_back({send_sequence_, number});
  ++send_sequence_;
  return confirmed ? SendOutcome::pending : SendOutcome::done;
}

bool TcpStream::make_room() {
  try {
    unconfirmed_.reserve(std::max<std::size_t>(16, 2 * unconfirmed_.capacity()));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void TcpStream::delivered_up_to(std::uint32_t sequence) {
  // None of the requests behind them may have been able to go on before.
  while (!closed_ && one_delivered(sequence)) sends_.pump();
}

bool TcpStream::one_delivered(std::uint32_t sequence) {
  std::uint64_t number = 0;
  {
    base::Guard guard(outgoing_.lock());
    if (unconfirmed_.empty()) return false;
    const Unconfirmed& oldest = unconfirmed_.front();
    if (static_cast<std::int32_t>(sequence - oldest.sequence) < 0) return false;
    number = oldest.number;
    unconfirmed_.erase(unconfirmed_.begin());
  }
  initiator_.finished(number, WorkStatus::success);
  return true;
}

SendOutcome TcpStream::send_write(const SendRequest& message, Progress& progress) {
  SegmentHeader first;
  first.opcode = Opcode::write;
  first.stag = message.remote.key;
  first.tagged_offset = message.remote.address;
  // One with immediate data may be out already, or have no bytes.
  if (progress.bytes < message.length && !send_some(first, message, progress)) return SendOutcome::blocked;
  if (message.kind == WorkKind::write_immediate && !send_immediate(message)) return SendOutcome::blocked;
  // A peer that does not say how many Reads it takes in is not asked for more than the consumer asks for.
  if (!terms_.reads_known || terms_.reads_out == 0) return SendOutcome::done;
  ++writes_unasked_;
  ask_for_answer();
  return SendOutcome::pending;
}

// Behind the Write, which is wholly out or in line.
bool TcpStream::send_immediate(const SendRequest& message) {
  SegmentHeader header;
  header.opcode = message.flags.solicited() ? Opcode::immediate_solicited : Opcode::immediate;
  header.last = true;
  header.sequence = send_sequence_;
  std::array<std::byte, kImmediateBytes> payload;
  iwarp::write_immediate({message.remote.value, static_cast<std::uint32_t>(message.length)}, payload);
  if (!outgoing_.line().append(header, payload)) {
    outgoing_.let_wait_for_turn();
    return false;
  }
  ++send_sequence_;
  outgoing_.push_out();
  return true;
}

// Another one for the program. A peer of our kind takes as many as its endpoint does, and offers one more for Reads of
// length 0, so that unequal depths are agreed upon (RDR-11). What an endpoint that takes none is asked all the same, it
// refuses (RDR-12).
bool TcpStream::may_ask() const {
  if (asked_.size() >= terms_.reads_out) return false;
  if (peer_ != Peer::ours || !terms_.reads_known || terms_.reads_out == 1) return true;
  const auto programs = std::count_if(asked_.begin(), asked_.end(), [](const Asked& asked) { return !asked.ours; });
  return static_cast<std::size_t>(programs) + 1 < terms_.reads_out;
}

SendOutcome TcpStream::send_atomic(const ExtendedRequest& message, Progress& progress) {
  if (terms_.reads_out == 0) return never(progress, WorkStatus::remote_responder);
  const Asked asked{sinks_.next(), writes_unasked_, false, kAtomicBytes, true};
  SegmentHeader header;
  header.opcode = Opcode::atomic_request;
  header.last = true;
  header.sequence = request_sequence_;
  const auto operation = message.kind == WorkKind::fetch_add ? AtomicRequest::Operation::fetch_add
                                                             : AtomicRequest::Operation::compare_swap;
  std::array<std::byte, kAtomicRequestBytes> payload;
  write_atomic_request(
      {operation, asked.stag, message.remote.key, message.remote.address, message.operand, message.compare}, payload);
  const bool room = may_ask();
  if (!room || !outgoing_.line().append(header, payload)) {
    outgoing_.let_wait();  // the next answer wakes it
    if (room) fabric_.come_back(turn_);
    return SendOutcome::blocked;
  }
  ++request_sequence_;
  asked_.push_back(asked);
  writes_unasked_ = 0;
  outgoing_.push_out();
  return SendOutcome::pending;
}

// A Read of length 0 touches no memory, and comes behind the Writes. One at a time: those that come meanwhile share the
// next.
void TcpStream::ask_for_answer() {
  if (writes_unasked_ == 0 || asked_for_answer_ || asked_.size() >= terms_.reads_out) return;
  if (!request_read({sinks_.next(), writes_unasked_, true, 0}, {})) return;  // the next answer or Write asks again
  asked_for_answer_ = true;
  writes_unasked_ = 0;
  outgoing_.push_out();
}

bool TcpStream::request_read(const Asked& asked, const RemoteSegment& source) {
  SegmentHeader header;
  header.opcode = Opcode::read_request;
  header.last = true;
  header.sequence = request_sequence_;
  std::array<std::byte, kReadRequestBytes> payload;
  write_read_request({asked.stag, 0, static_cast<std::uint32_t>(asked.length), source.key, source.address}, payload);
  if (!outgoing_.line().append(header, payload)) return false;
  ++request_sequence_;
  asked_.push_back(asked);
  return true;
}

SendOutcome TcpStream::send_read(const SendRequest& message, Progress& progress) {
  if (terms_.reads_out == 0) return never(progress, WorkStatus::remote_responder);  // RDR-12
  if (!may_ask()) {
    outgoing_.let_wait();  // the next answer wakes it
    return SendOutcome::blocked;
  }
  if (!request_read({sinks_.next(), writes_unasked_, false, message.length}, message.remote)) {
    outgoing_.let_wait_for_turn();
    return SendOutcome::blocked;
  }
  writes_unasked_ = 0;
  outgoing_.push_out();
  return SendOutcome::pending;
}

// The oldest Read, or atomic operation, has been answered in full, and with it the Writes before it.
void TcpStream::answer_completed() {
  Asked asked;
  bool pump = false;
  {
    base::Guard guard(outgoing_.lock());
    asked = asked_.front();
    asked_.erase(asked_.begin());
    if (asked.ours) asked_for_answer_ = false;
    ask_for_answer();
    pump = outgoing_.wakes();
  }
  if (asked.writes > 0 && !closed_) initiator_.writes_finished(asked.writes);
  if (asked.atomic && !closed_) atomic_answered(asked);
  if (!asked.ours && !asked.atomic && !answer_unwanted_ && !closed_) initiator_.read_placed(answer_bytes_);
  answer_bytes_ = 0;
  answer_unwanted_ = false;
  if (pump && !closed_) sends_.pump();
}

void TcpStream::atomic_answered(const Asked& asked) {
  static_assert(sizeof control_ >= kAtomicRequestBytes && sizeof control_ >= kAtomicResponseBytes);
  const AtomicResponse response = parse_atomic_response(control_);
  if (response.id != asked.stag) return refuse(rdmap_error::kStreamCatastrophic);
  if (!answer_unwanted_) initiator_.atomic_finished(response.was);
}

}  // namespace anydat::nic::soft::iwarp
