// SPDX-License-Identifier: BSD-3-Clause
// Runs a program under limits, or with system calls that the system refuses: as containers, hardened kernels and
// administrators do it.
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

#ifndef SO_PEERPIDFD
constexpr int SO_PEERPIDFD = 77;
#endif

constexpr const char* kUsage =
    "Usage: confine [--deny NAME]... [--files N] [--file-bytes N] [--locked-bytes N] [--] PROGRAM [ARGUMENT]...\n"
    "NAME is process_vm, membarrier, userfaultfd or pidfd: those calls answer EPERM.\n"
    "--locked-bytes takes the privilege to lock more (CAP_IPC_LOCK) as well.\n";

const std::map<std::string_view, std::vector<int>>& groups() {
  static const std::map<std::string_view, std::vector<int>> all{
      {"process_vm", {SYS_process_vm_readv, SYS_process_vm_writev}},
      {"membarrier", {SYS_membarrier}},
      {"userfaultfd", {SYS_userfaultfd}},
      {"pidfd", {SYS_pidfd_open, SYS_pidfd_getfd, SYS_pidfd_send_signal}},
  };
  return all;
}

constexpr std::uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;

void add(std::vector<sock_filter>& filter, sock_filter step) {
  filter.push_back(step);
}

// With one option of one call, the whole call being much used.
void refuse_peer_pidfd(std::vector<sock_filter>& filter) {
  add(filter, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 4));
  add(filter, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])));
  add(filter, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_PEERPIDFD, 0, 1));
  add(filter, BPF_STMT(BPF_RET | BPF_K, kRefuse));
  add(filter, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
}

bool install(const std::vector<int>& refused, bool peer_pidfd) {
  if (refused.empty()) return true;
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int number : refused) {
    add(filter, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    add(filter, BPF_STMT(BPF_RET | BPF_K, kRefuse));
  }
  if (peer_pidfd) refuse_peer_pidfd(filter);
  add(filter, BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{.len = static_cast<unsigned short>(filter.size()), .filter = filter.data()};
  // Who has the privilege for it keeps what set-user-id programs do as it is.
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ||
         (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

bool limit(__rlimit_resource resource, const char* value) {
  const rlim_t most = std::strtoull(value, nullptr, 10);
  const rlimit limit{.rlim_cur = most, .rlim_max = most};
  return ::setrlimit(resource, &limit) == 0;
}

int fail(const char* what) {
  std::fprintf(stderr, "confine: %s: %s\n", what, std::strerror(errno));
  return 125;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> refused;
  bool peer_pidfd = false;
  int i = 1;
  for (; i + 1 < argc && std::string_view(argv[i]).starts_with("--"); i += 2) {
    const std::string_view option = argv[i];
    if (option == "--") {
      ++i;
      break;
    }
    if (option == "--deny" && groups().count(argv[i + 1]) != 0) {
      const std::vector<int>& numbers = groups().at(argv[i + 1]);
      refused.insert(refused.end(), numbers.begin(), numbers.end());
      peer_pidfd |= std::string_view(argv[i + 1]) == "pidfd";
    } else if (option == "--files") {
      if (!limit(RLIMIT_NOFILE, argv[i + 1])) return fail("RLIMIT_NOFILE");
    } else if (option == "--file-bytes") {
      if (!limit(RLIMIT_FSIZE, argv[i + 1])) return fail("RLIMIT_FSIZE");
    } else if (option == "--locked-bytes") {
      if (!limit(RLIMIT_MEMLOCK, argv[i + 1])) return fail("RLIMIT_MEMLOCK");
      // The program that is executed has no privilege outside this set, root's neither. Without privilege there is
      // nothing to take.
      ::prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0);
    } else {
      std::fputs(kUsage, stderr);
      return 2;
    }
  }
  if (i >= argc) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (!install(refused, peer_pidfd)) return fail("seccomp");
  ::execvp(argv[i], argv + i);
  return fail(argv[i]);
}
