// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <stdexcept>
#include <utility>

#include "os/unique_fd.h"

namespace anydat::test {

// A TCP socket with more to send than its peer takes: to close it takes seconds, or until the peer has gone.
class SlowSocket {
 public:
  SlowSocket() {
    const os::UniqueFd listener = os::UniqueFd::of([] { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); });
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    const int little = 4096;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    if (::bind(listener.get(), generic, size) != 0 || ::listen(listener.get(), 1) != 0 ||
        ::getsockname(listener.get(), generic, &size) != 0 || ::connect(socket_.get(), generic, size) != 0) {
      throw std::runtime_error("no TCP connection");
    }
    other_ = os::UniqueFd::of([&] { return ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC); });
    const linger long_time{1, 20};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time);
    static const std::array<char, 64 << 10> bytes{};
    while (::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
  }
  int number() const { return socket_.get(); }
  void close() { socket_.reset_slowly(); }
  os::UniqueFd take() { return std::move(socket_); }
  void let_close() { other_.reset(); }

 private:
  os::UniqueFd socket_ = os::UniqueFd::of([] { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); });
  os::UniqueFd other_;
};

}  // namespace anydat::test
