// SPDX-License-Identifier: BSD-3-Clause
// One sentence a line on standard error, at the level DAT_LOG asks for: error (default), warn, info, debug or off.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace anydat::base {

enum class LogLevel { off, error, warn, info, debug };

LogLevel log_level();
bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view sentence);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (!log_enabled(level)) return;
  fmt::memory_buffer text;  // on the stack for all ordinary lengths
  fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  log_line(level, {text.data(), text.size()});
}

}  // namespace anydat::base
