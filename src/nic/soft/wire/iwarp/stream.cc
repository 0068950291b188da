// SPDX-License-Identifier: BSD-3-Clause
// A connection over TCP: its turns, and how it ends.
#include "nic/soft/wire/iwarp/stream.h"

#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/sockets.h"

namespace anydat::nic::soft::iwarp {

TcpStream::TcpStream(Fabric& fabric, SoftQueuePair& queue_pair) : fabric_(fabric), queue_pair_(queue_pair) {}

TcpStream::~TcpStream() {
  waiting_.drop();
  hang_up();
  fabric_.forget(turn_);
}

bool TcpStream::take_socket(base::UniqueFd socket) {
  ended_ = hung_up_ = false;
  socket_ = std::move(socket);
  return socket_ && fabric_.watch(*this, socket_.get());
}

// ---- events of the socket

void TcpStream::ready(std::uint32_t events) {
  if (negotiation_.phase() == Phase::connecting) {
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) negotiation_.dialled();
    // Who speaks first may have spoken by now, and epoll tells of it once.
    if (negotiation_.phase() != Phase::asking) return;
  }
  if ((events & EPOLLOUT) != 0) {
    bool waits = false;
    {
      base::Guard guard(outgoing_.lock());
      waits = outgoing_.line().blocked();
      outgoing_.line().writable();
    }
    if (waits) turn();
  }
  if ((events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0 && !hung_up_) {
    hung_up_ = true;
    placement_.limit_wait();
    waiting_.look_past();
  }
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0 && socket_) told();
}

// There is something to read. One that has bytes in hand has its turn in line.
void TcpStream::told() {
  if (turn_.had_in_round()) {
    if (!turn_.wanted()) turn_.want_behind_others();
  } else if (!turn_.wanted()) {
    receive(true);
  } else if (!waiting_.holds_bytes() && !waiting_.stuck()) {
    fabric_.forget(turn_);
    turn(true);
  }
}

bool TcpStream::turn(bool told) {
  if (closed_) return false;
  if (negotiation_.phase() == Phase::connecting && !socket_) {
    negotiation_.fail(ConnectFailure::refused);
    return true;
  }
  if (!socket_) return false;
  or_break([this] {
    requester_.bring();
    responder_.bring();
    placement_.bring();
  });
  if (closed_) return true;
  bool moved = false;
  bool pump = false;
  bool broken = false;
  bool memory_is_gone = false;
  {
    base::Guard guard(outgoing_.lock());
    const Transmitter& line = outgoing_.line();
    moved = !line.idle() && !line.blocked();
    outgoing_.flush();
    pump = outgoing_.may_send() && outgoing_.wakes();
    broken = line.broken();
    memory_is_gone = line.memory_is_gone();
  }
  if (memory_is_gone) {
    fabric_.adapter().batch().flush();
    base::log(base::LogLevel::warn, "a connection over TCP is cut: memory that was to be sent is not mapped any more");
    queue_pair_.connection().break_off(WorkStatus::flushed, CloseReason::request_failed);
    return true;
  }
  if (broken) {
    out_of_memory();
    return true;
  }
  messages_.confirm_delivered();
  or_break([&] { moved |= responder_.serve(); });
  if (pump && !closed_) moved |= queue_pair_.sends().pump();
  if (turn_.wanted() && !closed_) moved |= receive(told);
  return moved;
}

void TcpStream::look_for_silence(base::Nanoseconds limit) {
  if (!socket_ || closed_ || negotiation_.phase() == Phase::connecting || !silent_for(socket_.get(), limit)) return;
  base::log(base::LogLevel::warn, "the host at the other end of a connection over TCP does not answer any more");
  lost(ETIMEDOUT);
}

void TcpStream::descriptors_lost() {
  if (negotiation_.phase() == Phase::connecting) {
    negotiation_.fail(ConnectFailure::refused);
  } else {
    lost(EBADF);
  }
}

// ---- the end

