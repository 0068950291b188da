// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace anydat::env {

// Prints whole lines that a program has asked for, to where DAT_DBG_DEST says (ENV-3): standard output as the program
// itself writes to it, so that its own lines come before and after, or the system's log, or both.
void print_lines(std::string_view lines);

}  // namespace anydat::env
