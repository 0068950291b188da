// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "os/unique_fd.h"

namespace anydat::os {

// A set of descriptors, each with the events that are waited for and an address that comes with them (epoll(7)). A
// descriptor that has been closed need not be forgotten.
//
// A program that closes descriptors that are not its own may have a set of its own by this one's number. What a set
// brings is marked with a number, so that what such a set brings is told apart without a question to the system.
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
  // What is ready, without waiting: how many, -1 if it cannot be told, or kSetOfAnother if the set turns out to be the
  // program's. Unless it tells_sets_apart(), that is for the caller to find out.
  static constexpr int kSetOfAnother = -2;
  int ready(std::span<epoll_event> events) const;
  bool tells_sets_apart() const { return !tagged_.load(std::memory_order_relaxed); }

 private:
  // What a program puts into a set of its own is an address or a small number; the mark stands in the bits above those
  // of an address, is not 0, and that of no other set of this copy of the library.
  static constexpr int kAddressBits = 48;

  bool control(int operation, int fd, std::uint32_t events, void* data) const;

  std::uint64_t mark_ = 0;  // fixed by open()
  // Whether an address had bits there itself, as where the allocator tags what it gives out. Then no mark is looked at.
  mutable std::atomic<bool> tagged_{false};
  UniqueFd fd_;
};

}  // namespace anydat::os