void TcpStream::out_of_memory() {
  fabric_.adapter().batch().flush();
  base::log(base::LogLevel::warn, "a connection over TCP is cut: no memory");
  switch (negotiation_.phase()) {
    case Phase::inquiring:
    case Phase::connecting:
    case Phase::asking:
    case Phase::greeting:
      negotiation_.fail(ConnectFailure::refused);
      return;
    case Phase::accepting:
      close(CloseReason::local_error);
      queue_pair_.connection().establishment().accept_failed();
      return;
    default:
      queue_pair_.connection().break_off(WorkStatus::flushed, CloseReason::local_error);
  }
}

void TcpStream::refuse(TerminateCode code, CloseReason reason) {
  reader_.blame(code, last_words_);
  refuse_in_words(code, reason);
}

// The segments of that message may have gone by; what is known of them makes a header.
void TcpStream::prepare_last_words_on_message(TerminateCode code) {
  if (waiting_.parked().empty() && (reader_.straight() || reader_.amid_message())) {
    reader_.blame(code, last_words_);
    return;
  }
  const std::uint32_t invalidates = waiting_.parked().empty() ? 0 : waiting_.parked().oldest().invalidates;
  last_words_.blame_send(code, messages_.delivered() + 1, invalidates);
}

void TcpStream::refuse_parked(TerminateCode code, CloseReason reason) {
  prepare_last_words_on_message(code);
  refuse_in_words(code, reason);
}

// Which of the peer's requests is at fault, if that is known.
void TcpStream::prepare_last_words_for(CloseReason reason) {
  const WorkStatus failure = queue_pair_.receives().failure();
  if (failure == WorkStatus::local_length) {
    prepare_last_words_on_message(ddp_error::kMessageTooLong);
  } else if (failure != WorkStatus::success || reason == CloseReason::receiver_not_ready) {
    prepare_last_words_on_message(code_of(reason));
  } else {
    last_words_.blame_nobody(code_of(reason));
  }
}

void TcpStream::refuse_in_words(TerminateCode code, CloseReason reason) {
  base::log(base::LogLevel::warn, "a connection over TCP is ended: {}", describe(code));
  if (negotiation_.phase() == Phase::accepting) {
    close(reason);
    queue_pair_.connection().establishment().accept_failed();
    return;
  }
  if (negotiation_.phase() == Phase::greeting) {
    close(reason);
    queue_pair_.connection().establishment().failed(ConnectFailure::refused);
    return;
  }
  queue_pair_.connection().break_off(WorkStatus::flushed, reason);
}

// The peer has ended the stream and says why.
void TcpStream::terminated(std::span<const std::byte> payload) {
  closed_ = true;
  Terminate message;
  if (!parse_terminate(payload, message)) {
    queue_pair_.connection().peer_lost(WorkStatus::bad_response);
    return;
  }
  base::log(base::LogLevel::warn, "the peer has ended a connection over TCP: {}", describe(message.code));
  // Requests before the one at fault have been done: the peer takes them in order.
  SegmentHeader offender;
  CloseReason reason = reason_of(message.code);
  if (!message.segment_header.empty() && !parse_segment_header(message.segment_header, offender)) {
    // What it has no buffer for is the request of a Read, beyond those it takes at once (RDR-12).
    const bool of_read = offender.opcode == Opcode::read_request || offender.opcode == Opcode::atomic_request;
    if (of_read && reason == CloseReason::receiver_not_ready) reason = CloseReason::local_error;
    if (requester_.refused(offender, reason)) reason = CloseReason::request_failed;
  }
  if (message.code.layer == kMpaLayer) {
    queue_pair_.connection().peer_lost(WorkStatus::transport);
  } else {
    queue_pair_.connection().peer_closed(reason);
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
    case Signal::goodbye: {
      if (said_goodbye_) return;
      said_goodbye_ = true;
      const bool graceful = static_cast<std::uint32_t>(offset) == static_cast<std::uint32_t>(CloseReason::graceful);
      if (!graceful) {
        closed_ = true;
        waiting_.drop();
      }
      queue_pair_.connection().peer_closed(graceful ? CloseReason::graceful : CloseReason::abrupt);
      return;
    }
  }
}

