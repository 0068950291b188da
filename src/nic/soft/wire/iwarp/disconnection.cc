// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/disconnection.h"

#include <cerrno>
#include <utility>

#include "env/log.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/sockets.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

namespace {

using Phase = Negotiation::Phase;

}  // namespace

inline Connection& Disconnection::connection() {
  return stream_.queue_pair().connection();
}

inline Negotiation& Disconnection::negotiation() {
  return stream_.negotiation();
}

// ---- ends by this side

void Disconnection::close(CloseReason reason) {
  if (closed_ && !stream_.has_socket()) return;
  closed_ = true;
  const bool in_order = reason == CloseReason::graceful || reason == CloseReason::abrupt;
  if (!in_order && !pending_terminate_.prepared()) prepare_terminate_for(reason);
  stream_.waiting().drop();
  if (stream_.has_socket() && (negotiation().phase() == Phase::open || negotiation().phase() == Phase::greeting) &&
      stream_.fabric().engine().descriptor_loss().descriptors_are_ours()) {
    OutgoingHalf& outgoing = stream_.outgoing();
    os::Guard guard(outgoing.lock());
    outgoing.let_send(false);  // nothing follows the close notify, or the Terminate
    stream_.messages().say_last(outgoing);
    if (in_order) {
      outgoing.say(Signal::close_notify, static_cast<std::uint32_t>(reason));
    } else {
      pending_terminate_.send(outgoing.line());
    }
    outgoing.line().flush();
  }
  hang_up();
}

bool Disconnection::let_go() {
  closed_ = true;
  stream_.waiting().drop();
  stream_.messages().forget_current();
  hang_up();
  return true;
}

// The socket goes its own way from here.
void Disconnection::hang_up() {
  negotiation().abandon();
  if (!stream_.has_socket()) return;
  stream_.fabric().unwatch(stream_, stream_.socket());
  // What has only been asked for needs no end in order.
  const bool said_anything = negotiation().phase() != Phase::connecting && negotiation().phase() != Phase::asking;
  negotiation().end();
  Transmitter rest = take_line();
  if (!said_anything || (input_ended_ && rest.idle()) ||
      !stream_.fabric().engine().descriptor_loss().descriptors_are_ours()) {
    stream_.drop_socket();
  } else {
    stream_.fabric().setups_and_ends().part(stream_.leave_socket(), std::move(rest), Stranger::Stage::lingering,
                                            negotiation().remote());
  }
}

Transmitter Disconnection::take_line() {
  OutgoingHalf& outgoing = stream_.outgoing();
  os::Guard guard(outgoing.lock());
  outgoing.let_send(false);
  return std::move(outgoing.line());
}

void Disconnection::refuse(TerminateCode code, CloseReason reason) {
  stream_.reader().blame(code, pending_terminate_);
  refuse_with_terminate(code, reason);
}

void Disconnection::refuse_message(TerminateCode code, CloseReason reason) {
  prepare_terminate_on_message(code);
  refuse_with_terminate(code, reason);
}

void Disconnection::refuse_with_terminate(TerminateCode code, CloseReason reason) {
  env::log(env::LogLevel::warn, "a connection over TCP is ended: {}", describe(code));
  if (negotiation().phase() == Phase::accepting) {
    close(reason);
    connection().establishment().accept_failed();
    return;
  }
  if (negotiation().phase() == Phase::greeting) {
    close(reason);
    connection().establishment().failed(ConnectFailure::refused);
    return;
  }
  connection().break_off(WorkStatus::flushed, reason);
}

// The segments of that message may have gone by; what is known of them makes a header.
void Disconnection::prepare_terminate_on_message(TerminateCode code) {
  ReceiveBacklog& backlog = stream_.waiting().backlog();
  if (backlog.empty() && (stream_.reader().straight() || stream_.reader().amid_message())) {
    stream_.reader().blame(code, pending_terminate_);
    return;
  }
  const std::uint32_t invalidates = backlog.empty() ? 0 : backlog.oldest().invalidates;
  pending_terminate_.blame_send(code, stream_.messages().delivered() + 1, invalidates);
}

// Which of the peer's requests is at fault, if that is known.
void Disconnection::prepare_terminate_for(CloseReason reason) {
  const WorkStatus failure = stream_.queue_pair().receives().failure();
  if (failure == WorkStatus::local_length) {
    prepare_terminate_on_message(ddp_error::kMessageTooLong);
  } else if (failure != WorkStatus::success || reason == CloseReason::receiver_not_ready) {
    prepare_terminate_on_message(code_of(reason));
  } else {
    pending_terminate_.blame_nobody(code_of(reason));
  }
}

