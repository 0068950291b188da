// SPDX-License-Identifier: BSD-3-Clause
#include "common/command_line.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "common/error.h"

namespace tools {

int run_tool(CLI::App& app, int argc, char** argv, const std::function<int()>& work) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "{0}: {1} (try {0} --help)\n", app.get_name(), error.what());
    return kExitUsage;
  }
  try {
    return work();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return kExitFailed;
  }
}

std::string examples(const std::vector<std::string>& lines) {
  std::string text = lines.size() == 1 ? "Example:" : "Examples:";
  for (const auto& line : lines) text += "\n  " + line;
  return text;
}

}  // namespace tools
