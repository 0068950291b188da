// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>

#include "base/unique_fd.h"

namespace anydat::os {

// A set of descriptors, each with the events that are waited for and a word that comes with them (epoll(7)). Who has
// closed a descriptor need not forget it.
//
// Thread safety: open() first; then any thread may call anything.
class Epoll {
 public:
  // False, with errno set, when the system has no room for it.
  bool open();
  bool is_open() const { return static_cast<bool>(fd_); }
  // Readable when any of those that are watched is ready: for poll(2).
  int descriptor() const { return fd_.get(); }
  // Whether the program has left the set alone. A system call.
  bool is_ours() const { return fd_.is_ours(); }

  // False, with errno set: EEXIST if it is watched already, or the system has no room for another.
  bool watch(int fd, std::uint32_t events, void* data) const;
  // False if it is not watched, or the set's descriptor is no longer the set's.
  bool change(int fd, std::uint32_t events, void* data) const;
  void forget(int fd) const;
  // What is ready, without waiting: how many, or -1 if it cannot be told.
  int ready(std::span<epoll_event> events) const;

 private:
  base::UniqueFd fd_;
};

}  // namespace anydat::os
