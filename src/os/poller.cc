// SPDX-License-Identifier: BSD-3-Clause
#include "os/poller.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

namespace anydat::os {

bool Poller::open() {
  const bool opened = epoll_.open();
  bell_ = UniqueFd::of([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  return opened && bell_ && epoll_.watch(bell_.get(), 0, nullptr);
}

// The set that has the bell already is ours. Another that takes it gives it back.
bool Poller::is_ours() const {
  if (epoll_.watch(bell_.get(), 0, nullptr)) {
    epoll_.forget(bell_.get());
    return false;
  }
  return errno == EEXIST;
}

}  // namespace anydat::os
