// SPDX-License-Identifier: BSD-3-Clause
// datperf: latency, bandwidth and message rate between two processes.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "common/command_line.h"
#include "common/error.h"
#include "common/process.h"
#include "datperf/many.h"
#include "datperf/message.h"
#include "datperf/report.h"
#include "datperf/run.h"

namespace datperf {
namespace {

constexpr std::uint64_t kSweepMax = 4 << 20;

struct Options {
  Metric metric = Metric::lat;
  std::string op = "send";
  std::uint64_t size = 0;   // 0: all powers of two up to kSweepMax
  std::uint64_t iters = 0;  // 0: by size
  bool srq = false;
  std::string memory = "heap";
  std::uint32_t endpoints = 1;
  std::string wait = "poll";
  std::string wire = wanted_wire();
  std::string ia = tools::kDefaultIa;
  std::vector<int> cpus;  // server, client
  std::string to;         // empty: a server of our own on this host
  bool json = false;
  // Of a client among several: see many.cc.
  std::uint32_t clients = 1;
  std::uint32_t client = 0;
  std::uint32_t burst = 1;
  std::uint64_t run = 0;
};

std::vector<std::uint64_t> sizes_of(const Options& options) {
  if (options.size != 0) return {options.size};
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = 1; size <= kSweepMax; size *= 2) sizes.push_back(size);
  return sizes;
}

Params params_of(const Options& options, std::uint64_t size) {
  const bool slow_path = options.wait == "block" || options.wire == "tcp";
  std::random_device entropy;
  Params params;
  params.metric = options.metric;
  params.op = options.op == "write" ? Op::write : options.op == "read" ? Op::read : Op::send;
  params.srq = options.srq;
  params.shareable = options.memory == "shareable";
  params.block = options.wait == "block";
  params.endpoints = options.endpoints;
  params.clients = options.clients;
  params.client = options.client;
  params.burst = options.burst;
  params.size = size;
  params.iters = options.iters != 0 ? options.iters : default_iters(options.metric, size, slow_path);
  params.warmup = std::clamp<std::uint64_t>(params.iters / 10, 10, 10'000);
  params.run = options.run != 0 ? options.run : std::uint64_t{entropy()} << 32 | entropy();
  return params;
}

void run_all(const Options& options, const tools::Peer& server) {
  const tools::Adapter adapter(options.ia);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const std::uint64_t size : sizes_of(options)) {
    const Params params = params_of(options, size);
    const Result result = [&] {
      ProgressLine line(size);
      return measure(adapter, server, params, [&](double fraction) { line.show(fraction); });
    }();
    if (results.empty() && !options.json) print_table_head(result, server.text);
    results.push_back(to_json(result));
    if (!options.json) print_table_row(result);
  }
  // One object for one size, so that a script can pick a key without unpacking a list.
  if (options.json) fmt::print("{}\n", options.size != 0 ? results[0].dump() : results.dump(2));
}

int run(const Options& options) {
  setenv("DAT_WIRE", options.wire.c_str(), 1);
  std::optional<tools::ServerProcess> server;
  if (options.to.empty()) {
    std::vector<std::string> arguments{"datperf", "serve", "--qual", "0", "--ia", options.ia};
    if (!options.cpus.empty()) arguments.insert(arguments.end(), {"--cpu", std::to_string(options.cpus[0])});
    server.emplace(std::move(arguments));
  }
  if (!options.cpus.empty()) tools::pin_to_cpu(options.cpus[1]);  // before the library starts threads of its own
  run_all(options, server ? tools::resolve_peer(own_address(options.ia), server->qualifier())
                          : tools::resolve_peer(options.to, kDefaultQualifier));
  return server ? server->stop() : tools::kExitOk;
}

template <typename AnyOptions>
void add_common(CLI::App* command, AnyOptions& options) {
  command
      ->add_option("--wire", options.wire,
                   "How bytes travel: shared memory, TCP, or whatever is best (default: DAT_WIRE, or auto)")
      ->check(CLI::IsMember({"auto", "shm", "tcp"}));
  command->add_option("--ia", options.ia, "Interface adapter")->capture_default_str();
  command->add_option("--cpus", options.cpus, "Processors to tie the two sides to")
      ->delimiter(',')
      ->expected(2)
      ->check(tools::usable_processor())
      ->type_name("SERVER,CLIENT");
  command->add_flag("--json", options.json, "Print JSON: an object, or a list of them without --size");
}

CLI::App* add_metric(CLI::App& app, Options& options, Metric metric, const std::string& description) {
  CLI::App* command = app.add_subcommand(std::string(name_of(metric)), description);
  command->add_option("--op", options.op, "Operation: Sends, RDMA Writes or RDMA Reads")
      ->check(CLI::IsMember({"send", "write", "read"}))
      ->capture_default_str();
  command->add_option("--size", options.size, "Bytes in a message, as in 8 or 64KiB; without it, 1 B to 4 MiB in turn")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{1}, kSizeMax));
  command->add_option("--iters", options.iters, "Messages measured (default: by size)")
      ->check(CLI::Range(1, 100'000'000));
  command->add_flag("--srq", options.srq, "Receive through a shared receive queue");
  command->add_option("--mem", options.memory, "RDMA on ordinary memory, or on memory that both processes can map")
      ->check(CLI::IsMember({"heap", "shareable"}))
      ->capture_default_str();
  command->add_option("--endpoints", options.endpoints, "Connections to spread the messages over")
      ->check(CLI::Range(std::uint32_t{1}, kEndpointsMax))
      ->capture_default_str();
  command->add_option("--wait", options.wait, "Poll with dat_evd_dequeue or block in dat_evd_wait")
      ->check(CLI::IsMember({"poll", "block"}))
      ->capture_default_str();
  add_common(command, options);
  command->add_option("--to", options.to, "Use the server at HOST[:QUAL] (see datperf serve)");
  for (auto& [name, value] : {std::pair{"--clients", &options.clients}, std::pair{"--client", &options.client},
                              std::pair{"--burst", &options.burst}})
    command->add_option(name, *value)->group("");
  command->add_option("--run", options.run)->group("");
  command->callback([&options, metric] {
    options.metric = metric;
    if (metric == Metric::lat && options.op == "write" && options.wait == "block")
      throw CLI::ValidationError("--wait block", "the latency of a Write is measured by looking at memory");
  });
  command->footer(tools::examples({fmt::format("datperf {} --size 64 --srq --cpus 0,1", name_of(metric))}));
  return command;
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
  serve->add_option("--qual", serve_options.qualifier, "Qualifier to serve on, a port or a larger number; 0 takes a free one")
      ->capture_default_str();
  serve->add_option("--cpu", serve_cpu, "Processor to tie the server to")->check(tools::usable_processor());
  serve->add_option("--memory", serve_options.memory, "The most that one client's run may need, as in 4GiB")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  serve
      ->add_option("--patience", serve_options.patience_s,
                   "Seconds without a message after which a run gives way to the next client")
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
