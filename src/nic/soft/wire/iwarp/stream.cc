// SPDX-License-Identifier: BSD-3-Clause
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
  disconnection_.hang_up();
  fabric_.forget(turn_);
}

bool TcpStream::take_socket(base::UniqueFd socket) {
  disconnection_.has_socket();
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
  if ((events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0) disconnection_.peer_hung_up();
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
  if (over()) return false;
  if (negotiation_.phase() == Phase::connecting && !socket_) {
    negotiation_.fail(ConnectFailure::refused);
    return true;
  }
  if (!socket_) return false;
  disconnection_.or_break([this] {
    requester_.bring();
    responder_.bring();
    placement_.bring();
  });
  if (over()) return true;
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
    disconnection_.out_of_memory();
    return true;
  }
  messages_.confirm_delivered();
  disconnection_.or_break([&] { moved |= responder_.serve(); });
  if (pump && !over()) moved |= queue_pair_.sends().pump();
  if (turn_.wanted() && !over()) moved |= receive(told);
  return moved;
}

void TcpStream::look_for_silence(base::Nanoseconds limit) {
  if (!socket_ || over() || negotiation_.phase() == Phase::connecting || !silent_for(socket_.get(), limit)) return;
  base::log(base::LogLevel::warn, "the host at the other end of a connection over TCP does not answer any more");
  disconnection_.lost(ETIMEDOUT);
}

void TcpStream::descriptors_lost() {
  if (negotiation_.phase() == Phase::connecting) {
    negotiation_.fail(ConnectFailure::refused);
  } else {
    disconnection_.lost(EBADF);
  }
}

std::size_t TcpStream::untaken() {
  base::Guard guard(outgoing_.lock());
  return outgoing_.line().waiting() + (socket_ ? unacknowledged(socket_.get()) : 0);
}

}  // namespace anydat::nic::soft::iwarp