void Disconnection::out_of_memory() {
  stream_.fabric().adapter().batch().flush();
  env::log(env::LogLevel::warn, "a connection over TCP is cut: no memory");
  switch (negotiation().phase()) {
    case Phase::inquiring:
    case Phase::connecting:
    case Phase::asking:
    case Phase::greeting:
      negotiation().fail(ConnectFailure::refused);
      return;
    case Phase::accepting:
      close(CloseReason::local_error);
      connection().establishment().accept_failed();
      return;
    default:
      connection().break_off(WorkStatus::flushed, CloseReason::local_error);
  }
}

// ---- ends by the peer

// There may be more to read: how the peer ends comes behind all that it sent.
void Disconnection::peer_hung_up() {
  if (hung_up_) return;
  hung_up_ = true;
  stream_.placement().limit_wait();
  stream_.waiting().look_past();
}

void Disconnection::peer_sent_close_notify(std::uint32_t reason) {
  if (sent_close_notify_) return;
  sent_close_notify_ = true;
  const bool graceful = reason == static_cast<std::uint32_t>(CloseReason::graceful);
  if (!graceful) {
    closed_ = true;
    stream_.waiting().drop();
  }
  connection().peer_closed(graceful ? CloseReason::graceful : CloseReason::abrupt);
}

// The peer has ended the stream and says why.
void Disconnection::terminated(std::span<const std::byte> payload) {
  closed_ = true;
  Terminate message;
  const bool understood = parse_terminate(payload, message);
  if (understood) {
    env::log(env::LogLevel::warn, "the peer has ended a connection over TCP: {}", describe(message.code));
  }
  if (set_up_ended()) return;
  if (!understood) {
    connection().peer_lost(WorkStatus::bad_response);
    return;
  }
  // Requests before the one at fault have been done: the peer takes them in order.
  SegmentHeader offender;
  CloseReason reason = reason_of(message.code);
  if (!message.segment_header.empty() && !parse_segment_header(message.segment_header, offender)) {
    // What it has no buffer for is the request of a Read, beyond those it takes at once (RDR-12).
    const bool of_read = offender.opcode == Opcode::read_request || offender.opcode == Opcode::atomic_request;
    if (of_read && reason == CloseReason::receiver_not_ready) reason = CloseReason::local_error;
    if (stream_.requester().refused(offender, reason)) reason = CloseReason::request_failed;
  }
  if (message.code.layer == kMpaLayer) {
    connection().peer_lost(WorkStatus::transport);
  } else {
    connection().peer_closed(reason);
  }
}

// True: the peer has ended it in the place of its first message, and there has been no connection.
bool Disconnection::set_up_ended() {
  switch (negotiation().phase()) {
    case Phase::greeting:
      negotiation().fail(ConnectFailure::refused);
      return true;
    case Phase::accepting:
      closed_ = true;
      connection().establishment().accept_failed();
      return true;
    default:
      return false;
  }
}

void Disconnection::end_of_input() {
  if (const int error = loss_told_to_sender(); error != 0) {
    lost(error);
  } else {
    end_of_stream();
  }
}

// A reset is told once, to whichever of the two halves asks the socket first.
int Disconnection::loss_told_to_sender() {
  OutgoingHalf& outgoing = stream_.outgoing();
  os::Guard guard(outgoing.lock());
  return outgoing.line().loss();
}

void Disconnection::end_of_stream() {
  input_ended_ = true;
  if (negotiation().phase() == Phase::asking) {
    negotiation().hung_up_on();
    return;
  }
  if (set_up_ended()) return;
  if (sent_close_notify_) return;  // and its connection ends when what it sent has been delivered
  // Others than us end in order by hanging up between messages; the rest of one would be waited for in vain.
  const bool in_frame = !stream_.reader().between_frames();
  ReceiveBacklog& backlog = stream_.waiting().backlog();
  const bool in_message = stream_.messages().current() || (!backlog.empty() && !backlog.newest().whole);
  if (!negotiation().peer_is_ours() && !in_frame && !in_message && !discards_) {
    connection().peer_closed(CloseReason::graceful);
  } else {
    closed_ = true;
    connection().peer_lost(WorkStatus::transport);
  }
}

void Disconnection::lost(int error) {
  input_ended_ = true;
  if (negotiation().phase() == Phase::asking) {
    // Many reset a connection rather than hang up.
    if (error == ECONNRESET) {
      end_of_stream();
    } else {
      negotiation().fail(failure_of(error));
    }
    return;
  }
  if (sent_close_notify_) return;
  closed_ = true;  // also of a connection that is still being set up
  connection().peer_lost(WorkStatus::transport);
}

}  // namespace anydat::nic::soft::iwarp
