// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/requester.h"

#include <algorithm>
#include <array>

#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/atomic_word.h"
#include "nic/soft/wire/iwarp/stream.h"
#include "os/random.h"

namespace anydat::nic::soft::iwarp {

namespace {

static_assert(OutgoingHalf::kSmallMax <= kConfirmedAbove);

// Long Sends that may wait for the peer's word at a time without memory for more.
constexpr std::size_t kUnconfirmedAtLeast = 4;

SendOutcome never(Progress& progress, WorkStatus status) {
  progress.failure = status;
  return SendOutcome::failed;
}

}  // namespace

Requester::Requester(TcpStream& stream)
    : stream_(stream),
      outgoing_(stream.outgoing()),
      sources_(stream.fabric().adapter(), *this),
      sinks_(os::random_number()) {}

void Requester::reserve(std::size_t reads) {
  os::Guard guard(outgoing_.lock());
  asked_.reserve(reads);
  unconfirmed_.reserve(kUnconfirmedAtLeast);
}

SendOutcome Requester::send(std::uint64_t number, const SendRequest& message, Progress& progress) {
  const bool rdma = message.kind == WorkKind::rdma_write || message.kind == WorkKind::rdma_read;
  if (rdma && message.length == 0) return SendOutcome::done;  // RDR-5, RDW-5
  if (!stream_.queue_pair().sends().usable(message)) return never(progress, WorkStatus::local_protection);
  os::Guard guard(outgoing_.lock());
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
        stream_.queue_pair().sends().lanes().open_send(message, stream_.queue_pair().memory().zone());
      }
      return outcome;
    }
  }
}

