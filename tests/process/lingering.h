// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "raw_peer.h"

namespace anydat::test {

// A TCP socket with more to send than its peer takes: the thread that closes it last waits for that, or for the time to
// go by.
class Lingering {
 public:
  static constexpr std::chrono::seconds kTime{20};

  Lingering() {
    const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socket_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int little = 4096;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
    if (::bind(listener.get(), generic, size) != 0 || ::listen(listener.get(), 1) != 0 ||
        ::getsockname(listener.get(), generic, &size) != 0 || ::connect(socket_.get(), generic, size) != 0) {
      throw std::runtime_error("no TCP connection");
    }
    other_ = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const linger long_time{1, static_cast<int>(kTime.count())};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time);
    static const std::array<char, 64 << 10> bytes{};
    while (::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
  }
  int get() const { return socket_.get(); }
  // Only those it has been passed to have it from now on. They may end to linger when this goes.
  void give_away() { const Fd gone = std::move(socket_); }

 private:
  Fd socket_;
  Fd other_;
};

}  // namespace anydat::test
