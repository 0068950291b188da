// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "base/descriptors.h"

namespace anydat::base {

// Owns one file descriptor, which the child of a fork does not keep.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {
    if (fd_ >= 0) Descriptors::note(fd_);
  }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { reset(); }

  // Of what `open` returns. No fork comes between.
  template <typename Open>
  static UniqueFd of(Open&& open) {
    const ForkHeldOff held_off;
    return UniqueFd(open());
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset(int fd = -1) {
    if (fd_ >= 0) {
      const ForkHeldOff held_off;
      Descriptors::forget(fd_);
#if defined(__SANITIZE_THREAD__)
      ::close(fd_);  // the sanitizer has to hear that the number is another file's from now on
#else
      syscall(SYS_close, fd_);  // not close(), which is a cancellation point
#endif
    }
    fd_ = fd;
    if (fd_ >= 0) Descriptors::note(fd_);
  }

  // The child of a fork keeps a copy of it: what it belongs to is there, too.
  void keep_in_child() {
    if (fd_ >= 0) Descriptors::forget(fd_);
  }

 private:
  int fd_ = -1;
};

}  // namespace anydat::base
