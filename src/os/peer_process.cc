// SPDX-License-Identifier: BSD-3-Clause
#include "os/peer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>

#include "os/numbered_entries.h"
#include "os/thread_numbers.h"
#include "os/uncancelled.h"

namespace anydat::os {

namespace {

#ifndef SO_PEERPIDFD
constexpr int SO_PEERPIDFD = 77;
#endif

// Before Linux 6.5 there is the number only. That the number has not come to mean another process since the socket was
// connected is known if the other end is still open after the descriptor has been opened.
int open_descriptor(int socket, pid_t pid) {
  int descriptor = -1;
  socklen_t length = sizeof descriptor;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &descriptor, &length) == 0) return descriptor;
  if (pid <= 0) return -1;
  descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (descriptor >= 0 && peer_has_hung_up(socket, -1)) {
    uncancelled::close(descriptor);
    return -1;
  }
  return descriptor;
}

struct Credentials {
  pid_t pid = 0;
  uid_t user = 0;
  gid_t group = 0;
};

bool read_credentials(int socket, Credentials& credentials) {
  socklen_t length = sizeof credentials;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0;
}

std::uint64_t file_number(int descriptor) {
  struct statx status;
  return statx(descriptor, "", AT_EMPTY_PATH, STATX_INO, &status) == 0 ? status.stx_ino : 0;
}

// What the kernel says for users that have no number in our namespace.
constexpr uid_t kNobody = 65534;

bool all_users_have_numbers() {
  const UniqueFd file =
      UniqueFd::of([] { return uncancelled::open("/proc/thread-self/uid_map", O_RDONLY | O_CLOEXEC); });
  std::array<char, 256> text{};
  const ssize_t count = file ? uncancelled::read(file.get(), text.data(), text.size() - 1) : -1;
  unsigned first = 1, outside = 1, number = 0;
  return count > 0 && std::sscanf(text.data(), "%u %u %u", &first, &outside, &number) == 3 && first == 0 &&
         outside == 0 && number == ~0u;
}

// The last number in the line NSpid of /proc/PID/task/TID/status: how a thread is called in its own namespace.
pid_t innermost_number(const char* status_path) {
  const UniqueFd file = UniqueFd::of([&] { return uncancelled::open(status_path, O_RDONLY | O_CLOEXEC); });
  std::array<char, 4096> text;
  const ssize_t count = file ? uncancelled::read(file.get(), text.data(), text.size()) : -1;
  if (count <= 0) return 0;
  const std::string_view status(text.data(), static_cast<std::size_t>(count));
  const std::size_t line = status.find("\nNSpid:");
  if (line == std::string_view::npos) return 0;
  const std::string_view numbers = status.substr(line + 1, status.find('\n', line + 1) - line - 1);
  const std::string_view last = numbers.substr(numbers.find_last_of(" \t") + 1);
  pid_t number = 0;
  std::from_chars(last.data(), last.data() + last.size(), number);
  return number;
}

// A peer with more of them costs no more.
constexpr std::size_t kThreadsLookedAt = 1024;

// The peer may live in a namespace below this one, where its threads have other numbers. It is looked for by name.
pid_t find_thread(pid_t process, pid_t as_it_says) {
  std::array<char, 64> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/task", process);
  std::array<pid_t, kThreadsLookedAt> threads;
  std::size_t count = 0;
  NumberedEntries entries(path.data());
  while (count < threads.size() && entries.next(threads[count])) ++count;
  const auto begin = threads.begin(), end = begin + static_cast<std::ptrdiff_t>(count);
  std::sort(begin, end);
  return find_thread_number(std::span(threads).first(count), as_it_says, [&](pid_t thread) {
    std::snprintf(path.data(), path.size(), "/proc/%d/task/%d/status", process, thread);
    return innermost_number(path.data());
  });
}

}  // namespace

PeerProcess::PeerProcess(int socket) {
  Credentials peer;
  if (read_credentials(socket, peer)) pid_ = peer.pid;
  descriptor_ = UniqueFd::of([&] { return open_descriptor(socket, pid_); });
}

PeerName peer_name(int socket) {
  Credentials peer;
  if (read_credentials(socket, peer) && peer.pid > 0) return static_cast<PeerName>(peer.pid);
  return file_number(PeerProcess(socket).descriptor()) | PeerName{1} << 63;
}

bool peer_is_of_our_user(int socket) {
  Credentials peer;
  if (!read_credentials(socket, peer) || peer.user != geteuid()) return false;
  return peer.user != kNobody || all_users_have_numbers();
}

bool PeerProcess::is_this_process() const {
  return pid_ == getpid();
}

bool PeerProcess::is_same_as(const PeerProcess& other) const {
  if (pid_ != other.pid_) return false;
  // Descriptors of one process are one file; where they have no files of their own, all are the same.
  const std::uint64_t own = file_number(descriptor()), others = file_number(other.descriptor());
  return own == others || own == 0 || others == 0;
}

pid_t PeerProcess::thread(pid_t as_it_says) const {
  if (pid_ <= 0 || as_it_says <= 0) return 0;
  // Signal 0 is none; the call says whether the process has that thread.
  if (syscall(SYS_tgkill, pid_, as_it_says, 0) == 0) return as_it_says;
  return find_thread(pid_, as_it_says);
}

bool peer_has_hung_up(int socket, int process) {
  std::array<pollfd, 2> both{{{socket, POLLRDHUP, 0}, {process, POLLIN, 0}}};
  const int ready = uncancelled::poll(both.data(), process >= 0 ? 2 : 1, 0);
  return ready > 0 && ((both[0].revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) != 0 || both[1].revents != 0);
}

}  // namespace anydat::os
