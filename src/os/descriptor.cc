// SPDX-License-Identifier: BSD-3-Clause
#include "os/descriptor.h"

#include <fcntl.h>

namespace anydat::os {

bool set_nonblocking(int fd) {
  return fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

UniqueFd duplicate(int fd) {
  const ForkHeldOff held_off;
  return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

}  // namespace anydat::os
