// SPDX-License-Identifier: BSD-3-Clause
#include "os/local_socket.h"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "os/socket.h"
#include "os/uncancelled.h"

namespace anydat::os {

UniqueFd local_socket() {
  return open_socket(AF_UNIX, SOCK_SEQPACKET);
}

AbstractName::AbstractName(std::string_view name) {
  if (name.size() >= sizeof address_.sun_path) return;
  address_.sun_family = AF_UNIX;
  std::memcpy(address_.sun_path + 1, name.data(), name.size());
  length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

int AbstractName::bind(int socket) const {
  if (length_ != 0) return ::bind(socket, address(), length_);
  errno = ENAMETOOLONG;
  return -1;
}

int AbstractName::connect(int socket) const {
  if (length_ != 0) return uncancelled::connect(socket, address(), length_);
  errno = ENAMETOOLONG;
  return -1;
}

}  // namespace anydat::os
