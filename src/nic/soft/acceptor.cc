// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/acceptor.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "nic/budget.h"
#include "os/descriptor.h"
#include "os/slow_close.h"
#include "os/socket.h"

namespace anydat::nic::soft {

namespace {

// From a lack of descriptors to the next attempt.
constexpr os::Nanoseconds kPause = 20'000'000;

// Of sockets that are not IP, nothing.
os::UniqueFd accept_from(int socket, Address& source) {
  sockaddr_storage any{};
  os::UniqueFd caller = os::accept(socket, any);
  source = {};
  if (!caller) return caller;
  if (any.ss_family == AF_INET) {
    source.v4 = reinterpret_cast<const sockaddr_in&>(any);
  } else if (any.ss_family == AF_INET6) {
    source.v6 = reinterpret_cast<const sockaddr_in6&>(any);
    if (IN6_IS_ADDR_V4MAPPED(&source.v6.sin6_addr)) {
      in_addr inside;
      std::copy_n(&source.v6.sin6_addr.s6_addr[12], sizeof inside, reinterpret_cast<std::uint8_t*>(&inside));
      source = {};
      source.v4.sin_family = AF_INET;
      source.v4.sin_addr = inside;
    }
  }
  return caller;
}

}  // namespace

Acceptor::Acceptor(Engine& engine, Strangers& strangers, os::UniqueFd socket, Taker taker)
    : engine_(engine),
      strangers_(strangers),
      socket_(std::move(socket)),
      way_(os::is_local(socket_.get()) ? Strangers::By::local_socket : Strangers::By::tcp),
      taker_(std::move(taker)),
      pause_timer_([this] { resume(); }) {
  keep_spare();
}

// What local callers have brought that are left may take long to close, one after the other, so that is not for the
// engine to wait for.
Acceptor::~Acceptor() {
  stop();
  spare_.reset();
  if (!has_callers_left_) return;
  const os::PeerName ourselves = os::peer_name(socket_.get());
  os::close_elsewhere(std::move(socket_), ourselves);
}

bool Acceptor::begin() {
  listens_ = socket_ && spare_ && engine_.watch(socket_.get(), EPOLLIN, *this);
  return listens_;
}

void Acceptor::stop() {
  if (!listens_) return;
  listens_ = false;
  engine_.cancel_timer(pause_timer_);
  engine_.unwatch(socket_.get(), *this);
  if (!socket_.is_ours()) return;
  os::stop_listening(socket_.get());
  has_callers_left_ = way_ == Strangers::By::local_socket && drop_local_callers();
}

// No peer can call any longer; callers over TCP get a reset when the socket is closed. Local ones are accepted only as
// long as there is room for what they leave behind. True: there may be more.
bool Acceptor::drop_local_callers() {
  while (Strangers::has_room(way_)) {
    Address nobody;
    const os::LocalSocket caller{accept_from(socket_.get(), nobody)};
    if (!caller) return errno != EAGAIN && errno != EINVAL;
  }
  return true;
}

void Acceptor::take_all_and_stop() {
  if (!listens_) return;
  if (!socket_.is_ours()) return stop();
  // No peer can call any longer, so this comes to an end.
  os::stop_listening(socket_.get());
  while (listens_ && Strangers::has_room(way_) && accept_one() == Outcome::taken) {
  }
  stop();
}

void Acceptor::keep_spare() {
  if (spare_ || !socket_.is_ours()) return;
  // By the lowest number: that a limit may be lowered to later, which a higher one would be no use under.
  spare_ = os::duplicate(socket_.get());
}

Acceptor::Outcome Acceptor::turn_away() {
  if (!spare_) return Outcome::no_room;
  spare_.reset();
  Address source;
  os::UniqueFd caller = accept_from(socket_.get(), source);
  if (!caller) return errno == EAGAIN ? Outcome::nobody : Outcome::no_room;
  if (strangers_.one_has_come(way_)) {  // in whose place he comes has left another descriptor to be kept
    taker_(std::move(caller), source);
  } else if (source.generic.sa_family == AF_UNSPEC) {
    os::LocalSocket(std::move(caller)).reset();
  }
  return Outcome::taken;
}

Acceptor::Outcome Acceptor::accept_one() {
  if (!strangers_.may_come(way_)) return Outcome::no_room;
  Address source;
  os::UniqueFd caller = accept_from(socket_.get(), source);
  if (caller) {
    strangers_.one_has_come(way_);
    taker_(std::move(caller), source);
    return Outcome::taken;
  }
  switch (errno) {
    case EAGAIN:
    case EINVAL:  // it has been shut down
      return Outcome::nobody;
    case EMFILE:
    case ENFILE: {
      const Outcome outcome = turn_away();
      keep_spare();  // the one that was turned away has left its place
      return outcome;
    }
    // A signal, or a caller that has gone again: Linux tells what has become of its connection.
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return Outcome::taken;
    default:
      return Outcome::no_room;
  }
}

void Acceptor::ready(std::uint32_t) {
  for (int i = 0; i < budget::kCallersPerTurn && listens_; ++i) {
    switch (accept_one()) {
      case Outcome::taken:
        continue;
      case Outcome::nobody:
        return;
      case Outcome::no_room:
        pause();
        return;
    }
  }
}

void Acceptor::pause() {
  engine_.change_watch(socket_.get(), 0, *this);
  engine_.set_timer(pause_timer_, os::now_ns() + kPause);
}

void Acceptor::resume() {
  keep_spare();
  engine_.change_watch(socket_.get(), EPOLLIN, *this);
}

}  // namespace anydat::nic::soft
