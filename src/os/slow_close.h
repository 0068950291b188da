// SPDX-License-Identifier: BSD-3-Clause
// Closing what others have a say in. A descriptor that a peer has passed may be of a socket that lingers, or of a file
// system whose server answers when it likes: closing it, or the socket that it waits in unread, takes as long as that.
// So it is left to threads that hold nothing, and that exist only while there is such a descriptor. What a process
// passes by a link of its own is counted as its own, and others are neither refused for it nor, while no more than a
// few processes do so at a time, wait behind it. What callers leave behind, of any user, counts for all of them
// together.
#pragma once

#include <cstddef>
#include <utility>

#include "os/peer_process.h"
#include "os/unique_fd.h"

namespace anydat::os {

// What the peer by this name has passed. From any thread. It never waits, but where the system has no room for a
// thread, or no memory to note the descriptor: then it is closed here, however long that takes.
void close_elsewhere(UniqueFd descriptor, PeerName whose);
// How many of this process are not closed yet. A peer decides when they are.
std::size_t closing_elsewhere();
// Whether fewer are left of this peer than one may have: the more peers leave some, the fewer each of them.
bool may_pass_more(PeerName whose);

// A descriptor that a peer has passed.
class PassedFd {
 public:
  PassedFd() = default;
  PassedFd(UniqueFd fd, PeerName whose) : fd_(std::move(fd)), whose_(whose) {}
  PassedFd(PassedFd&& other) noexcept = default;
  PassedFd& operator=(PassedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(whose_, other.whose_);
    return *this;
  }
  ~PassedFd();

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

 private:
  UniqueFd fd_;
  PeerName whose_{};
};

// A local socket that may hold what a peer has passed and this process has not read.
class LocalSocket {
 public:
  LocalSocket() = default;
  explicit LocalSocket(UniqueFd fd) : fd_(std::move(fd)), peer_(fd_ ? peer_name(fd_.get()) : PeerName{}) {}
  LocalSocket(LocalSocket&& other) noexcept = default;
  LocalSocket& operator=(LocalSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(peer_, other.peer_);
    return *this;
  }
  ~LocalSocket() { reset(); }

  int get() const { return fd_.get(); }
  PeerName peer() const { return peer_; }
  bool is_ours() const { return fd_.is_ours(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  void reset();

 private:
  UniqueFd fd_;
  PeerName peer_{};
};

}  // namespace anydat::os
