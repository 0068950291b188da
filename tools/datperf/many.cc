// SPDX-License-Identifier: BSD-3-Clause
// Each client is this program run once more as "datperf rate" with options of its own (--clients and its like), which
// say that it is one of several; the server tells all of them what it measured.
#include "datperf/many.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "common/error.h"
#include "common/process.h"
#include "datperf/run.h"

namespace datperf {
namespace {

constexpr std::uint32_t kFewEach = 4;  // connections of each client in the run for comparison

std::vector<std::string> client_arguments(const ManyOptions& options, const std::string& server, std::uint32_t each,
                                          std::uint32_t client, std::uint64_t run) {
  std::vector<std::string> arguments{"datperf", "rate", "--srq", "--json"};
  const auto add = [&](const char* name, const std::string& value) {
    arguments.insert(arguments.end(), {name, value});
  };
  add("--to", server);
  add("--ia", options.ia);
  add("--wire", options.wire);
  add("--size", std::to_string(options.size));
  add("--iters", std::to_string((options.iters + options.clients - 1) / options.clients));
  add("--endpoints", std::to_string(each));
  add("--burst", std::to_string(options.burst));
  add("--clients", std::to_string(options.clients));
  add("--client", std::to_string(client));
  add("--run", std::to_string(run));
  if (!options.cpus.empty()) add("--cpus", fmt::format("{},{}", options.cpus[0], options.cpus[1]));
  return arguments;
}

// One run, with so many connections of each client, as its first client tells it.
nlohmann::ordered_json measure_with(const ManyOptions& options, const std::string& server, std::uint32_t each) {
  std::random_device entropy;
  const std::uint64_t run = std::uint64_t{entropy()} << 32 | entropy();
  std::vector<std::unique_ptr<tools::ChildOutput>> clients;
  for (std::uint32_t i = 0; i < options.clients; ++i)
    clients.push_back(std::make_unique<tools::ChildOutput>(client_arguments(options, server, each, i, run)));
  nlohmann::ordered_json told;
  for (std::uint32_t i = 0; i < options.clients; ++i) {
    const std::string text = clients[i]->read_all();
    if (i == 0) told = nlohmann::ordered_json::parse(text);
  }
  const double connections = each * options.clients;
  return {{"endpoints", each * options.clients},
          {"connects_per_s", connections / told.at("set_up_s").get<double>()},
          {"private_bytes_each", told.at("private_bytes").get<double>() / connections},
          {"system_bytes_each", told.at("system_bytes").get<double>() / connections},
          {"mmsgs_per_s", told.at("mmsgs_per_s")},
          {"wire", told.at("wire")}};
}

void print_row(const nlohmann::ordered_json& result) {
  fmt::print("{:>12} {:>12.0f} {:>16.1f} {:>16.1f} {:>12.4f}\n", result.at("endpoints").get<std::uint32_t>(),
             result.at("connects_per_s").get<double>(), result.at("private_bytes_each").get<double>() / 1024,
             result.at("system_bytes_each").get<double>() / 1024, result.at("mmsgs_per_s").get<double>());
  std::fflush(stdout);
}

}  // namespace

int run_many(const ManyOptions& options) {
  const std::uint32_t each = options.endpoints / options.clients;
  if (each * options.clients != options.endpoints)
    throw tools::Error(
        fmt::format("{} connections cannot be dealt out to {} clients", options.endpoints, options.clients));
  setenv("DAT_WIRE", options.wire.c_str(), 1);
  // Over TCP each connection has a descriptor of its own; the server has them all.
  if (options.wire == "tcp") tools::need_descriptors(options.endpoints);
  std::vector<std::string> arguments{"datperf", "serve", "--qual", "0", "--ia", options.ia};
  if (!options.cpus.empty()) arguments.insert(arguments.end(), {"--cpu", std::to_string(options.cpus[0])});
  tools::ServerProcess server(std::move(arguments));
  const std::string at = fmt::format("{}:{}", own_address(options.ia), server.qualifier());

  if (!options.json) {
    fmt::print("datperf many: {} clients to {}, wire {}, one SRQ, Sends of {} B, {} in a row on one connection\n",
               options.clients, at, options.wire, options.size, options.burst);
    fmt::print("{:>12} {:>12} {:>16} {:>16} {:>12}\n", "connections", "connects/s", "server KiB each",
               "system KiB each", "M msg/s");
    std::fflush(stdout);
  }
  const nlohmann::ordered_json few = measure_with(options, at, kFewEach);
  if (!options.json) print_row(few);
  const nlohmann::ordered_json many = measure_with(options, at, each);
  const double ratio = many.at("mmsgs_per_s").get<double>() / few.at("mmsgs_per_s").get<double>();
  if (options.json) {
    const nlohmann::ordered_json all{{"metric", "many"},
                                     {"size_bytes", options.size},
                                     {"wire", many.at("wire")},
                                     {"clients", options.clients},
                                     {"burst", options.burst},
                                     {"few", few},
                                     {"many", many},
                                     {"rate_ratio", ratio}};
    fmt::print("{}\n", all.dump());
  } else {
    print_row(many);
    fmt::print("the rate with {} connections is {:.2f} of that with {}\n", options.endpoints, ratio,
               kFewEach * options.clients);
  }
  return server.stop();
}

}  // namespace datperf
