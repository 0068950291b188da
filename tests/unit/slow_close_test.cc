// SPDX-License-Identifier: BSD-3-Clause
// What takes long to close, where the system has no room for threads that wait for it.
#include "os/slow_close.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <thread>

#include "slow_socket.h"

namespace anydat::os {
namespace {

constexpr PeerName kPeer = 7;

void wait_until_closed(int number) {
  while (::fcntl(number, F_GETFD) >= 0) std::this_thread::yield();
}

// Each of two threads has to close one by itself, and a third one is left to them: one of the two closes that as well.
bool all_are_closed_without_room_for_threads() {
  std::array<test::SlowSocket, 2> slow;
  std::array<std::thread, 2> closing;
  const std::array<int, 2> numbers{slow[0].number(), slow[1].number()};
  std::atomic<bool> begin{false};
  for (std::size_t i = 0; i < closing.size(); ++i) {
    closing[i] = std::thread([&, i] {
      while (!begin) std::this_thread::yield();
      close_elsewhere(slow[i].take(), kPeer);
    });
  }
  const rlimit none{};
  constexpr uid_t kNobody = 65534;  // for whom the limit holds
  if (::setrlimit(RLIMIT_NPROC, &none) != 0 || (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0)) {
    return false;
  }
  begin = true;
  for (const int number : numbers) wait_until_closed(number);
  os::UniqueFd third = os::UniqueFd::of([] { return ::eventfd(0, EFD_CLOEXEC); });
  close_elsewhere(std::move(third), kPeer);
  const bool waits = closing_elsewhere() == 3;
  for (test::SlowSocket& one : slow) one.let_close();
  for (std::thread& one : closing) one.join();
  return waits && closing_elsewhere() == 0;
}

TEST(SlowClose, LeavesNothingWhereThereIsNoRoomForThreads) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(all_are_closed_without_room_for_threads() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace anydat::os
