// SPDX-License-Identifier: BSD-3-Clause
#include "support/peer_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

#include "support/patience.h"

extern char** environ;

namespace anydat::test {
namespace {

constexpr int kChildFd = 3;
constexpr const char* kRoleVariable = "ANYDAT_TEST_ROLE";
constexpr const char* kWireVariable = "ANYDAT_TEST_ROLE_WIRE";
constexpr const char* kArgumentsVariable = "ANYDAT_TEST_ROLE_ARGUMENTS";  // one a line

std::map<std::string, std::function<void(RoleContext&)>>& roles() {
  static std::map<std::string, std::function<void(RoleContext&)>> all;
  return all;
}

[[noreturn]] void fail_errno(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return lines;
}

// Runs before the first test. In a process started for a role it never returns.
class RolePlayer : public testing::Environment {
 public:
  void SetUp() override {
    const char* role = std::getenv(kRoleVariable);
    if (role == nullptr) {
      return;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that dies must not leave its peers behind
    int status = 0;
    try {
      LineChannel parent(kChildFd);
      RoleContext context{.wire = wire_by_name(std::getenv(kWireVariable)),
                          .arguments = split_lines(std::getenv(kArgumentsVariable)),
                          .parent = parent};
      roles().at(role)(context);
    } catch (const std::exception& error) {
      fmt::print(stderr, "role {}: {}\n", role, error.what());
      status = 1;
    }
    if (testing::Test::HasFailure()) {
      status = 1;
    }
    std::fflush(nullptr);
    ::_exit(status);
  }
};

[[maybe_unused]] const auto* const kRolePlayer = testing::AddGlobalTestEnvironment(new RolePlayer);

std::array<int, 2> make_channel() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0) {
    fail_errno("socketpair");
  }
  return fds;
}

pid_t start(const std::string& role, const Wire& wire, const std::vector<std::string>& arguments, std::string program,
            int fd) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "GTEST_", 6) != 0) {  // the caller's filter and output file are not the role's
      variables.emplace_back(*entry);
    }
  }
  variables.push_back(fmt::format("{}={}", kRoleVariable, role));
  variables.push_back(fmt::format("{}={}", kWireVariable, wire.name));
  variables.push_back(fmt::format("{}={}", kArgumentsVariable, fmt::join(arguments, "\n")));
  std::vector<char*> env;
  for (std::string& variable : variables) {
    env.push_back(variable.data());
  }
  env.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fd, kChildFd);
  std::array<char*, 2> argv{program.data(), nullptr};
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    errno = error;
    fail_errno("posix_spawn");
  }
  return pid;
}

}  // namespace

LineChannel::~LineChannel() {
  ::close(fd_);
}

void LineChannel::say(const std::string& line) {
  const std::string text = line + "\n";
  if (::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
    fail_errno("saying \"" + line + "\"");
  }
}

std::string LineChannel::hear(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    if (const std::size_t end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
    const int ready = left.count() > 0 ? ::poll(&waiting, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    if (ready <= 0) {
      throw std::runtime_error("heard nothing from the other process");
    }
    std::array<char, 256> buffer{};
    const ssize_t got = ::read(fd_, buffer.data(), buffer.size());
    if (got <= 0) {
      throw std::runtime_error("the other process is gone");
    }
    pending_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

Role::Role(std::string name, std::function<void(RoleContext&)> play) {
  roles().emplace(std::move(name), std::move(play));
}

PeerProcess::PeerProcess(const std::string& role, const Wire& wire, const std::vector<std::string>& arguments,
                         const std::string& program)
    : PeerProcess(role, wire, arguments, program, make_channel().data()) {}

PeerProcess::PeerProcess(const std::string& role, const Wire& wire, const std::vector<std::string>& arguments,
                         const std::string& program, int fds[2])
    : channel_(fds[0]) {
  pid_ = start(role, wire, arguments, program, fds[1]);
  ::close(fds[1]);
}

PeerProcess::~PeerProcess() {
  kill();
}

void PeerProcess::wait_until_stopped() {
  const bool stopped = eventually([this] {
    int status = 0;
    const pid_t got = ::waitpid(pid_, &status, WUNTRACED | WNOHANG);
    if (got == pid_ && !WIFSTOPPED(status)) {
      pid_ = -1;
      throw std::runtime_error("the other process ended instead of stopping");
    }
    return got == pid_;
  });
  if (!stopped) {
    throw std::runtime_error("the other process did not stop");
  }
}

void PeerProcess::resume() {
  ::kill(pid_, SIGCONT);
}

void PeerProcess::kill() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }
}

int PeerProcess::wait_exit() {
  int status = 0;
  if (!eventually([this, &status] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) {
    throw std::runtime_error("the other process did not end");
  }
  pid_ = -1;
  if (!WIFEXITED(status)) {
    throw std::runtime_error(fmt::format("the other process died by signal {}", WTERMSIG(status)));
  }
  return WEXITSTATUS(status);
}

}  // namespace anydat::test
