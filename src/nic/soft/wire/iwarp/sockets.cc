// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/sockets.h"

#include <linux/tcp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "nic/soft/adapter.h"

namespace anydat::nic::soft::iwarp {

namespace {

// That a silent host may leave unanswered.
constexpr int kProbes = 3;

void set_option(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);
}

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
  socklen_t size = sizeof any;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&any), &size) != 0) return false;
  local = plain(any);
  any = {};
  size = sizeof any;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&any), &size) != 0) return false;
  remote = plain(any);
  return true;
}

// TCP's own patience with unanswered segments is a quarter of an hour, and the option that shortens it does not tell a
// host that is gone from a peer that does not read. silent_for() does.
void prepare(int fd, const SoftAdapter& adapter) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  const base::Nanoseconds between = adapter.config().silence_ns / (kProbes + 1);
  const int seconds = static_cast<int>(std::clamp<base::Nanoseconds>(between / base::kNsPerSecond, 1, 10'000));
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
}

ConnectFailure failure_of(int error) {
  return error == ECONNREFUSED || error == ECONNRESET ? ConnectFailure::refused : ConnectFailure::unreachable;
}

ssize_t receive_now(int fd, std::span<std::byte> room) {
  return syscall(SYS_recvfrom, fd, room.data(), room.size(), MSG_DONTWAIT, nullptr, nullptr);
}

ssize_t send_now(int fd, std::span<const std::byte> bytes) {
  return syscall(SYS_sendto, fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL, nullptr, 0);
}

namespace {

ssize_t call_with(long number, int fd, std::span<iovec> pieces, int flags) {
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return syscall(number, fd, &message, flags);
}

}  // namespace

ssize_t receive_now(int fd, std::span<iovec> pieces) {
  return call_with(SYS_recvmsg, fd, pieces, MSG_DONTWAIT);
}

ssize_t send_now(int fd, std::span<iovec> pieces) {
  return call_with(SYS_sendmsg, fd, pieces, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool silent_for(int fd, base::Nanoseconds time) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  // A probe may just be on its way; two are not.
  const bool owes = info.tcpi_unacked > 0 || info.tcpi_probes > 1;
  return owes && static_cast<base::Nanoseconds>(info.tcpi_last_ack_recv) * 1'000'000 > time;
}

Status bind_for_call(int fd, const SoftAdapter& adapter, const Address& remote) {
  Address from{};
  from.generic.sa_family = remote.generic.sa_family;
  bool any = true;
  for (const Address& own : adapter.own_addresses()) {
    if (own.generic.sa_family != remote.generic.sa_family) continue;
    from = own;
    any = false;
    break;
  }
  const SoftConfig& config = adapter.config();
  if (!config.ports_chosen) {
    if (any) return Status::ok;
    set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    return bind(fd, &from.generic, size_of(from)) == 0 ? Status::ok : Status::unreachable;
  }
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  const std::uint32_t count = config.last_port - config.first_port + 1u;
  const std::uint32_t start = std::random_device{}() % count;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Address at = with_port(from, config.first_port + (start + i) % count);
    if (bind(fd, &at.generic, size_of(at)) == 0) return Status::ok;
    if (errno != EADDRINUSE && errno != EACCES) return Status::unreachable;
  }
  return Status::no_memory;
}

}  // namespace anydat::nic::soft::iwarp
