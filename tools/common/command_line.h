// SPDX-License-Identifier: BSD-3-Clause
// The frame every tool's main() shares: options in, exit code out, errors as one sentence on stderr.
#ifndef ANYDAT_TOOLS_COMMON_COMMAND_LINE_H
#define ANYDAT_TOOLS_COMMON_COMMAND_LINE_H

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace tools {

// Parses the command line and calls `work`. Returns what main() returns: the code of `work`, kExitFailed after an
// Error, kExitUsage for a command line that does not parse, kExitOk for --help.
int run_tool(CLI::App& app, int argc, char** argv, const std::function<int()>& work);

// The text under --help that shows the tool at work, one indented line per example.
std::string examples(const std::vector<std::string>& lines);

// Of an option that names a processor: it is one that this process may be tied to.
CLI::Validator usable_processor();

}  // namespace tools

#endif
