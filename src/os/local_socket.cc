// SPDX-License-Identifier: BSD-3-Clause
#include "os/local_socket.h"

#include <sys/socket.h>

namespace anydat::os {

base::UniqueFd local_socket() {
  return base::UniqueFd::of([] { return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
}

}  // namespace anydat::os
