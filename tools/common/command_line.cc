// SPDX-License-Identifier: BSD-3-Clause
#include "common/command_line.h"

#include <fmt/format.h>
#include <sched.h>

#include <charconv>
#include <cstdio>
#include <exception>

#include "common/error.h"

namespace tools {

int run_tool(CLI::App& app, int argc, char** argv, const std::function<int()>& work) {
  app.set_version_flag("--version", fmt::format("{} {}", app.get_name(), ANYDAT_VERSION),
                       "Print the version and leave");
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

CLI::Validator usable_processor() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        cpu_set_t set;
        CPU_ZERO(&set);
        sched_getaffinity(0, sizeof set, &set);
        unsigned number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error == std::errc{} && end == text.data() + text.size() && number < CPU_SETSIZE && CPU_ISSET(number, &set))
          return {};
        return fmt::format("'{}' is no processor that this process may use", text);
      },
      "");
}

}  // namespace tools
