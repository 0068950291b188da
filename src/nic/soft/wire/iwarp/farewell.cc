// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/farewell.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/fabric.h"

namespace anydat::nic::soft::iwarp {

namespace {

constexpr base::Nanoseconds kPatience = 2 * base::kNsPerSecond;
// When the adapter closes, all that is under way shall arrive, but nobody waits long for it.
constexpr base::Nanoseconds kHurry = 200'000'000;

}  // namespace

Farewell::Farewell(Fabric& fabric, base::UniqueFd socket, Transmitter rest, Stage stage, const Address& source)
    : Stranger(fabric.adapter().strangers(), source, stage),
      fabric_(fabric),
      socket_(std::move(socket)),
      rest_(std::move(rest)),
      patience_([this] {
        // A peer that does not even read is told the hard way.
        const linger at_once{1, 0};
        setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        fabric_.finished(*this);
      }) {}

Farewell::~Farewell() {
  if (watched_) fabric_.engine().unwatch(socket_.get(), *this);
  fabric_.engine().cancel_timer(patience_);
}

void Farewell::begin() {
  if (!go_on()) {
    fabric_.finished(*this);
    return;
  }
  watched_ = fabric_.engine().watch(socket_.get(), said_ ? EPOLLIN : EPOLLIN | EPOLLOUT, *this);
  if (!watched_) {
    fabric_.finished(*this);
    return;
  }
  fabric_.engine().set_timer(patience_, base::now_ns() + kPatience);
}

void Farewell::turn_out() {
  if (watched_) fabric_.engine().unwatch(socket_.get(), *this);
  watched_ = false;
  socket_.reset();
  fabric_.finished(*this);
}

bool Farewell::go_on() {
  rest_.writable();
  rest_.flush();
  if (rest_.idle() && !said_) {
    said_ = true;
    shutdown(socket_.get(), SHUT_WR);
  }
  // Whatever the peer still says is heard and forgotten.
  std::array<std::byte, 4096> unheard;
  for (;;) {
    const ssize_t count = recv(socket_.get(), unheard.data(), unheard.size(), MSG_DONTWAIT);
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    return count < 0 && errno == EAGAIN;
  }
}

void Farewell::ready(std::uint32_t) {
  const bool was_said = said_;
  if (!go_on()) {
    fabric_.finished(*this);
  } else if (said_ && !was_said) {
    fabric_.engine().change_watch(socket_.get(), EPOLLIN, *this);
  }
}

void Farewell::hurry() {
  const base::Nanoseconds end = base::now_ns() + kHurry;
  while (go_on()) {
    const base::Nanoseconds left = end - base::now_ns();
    if (left <= 0) return;
    pollfd entry{socket_.get(), static_cast<short>(said_ ? POLLIN : POLLIN | POLLOUT), 0};
    ::poll(&entry, 1, static_cast<int>(left / 1'000'000 + 1));
  }
}

}  // namespace anydat::nic::soft::iwarp
