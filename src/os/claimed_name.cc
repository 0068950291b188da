// SPDX-License-Identifier: BSD-3-Clause
#include "os/claimed_name.h"

#include <sys/socket.h>

#include <cerrno>

#include "os/local_socket.h"
#include "os/socket.h"

namespace anydat::os {

namespace {

// Of datagrams: a look for the name takes no place in a backlog.
UniqueFd new_socket() {
  return open_socket(AF_UNIX, SOCK_DGRAM);
}

}  // namespace

UniqueFd claim_name(const std::string& name, int& error) {
  UniqueFd socket = new_socket();
  if (socket && AbstractName(name).bind(socket.get()) == 0) return socket;
  error = errno;
  return {};
}

bool is_claimed(const std::string& name) {
  const UniqueFd socket = new_socket();
  return socket && (AbstractName(name).connect(socket.get()) == 0 || errno != ECONNREFUSED);
}

}  // namespace anydat::os
