// SPDX-License-Identifier: BSD-3-Clause
// What bare TCP gives on this machine, with nothing of ours in the way: the floor and the ceiling for anything that
// travels over it. Two processes, one loopback connection, both polling and never asleep.
//
//   raw_tcp lat  --size 8         ->  lat median_ns 4102.5 p99_ns 5200.0      half a round trip
//   raw_tcp bw   --size 1MiB      ->  bw gbytes_per_s 6.702                   one write for each message
//   raw_tcp rate --size 8         ->  rate mmsgs_per_s 13.702                 64 messages in each write
//
// Messages are written from, and read into, as many buffers as --buffers says, in turn; the bytes are not looked at.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/error.h"
#include "common/process.h"
#include "common/summary.h"
#include "common/ticks.h"

namespace {

struct Options {
  std::uint64_t size = 8;
  std::uint64_t iters = 20'000;  // messages, or round trips
  std::uint64_t batch = 1;       // messages in one write
  std::uint64_t buffers = 1;     // of one write each
  std::vector<int> cpus;         // the one that answers or reads, the one that asks or writes
};

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

Buffers make_buffers(const Options& options) {
  return Buffers(options.buffers, std::vector<std::byte>(options.size * options.batch));
}

void echo(Connection& connection, const Options& options, std::uint64_t rounds) {
  std::vector<std::byte> message(options.size);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    connection.read(message.data(), message.size());
    connection.write(message.data(), message.size());
  }
}

void ping(Connection& connection, const Options& options, std::uint64_t rounds, std::uint64_t warm_up) {
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
  const tools::Summary half = tools::summarize(samples, scale.ns_per_tick() / 2);
  fmt::print("lat median_ns {:.1f} p99_ns {:.1f}\n", half.median, half.p99);
}

void drain(Connection& connection, const Options& options, std::uint64_t bytes) {
  Buffers buffers = make_buffers(options);
  for (std::uint64_t i = 0; bytes > 0; ++i) {
    std::vector<std::byte>& buffer = buffers[i % buffers.size()];
    bytes -= connection.read_some(buffer.data(), std::min<std::uint64_t>(buffer.size(), bytes));
  }
  std::byte done{};
  connection.write(&done, 1);
}

// Returns the seconds until the reader has it all.
double stream(Connection& connection, const Options& options, std::uint64_t bytes) {
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

void ask(int fd, const std::string& metric, const Options& options) {
  Connection connection(fd);
  const std::uint64_t warm_up = std::max<std::uint64_t>(options.iters / 10, 1);
  if (metric == "lat") return ping(connection, options, warm_up + options.iters, warm_up);
  stream(connection, options, warm_up * options.size);
  const double seconds = stream(connection, options, options.iters * options.size);
  const double messages_per_s = static_cast<double>(options.iters) / seconds;
  if (metric == "bw") {
    fmt::print("bw gbytes_per_s {:.4f}\n", messages_per_s * static_cast<double>(options.size) / 1e9);
  } else {
    fmt::print("rate mmsgs_per_s {:.4f}\n", messages_per_s / 1e6);
  }
}

void answer(int fd, const std::string& metric, const Options& options) {
  Connection connection(fd);
  const std::uint64_t warm_up = std::max<std::uint64_t>(options.iters / 10, 1);
  if (metric == "lat") return echo(connection, options, warm_up + options.iters);
  drain(connection, options, warm_up * options.size);
  drain(connection, options, options.iters * options.size);
}

int run(const std::string& metric, const Options& options) {
  sockaddr_in address{};
  const tools::Fd listener = listen_on_loopback(address);
  const pid_t child = fork();
  if (child < 0) tools::fail_errno("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      if (!options.cpus.empty()) tools::pin_to_cpu(options.cpus[0]);
      answer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC), metric, options);
    } catch (const tools::Error&) {
      _exit(tools::kExitFailed);  // the asking side says what happened
    }
    _exit(tools::kExitOk);
  }
  if (!options.cpus.empty()) tools::pin_to_cpu(options.cpus[1]);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) tools::fail_errno("connecting");
  ask(fd, metric, options);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? tools::kExitOk : tools::kExitFailed;
}

CLI::App* add_metric(CLI::App& app, Options& options, const char* metric, const char* description, std::uint64_t size,
                     std::uint64_t batch) {
  CLI::App* command = app.add_subcommand(metric, description);
  command->add_option("--size", options.size, fmt::format("Bytes in a message (default {})", size))
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30));
  command->add_option("--iters", options.iters, "Messages, or round trips")->check(CLI::Range(1, 1'000'000'000));
  command->add_option("--batch", options.batch, fmt::format("Messages in a write (default {})", batch))
      ->check(CLI::Range(1, 65536));
  command->add_option("--buffers", options.buffers, "Buffers to use in turn")->check(CLI::Range(1, 65536));
  command->add_option("--cpus", options.cpus, "Processors to tie the two processes to")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::NonNegativeNumber)
      ->type_name("ANSWERING,ASKING");
  command->preparse_callback([&options, size, batch](std::size_t) {
    options.size = size;
    options.batch = batch;
  });
  return command;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Bare TCP between two processes that poll", "raw_tcp");
  app.require_subcommand(1);
  add_metric(app, options, "lat", "Half the round trip of a message", 8, 1);
  add_metric(app, options, "bw", "Bytes a second of a stream", 1 << 20, 1);
  add_metric(app, options, "rate", "Messages a second of a stream", 8, 64);
  return tools::run_tool(app, argc, argv, [&] { return run(app.get_subcommands()[0]->get_name(), options); });
}
