// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>

#include "base/unique_fd.h"

namespace anydat::os {

// A set of descriptors to sleep on, and a bell that wakes who sleeps there.
//
// The bell is a descriptor that is always ready, and is watched or not watched. So ringing it writes nothing, and says
// whether both descriptors still are what they were: a program may have closed them with its own, and have other files
// by their numbers. What a set says is marked with a number of ours, so that what another's says is told apart without a
// question to the system.
//
// Thread safety: open() first; then any thread may call anything.
class Poller {
 public:
  // False when the system has no room for it.
  bool open();
  // Readable when any of those that are watched is ready, or the bell rings: for poll(2).
  int descriptor() const { return epoll_.get(); }

  // `data` is not null. False when the system has no room for another.
  bool watch(int fd, std::uint32_t events, void* data);
  void change(int fd, std::uint32_t events, void* data);
  void forget(int fd);
  // What is ready, without waiting: how many, -1 if it cannot be told, or kSetOfAnother if the set turns out to be the
  // program's. The bell has null.
  static constexpr int kSetOfAnother = -2;
  int ready(std::span<epoll_event> events) const;

  // Each says whether the descriptors still are what they were.
  bool ring() const { return set_bell(EPOLLOUT); }
  bool silence() const { return set_bell(0); }
  bool is_ours() const;

 private:
  // What a program puts into a set of its own is an address or a small number; the mark stands in the bits above those of
  // an address and is not 0.
  static constexpr int kAddressBits = 48;

  epoll_event event_of(std::uint32_t events, void* data) const;
  bool set_bell(std::uint32_t events) const;

  std::uint64_t mark_ = 0;  // fixed by open()
  base::UniqueFd epoll_;
  base::UniqueFd bell_;
};

}  // namespace anydat::os
