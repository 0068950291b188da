// SPDX-License-Identifier: BSD-3-Clause
#include "forked.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>

#include "support/child.h"

namespace anydat::test {

void idle_until_killed() {
  ::signal(SIGALRM, SIG_DFL);
  ::alarm(static_cast<unsigned>(4 * patience().count() / 1000 + 1));
  for (;;) {
    ::pause();
  }
}

bool holds_in_child(const std::function<bool()>& what, Caller caller) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    bool held = false;
    try {
      held = what() && !testing::Test::HasFailure();
    } catch (const std::exception& error) {
      fmt::print(stderr, "in the child: {}\n", error.what());
    }
    std::fflush(nullptr);
    ::_exit(held ? 0 : 1);
  }
  const int status = end_of(child, patience(), caller);
  if (WIFSIGNALED(status)) ADD_FAILURE_AT(caller.file, caller.line) << "the child died by signal " << WTERMSIG(status);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

IdleChild::IdleChild() : pid_(::fork()) {
  if (pid_ == 0) idle_until_killed();
}

IdleChild::~IdleChild() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace anydat::test
