// SPDX-License-Identifier: BSD-3-Clause
// One sentence a line on standard error, at the level DAT_LOG asks for: error (default), warn, info, debug or off.
#pragma once

#include <fmt/core.h>

#include <string_view>

namespace anydat::env {

enum class LogLevel { off, error, warn, info, debug };

LogLevel log_level();
bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view sentence);

void log_with(LogLevel level, fmt::string_view format, fmt::format_args args);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_with(level, format, fmt::make_format_args(args...));
}

}  // namespace anydat::env
