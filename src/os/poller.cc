// SPDX-License-Identifier: BSD-3-Clause
#include "os/poller.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>

#include "os/descriptors.h"
#include "os/random.h"

namespace anydat::os {

// The bell is a socket of no name and no peer, which is always writable and a file of its own. Where a program has been
// forbidden local sockets it is one for UDP; an eventfd, which looks like every other, where it has been forbidden
// both.
bool Poller::open() {
  const bool opened = epoll_.open();
  const int beyond = 64 + static_cast<int>(random_number() % 192);
  bell_ = UniqueFd::of([=] {
    int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return Descriptors::move_up(fd >= 0 ? fd : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), beyond);
  });
  return opened && bell_ && epoll_.watch(bell_.get(), 0, nullptr);
}

// The set that has our bell already is ours. Another that takes it gives it back.
bool Poller::is_ours() const {
  if (!bell_.is_ours()) return false;
  if (epoll_.watch(bell_.get(), 0, nullptr)) {
    epoll_.forget(bell_.get());
    return false;
  }
  return errno == EEXIST;
}

}  // namespace anydat::os
