// SPDX-License-Identifier: BSD-3-Clause
// The second process of a tool that talks to itself, and how a serving process learns that it should stop.
#ifndef ANYDAT_TOOLS_COMMON_PROCESS_H
#define ANYDAT_TOOLS_COMMON_PROCESS_H

#include <dat/udat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace tools {

// An owned file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }
  int get() const { return fd_; }
  void reset();

 private:
  int fd_ = -1;
};

// This program run once more, with `end` as its descriptor `number`. Throws Error.
pid_t run_again(std::vector<std::string> arguments, const Fd& end, int number);

// Waits for the end of a process and returns its exit code.
int exit_code_of(pid_t pid);

// This program run once more for what it prints.
class ChildOutput {
 public:
  // Requires: no DAT call was made yet in this process.
  explicit ChildOutput(std::vector<std::string> arguments);
  ~ChildOutput();
  ChildOutput(const ChildOutput&) = delete;
  ChildOutput& operator=(const ChildOutput&) = delete;

  // All that it prints; throws Error if it fails.
  std::string read_all();

 private:
  Fd output_;
  pid_t pid_ = -1;
};

// Makes room for `count` more descriptors in this process and those that it starts; throws Error, with what is missing,
// if it may not.
void need_descriptors(std::uint64_t count);

// This program run once more as a server. It writes its qualifier to the control descriptor (see announce) and leaves
// when the descriptor closes, so a client that dies takes its server along.
class ServerProcess {
 public:
  // Starts `arguments` with "--control-fd N" appended. Requires: no DAT call was made yet in this process.
  explicit ServerProcess(std::vector<std::string> arguments);
  ~ServerProcess();

  // Waits for the server's qualifier; throws Error when the server gave up instead.
  DAT_CONN_QUAL qualifier();
  // Asks the server to leave and returns its exit code.
  int stop();

 private:
  Fd control_;
  pid_t pid_ = -1;
};

// The server's half: tells the process that started it where it listens.
void announce(int control_fd, DAT_CONN_QUAL qualifier);

// Turns SIGINT, SIGTERM and the end of the control descriptor into one software event on an event dispatcher, so that
// a server has a single place to wait. A second signal ends the process at once, and so does, some seconds after the
// end of the descriptor, that the server is still there.
class StopWatcher {
 public:
  // Requires: called before the process has a second thread, so that no other thread takes the signals.
  static void block_signals();

  StopWatcher(DAT_EVD_HANDLE evd, int control_fd);  // control_fd -1: signals only
  ~StopWatcher();
  StopWatcher(const StopWatcher&) = delete;
  StopWatcher& operator=(const StopWatcher&) = delete;

 private:
  void watch(DAT_EVD_HANDLE evd, int control_fd);

  Fd signals_;
  Fd wake_;
  std::thread thread_;
};

// Ties the process, and every thread it starts later, to one processor.
void pin_to_cpu(int cpu);

// Processor time this process has used so far, all threads, user and system.
std::uint64_t process_cpu_ns();

}  // namespace tools

#endif
