// SPDX-License-Identifier: BSD-3-Clause
// Where a process says something.
#pragma once

#include <string_view>

namespace anydat::os {

// In one write, so that lines of several processes do not mix, and without a signal: where standard error is a pipe
// whose reader has gone, or a file which may not grow, the bytes are lost. No cancellation point.
void write_to_standard_error(std::string_view text);

// As the program itself writes to it, so that its own lines come before and after.
void print_to_standard_output(std::string_view text);

// syslog(3); without a line break at its end.
void write_to_system_log(std::string_view line);

}  // namespace anydat::os
