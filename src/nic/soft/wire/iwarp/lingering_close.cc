// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/lingering_close.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/fabric.h"
#include "os/socket.h"
#include "os/tcp_socket.h"

namespace anydat::nic::soft::iwarp {

LingeringClose::LingeringClose(Fabric& fabric, os::UniqueFd socket, Transmitter rest, Stage stage,
                               const Address& source)
    : Stranger(fabric.adapter().strangers(), source, stage),
      fabric_(fabric),
      socket_(std::move(socket)),
      rest_(std::move(rest)),
      unheard_(stage == Stage::lingering ? budget::kUnheardOfPeer : budget::kUnheardOfStranger),
      patience_(kEndIdle, kEndTotal, os::now_ns()),
      timer_([this] {
        const os::Nanoseconds now = os::now_ns();
        look(now);
        if (!over_) fabric_.engine().set_timer(timer_, patience_.next_look(now));
      }) {}

LingeringClose::~LingeringClose() {
  if (watched_) fabric_.engine().unwatch(socket_.get(), *this);
  fabric_.engine().cancel_timer(timer_);
}

void LingeringClose::begin() {
  if (!go_on()) {
    finish();
    return;
  }
  untaken_ = untaken();
  watched_ = fabric_.engine().watch(socket_.get(), said_ ? EPOLLIN : EPOLLIN | EPOLLOUT, *this);
  if (!watched_) {
    finish();
    return;
  }
  fabric_.engine().set_timer(timer_, patience_.next_look(os::now_ns()));
}

// What the socket has already, the kernel goes on delivering; a peer that gets no more than that is told by a reset.
void LingeringClose::turn_out() {
  if (watched_) fabric_.engine().unwatch(socket_.get(), *this);
  watched_ = false;
  if (!rest_.idle()) os::reset_on_close(socket_);
  socket_.reset();
  finish();
}

bool LingeringClose::go_on() {
  rest_.writable();
  rest_.flush();
  if (rest_.idle() && !said_) {
    said_ = true;
    os::stop_sending(socket_.get());
  }
  return hear();
}

// Whatever the peer still says is heard and forgotten: a part of it each time, since the descriptor says that there is
// more until there is not.
bool LingeringClose::hear() {
  const ssize_t count = os::discard_now(socket_.get(), std::min(budget::kUnheardPerTurn, unheard_ + 1));
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  if (static_cast<std::size_t>(count) > unheard_) {
    os::reset_on_close(socket_);
    return false;
  }
  unheard_ -= static_cast<std::size_t>(count);
  return true;
}

void LingeringClose::ready(std::uint32_t) {
  const bool was_said = said_;
  if (!go_on()) {
    finish();
  } else if (said_ && !was_said) {
    fabric_.engine().change_watch(socket_.get(), EPOLLIN, *this);
  }
}

// What the peer's host has not acknowledged, the end of the stream among it, whether the socket has it already or not.
std::size_t LingeringClose::untaken() const {
  return rest_.waiting() + os::unacknowledged(socket_.get()) + (said_ ? 0 : 1);
}

bool LingeringClose::progressed() {
  const std::size_t before = std::exchange(untaken_, untaken());
  return untaken_ < before;
}

void LingeringClose::look(os::Nanoseconds now) {
  if (over_) return;
  if (progressed()) patience_.progress(now);
  if (patience_.over(now)) cut();
}

void LingeringClose::cut() {
  if (untaken() > 0) os::reset_on_close(socket_);
  finish();
}

short LingeringClose::awaits() const {
  return said_ ? POLLIN : POLLIN | POLLOUT;
}

void LingeringClose::finish() {
  over_ = true;
  fabric_.setups_and_ends().finished(*this);
}

}  // namespace anydat::nic::soft::iwarp
