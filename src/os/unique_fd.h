// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include "os/descriptors.h"

namespace anydat::os {

// Owns one file descriptor, which the child of a fork does not keep. One that the program has closed is not closed
// again, since its number may be the program's.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd), ticket_(ticket_of(fd)) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), ticket_(std::exchange(other.ticket_, {})) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
      ticket_ = std::exchange(other.ticket_, {});
    }
    return *this;
  }
  ~UniqueFd() { reset(); }

  // Of what `open` returns, by a number out of the program's way. No fork comes between.
  template <typename Open>
  static UniqueFd of(Open&& open) {
    const ForkHeldOff held_off;
    return UniqueFd(Descriptors::move_up(open()));
  }

  // -1 once the number is another descriptor's of ours, after the program has closed this one.
  int get() const { return is_current() ? fd_ : -1; }
  explicit operator bool() const { return fd_ >= 0; }
  // Whether the program has left it alone. A system call.
  bool is_ours() const { return fd_ >= 0 && Descriptors::is_ours(fd_, ticket_); }
  void reset(int fd = -1) {
    if (fd_ >= 0) {
      const ForkHeldOff held_off;
      Descriptors::close(fd_, ticket_);
    }
    fd_ = fd;
    ticket_ = ticket_of(fd);
  }

  // For what may take long to close. A fork does not wait for it.
  void reset_slowly() {
    if (fd_ >= 0) Descriptors::close_slowly(fd_, ticket_);
    fd_ = -1;
    ticket_ = {};
  }

  // The child of a fork keeps a copy of it: what it belongs to is there, too.
  void keep_in_child() {
    if (fd_ >= 0) Descriptors::keep_in_child(fd_, ticket_);
  }

 private:
  bool is_current() const { return fd_ >= 0 && Descriptors::is_current(fd_, ticket_); }
  static Descriptors::Ticket ticket_of(int fd) { return fd >= 0 ? Descriptors::note(fd) : Descriptors::Ticket{}; }

  int fd_ = -1;
  Descriptors::Ticket ticket_;
};

}  // namespace anydat::os
