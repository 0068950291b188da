// SPDX-License-Identifier: BSD-3-Clause
#include "circumstances.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace anydat::test {
namespace {

void write_file(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  if (!written) throw std::runtime_error(fmt::format("cannot write {}", path));
}

void configure(const std::string& label, unsigned long what, ifreq request) {
  label.copy(request.ifr_name, sizeof request.ifr_name - 1);
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool done = ::ioctl(socket, what, &request) == 0;
  ::close(socket);
  if (!done) throw std::runtime_error(fmt::format("{} cannot be configured", label));
}

}  // namespace

void give_up_looking_into_others() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return;
  sets[0].effective &= ~(1u << CAP_SYS_PTRACE);
  ::syscall(SYS_capset, &header, sets.data());
}

void enter_namespaces(int kinds, std::optional<unsigned> number) {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWUSER | kinds) != 0) throw std::runtime_error("no namespaces");
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", fmt::format("{} {} 1", number.value_or(user), user));
  write_file("/proc/self/gid_map", fmt::format("{} {} 1", number.value_or(group), group));
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    return;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

void take_address(const std::string& text, const std::string& label) {
  if (label == "lo") set_device_up(true);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, text.c_str(), &address.sin_addr);
  ifreq request{};
  std::memcpy(&request.ifr_addr, &address, sizeof address);
  configure(label, SIOCSIFADDR, request);
}

void lose_address(const std::string& label) {
  configure(label, SIOCSIFFLAGS, {});
}

void set_device_up(bool up) {
  ifreq request{};
  request.ifr_flags = static_cast<short>(IFF_LOOPBACK | (up ? IFF_UP | IFF_RUNNING : 0));
  configure("lo", SIOCSIFFLAGS, request);
}

bool give_up_ipv6() try {
  constexpr const char* kSetting = "/proc/sys/net/ipv6/conf/lo/disable_ipv6";
  if (::access(kSetting, F_OK) == 0) write_file(kSetting, "1");
  return true;
} catch (const std::exception&) {
  return false;
}

}  // namespace anydat::test
