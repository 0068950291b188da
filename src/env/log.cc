// SPDX-License-Identifier: BSD-3-Clause
#include "env/log.h"

#include <fmt/format.h>

#include <array>
#include <new>

#include "base/computed.h"
#include "env/environment.h"
#include "os/output.h"
#include "os/own_numbers.h"

namespace anydat::env {

namespace {

constexpr std::array<std::string_view, 5> kLevelNames{"off", "error", "warn", "info", "debug"};

LogLevel read_level() {
  const std::string_view wanted = text(Variable::log);
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (wanted == kLevelNames[i]) return static_cast<LogLevel>(i);
  }
  return LogLevel::error;
}

}  // namespace

LogLevel log_level() {
  constexpr int kUnknown = -1;
  static constinit base::Computed<int, kUnknown> level;
  return static_cast<LogLevel>(level.get([] { return static_cast<int>(read_level()); }));
}

bool log_enabled(LogLevel level) {
  return level <= log_level();
}

void log_line(LogLevel level, std::string_view sentence) {
  fmt::memory_buffer line;
  try {
    fmt::format_to(std::back_inserter(line), "dat[{}] {}: {}\n", os::own_process_number(),
                   kLevelNames[static_cast<std::size_t>(level)], sentence);
  } catch (const std::bad_alloc&) {
    return;  // a line that is longer than the buffer on the stack
  }
  // One write, so lines of several processes do not mix. A log line that cannot be written is no error of the call that
  // wrote it.
  os::write_to_standard_error({line.data(), line.size()});
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

}  // namespace anydat::env