void TcpStream::end_of_stream() {
  ended_ = true;
  if (negotiation_.phase() == Phase::asking) {
    negotiation_.hung_up_on();
    return;
  }
  if (negotiation_.phase() == Phase::greeting) {
    negotiation_.fail(ConnectFailure::refused);
    return;
  }
  if (said_goodbye_) return;  // and its connection ends when what it sent has been delivered
  if (negotiation_.phase() == Phase::accepting) {
    closed_ = true;
    queue_pair_.connection().establishment().accept_failed();
    return;
  }
  // Others than us end in order by hanging up between messages; the rest of one would be waited for in vain.
  const bool in_frame = !reader_.between_frames();
  const bool in_message = messages_.current() || (!waiting_.parked().empty() && !waiting_.parked().newest().whole);
  if (!peer_is_ours() && !in_frame && !in_message && !discards_) {
    queue_pair_.connection().peer_closed(CloseReason::graceful);
  } else {
    closed_ = true;
    queue_pair_.connection().peer_lost(WorkStatus::transport);
  }
}

// A reset is told once, to whichever of the two halves asks the socket first.
int TcpStream::loss_told_to_sender() {
  base::Guard guard(outgoing_.lock());
  return outgoing_.line().loss();
}

void TcpStream::lost(int error) {
  ended_ = true;
  if (negotiation_.phase() == Phase::asking) {
    // Many reset a connection rather than hang up.
    if (error == ECONNRESET) {
      end_of_stream();
    } else {
      negotiation_.fail(failure_of(error));
    }
    return;
  }
  if (said_goodbye_) return;
  closed_ = true;  // also of a connection that is still being set up
  queue_pair_.connection().peer_lost(WorkStatus::transport);
}

Transmitter TcpStream::take_line() {
  base::Guard guard(outgoing_.lock());
  outgoing_.let_send(false);
  return std::move(outgoing_.line());
}

// The socket goes its own way from here; what is in line is still sent.
void TcpStream::hang_up() {
  negotiation_.abandon();
  if (!socket_) return;
  fabric_.unwatch(*this, socket_.get());
  // What has only been asked for needs no end in order.
  const bool said_anything = negotiation_.phase() != Phase::connecting && negotiation_.phase() != Phase::asking;
  negotiation_.end();
  Transmitter rest = take_line();
  if (!said_anything || (ended_ && rest.idle()) || !fabric_.engine().descriptor_loss().descriptors_are_ours()) {
    socket_.reset();
  } else {
    fabric_.setups_and_ends().part(std::move(socket_), std::move(rest), Stranger::Stage::parting,
                                   negotiation_.remote());
  }
}

void TcpStream::close(CloseReason reason) {
  if (closed_ && !socket_) return;
  closed_ = true;
  const bool in_order = reason == CloseReason::graceful || reason == CloseReason::abrupt;
  if (!in_order && !last_words_.prepared()) prepare_last_words_for(reason);
  waiting_.drop();
  if (socket_ && (negotiation_.phase() == Phase::open || negotiation_.phase() == Phase::greeting) &&
      fabric_.engine().descriptor_loss().descriptors_are_ours()) {
    base::Guard guard(outgoing_.lock());
    outgoing_.let_send(false);  // nothing follows the last words
    messages_.say_last(outgoing_);
    if (in_order) {
      outgoing_.say(Signal::goodbye, static_cast<std::uint32_t>(reason));
    } else {
      last_words_.say(outgoing_.line());
    }
    outgoing_.line().flush();
  }
  hang_up();
}

bool TcpStream::let_go() {
  closed_ = true;
  waiting_.drop();
  messages_.forget_current();
  hang_up();
  return true;
}

std::size_t TcpStream::untaken() {
  base::Guard guard(outgoing_.lock());
  return outgoing_.line().waiting() + (socket_ ? unacknowledged(socket_.get()) : 0);
}

}  // namespace anydat::nic::soft::iwarp
