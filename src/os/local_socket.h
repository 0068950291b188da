// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string_view>

#include "os/unique_fd.h"

namespace anydat::os {

// A local socket that keeps the bounds of messages (SOCK_SEQPACKET) and does not block. Empty, with errno set, if there
// is no descriptor or no memory for it.
UniqueFd local_socket();

// A name of local sockets that is in no file system: those of a network namespace share them, and a name goes with the
// last descriptor of the socket that is bound to it.
class AbstractName {
 public:
  // At most as long as the address of a socket has room for, less the zero byte that it begins with: 107 bytes.
  explicit AbstractName(std::string_view name);
  // As bind(2) and connect(2); ENAMETOOLONG if the name is too long.
  int bind(int socket) const;
  int connect(int socket) const;

 private:
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }
  sockaddr_un address_{};
  socklen_t length_ = 0;  // 0: the name is too long
};

}  // namespace anydat::os
