// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <new>

#include "base/env.h"
#include "base/fork.h"

namespace anydat::base {

namespace {

constexpr std::array<std::string_view, 5> kLevelNames{"off", "error", "warn", "info", "debug"};

LogLevel read_level() {
  const std::string_view wanted = env_text(EnvVar::log);
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (wanted == kLevelNames[i]) return static_cast<LogLevel>(i);
  }
  return LogLevel::error;
}

// A line that cannot be written raises a signal that ends the program: where standard error is a pipe whose reader has
// gone, or a file which may not grow. The signal is taken back, unless one was pending before, which is the program's.
void write_without_signal(std::string_view line) {
  sigset_t raised;
  sigemptyset(&raised);
  sigaddset(&raised, SIGPIPE);
  sigaddset(&raised, SIGXFSZ);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &raised, &before);
  sigset_t pending;
  sigpending(&pending);
  // Not through libc, where both are cancellation points.
  if (syscall(SYS_write, STDERR_FILENO, line.data(), line.size()) < 0 && (errno == EPIPE || errno == EFBIG)) {
    const int signal = errno == EPIPE ? SIGPIPE : SIGXFSZ;
    sigemptyset(&raised);
    sigaddset(&raised, signal);
    constexpr timespec kAtOnce{};
    if (sigismember(&pending, signal) == 0)
      syscall(SYS_rt_sigtimedwait, &raised, nullptr, &kAtOnce, sizeof(std::uint64_t));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

LogLevel log_level() {
  constexpr int kUnknown = -1;
  static constinit Computed<int, kUnknown> level;
  return static_cast<LogLevel>(level.get([] { return static_cast<int>(read_level()); }));
}

bool log_enabled(LogLevel level) {
  return level <= log_level();
}

void log_line(LogLevel level, std::string_view sentence) {
  fmt::memory_buffer line;
  try {
    fmt::format_to(std::back_inserter(line), "dat[{}] {}: {}\n", getpid(), kLevelNames[static_cast<std::size_t>(level)],
                   sentence);
  } catch (const std::bad_alloc&) {
    return;  // a line that is longer than the buffer on the stack
  }
  // One write, so lines of several processes do not mix. A log line that cannot be written is no error of the call that
  // wrote it.
  write_without_signal({line.data(), line.size()});
}

void log_with(LogLevel level, fmt::string_view format, fmt::format_args args) {
  fmt::memory_buffer text;  // on the stack for all ordinary lengths
  try {
    fmt::vformat_to(std::back_inserter(text), format, args);
  } catch (const std::bad_alloc&) {
    return;
  }
  log_line(level, {text.data(), text.size()});
}

}  // namespace anydat::base