bool Requester::send_again(const SingleSend& send) {
  if (send.segment.length > OutgoingHalf::kSmallMax) return false;
  os::Guard guard(outgoing_.lock());
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
std::size_t Requester::send_row(const SendRow& row) {
  if (!stream_.queue_pair().sends().surely_usable(row)) [[unlikely]]
    return 0;
  os::Guard guard(outgoing_.lock());
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

// Sends what the socket takes. True if all of the message is out or in line; otherwise it will be asked for again. Part
// of the loop over a row, as send_message() is.
[[gnu::always_inline]] inline bool Requester::send_some(const SegmentHeader& first, const SendRequest& message,
                                                        Progress& progress) {
  if (progress.bytes != 0 || message.length > outgoing_.whole_max(segment_header_bytes(first.opcode))) {
    return send_part(first, message, progress);
  }
  if (!sources_.there(message.segments, {0, message.length}, message.length, false, outgoing_.moment())) {
    outgoing_.let_wait();
    return false;
  }
  SegmentHeader header = first;
  header.last = true;
  if (!outgoing_.line().append(header, message.segments, message.length)) return wait_for_room();
  progress.bytes = message.length;
  outgoing_.push_out();
  return true;
}

// Of a message that is too large for the line.
bool Requester::send_part(const SegmentHeader& first, const SendRequest& message, Progress& progress) {
  // A thread that posts sends for itself. The engine does for all, so each connection has a share of it.
  const bool shared = stream_.fabric().engine().held();
  const std::uint64_t limit = shared ? outgoing_.share_of_pass() : budget::kSentPerTurn;
  if (limit == 0 || !stream_.fabric().engine().descriptor_loss().descriptors_are_ours()) return wait_for_room();
  const std::size_t payload_max = outgoing_.line().ulpdu_max() - segment_header_bytes(first.opcode);
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
  // The stream's turn ends the connection.
  if (outgoing_.line().memory_is_gone() && !another_is_to_blame) [[unlikely]]
    progress.failure = WorkStatus::local_protection;
  return progress.bytes == message.length || wait_for_room();
}

// False, so that it is what their callers say.
bool Requester::wait_for_room() {
  outgoing_.let_wait();
  if (!outgoing_.line().blocked() || outgoing_.line().broken()) outgoing_.schedule_turn();
  return false;
}

[[gnu::always_inline]] inline SendOutcome Requester::send_message(std::uint64_t number, const SendRequest& message,
                                                                  Progress& progress) {
  SegmentHeader first;
  if (message.kind == WorkKind::send_invalidate) [[unlikely]] {
    first.opcode = message.flags.solicited() ? Opcode::send_solicited_invalidate : Opcode::send_invalidate;
    first.stag = message.remote.key;
  } else {
    first.opcode = message.flags.solicited() ? Opcode::send_solicited : Opcode::send;
  }
  first.sequence = send_sequence_;
  const bool confirmed = message.length > kConfirmedAbove && peer_is_ours_;
  if (confirmed && unconfirmed_.size() == unconfirmed_.capacity() && !make_room()) {
    outgoing_.let_wait();  // the peer's word of the oldest wakes it
    return SendOutcome::blocked;
  }
  if (!send_some(first, message, progress)) return SendOutcome::blocked;
  if (confirmed) unconfirmed_.push_back({send_sequence_, number});
  ++send_sequence_;
  return confirmed ? SendOutcome::pending : SendOutcome::done;
}

bool Requester::make_room() {
  try {
    unconfirmed_.reserve(2 * unconfirmed_.capacity());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Requester::delivered_up_to(std::uint32_t sequence) {
  // None of the requests behind them may have been able to go on before.
  while (!stream_.over() && one_delivered(sequence)) stream_.queue_pair().sends().pump();
}

bool Requester::one_delivered(std::uint32_t sequence) {
  std::uint64_t number = 0;
  {
    os::Guard guard(outgoing_.lock());
    if (unconfirmed_.empty()) return false;
    const Unconfirmed& oldest = unconfirmed_.front();
    if (static_cast<std::int32_t>(sequence - oldest.sequence) < 0) return false;
    number = oldest.number;
    unconfirmed_.erase(unconfirmed_.begin());
  }
  stream_.queue_pair().outcomes().finished(number, WorkStatus::success);
  return true;
}

SendOutcome Requester::send_write(const SendRequest& message, Progress& progress) {
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
bool Requester::send_immediate(const SendRequest& message) {
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
bool Requester::may_ask() const {
  if (asked_.size() >= terms_.reads_out) return false;
  if (!peer_is_ours_ || !terms_.reads_known || terms_.reads_out == 1) return true;
  const auto programs = std::count_if(asked_.begin(), asked_.end(), [](const Asked& asked) { return !asked.ours; });
  return static_cast<std::size_t>(programs) + 1 < terms_.reads_out;
}

SendOutcome Requester::send_atomic(const ExtendedRequest& message, Progress& progress) {
  if (terms_.reads_out == 0) return never(progress, WorkStatus::remote_responder);
  const Asked asked{sinks_.next(), writes_unasked_, kAtomicBytes, false, true};
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
    if (room) outgoing_.schedule_turn();
    return SendOutcome::blocked;
  }
  ++request_sequence_;
  asked_.push_back(asked);
  writes_unasked_ = 0;
  outgoing_.push_out();
  return SendOutcome::pending;
}

// One at a time: the Writes that come meanwhile share the next.
void Requester::ask_for_answer() {
  if (writes_unasked_ == 0 || asked_for_answer_ || asked_.size() >= terms_.reads_out) return;
  if (!ask_for_nothing()) return outgoing_.schedule_turn();  // when there is memory for it
  asked_for_answer_ = true;
  writes_unasked_ = 0;
  outgoing_.push_out();
}

bool Requester::ask_for_nothing() {
  return request_read({sinks_.next(), writes_unasked_, 0, true}, {});
}

bool Requester::request_read(const Asked& asked, const RemoteSegment& source) {
  SegmentHeader header;
  header.opcode = Opcode::read_request;
  header.last = true;
  header.sequence = request_sequence_;
  std::array<std::byte, kReadRequestBytes> payload;
  write_read_request({asked.stag, 0, asked.length, source.key, source.address}, payload);
  if (!outgoing_.line().append(header, payload)) return false;
  ++request_sequence_;
  asked_.push_back(asked);
  return true;
}

SendOutcome Requester::send_read(const SendRequest& message, Progress& progress) {
  if (terms_.reads_out == 0) return never(progress, WorkStatus::remote_responder);  // RDR-12
  if (!may_ask()) {
    outgoing_.let_wait();  // the next answer wakes it
    return SendOutcome::blocked;
  }
  if (!request_read({sinks_.next(), writes_unasked_, static_cast<std::uint32_t>(message.length), false},
                    message.remote)) {
    outgoing_.let_wait_for_turn();
    return SendOutcome::blocked;
  }
  writes_unasked_ = 0;
  outgoing_.push_out();
  return SendOutcome::pending;
}

// ---- answers

Requester::Asked Requester::oldest_asked() {
  os::Guard guard(outgoing_.lock());
  return asked_.empty() ? Asked{} : asked_.front();
}

std::optional<TerminateCode> Requester::begin_read_response(const SegmentHeader& segment, std::size_t payload_bytes,
                                                            bool& wanted) {
  const Asked asked = oldest_asked();
  const std::uint64_t end = answer_bytes_ + payload_bytes;
  wanted = !answer_unwanted_;
  if (asked.stag == 0 || asked.atomic || segment.stag != asked.stag) return ddp_error::kInvalidStag;
  if (asked.length == 0 && segment.last) {
    // Linux's soft-iWARP, when it is busy, answers a Read of nothing with bytes of what it sent before (6.1).
    wanted = false;
  } else if (segment.tagged_offset != answer_bytes_ || end > asked.length || (segment.last && end != asked.length)) {
    return ddp_error::kBaseOrBounds;
  }
  return std::nullopt;
}

// The oldest of what has been asked for must be it.
std::optional<TerminateCode> Requester::begin_atomic_response(const SegmentHeader& segment, std::size_t payload_bytes) {
  if (!oldest_asked().atomic) return rdmap_error::kUnexpectedOpcode;
  if (segment.sequence != responses_expected_) return ddp_error::kSequenceRange;
  if (segment.offset != 0) return ddp_error::kInvalidOffset;
  if (!segment.last || payload_bytes > kAtomicResponseBytes) return ddp_error::kMessageTooLong;
  if (payload_bytes < kAtomicResponseBytes) return rdmap_error::kOperationUnspecified;
  return std::nullopt;
}

std::optional<std::size_t> Requester::aim(std::size_t skipped, std::size_t count, std::span<iovec> pieces) {
  const std::optional<std::size_t> used =
      stream_.queue_pair().outcomes().aim_read(answer_bytes_ + skipped, count, pieces);
  if (!used) read_failed();
  return used;
}

void Requester::read_failed() {
  answer_unwanted_ = true;
  stream_.queue_pair().outcomes().read_failed(WorkStatus::local_protection);
}

void Requester::atomic_failed() {
  answer_unwanted_ = true;
  stream_.queue_pair().outcomes().atomic_failed(WorkStatus::local_protection);
}

void Requester::read_response_ended(std::size_t payload_bytes, bool last) {
  answer_bytes_ += payload_bytes;
  if (last) answer_completed({});
}

std::optional<TerminateCode> Requester::atomic_response_ended(std::span<const std::byte> payload) {
  ++responses_expected_;
  return answer_completed(payload);
}

// The oldest Read, or atomic operation, has been answered in full, and with it the Writes before it.
std::optional<TerminateCode> Requester::answer_completed(std::span<const std::byte> payload) {
  RequestOutcomes& outcomes = stream_.queue_pair().outcomes();
  Asked asked;
  bool pump = false;
  {
    os::Guard guard(outgoing_.lock());
    asked = asked_.front();
    asked_.erase(asked_.begin());
    if (asked.ours) asked_for_answer_ = false;
    ask_for_answer();
    pump = outgoing_.wakes();
  }
  std::optional<TerminateCode> wrong;
  if (asked.writes > 0 && !stream_.over()) outcomes.writes_finished(asked.writes);
  if (asked.atomic && !stream_.over()) {
    const AtomicResponse response = parse_atomic_response(payload);
    if (response.id != asked.stag) {
      wrong = rdmap_error::kStreamCatastrophic;
    } else if (!answer_unwanted_) {
      outcomes.atomic_finished(response.was);
    }
  }
  if (!asked.ours && !asked.atomic && !answer_unwanted_ && !stream_.over()) outcomes.read_placed(answer_bytes_);
  answer_bytes_ = 0;
  answer_unwanted_ = false;
  if (pump && !wrong && !stream_.over()) stream_.queue_pair().sends().pump();
  return wrong;
}

bool Requester::refused(const SegmentHeader& offender, CloseReason reason) {
  RequestOutcomes& outcomes = stream_.queue_pair().outcomes();
  if (offender.opcode == Opcode::write) {
    const bool known = outcomes.write_refused(offender.stag, offender.tagged_offset, Connection::status_of(reason));
    return known || writes_complete_early();
  }
  if (offender.opcode == Opcode::read_request || offender.opcode == Opcode::atomic_request) {
    const std::optional<NamedRead> read = find_asked(offender.sequence);
    return read && (read->ours || outcomes.read_refused(read->before, Connection::status_of(reason)));
  }
  if (is_tagged(offender.opcode) || queue_of(offender.opcode) != kSendQueue) return false;
  const auto sent = [&] {
    os::Guard guard(outgoing_.lock());
    return send_sequence_ - offender.sequence;
  };
  outcomes.message_refused(sent, Connection::status_of(reason));
  return true;  // it may have completed, and then what comes behind is not to blame
}

// Nothing is asked behind them that the peer would answer.
bool Requester::writes_complete_early() {
  os::Guard guard(outgoing_.lock());
  return !terms_.reads_known || terms_.reads_out == 0;
}

// Nothing: none that is under way has this number.
std::optional<Requester::NamedRead> Requester::find_asked(std::uint32_t sequence) {
  os::Guard guard(outgoing_.lock());
  const std::size_t from_it_on = request_sequence_ - sequence;
  if (from_it_on == 0 || from_it_on > asked_.size()) return std::nullopt;
  const std::span<const Asked> before = std::span(asked_).first(asked_.size() - from_it_on);
  const auto programs = std::count_if(before.begin(), before.end(), [](const Asked& asked) { return !asked.ours; });
  return NamedRead{static_cast<std::size_t>(programs), asked_[before.size()].ours};
}

// ---- memory

void Requester::wants_pages() {
  stream_.fabric().schedule_turn(stream_.reading_turn());
}

void Requester::pages_brought(const OwnPages&, const OwnPages::Brought& news) {
  if (stream_.over()) return;
  if (news.there || !stream_.queue_pair().sends().fail_blocked(news.address, false, WorkStatus::local_protection)) {
    wants_pages();  // if it is not there, who wanted it is no more, or asks again
  }
}

}  // namespace anydat::nic::soft::iwarp
