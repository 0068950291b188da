// SPDX-License-Identifier: BSD-3-Clause
#include "os/peer_process.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <future>
#include <thread>

namespace anydat::os {
namespace {

// A child that has made a pair of sockets and given us one end: the credentials of a pair are its maker's.
struct Child {
  explicit Child(bool grandchild) {
    std::array<int, 2> hand_over{}, ready{};
    if (::pipe(ready.data()) != 0 || ::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, hand_over.data()) != 0) return;
    pid = ::fork();
    if (pid == 0) play(hand_over[1], grandchild);
    ::close(hand_over[1]);
    ::close(ready[0]);
    ::close(ready[1]);
    socket = receive(hand_over[0]);
    ::close(hand_over[0]);
  }
  ~Child() {
    end();
    if (socket >= 0) ::close(socket);
  }

  // Its own end of a pair stays open with it, and with its child if it has one.
  [[noreturn]] static void play(int hand_over, bool grandchild) {
    ::setpgid(0, 0);
    std::array<int, 2> pair{};
    ::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair.data());
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &pair[0], sizeof(int));
    ::sendmsg(hand_over, &message, 0);
    ::close(pair[0]);
    // Both are one process group, which the test ends; should the test die first, they end by themselves.
    if (grandchild && ::fork() == 0) {
      ::alarm(60);
      for (;;) ::pause();
    }
    ::alarm(60);
    for (;;) ::pause();
  }
  static int receive(int from) {
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    int fd = -1;
    if (::recvmsg(from, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message) != nullptr) {
      std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    }
    return fd;
  }
  // Ended, but its parent has not waited for it.
  void die() const {
    ::kill(pid, SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  }
  void end() {
    if (pid <= 0) return;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = -1;
  }

  pid_t pid = -1;
  int socket = -1;
};

// LMR-FREE-8: a thread that waits for a peer to stop writing must notice its death, also if it is the peer's parent.
TEST(PeerProcess, ThatDiedHasHungUpEvenBeforeItsParentHasWaitedForIt) {
  Child child(false);
  ASSERT_GE(child.socket, 0);
  const PeerProcess process(child.socket);
  EXPECT_EQ(process.pid(), child.pid);
  EXPECT_FALSE(peer_has_hung_up(child.socket, process.descriptor()));
  child.die();
  EXPECT_EQ(::kill(child.pid, 0), 0) << "it still takes signals";
  EXPECT_TRUE(peer_has_hung_up(child.socket, process.descriptor()));
  EXPECT_TRUE(peer_has_hung_up(child.socket, -1)) << "the socket alone tells it";
}

TEST(PeerProcess, ThatDiedIsNoticedAlthoughAChildHoldsItsSocket) {
  Child child(true);
  ASSERT_GE(child.socket, 0);
  const PeerProcess process(child.socket);
  if (process.descriptor() < 0) GTEST_SKIP() << "this system has no descriptors of processes";
  EXPECT_FALSE(peer_has_hung_up(child.socket, process.descriptor()));
  child.die();
  EXPECT_TRUE(peer_has_hung_up(child.socket, process.descriptor()));
}

TEST(PeerProcess, IsToldFromOthers) {
  const Child one(false), other(false);
  ASSERT_GE(one.socket, 0);
  ASSERT_GE(other.socket, 0);
  const PeerProcess first(one.socket), again(one.socket), second(other.socket);
  EXPECT_TRUE(first.is_same_as(first));
  EXPECT_TRUE(first.is_same_as(again));
  EXPECT_FALSE(first.is_same_as(second));
}

TEST(PeerProcess, KnowsItsOwnThreadsAndNobodyElses) {
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair.data()), 0);
  const PeerProcess self(pair[0]);
  EXPECT_EQ(self.pid(), ::getpid());
  std::promise<pid_t> number;
  std::promise<void> over;
  std::thread thread([&] {
    number.set_value(static_cast<pid_t>(::syscall(SYS_gettid)));
    over.get_future().wait();
  });
  const pid_t tid = number.get_future().get();
  EXPECT_EQ(self.thread(tid), tid);
  EXPECT_EQ(self.thread(1), 0) << "a thread of another process";
  EXPECT_EQ(self.thread(0), 0);
  over.set_value();
  thread.join();
  for (const int fd : pair) ::close(fd);
}

}  // namespace
}  // namespace anydat::os
