// SPDX-License-Identifier: BSD-3-Clause
#include "env/print.h"

#include <cstdlib>
#include <string>

#include "env/environment.h"
#include "os/output.h"

namespace anydat::env {

namespace {

constexpr unsigned long kStandardOutput = 1;
constexpr unsigned long kSystemLog = 2;

// Any number as C writes it. What is none of the two, or nothing, is the default.
unsigned long destinations() {
  const std::string asked(text(Variable::dbg_dest));
  const unsigned long bits = std::strtoul(asked.c_str(), nullptr, 0) & (kStandardOutput | kSystemLog);
  return bits != 0 ? bits : kStandardOutput;
}

}  // namespace

void print_lines(std::string_view lines) {
  const unsigned long to = destinations();
  if ((to & kStandardOutput) != 0) os::print_to_standard_output(lines);
  if ((to & kSystemLog) == 0) return;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    os::write_to_system_log(line);
    lines.remove_prefix(line.size() < lines.size() ? line.size() + 1 : line.size());
  }
}

}  // namespace anydat::env
