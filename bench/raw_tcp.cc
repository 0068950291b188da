// SPDX-License-Identifier: BSD-3-Clause
// Bare TCP between two processes (bare/tcp.h), of which one figure is printed:
//   lat median_ns 9876.5 p99_ns 12345.6
#include <fmt/format.h>

#include <string>

#include "bare/tcp.h"
#include "common/command_line.h"
#include "common/error.h"

namespace {

using Options = bench::TcpOptions;

int run(const std::string& metric, const Options& options) {
  if (metric == "lat") {
    const tools::Summary half = bench::tcp_latency(options);
    fmt::print("lat median_ns {:.1f} p99_ns {:.1f}\n", half.median, half.p99);
  } else if (metric == "bw") {
    fmt::print("bw gbytes_per_s {:.4f}\n", bench::tcp_rate(options) * static_cast<double>(options.size) / 1e9);
  } else {
    fmt::print("rate mmsgs_per_s {:.4f}\n", bench::tcp_rate(options) / 1e6);
  }
  return tools::kExitOk;
}

CLI::App* add_metric(CLI::App& app, Options& options, const char* metric, const char* description, std::uint64_t size,
                     std::uint64_t batch) {
  CLI::App* command = app.add_subcommand(metric, description);
  command->add_option("--size", options.size, fmt::format("Bytes in a message (default {})", size))
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30));
  command->add_option("--iters", options.iters, "Messages, or round trips")->check(CLI::Range(1, 1'000'000'000));
  command->add_option("--batch", options.batch, fmt::format("Messages in a write (default {})", batch))
      ->check(CLI::Range(1, 65536));
  command->add_option("--buffers", options.buffers, "Buffers to use in turn")->check(CLI::Range(1, 65536));
  command->add_option("--cpus", options.cpus, "Processors to tie the two processes to")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::NonNegativeNumber)
      ->type_name("ANSWERING,ASKING");
  command->preparse_callback([&options, size, batch](std::size_t) {
    options.size = size;
    options.batch = batch;
  });
  return command;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Bare TCP between two processes that poll", "raw_tcp");
  app.require_subcommand(1);
  add_metric(app, options, "lat", "Half the round trip of a message", 8, 1);
  add_metric(app, options, "bw", "Bytes a second of a stream", 1 << 20, 1);
  add_metric(app, options, "rate", "Messages a second of a stream", 8, 64);
  return tools::run_tool(app, argc, argv, [&] { return run(app.get_subcommands()[0]->get_name(), options); });
}
