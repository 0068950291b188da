// SPDX-License-Identifier: BSD-3-Clause
#include "bare/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>

#include "bare/two_processes.h"
#include "common/error.h"
#include "common/process.h"
#include "common/ticks.h"

namespace bench {
namespace {

// A connection that is polled: neither call ever sleeps.
class Connection {
 public:
  explicit Connection(int fd) : fd_(fd) {
    const int on = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) tools::fail_errno("TCP_NODELAY");
  }

  void write(const std::byte* bytes, std::size_t count) {
    while (count > 0) advance(send(fd_.get(), bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL), bytes, count);
  }
  void read(std::byte* bytes, std::size_t count) {
    while (count > 0) advance(recv(fd_.get(), bytes, count, MSG_DONTWAIT), bytes, count);
  }
  // Whatever is there, up to `count` bytes.
  std::size_t read_some(std::byte* bytes, std::size_t count) {
    const std::size_t wanted = count;
    while (count == wanted) advance(recv(fd_.get(), bytes, count, MSG_DONTWAIT), bytes, count);
    return wanted - count;
  }

 private:
  template <typename Byte>
  static void advance(ssize_t moved, Byte*& bytes, std::size_t& count) {
    if (moved == 0) throw tools::Error("the other process is gone");
    if (moved < 0) {
      if (errno != EAGAIN && errno != EINTR) tools::fail_errno("moving bytes over TCP");
      return;
    }
    bytes += moved;
    count -= static_cast<std::size_t>(moved);
  }

  tools::Fd fd_;
};

using Buffers = std::vector<std::vector<std::byte>>;

Buffers make_buffers(const TcpOptions& options) {
  return Buffers(options.buffers, std::vector<std::byte>(options.size * options.batch));
}

void echo(Connection& connection, const TcpOptions& options, std::uint64_t rounds) {
  std::vector<std::byte> message(options.size);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    connection.read(message.data(), message.size());
    connection.write(message.data(), message.size());
  }
}

tools::Summary ping(Connection& connection, const TcpOptions& options, std::uint64_t rounds, std::uint64_t warm_up) {
  std::vector<std::byte> message(options.size);
  std::vector<std::uint32_t> samples;
  samples.reserve(rounds);
  const tools::TickScale scale;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const std::uint64_t start = tools::ticks();
    connection.write(message.data(), message.size());
    connection.read(message.data(), message.size());
    if (i >= warm_up) samples.push_back(static_cast<std::uint32_t>(tools::ticks() - start));
  }
  return tools::summarize(samples, scale.ns_per_tick() / 2);
}

void drain(Connection& connection, const TcpOptions& options, std::uint64_t bytes) {
  Buffers buffers = make_buffers(options);
  for (std::uint64_t i = 0; bytes > 0; ++i) {
    std::vector<std::byte>& buffer = buffers[i % buffers.size()];
    bytes -= connection.read_some(buffer.data(), std::min<std::uint64_t>(buffer.size(), bytes));
  }
  std::byte done{};
  connection.write(&done, 1);
}

// Returns the seconds until the reader has it all.
double stream(Connection& connection, const TcpOptions& options, std::uint64_t bytes) {
  const Buffers buffers = make_buffers(options);
  const std::uint64_t start_ns = tools::now_ns();
  for (std::uint64_t i = 0; bytes > 0; ++i) {
    const std::vector<std::byte>& buffer = buffers[i % buffers.size()];
    const std::uint64_t count = std::min<std::uint64_t>(buffer.size(), bytes);
    connection.write(buffer.data(), count);
    bytes -= count;
  }
  std::byte done{};
  connection.read(&done, 1);
  return static_cast<double>(tools::now_ns() - start_ns) / 1e9;
}

tools::Fd listen_on_loopback(sockaddr_in& address) {
  tools::Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.get(), generic, length) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), generic, &length) != 0)
    tools::fail_errno("listening on the loopback device");
  return listener;
}

std::uint64_t warm_up_of(const TcpOptions& options) {
  return std::max<std::uint64_t>(options.iters / 10, 1);
}

void connected(const TcpOptions& options, const std::function<void(Connection&)>& answer,
               const std::function<void(Connection&)>& ask) {
  sockaddr_in address{};
  const tools::Fd listener = listen_on_loopback(address);
  in_two_processes(
      options.cpus,
      [&] {
        Connection connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        answer(connection);
      },
      [&] {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) tools::fail_errno("connecting");
        Connection connection(fd);
        ask(connection);
      });
}

}  // namespace

tools::Summary tcp_latency(const TcpOptions& options) {
  const std::uint64_t warm_up = warm_up_of(options);
  tools::Summary half;
  connected(
      options, [&](Connection& connection) { echo(connection, options, warm_up + options.iters); },
      [&](Connection& connection) { half = ping(connection, options, warm_up + options.iters, warm_up); });
  return half;
}

double tcp_rate(const TcpOptions& options) {
  const std::uint64_t warm_up = warm_up_of(options);
  double seconds = 1;
  connected(
      options,
      [&](Connection& connection) {
        drain(connection, options, warm_up * options.size);
        drain(connection, options, options.iters * options.size);
      },
      [&](Connection& connection) {
        stream(connection, options, warm_up * options.size);
        seconds = stream(connection, options, options.iters * options.size);
      });
  return static_cast<double>(options.iters) / seconds;
}

}  // namespace bench
