// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/sockets.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "nic/soft/adapter.h"
#include "nic/soft/addresses.h"
#include "os/lack.h"
#include "os/random.h"
#include "os/socket.h"
#include "os/tcp_socket.h"

namespace anydat::nic::soft::iwarp {

namespace {

// That a silent host may leave unanswered.
constexpr int kProbes = 3;

}  // namespace

Address with_port(const Address& address, std::uint64_t port) {
  Address result = address;
  (address.generic.sa_family == AF_INET6 ? result.v6.sin6_port : result.v4.sin_port) =
      htons(static_cast<std::uint16_t>(port));
  return result;
}

std::uint64_t port_of(const Address& address) {
  return ntohs(address.generic.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

socklen_t size_of(const Address& address) {
  return address.generic.sa_family == AF_INET6 ? sizeof address.v6 : sizeof address.v4;
}

Address plain(const sockaddr_in6& any) {
  Address result{};
  if (any.sin6_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&any.sin6_addr)) {
    result.v4.sin_family = AF_INET;
    result.v4.sin_port = any.sin6_port;
    std::copy_n(&any.sin6_addr.s6_addr[12], sizeof result.v4.sin_addr,
                reinterpret_cast<std::uint8_t*>(&result.v4.sin_addr));
  } else {
    result.v6 = any;
  }
  return result;
}

bool ends_of(int fd, Address& local, Address& remote) {
  sockaddr_in6 any{};
  if (!os::local_end(fd, any)) return false;
  local = plain(any);
  any = {};
  if (!os::remote_end(fd, any)) return false;
  remote = plain(any);
  return true;
}

// TCP's own patience with unanswered segments is a quarter of an hour, and the option that shortens it does not tell a
// host that is gone from a peer that does not read. os::silent_for() does.
void prepare(int fd, const SoftAdapter& adapter) {
  os::send_without_delay(fd);
  if (adapter.config().silence_ns == os::kForever) return;
  const os::Nanoseconds between = adapter.config().silence_ns / (kProbes + 1);
  const int seconds = static_cast<int>(std::clamp<os::Nanoseconds>(between / os::kNsPerSecond, 1, 10'000));
  os::probe_when_idle(fd, seconds, kProbes);
}

ConnectFailure failure_of(int error) {
  return error == ECONNREFUSED || error == ECONNRESET ? ConnectFailure::refused : ConnectFailure::unreachable;
}

namespace {

os::UniqueFd open_for(const Address& remote, int type) {
  return os::open_socket(remote.generic.sa_family, type);
}

bool bind_to(const os::UniqueFd& socket, const Address& own) {
  return os::bind(socket.get(), own.generic, size_of(own));
}

bool connect_to(const os::UniqueFd& socket, const Address& remote) {
  return os::connect(socket.get(), remote.generic, size_of(remote));
}

Status why(int error) {
  return os::is_lack(error) ? Status::no_memory : Status::unreachable;
}

// EADDRNOTAVAIL is what connect(2) says both when no address of ours suits the remote one and when every port is taken,
// by connections to there or by what is left of them for a minute. A datagram socket tells: its ports are others.
bool has_address_for(const Address& from, const Address& remote) {
  const os::UniqueFd probe = open_for(remote, SOCK_DGRAM);
  const bool has = probe && bind_to(probe, from) && connect_to(probe, remote);
  // Where the probe itself lacks something, it is not the address that is missing.
  return has || os::is_lack(errno);
}

// A device may have addresses in several networks. The one from which the kernel would go there is right if it is the
// device's; else the first of the device's is as good as any. unreachable: the device has none of that family.
Status choose_own_address(const SoftAdapter& adapter, const Address& remote, Address& from) {
  sockaddr_in6 chosen{};
  bool knows = false;
  {
    const os::UniqueFd probe = open_for(remote, SOCK_DGRAM);
    if (!probe) return errno == EAFNOSUPPORT ? Status::unreachable : Status::no_memory;
    knows = connect_to(probe, remote) && os::local_end(probe.get(), chosen);
  }
  // The list of addresses takes a descriptor, too: the one that the probe has just given back.
  const auto own_addresses = adapter.own_addresses();
  if (!own_addresses) return why(errno);
  bool found = false;
  for (const Address& own : *own_addresses) {
    if (own.generic.sa_family != remote.generic.sa_family) continue;
    const bool best = knows && same_host(own, plain(chosen));
    if (best || !found) from = own;
    found = true;
    if (best) break;
  }
  return found ? Status::ok : Status::unreachable;
}

Call outcome_of(os::UniqueFd socket, int error, const Address& from, const Address& remote) {
  switch (error) {
    case 0:
    case EINPROGRESS:
      return {Status::ok, std::move(socket)};
    case ECONNREFUSED:
      return {Status::ok, {}};
    case EAGAIN:  // no port is free
      return {Status::no_memory, {}};
    case EADDRNOTAVAIL:
      return {has_address_for(from, remote) ? Status::no_memory : Status::unreachable, {}};  // EP-CONN-21
    default:
      return {why(error), {}};
  }
}

// Any port of the range will do that no connection to the same remote end has. Ports of connections to elsewhere can be
// shared, so only connecting tells which are free; a socket that has been refused a port keeps it, and makes room for
// another one.
Call call_from_range(const SoftAdapter& adapter, const Address& from, const Address& remote) {
  const SoftConfig& config = adapter.config();
  const std::uint32_t count = config.last_port - config.first_port + 1u;
  const std::uint32_t start = os::random_number() % count;
  os::UniqueFd socket;
  bool knows_address = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!socket) {
      socket = open_for(remote, SOCK_STREAM);
      if (!socket) return {Status::no_memory, {}};
      prepare(socket.get(), adapter);
      os::share_with_past(socket.get());
    }
    const Address at = with_port(from, config.first_port + (start + i) % count);
    if (!bind_to(socket, at)) {
      if (errno != EADDRINUSE && errno != EACCES) return {why(errno), {}};
      continue;
    }
    const int error = connect_to(socket, remote) ? 0 : errno;
    if (error != EADDRNOTAVAIL) return outcome_of(std::move(socket), error, from, remote);
    if (!knows_address && !has_address_for(from, remote)) return {Status::unreachable, {}};
    knows_address = true;
    socket.reset();
  }
  return {Status::no_memory, {}};
}

}  // namespace

Call reserve(const SoftAdapter& adapter, const Address& remote) {
  Address from{};
  from.generic.sa_family = remote.generic.sa_family;
  if (!adapter.has_all_addresses()) {
    const Status status = choose_own_address(adapter, remote, from);
    if (status != Status::ok) return {status, {}};
  }
  os::UniqueFd socket = open_for(remote, SOCK_STREAM);
  if (!socket) return {errno == EAFNOSUPPORT ? Status::unreachable : Status::no_memory, {}};
  prepare(socket.get(), adapter);
  const SoftConfig& config = adapter.config();
  if (config.ports_chosen) os::share_with_past(socket.get());
  const std::uint32_t count = config.ports_chosen ? config.last_port - config.first_port + 1u : 1;
  const std::uint32_t start = os::random_number() % count;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Address at = config.ports_chosen ? with_port(from, config.first_port + (start + i) % count) : from;
    if (bind_to(socket, at)) return {Status::ok, std::move(socket)};
    if (errno != EADDRINUSE && errno != EACCES) return {why(errno), {}};
  }
  return {Status::no_memory, {}};
}

Call call(const SoftAdapter& adapter, const Address& remote, os::UniqueFd reserved) {
  const int error = connect_to(reserved, remote) ? 0 : errno;
  if (error != EADDRNOTAVAIL) return outcome_of(std::move(reserved), error, {}, remote);
  // Another connection from that port to there has come meanwhile, or is not quite over.
  reserved.reset();
  return call(adapter, remote);
}

Address local_end(int fd) {
  sockaddr_in6 any{};
  if (!os::local_end(fd, any)) return {};
  return plain(any);
}

Call call(const SoftAdapter& adapter, const Address& remote) {
  Address from{};
  from.generic.sa_family = remote.generic.sa_family;
  const bool any = adapter.has_all_addresses();
  if (!any) {
    const Status status = choose_own_address(adapter, remote, from);
    if (status != Status::ok) return {status, {}};
  }
  if (adapter.config().ports_chosen) return call_from_range(adapter, from, remote);
  os::UniqueFd socket = open_for(remote, SOCK_STREAM);
  if (!socket) return {errno == EAFNOSUPPORT ? Status::unreachable : Status::no_memory, {}};
  prepare(socket.get(), adapter);
  if (!any) {
    os::choose_port_late(socket.get());
    if (!bind_to(socket, from)) return {why(errno), {}};
  }
  const int error = connect_to(socket, remote) ? 0 : errno;
  return outcome_of(std::move(socket), error, from, remote);
}

}  // namespace anydat::nic::soft::iwarp
