// SPDX-License-Identifier: BSD-3-Clause
#include "support/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

namespace anydat::test {

int end_of(pid_t child, std::chrono::milliseconds time, Caller caller) {
  int status = -1;
  pid_t ended = 0;
  eventually([&] { return (ended = ::waitpid(child, &status, WNOHANG)) != 0; }, time);
  if (ended == 0) {
    ADD_FAILURE_AT(caller.file, caller.line) << "the child hangs";
    ::kill(child, SIGKILL);
    while ((ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
    }
  }
  if (ended < 0) ADD_FAILURE_AT(caller.file, caller.line) << "waitpid: " << std::strerror(errno);
  return status;
}

}  // namespace anydat::test
