// SPDX-License-Identifier: BSD-3-Clause
// datperf: latency, bandwidth and message rate between two processes.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "common/command_line.h"
#include "common/error.h"
#include "common/process.h"
#include "datperf/many.h"
#include "datperf/message.h"
#include "datperf/options.h"
#include "datperf/report.h"
#include "datperf/run.h"

namespace datperf {
namespace {

void run_all(const Options& options, const std::optional<Former>& former, const tools::Peer& server) {
  const tools::Adapter adapter(options.ia);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const std::uint64_t size : sizes_of(options)) {
    const Params params = params_of(options, size);
    const Result result = [&] {
      ProgressLine line(size);
      return measure(adapter, server, params, options.seconds, [&](double fraction) { line.show(fraction); });
    }();
    if (results.empty() && !options.json) print_table_head(result, server.text);
    nlohmann::ordered_json json = to_json(result);
    std::optional<Ratio> ratio;
    if (former) ratio = former->beside(json);
    if (options.histogram) json["histogram"] = to_json(result.histogram);
    if (ratio) json["compared"] = to_json(*ratio);
    if (!options.raw.empty()) write_raw(result, options.raw);
    results.push_back(std::move(json));
    if (options.json) continue;
    print_table_row(result);
    if (options.histogram) print_histogram(result);
    if (ratio) print_ratio(*ratio, options.compare);
  }
  // One object for one size, so that a script can pick a key without unpacking a list.
  if (options.json) fmt::print("{}\n", options.size != 0 ? results[0].dump() : results.dump(2));
}

int run(const Options& options) {
  std::optional<Former> former;  // found wanting before anything is measured
  if (!options.compare.empty()) former.emplace(options.compare);
  setenv("DAT_WIRE", options.wire.c_str(), 1);
  std::optional<tools::ServerProcess> server;
  if (options.to.empty()) {
    std::vector<std::string> arguments{"datperf", "serve", "--qual", "0", "--ia", options.ia};
    if (!options.cpus.empty()) arguments.insert(arguments.end(), {"--cpu", std::to_string(options.cpus[0])});
    server.emplace(std::move(arguments));
  }
  if (!options.cpus.empty()) tools::pin_to_cpu(options.cpus[1]);  // before the library starts threads of its own
  run_all(options, former,
          server ? tools::resolve_peer(own_address(options.ia), server->qualifier())
                 : tools::resolve_peer(options.to, kDefaultQualifier));
  return server ? server->stop() : tools::kExitOk;
}

CLI::App* add_many(CLI::App& app, ManyOptions& options) {
  CLI::App* command = app.add_subcommand("many", "Many connections from several processes into one SRQ");
  command->add_option("--endpoints", options.endpoints, "Connections in all")
      ->check(CLI::Range(std::uint32_t{1}, kEndpointsMax))
      ->capture_default_str();
  command->add_option("--clients", options.clients, "Processes that they come from")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  command->add_option("--size", options.size, "Bytes in a message")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 20))
      ->capture_default_str();
  command->add_option("--iters", options.iters, "Messages measured, in all")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  command->add_option("--burst", options.burst, "Messages in a row on one connection")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  add_common(command, options);
  command->footer(tools::examples({"datperf many --endpoints 10000 --clients 4 --wire shm"}));
  return command;
}

}  // namespace

std::string wanted_wire() {
  const char* wire = std::getenv("DAT_WIRE");
  return wire != nullptr && (std::strcmp(wire, "shm") == 0 || std::strcmp(wire, "tcp") == 0) ? wire : "auto";
}

std::string own_address(const std::string& ia) {
  const tools::Adapter adapter(ia);
  return tools::address_text(adapter.attributes().ia_address_ptr);
}

}  // namespace datperf

int main(int argc, char** argv) {
  datperf::Options options;
  datperf::ServeOptions serve_options;
  std::optional<int> serve_cpu;
  CLI::App app("Measures messages between two processes. Starts its own server on this host unless told where one is.",
               "datperf");
  app.require_subcommand(1);
  add_metric(app, options, datperf::Metric::lat, "Half the round trip of one message at a time, or all of a Read");
  add_metric(app, options, datperf::Metric::bw, "Bytes a second of a stream of operations");
  add_metric(app, options, datperf::Metric::rate, "Operations a second");
  datperf::ManyOptions many_options;
  const CLI::App* many = datperf::add_many(app, many_options);
  CLI::App* serve = app.add_subcommand("serve", "Be the server for clients that use --to, until interrupted");
  serve->add_option("--ia", serve_options.ia, "Interface adapter")->capture_default_str();
  serve
      ->add_option("--qual", serve_options.qualifier,
                   "Qualifier to serve on, a port or a larger number; 0 takes a free one")
      ->capture_default_str();
  serve->add_option("--cpu", serve_cpu, "Processor to tie the server to")->check(tools::usable_processor());
  serve->add_option("--memory", serve_options.memory, "The most that one client's run may need, as in 4GiB")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  serve
      ->add_option("--patience", serve_options.patience_s,
                   "Seconds in which nothing comes before a run gives way to the next client")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  serve->add_option("--control-fd", serve_options.control_fd)->group("");
  serve->footer(tools::examples({"datperf serve --qual 21122"}));
  app.footer(
      tools::examples({"datperf lat --size 8 --srq", "datperf bw --op write --size 1MiB",
                       "datperf rate --size 8 --endpoints 16 --srq --json", "datperf lat --to server.example.org"}));
  return tools::run_tool(app, argc, argv, [&] {
    if (many->parsed()) return datperf::run_many(many_options);
    if (!serve->parsed()) return datperf::run(options);
    if (serve_cpu) tools::pin_to_cpu(*serve_cpu);
    return datperf::serve(serve_options);
  });
}
