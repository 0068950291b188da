// SPDX-License-Identifier: BSD-3-Clause
// What the child of a fork is left with of the library's descriptors.
#include "base/descriptors.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/unique_fd.h"

namespace anydat::base {
namespace {

// A TCP socket with more to send than its peer takes: to close it takes seconds, or until the peer has gone.
class SlowSocket {
 public:
  SlowSocket() {
    const UniqueFd listener = UniqueFd::of([] { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); });
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    const int little = 4096;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    if (::bind(listener.get(), generic, size) != 0 || ::listen(listener.get(), 1) != 0 ||
        ::getsockname(listener.get(), generic, &size) != 0 || ::connect(socket_.get(), generic, size) != 0) {
      ADD_FAILURE() << "no TCP connection";
    }
    other_ = UniqueFd::of([&] { return ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC); });
    const linger long_time{1, 20};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time);
    static const std::array<char, 64 << 10> bytes{};
    while (::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
  }
  int number() const { return socket_.get(); }
  void close() { socket_.reset_slowly(); }
  void let_close() { other_.reset(); }

 private:
  UniqueFd socket_ = UniqueFd::of([] { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); });
  UniqueFd other_;
};

bool is_open(int number) {
  return ::fcntl(number, F_GETFD) >= 0;
}

// What has no file of its own counts as lost with anything else that is: what is just being closed is not lost.
TEST(Descriptors, OfTheParentAreClosedInTheChildWhileOneOfThemTakesItsTimeToClose) {
  SlowSocket slow;
  const int number_of_slow = slow.number();
  const UniqueFd anonymous = UniqueFd::of([] { return ::eventfd(0, EFD_CLOEXEC); });
  const int number = anonymous.get();
  ASSERT_GT(number, number_of_slow);
  std::atomic<bool> closed{false};
  std::thread closing([&] {
    slow.close();
    closed.store(true);
  });
  const auto too_late = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (is_open(number_of_slow) && std::chrono::steady_clock::now() < too_late) std::this_thread::yield();
  EXPECT_FALSE(is_open(number_of_slow));
  EXPECT_FALSE(closed.load());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(is_open(number) ? 1 : 0);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "the child has it still";
  EXPECT_FALSE(closed.load());
  slow.let_close();
  closing.join();
  EXPECT_TRUE(is_open(number));
}

}  // namespace
}  // namespace anydat::base
