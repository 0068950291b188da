// SPDX-License-Identifier: BSD-3-Clause
#include "os/claimed_name.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "os/uncancelled.h"

namespace anydat::os {

namespace {

constexpr std::size_t kNameMax = 100;

// Of datagrams: nobody's looking for the name takes a place in a backlog.
base::UniqueFd new_socket() {
  return base::UniqueFd::of([] { return ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
}

// An abstract name starts with a zero byte and has no terminator.
socklen_t fill(sockaddr_un& address, const std::string& name) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), kNameMax);
  std::memcpy(address.sun_path + 1, name.data(), length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

}  // namespace

base::UniqueFd claim_name(const std::string& name, int& error) {
  base::UniqueFd socket = new_socket();
  sockaddr_un address;
  const socklen_t length = fill(address, name);
  if (socket && ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) == 0) return socket;
  error = errno;
  return {};
}

bool is_claimed(const std::string& name) {
  const base::UniqueFd socket = new_socket();
  sockaddr_un address;
  const socklen_t length = fill(address, name);
  return socket && (uncancelled::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), length) == 0 ||
                    errno != ECONNREFUSED);
}

}  // namespace anydat::os
