// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/unique_fd.h"

namespace anydat::nic::soft {

// A socket that listens. A process without descriptors could not even tell its callers to go away, and would be woken
// by them for ever: one descriptor is kept for that.
class AcceptingSocket {
 public:
  explicit AcceptingSocket(base::UniqueFd socket) : socket_(std::move(socket)) { keep_spare(); }

  int get() const { return socket_.get(); }
  explicit operator bool() const { return socket_ && spare_; }

  // Calls f(base::UniqueFd) for those who have called, up to a bound.
  template <typename F>
  void accept_some(F&& f) {
    for (int i = 0; i < kCallersPerTurn; ++i) {
      base::UniqueFd caller = accept();
      if (!caller && (errno == EMFILE || errno == ENFILE) && turn_away()) continue;
      if (!caller) return;
      f(std::move(caller));
    }
  }

 private:
  static constexpr int kCallersPerTurn = 64;

  base::UniqueFd accept() const {
    return base::UniqueFd(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  }
  void keep_spare() { spare_.reset(fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0)); }
  bool turn_away() {  // false if nobody called
    spare_.reset();
    const bool called = static_cast<bool>(accept());
    keep_spare();
    return called;
  }

  base::UniqueFd socket_;
  base::UniqueFd spare_;
};

}  // namespace anydat::nic::soft
