// SPDX-License-Identifier: BSD-3-Clause
// A port that lets no caller in and refuses none.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <stdexcept>

#include "os/unique_fd.h"

namespace anydat::test {

// Of this host's at an address of its own: the backlog is full, and the kernel drops every SYN.
class SilentPort {
 public:
  // At that port, or at any if it is 0. Throws std::runtime_error where it is taken.
  explicit SilentPort(sockaddr_in at) {
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    if (bind(listener_.get(), address, size) != 0 || listen(listener_.get(), 0) != 0 ||
        getsockname(listener_.get(), address, &size) != 0 || connect(caller_.get(), address, size) != 0) {
      throw std::runtime_error("no port");
    }
    port_ = ntohs(at.sin_port);
  }
  std::uint16_t port() const { return port_; }

 private:
  os::UniqueFd listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  os::UniqueFd caller_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::uint16_t port_ = 0;
};

}  // namespace anydat::test
