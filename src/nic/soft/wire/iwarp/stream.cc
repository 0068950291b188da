// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/stream.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "env/log.h"
#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "os/socket.h"
#include "os/tcp_socket.h"

namespace anydat::nic::soft::iwarp {

TcpStream::TcpStream(Fabric& fabric, SoftQueuePair& queue_pair) : fabric_(fabric), queue_pair_(queue_pair) {}

TcpStream::~TcpStream() {
  waiting_.drop();
  disconnection_.hang_up();
  fabric_.forget(turn_);
}

bool TcpStream::take_socket(os::UniqueFd socket) {
  disconnection_.takes_socket();
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
      os::Guard guard(outgoing_.lock());
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
  } else if (!waiting_.has_stash() && !waiting_.blocked()) {
    fabric_.forget(turn_);
    turn(true);
  }
}

bool TcpStream::turn(bool told) {
  if (over()) return false;
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
    os::Guard guard(outgoing_.lock());
    const Transmitter& line = outgoing_.line();
    moved = !line.idle() && !line.blocked();
    outgoing_.flush();
    if (outgoing_.may_send()) requester_.ask_for_answer();
    pump = outgoing_.may_send() && outgoing_.wakes();
    broken = line.broken();
    memory_is_gone = line.memory_is_gone();
  }
  if (memory_is_gone) {
    fabric_.adapter().batch().flush();
    env::log(env::LogLevel::warn, "a connection over TCP is cut: memory that was to be sent is not mapped any more");
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

// ---- receiving

// `told`: epoll has just named it, and those that it names have had word in that order.
bool TcpStream::receive(bool told) {
  bool any = false;
  turn_.begin();
  placement_.set_read_at(fabric_.engine().ticks());
  if (waiting_.has_stash() && !over() && !waiting_.reads_no_more()) {
    any = true;
    disconnection_.or_break([this] { waiting_.take_in_stash(); });
    messages_.confirm_delivered();
    if (turn_.over() && !over()) {
      turn_.want_behind_others();
      return any;
    }
  }
  std::size_t total = 0;
  for (int i = 0; i < budget::kReadsPerTurn && total < budget::kReadPerTurn; ++i) {
    // Set-up reads what is there, once; whatever follows belongs to what comes of it.
    if (over() || disconnection_.input_has_ended() || !socket_ || negotiation_.phase() == Phase::connecting) return any;
    if (waiting_.reads_no_more()) return any;
    // What had been read is used up, and ended with a message.
    if (any && turn_.ends_with_message()) break;
    std::size_t wanted = 0;
    turn_.reads(std::exchange(told, false));
    const ssize_t count = read_some(wanted);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      turn_.end_early();
      return any;
    }
    any = true;
    if (count < 0) {
      disconnection_.lost(errno);
      return any;
    }
    if (count == 0) {
      disconnection_.end_of_input();
      return any;
    }
    fabric_.adapter().batch().flush();
    messages_.confirm_delivered();
    total += static_cast<std::size_t>(count);
    if (turn_.over() || (total >= budget::kReadWhileOthersWait && turn_.others_wait())) {
      if (!over()) turn_.want_behind_others();
      return any;
    }
    // Less than was asked for: that was all, but for an end of the stream, of which there has been word.
    if (static_cast<std::size_t>(count) < wanted && !disconnection_.hung_up()) {
      turn_.end_early();
      return any;
    }
  }
  turn_.want_behind_others();
  return any;
}

// What recv(2) says. `wanted`: how much there was room for.
ssize_t TcpStream::read_some(std::size_t& wanted) {
  const std::span<std::byte> staging = fabric_.staging().bytes();
  std::array<iovec, kSegmentsMax + 1> pieces;
  std::size_t used = 0;
  if (reader().is_worth_reading_directly()) {
    used = placement_.aim(std::span(pieces).first(kSegmentsMax), reader().payload_left());
    if (over() || placement_.awaits_memory()) {
      errno = EAGAIN;
      return -1;
    }
  }
  std::size_t direct = 0;
  for (const iovec& piece : std::span(pieces).first(used)) direct += piece.iov_len;
  const std::size_t room = std::min(staging.size(), reader().staged_bytes(used > 0));
  pieces[used] = {staging.data(), room};
  wanted = direct + room;
  const ssize_t count = used == 0 ? os::receive_now(socket_.get(), staging.first(room))
                                  : os::receive_now(socket_.get(), std::span(pieces).first(used + 1));
  if (count <= 0) return count;
  order_.seen();
  placement_.set_read_at(fabric_.engine().ticks());
  const std::size_t placed = std::min(direct, static_cast<std::size_t>(count));
  if (placed > 0) {
    if (reader().crc()) {
      std::size_t left = placed;
      for (const iovec& piece : std::span(pieces).first(used)) {
        const std::size_t part = std::min(left, piece.iov_len);
        reader().sum({static_cast<const std::byte*>(piece.iov_base), part});
        left -= part;
      }
    }
    placement_.landed(placed);
  }
  turn_.has_read();
  disconnection_.or_break([&] {
    const std::span<const std::byte> rest = segments_.consume(staging.first(static_cast<std::size_t>(count) - placed));
    if ((waiting_.blocked() || turn_.over() || placement_.awaits_memory()) && !over()) waiting_.stash(rest);
  });
  return count;
}

// ---- what the fabric has noticed

void TcpStream::look_for_silence(os::Nanoseconds limit) {
  if (!socket_ || over() || negotiation_.phase() == Phase::connecting || !os::silent_for(socket_.get(), limit)) return;
  env::log(env::LogLevel::warn, "the host at the other end of a connection over TCP does not answer any more");
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
  os::Guard guard(outgoing_.lock());
  return outgoing_.line().waiting() + (socket_ ? os::unacknowledged(socket_.get()) : 0);
}

}  // namespace anydat::nic::soft::iwarp
