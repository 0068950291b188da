// SPDX-License-Identifier: BSD-3-Clause
#include "os/output.h"

#include <signal.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include "os/uncancelled.h"

namespace anydat::os {

// A line that cannot be written raises a signal that ends the program: where standard error is a pipe whose reader has
// gone, or a file which may not grow. The signal is taken back, unless one was pending before, which is the program's.
void write_to_standard_error(std::string_view text) {
  sigset_t raised;
  sigemptyset(&raised);
  sigaddset(&raised, SIGPIPE);
  sigaddset(&raised, SIGXFSZ);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &raised, &before);
  sigset_t pending;
  sigpending(&pending);
  // Not through libc, where both are cancellation points.
  if (uncancelled::write(STDERR_FILENO, text.data(), text.size()) < 0 && (errno == EPIPE || errno == EFBIG)) {
    const int signal = errno == EPIPE ? SIGPIPE : SIGXFSZ;
    sigemptyset(&raised);
    sigaddset(&raised, signal);
    constexpr timespec kAtOnce{};
    if (sigismember(&pending, signal) == 0)
      syscall(SYS_rt_sigtimedwait, &raised, nullptr, &kAtOnce, sizeof(std::uint64_t));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void print_to_standard_output(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
}

void write_to_system_log(std::string_view line) {
  syslog(LOG_USER | LOG_INFO, "%.*s", static_cast<int>(line.size()), line.data());
}

}  // namespace anydat::os
