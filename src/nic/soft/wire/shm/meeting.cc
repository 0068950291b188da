// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/meeting.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>

#include "nic/soft/wire/shm/layout.h"
#include "os/directory_socket.h"
#include "os/lack.h"
#include "os/local_socket.h"
#include "os/own_numbers.h"
#include "os/peer_process.h"
#include "os/slow_close.h"
#include "os/socket.h"

namespace anydat::nic::soft::shm {

std::string service_name(const std::string& scope, ConnQual qual) {
  return fmt::format("anydat/{}/{}/{}/{}", kVersion, os::own_user(), scope, qual);
}

os::UniqueFd listen_at(const std::string& name, int& error) {
  os::UniqueFd socket = os::local_socket();
  if (socket && os::AbstractName(name).bind(socket.get()) == 0 && os::listen(socket.get())) return socket;
  error = errno;
  return {};
}

std::string folder_name(const std::string& directory, const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool v4 = address.generic.sa_family == AF_INET;
  const void* const bytes = v4 ? static_cast<const void*>(&address.v4.sin_addr) : &address.v6.sin6_addr;
  inet_ntop(address.generic.sa_family, bytes, text.data(), text.size());
  return fmt::format("{}/{}", directory, text.data());
}

std::string directory_name(const std::string& directory, const Address& address, ConnQual qual) {
  return fmt::format("{}/{}", folder_name(directory, address), qual);
}

bool can_be_published(const Address& address) {
  if (address.generic.sa_family == AF_INET) return ntohl(address.v4.sin_addr.s_addr) >> 24 != 127;
  // Link-local addresses mean something on their link only.
  return !IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr) && !IN6_IS_ADDR_LINKLOCAL(&address.v6.sin6_addr);
}

os::UniqueFd call(const std::string& name, int& error) {
  if (name.starts_with('/')) return os::connect_in_directory(name, error);
  os::UniqueFd socket = os::local_socket();
  if (socket && os::AbstractName(name).connect(socket.get()) == 0) return socket;
  error = errno;
  return {};
}

Status probe_listener(const std::string& name) {
  int error = 0;
  if (const os::LocalSocket socket{call(name, error)}) {
    return os::peer_is_of_our_user(socket.get()) ? Status::ok : Status::unreachable;
  }
  if (os::is_lack(error)) return Status::no_memory;
  return error == EAGAIN ? Status::ok : Status::unreachable;  // EAGAIN: too many are calling there
}

}  // namespace anydat::nic::soft::shm
