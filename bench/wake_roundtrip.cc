// SPDX-License-Identifier: BSD-3-Clause
// What waking another process costs (bare/wake.h). Prints one line for each means:
//   eventfd median_ns 14321.5 p99_ns 20011.0
#include "bare/wake.h"

#include <fmt/format.h>

#include "common/command_line.h"
#include "common/error.h"

namespace {

struct Options {
  std::uint64_t iters = 20'000;
  std::vector<int> cpus;  // the one that answers, the one that asks
};

void print(const char* name, const tools::Summary& half_ns) {
  fmt::print("{} median_ns {:.1f} p99_ns {:.1f}\n", name, half_ns.median, half_ns.p99);
}

int run(const Options& options) {
  print("eventfd", bench::wake_by_eventfd(options.iters, options.cpus));
  print("futex", bench::wake_by_futex(options.iters, options.cpus));
  return tools::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What waking another process costs, by an eventfd and by a futex", "wake_roundtrip");
  app.add_option("--iters", options.iters, "Round trips")->check(CLI::Range(1, 100'000'000))->capture_default_str();
  app.add_option("--cpus", options.cpus, "Processors to tie the two processes to")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::NonNegativeNumber)
      ->type_name("ANSWERING,ASKING");
  app.footer(tools::examples({"wake_roundtrip --iters 10000 --cpus 0,1"}));
  return tools::run_tool(app, argc, argv, [&] { return run(options); });
}
