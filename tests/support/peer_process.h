// SPDX-License-Identifier: BSD-3-Clause
// A second process for tests: this same test program, started again to play one role.
//
// A fork would inherit the library's threads and locks half alive, so the program is executed anew; before any test
// runs in it, it finds the role in its environment, plays it and exits.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "support/patience.h"
#include "support/progress.h"
#include "support/wire.h"

namespace anydat::test {

// One end of a two-way pipe that carries lines. Every call gives up with an exception when its time is up.
class LineChannel {
 public:
  explicit LineChannel(int fd) : fd_(fd) {}
  ~LineChannel();
  LineChannel(const LineChannel&) = delete;
  LineChannel& operator=(const LineChannel&) = delete;

  void say(const std::string& line);
  std::string hear(std::chrono::milliseconds timeout = patience());

 private:
  int fd_;
  std::string pending_;
};

// What a role is given: its wire, its arguments, and the line to the test that started it.
struct RoleContext {
  const Wire& wire;
  std::vector<std::string> arguments;
  LineChannel& parent;
};

// Declares a role; define one at namespace scope in the file of the test: `const Role kEcho("echo", play_echo);`
class Role {
 public:
  Role(std::string name, std::function<void(RoleContext&)> play);
};

class PeerProcess {
 public:
  // `program`: another one that has the role.
  PeerProcess(const std::string& role, const Wire& wire, const std::vector<std::string>& arguments = {},
              const std::string& program = "/proc/self/exe");
  ~PeerProcess();  // kills what still lives
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  LineChannel& channel() { return channel_; }
  pid_t pid() const { return pid_; }

  void wait_until_stopped();  // until it has stopped itself (SIGSTOP)
  void resume();              // SIGCONT
  void kill();                // SIGKILL, and waits for the end
  int wait_exit();            // its exit status; throws if it does not end or dies by a signal

 private:
  PeerProcess(const std::string& role, const Wire& wire, const std::vector<std::string>& arguments,
              const std::string& program, int fds[2]);

  const Bystander bystander_;
  LineChannel channel_;
  pid_t pid_ = -1;
};

}  // namespace anydat::test
