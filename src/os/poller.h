// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "os/epoll.h"
#include "os/unique_fd.h"

namespace anydat::os {

// A set of descriptors to sleep on, and a bell that wakes who sleeps there.
//
// The bell is a descriptor that is always ready, and is watched or not watched. So ringing it writes nothing, and says
// whether both descriptors still are what they were: a program may have closed them with its own, and have other files
// by their numbers. Those may be a set and a bell as well: the numbers of a second copy of this library are given in
// the same order. So the bell has a number by chance, and a file of its own, which is looked at before the set is
// changed, but by ringing. What a set says is marked with a number of ours, so that what another's says is told apart
// without a question to the system.
//
// Thread safety: open() first; then any thread may call anything.
class Poller {
 public:
  // False when the system has no room for it.
  bool open();
  // Readable when any of those that are watched is ready, or the bell rings: for poll(2).
  int descriptor() const { return epoll_.descriptor(); }

  // `data` is not null. False when the system has no room for another. Each does nothing once the bell is another's.
  bool watch(int fd, std::uint32_t events, void* data) { return bell_.is_ours() && epoll_.watch(fd, events, data); }
  void change(int fd, std::uint32_t events, void* data) {
    if (bell_.is_ours()) epoll_.change(fd, events, data);
  }
  void forget(int fd) {
    if (bell_.is_ours()) epoll_.forget(fd);
  }
  // What is ready, as Epoll::ready() says. The bell has null.
  int ready(std::span<epoll_event> events) const {
    const int count = epoll_.ready(events);
    return count > 0 && !epoll_.tells_sets_apart() && !is_ours() ? Epoll::kSetOfAnother : count;
  }

  // Each says whether the descriptors still are what they were.
  bool ring() const { return set_bell(EPOLLOUT); }
  bool silence() const { return set_bell(0); }
  bool is_ours() const;

 private:
  // Our bell is in no other set, and another's has its number hardly ever, so nothing but ours takes the change. To ask
  // for the file as well would cost each sleep one more call of the system, or two.
  bool set_bell(std::uint32_t events) const { return epoll_.change(bell_.get(), events, nullptr); }

  Epoll epoll_;
  UniqueFd bell_;
};

}  // namespace anydat::os
