// SPDX-License-Identifier: BSD-3-Clause
// What the child of a fork is left with of the library's descriptors.
#include "os/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "os/unique_fd.h"
#include "slow_socket.h"

namespace anydat::os {
namespace {

bool is_open(int number) {
  return ::fcntl(number, F_GETFD) >= 0;
}

// What has no file of its own counts as lost with anything else that is: what is just being closed is not lost.
TEST(Descriptors, OfTheParentAreClosedInTheChildWhileOneOfThemTakesItsTimeToClose) {
  test::SlowSocket slow;
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
}  // namespace anydat::os
