// SPDX-License-Identifier: BSD-3-Clause
// A line of the log that cannot be written does a program no harm.
#include "env/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <functional>
#include <thread>

namespace anydat::env {
namespace {

class LogLine : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    ::close(ends[0]);
    unread_ = ends[1];
  }
  void TearDown() override { ::close(unread_); }

  // In a process of its own, whose standard error is `out`, and which is ended by what ends a program.
  static void expect_in_child(int out, const std::function<bool()>& what) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_DFL);
      ::dup2(out, STDERR_FILENO);
      ::_exit(what() ? kHeld : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_FALSE(WIFSIGNALED(status)) << "ended by signal " << WTERMSIG(status);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kHeld);
  }
  static bool is_pending(int signal) {
    sigset_t pending;
    ::sigpending(&pending);
    return sigismember(&pending, signal) == 1;
  }
  static bool is_blocked(int signal) {
    sigset_t blocked;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    return sigismember(&blocked, signal) == 1;
  }
  static void block(int signal) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    ::pthread_sigmask(SIG_BLOCK, &one, nullptr);
  }

  static constexpr int kHeld = 42;
  int unread_ = -1;  // a pipe whose reader has gone
};

TEST_F(LogLine, ThatNobodyReadsEndsNoProgram) {
  expect_in_child(unread_, [] {
    log_line(LogLevel::error, "read by nobody");
    return !is_blocked(SIGPIPE) && !is_pending(SIGPIPE);
  });
}

TEST_F(LogLine, ForWhichAFileMayNotGrowEndsNoProgram) {
  const int file = ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  expect_in_child(file, [] {
    const rlimit none{};
    ::setrlimit(RLIMIT_FSIZE, &none);
    log_line(LogLevel::error, "written nowhere");
    return !is_blocked(SIGXFSZ) && !is_pending(SIGXFSZ);
  });
  ::close(file);
}

TEST_F(LogLine, LeavesNoSignalPendingWhereTheProgramBlocksIt) {
  expect_in_child(unread_, [] {
    block(SIGPIPE);
    log_line(LogLevel::error, "read by nobody");
    return is_blocked(SIGPIPE) && !is_pending(SIGPIPE);
  });
}

// A line that cannot be written for another reason has raised nothing: what comes meanwhile is the program's.
TEST_F(LogLine, LeavesASignalThatItHasNotRaised) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  expect_in_child(full, [] {
    block(SIGXFSZ);
    std::atomic<bool> over{false};
    std::thread writer([&] {
      while (!over) log_line(LogLevel::error, "written nowhere");
    });
    bool stays = true;
    for (int i = 0; i < 2000 && stays; ++i) {
      ::kill(::getpid(), SIGXFSZ);
      for (int look = 0; look < 50 && stays; ++look) stays = is_pending(SIGXFSZ);
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, SIGXFSZ);
      const timespec at_once{};
      ::sigtimedwait(&one, nullptr, &at_once);
    }
    over = true;
    writer.join();
    return stays;
  });
  ::close(full);
}

TEST_F(LogLine, LeavesTheSignalThatWasPendingBefore) {
  expect_in_child(unread_, [] {
    block(SIGPIPE);
    ::raise(SIGPIPE);
    log_line(LogLevel::error, "read by nobody");
    return is_blocked(SIGPIPE) && is_pending(SIGPIPE);
  });
}

}  // namespace
}  // namespace anydat::env
