// SPDX-License-Identifier: BSD-3-Clause
// Closing what others have a say in. A descriptor that a peer has passed may be of a socket that lingers, or of a file
// system whose server answers when it likes: closing it, or the socket that it waits in unread, takes as long as that.
// So it is left to threads that hold nothing, and that exist only while there is such a descriptor.
#pragma once

#include <cstddef>
#include <utility>

#include "base/unique_fd.h"

namespace anydat::os {

// From any thread; never waits, unless the system has no room for a thread.
void close_elsewhere(base::UniqueFd descriptor);
// How many of this process are not closed yet. A peer decides when they are.
std::size_t closing_elsewhere();

// A descriptor that a peer has passed.
class PassedFd {
 public:
  PassedFd() = default;
  explicit PassedFd(base::UniqueFd fd) : fd_(std::move(fd)) {}
  PassedFd(PassedFd&& other) noexcept = default;
  PassedFd& operator=(PassedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~PassedFd();

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

 private:
  base::UniqueFd fd_;
};

// A local socket by which a peer may have passed something that nobody has read.
class LocalSocket {
 public:
  LocalSocket() = default;
  explicit LocalSocket(base::UniqueFd fd) : fd_(std::move(fd)) {}
  LocalSocket(LocalSocket&& other) noexcept = default;
  LocalSocket& operator=(LocalSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~LocalSocket() { reset(); }

  int get() const { return fd_.get(); }
  bool is_ours() const { return fd_.is_ours(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  void reset();

 private:
  base::UniqueFd fd_;
};

}  // namespace anydat::os
