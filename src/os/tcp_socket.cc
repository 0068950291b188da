// SPDX-License-Identifier: BSD-3-Clause
#include "os/tcp_socket.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "os/uncancelled.h"

namespace anydat::os {

namespace {

void set_option(int socket, int level, int name, int value) {
  setsockopt(socket, level, name, &value, sizeof value);
}

}  // namespace

bool local_end(int socket, sockaddr_in6& end) {
  socklen_t bytes = sizeof end;
  return getsockname(socket, reinterpret_cast<sockaddr*>(&end), &bytes) == 0;
}

bool remote_end(int socket, sockaddr_in6& end) {
  socklen_t bytes = sizeof end;
  return getpeername(socket, reinterpret_cast<sockaddr*>(&end), &bytes) == 0;
}

void send_without_delay(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

void probe_when_idle(int socket, int seconds, int probes) {
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, probes);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
}

void share_with_past(int socket) {
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
}

void share_with_listeners(int socket) {
  set_option(socket, SOL_SOCKET, SO_REUSEPORT, 1);
}

void take_ipv4_along(int socket, bool along) {
  set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, along ? 0 : 1);
}

void choose_port_late(int socket) {
  set_option(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
}

std::size_t segment_bytes(int socket) {
  int bytes = 0;
  socklen_t size = sizeof bytes;
  return getsockopt(socket, IPPROTO_TCP, TCP_MAXSEG, &bytes, &size) == 0 && bytes > 0 ? static_cast<std::size_t>(bytes)
                                                                                      : 0;
}

ssize_t discard_now(int socket, std::size_t bytes) {
  return uncancelled::recv(socket, nullptr, bytes, MSG_DONTWAIT | MSG_TRUNC);
}

std::size_t unacknowledged(int socket) {
  int bytes = 0;
  return ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

void reset_on_close(const UniqueFd& socket) {
  if (!socket.is_ours()) return;
  const linger at_once{1, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

bool silent_for(int socket, Nanoseconds time) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  // A probe may just be on its way; two are not.
  const bool owes = info.tcpi_unacked > 0 || info.tcpi_probes > 1;
  return owes && static_cast<Nanoseconds>(info.tcpi_last_ack_recv) * 1'000'000 > time;
}

}  // namespace anydat::os
