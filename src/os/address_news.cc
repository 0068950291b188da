// SPDX-License-Identifier: BSD-3-Clause
#include "os/address_news.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "os/socket.h"

namespace anydat::os {

UniqueFd open_address_news() {
  UniqueFd socket = open_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (!socket || !bind(socket.get(), reinterpret_cast<const sockaddr&>(address), sizeof address)) return {};
  return socket;
}

// What is said there is not looked at: anything means that the addresses have to be looked up again, and so does
// ENOBUFS, that more has happened than the socket could hold.
void drain_address_news(int fd) {
  constexpr int kMessagesMax = 256;
  std::array<std::byte, 4096> unread;
  for (int i = 0; i < kMessagesMax; ++i) {
    if (receive_now(fd, unread) < 0 && errno != EINTR && errno != ENOBUFS) return;
  }
}

}  // namespace anydat::os
