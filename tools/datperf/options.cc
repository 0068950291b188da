// SPDX-License-Identifier: BSD-3-Clause
#include "datperf/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <random>
#include <utility>

#include "datperf/message.h"

namespace datperf {
namespace {

constexpr std::uint64_t kSweepMax = 4 << 20;

// Both sides cycle through their buffers by masks.
CLI::Validator power_of_two(std::uint32_t most) {
  return CLI::Validator(
      [most](std::string& text) -> std::string {
        std::uint32_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error == std::errc{} && end == text.data() + text.size() && std::has_single_bit(number) && number <= most)
          return {};
        return fmt::format("'{}' is no power of two from 1 to {}", text, most);
      },
      "");
}

void add_flow(CLI::App* command, Options& options) {
  command
      ->add_option("--window", options.window,
                   "Messages of one connection in flight, a power of two (default: by size)")
      ->check(power_of_two(kWindowMax));
  command
      ->add_option("--slots", options.slots,
                   "Buffers that either side uses in turn, a power of two (default: by size); 1 is always the same")
      ->check(power_of_two(kSlotsMax));
  command->add_option("--batch", options.batch, "Posts in a row before completions are looked at (default: the window)")
      ->check(CLI::Range(std::uint32_t{1}, kWindowMax));
  command
      ->add_option("--at-once", options.at_once,
                   "How many Sends, receives or events one call of anydat's takes (default: the standard's calls, one "
                   "each)")
      ->check(CLI::Range(std::uint32_t{1}, kAtOnceMax));
  command->add_flag("--bidirectional", options.bidirectional, "Streams in both directions at the same time");
  command
      ->add_option("--poll", options.poll, "How the arrival of a Write is learnt of: from memory, or a Send behind it")
      ->check(CLI::IsMember({"memory", "events"}))
      ->capture_default_str();
}

void add_reports(CLI::App* command, Options& options) {
  command->add_flag("--histogram", options.histogram, "Print how the latencies are spread");
  command->add_option("--raw", options.raw, "Write the figures into a file, one a line")->type_name("FILE");
  command->add_option("--compare", options.compare, "Print the ratio to a former run, which --json has printed")
      ->type_name("FILE.json");
}

void refuse_nonsense(const Options& options) {
  const auto refuse = [](bool nonsense, const char* option, const char* why) {
    if (nonsense) throw CLI::ValidationError(option, why);
  };
  const bool lat = options.metric == Metric::lat;
  const bool write_lat = lat && options.op == "write";
  refuse(write_lat && options.wait == "block" && options.poll != "events", "--wait block",
         "the latency of a Write is measured by looking at memory, unless with --poll events");
  refuse(options.poll == "events" && !write_lat, "--poll events",
         "only the latency of Writes is learnt of in two ways");
  refuse(lat && options.window != 0, "--window", "of latency one message is in flight at a time");
  refuse(lat && options.batch != 0, "--batch", "of latency one message is posted at a time");
  refuse(lat && options.bidirectional, "--bidirectional", "latency has both directions in it");
  refuse(options.bidirectional && options.wait == "block", "--bidirectional",
         "a side that sends and receives polls both, and blocks in neither");
  refuse(options.window != 0 && options.batch > options.window, "--batch", "no more than the window can be in a row");
  refuse(options.at_once != 0 && (lat || options.op != "send" || options.wait == "block" || options.bidirectional),
         "--at-once", "there are calls for many Sends that are polled for, as a stream in one direction");
  refuse(options.at_once != 0 && options.batch != 0, "--at-once", "the batch is what one call posts");
  refuse(options.window != 0 && options.at_once > std::max(options.window / 2, 1u), "--at-once",
         "no more than half of the window can go at once");
  refuse(options.histogram && !lat, "--histogram", "a stream has no latencies");
  refuse(!options.raw.empty() && options.size == 0, "--raw", "the file is for one size: say which with --size");
  refuse(options.clients > 1 && (options.seconds != 0 || options.window != 0 || options.slots != 0 ||
                                 options.batch != 0 || options.at_once != 0 || options.bidirectional),
         "--clients", "several clients have a number of messages and nothing else in common");
}

}  // namespace

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
  params.notices = options.poll == "events";
  params.window = options.window;
  params.slots = options.slots;
  params.batch = options.batch;
  params.at_once = options.at_once;
  params.bidirectional = options.bidirectional;
  params.endpoints = options.endpoints;
  params.clients = options.clients;
  params.client = options.client;
  params.burst = options.at_once != 0 ? options.at_once : options.burst;
  params.size = size;
  params.iters = options.iters != 0 ? options.iters : default_iters(options.metric, size, slow_path);
  params.warmup = std::clamp<std::uint64_t>(params.iters / 10, 10, 10'000);
  if (options.seconds != 0) params.iters = params.warmup = 0;
  params.run = options.run != 0 ? options.run : std::uint64_t{entropy()} << 32 | entropy();
  return params;
}

CLI::App* add_metric(CLI::App& app, Options& options, Metric metric, const std::string& description) {
  CLI::App* command = app.add_subcommand(std::string(name_of(metric)), description);
  command->add_option("--op", options.op, "Operation: Sends, RDMA Writes or RDMA Reads")
      ->check(CLI::IsMember({"send", "write", "read"}))
      ->capture_default_str();
  command->add_option("--size", options.size, "Bytes in a message, as in 8 or 64KiB; without it, 1 B to 4 MiB in turn")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{1}, kSizeMax));
  CLI::Option* iters = command->add_option("--iters", options.iters, "Messages measured (default: by size)")
                           ->check(CLI::Range(1, 100'000'000));
  command->add_option("--duration", options.seconds, "Seconds to measure for, in place of a number of messages")
      ->check(CLI::Range(0.01, 86400.0))
      ->excludes(iters);
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
  add_flow(command, options);
  add_reports(command, options);
  add_common(command, options);
  command->add_option("--to", options.to, "Use the server at HOST[:QUAL] (see datperf serve)");
  for (auto& [name, value] : {std::pair{"--clients", &options.clients}, std::pair{"--client", &options.client},
                              std::pair{"--burst", &options.burst}})
    command->add_option(name, *value)->group("");
  command->add_option("--run", options.run)->group("");
  command->callback([&options, metric] {
    options.metric = metric;
    refuse_nonsense(options);
  });
  command->footer(tools::examples({fmt::format("datperf {} --size 64 --srq --cpus 0,1", name_of(metric))}));
  return command;
}

}  // namespace datperf
