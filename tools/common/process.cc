// SPDX-License-Identifier: BSD-3-Clause
#include "common/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "common/error.h"

namespace tools {
namespace {

constexpr int kChildControlFd = 3;
constexpr int kStartTimeoutMs = 10'000;
constexpr int kStopTimeoutMs = 10'000;

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

void Fd::reset() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

pid_t run_again(std::vector<std::string> arguments, const Fd& end, int number) {
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // Should the descriptor already have the wanted number, dup2 onto itself clears close-on-exec, as POSIX says.
  posix_spawn_file_actions_adddup2(&actions, end.get(), number);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    errno = error;
    fail_errno("starting another process");
  }
  return pid;
}

int exit_code_of(pid_t pid) {
  int status = 0;
  pid_t reaped = 0;
  do {
    reaped = waitpid(pid, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  if (reaped < 0) return kExitFailed;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

ChildOutput::ChildOutput(std::vector<std::string> arguments) {
  std::array<int, 2> pair{};
  if (pipe2(pair.data(), O_CLOEXEC) != 0) fail_errno("pipe");
  output_ = Fd(pair[0]);
  pid_ = run_again(std::move(arguments), Fd(pair[1]), STDOUT_FILENO);
}

ChildOutput::~ChildOutput() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  exit_code_of(pid_);
}

std::string ChildOutput::read_all() {
  std::string text;
  std::array<char, 4096> piece;
  for (ssize_t bytes = 0; (bytes = read(output_.get(), piece.data(), piece.size())) != 0;) {
    if (bytes < 0 && errno != EINTR) fail_errno("reading what another process prints");
    if (bytes > 0) text.append(piece.data(), static_cast<std::size_t>(bytes));
  }
  if (const int code = exit_code_of(std::exchange(pid_, -1)); code != kExitOk)
    throw Error(fmt::format("a process of this run ended with exit code {}", code));
  return text;
}

void need_descriptors(std::uint64_t count) {
  constexpr rlim_t kUsual = 64;  // that a process has anyway
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) fail_errno("getrlimit");
  if (limit.rlim_cur >= count + kUsual) return;
  if (limit.rlim_max < count + kUsual)
    throw Error(fmt::format("one process needs {} descriptors for this and may have {} (ulimit -Hn)", count + kUsual,
                            limit.rlim_max));
  limit.rlim_cur = count + kUsual;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) fail_errno("raising the limit of descriptors");
}

ServerProcess::ServerProcess(std::vector<std::string> arguments) {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) fail_errno("socketpair");
  control_ = Fd(pair[0]);
  arguments.insert(arguments.end(), {"--control-fd", std::to_string(kChildControlFd)});
  pid_ = run_again(std::move(arguments), Fd(pair[1]), kChildControlFd);
}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) stop();
}

DAT_CONN_QUAL ServerProcess::qualifier() {
  std::uint64_t qualifier = 0;
  pollfd waiting{control_.get(), POLLIN, 0};
  if (poll(&waiting, 1, kStartTimeoutMs) == 1 &&
      recv(control_.get(), &qualifier, sizeof qualifier, MSG_WAITALL) == sizeof qualifier)
    return qualifier;
  throw Error(fmt::format("the server process did not start (exit code {})", stop()));
}

int ServerProcess::stop() {
  control_.reset();
  // A server that does not leave by itself must not hold up its client for ever.
  if (const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0u))); process.get() >= 0) {
    pollfd ended{process.get(), POLLIN, 0};
    if (poll(&ended, 1, kStopTimeoutMs) == 0) kill(pid_, SIGKILL);
  }
  return exit_code_of(std::exchange(pid_, -1));
}

void announce(int control_fd, DAT_CONN_QUAL qualifier) {
  const std::uint64_t value = qualifier;
  if (send(control_fd, &value, sizeof value, MSG_NOSIGNAL) != sizeof value) fail_errno("announcing the qualifier");
}

void StopWatcher::block_signals() {
  const sigset_t set = stop_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

StopWatcher::StopWatcher(DAT_EVD_HANDLE evd, int control_fd) {
  const sigset_t set = stop_signals();
  signals_ = Fd(signalfd(-1, &set, SFD_CLOEXEC));
  wake_ = Fd(eventfd(0, EFD_CLOEXEC));
  if (signals_.get() < 0 || wake_.get() < 0) fail_errno("preparing to be stopped");
  thread_ = std::thread([this, evd, control_fd] { watch(evd, control_fd); });
}

StopWatcher::~StopWatcher() {
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void StopWatcher::watch(DAT_EVD_HANDLE evd, int control_fd) {
  // poll ignores a descriptor of -1, which is what a server without a starter has, and what each source becomes once
  // it has spoken.
  std::array<pollfd, 3> sources{{{wake_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}, {control_fd, POLLIN, 0}}};
  constexpr int kRetryMs = 100;  // the dispatcher is full
  bool asked = false, posted = false;
  for (;;) {
    if (poll(sources.data(), sources.size(), asked && !posted ? kRetryMs : -1) < 0) continue;
    if (sources[0].revents != 0) return;
    if (sources[1].revents != 0) {
      signalfd_siginfo info{};
      if (read(signals_.get(), &info, sizeof info) == sizeof info && asked)
        _exit(128 + static_cast<int>(info.ssi_signo));
    }
    if (sources[2].revents != 0) {
      sources[2].fd = -1;
      // No process may be left to stop a server that does not leave by itself, so it asks the system to.
      alarm(kStopTimeoutMs / 1000);
    }
    asked = true;
    if (!posted) {
      DAT_EVENT event{};
      event.event_number = DAT_SOFTWARE_EVENT;
      event.event_data.software_event_data.pointer = nullptr;
      posted = dat_evd_post_se(evd, &event) == DAT_SUCCESS;
    }
  }
}

void pin_to_cpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail_errno(fmt::format("pinning to processor {}", cpu));
}

std::uint64_t process_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace tools
