// SPDX-License-Identifier: BSD-3-Clause
#include "base/print.h"

#include <syslog.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/env.h"

namespace anydat::base {

namespace {

constexpr unsigned long kStandardOutput = 1;
constexpr unsigned long kSystemLog = 2;

// Any number as C writes it. What is none of the two, or nothing, is the default.
unsigned long destinations() {
  const std::string text(env_text(EnvVar::dbg_dest));
  const unsigned long bits = std::strtoul(text.c_str(), nullptr, 0) & (kStandardOutput | kSystemLog);
  return bits != 0 ? bits : kStandardOutput;
}

}  // namespace

void print_lines(std::string_view lines) {
  const unsigned long to = destinations();
  if ((to & kStandardOutput) != 0) (void)std::fwrite(lines.data(), 1, lines.size(), stdout);
  if ((to & kSystemLog) == 0) return;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    syslog(LOG_USER | LOG_INFO, "%.*s", static_cast<int>(line.size()), line.data());
    lines.remove_prefix(line.size() < lines.size() ? line.size() + 1 : line.size());
  }
}

}  // namespace anydat::base
