// SPDX-License-Identifier: BSD-3-Clause
// What this machine allows between two processes that are tied to a processor each: the floor of latencies and the
// ceiling of rates, with nothing of the product in the way. All of it in one run, so that the figures belong together.
//
// Half round trips in ns, rates in millions of messages a second, streams in GB/s (10^9 bytes). A stream has one buffer
// at either end, again and again, or a set of them that is larger than the caches.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "bare/tcp.h"
#include "bare/wake.h"
#include "common/command_line.h"
#include "common/error.h"
#include "floor/measures.h"

namespace {

struct Options {
  std::vector<int> cpus;
  bool quick = false;
  bool json = false;
  std::string only = ".";
};

// One figure: its key in the JSON, what it is, its unit, and how it comes about, with as many rounds as a run has.
struct Row {
  std::string key;
  std::string text;
  const char* unit;
  std::uint64_t rounds;
  std::function<double(const bench::How&)> measure;
};

constexpr std::size_t kSmallRing = 256 << 10;  // stays in a processor's own cache
constexpr std::size_t kLargeRing = 4 << 20;    // as that of the product

// More than the caches hold, within reason.
std::size_t large_set(bool quick) {
  constexpr long kLeast = 64 << 20;
  constexpr long kMost = 256 << 20;
  return quick ? 8 << 20 : static_cast<std::size_t>(std::clamp(2 * sysconf(_SC_LEVEL3_CACHE_SIZE), kLeast, kMost));
}

void add_messages(std::vector<Row>& rows) {
  for (const std::size_t bytes : {8u, 64u, 1024u, 4096u}) {
    const std::string size = tools::size_text(bytes);
    rows.push_back({fmt::format("ring_lat_{}", bytes), "ring, " + size, "ns", 200'000,
                    [=](const bench::How& how) { return bench::ring_latency(how, bytes).median; }});
    rows.push_back({fmt::format("stripped_lat_{}", bytes), "stripped way, " + size, "ns", 200'000,
                    [=](const bench::How& how) { return bench::stripped_latency(how, bytes).median; }});
  }
  rows.push_back({"ring_rate_8", "ring, 8 B", "M/s", 10'000'000,
                  [](const bench::How& how) { return bench::ring_rate(how) / 1e6; }});
  rows.push_back({"stripped_rate_8", "stripped way, 8 B", "M/s", 10'000'000,
                  [](const bench::How& how) { return bench::stripped_rate(how) / 1e6; }});
}

void add_streams(std::vector<Row>& rows, std::size_t set) {
  for (const std::size_t bytes : {std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{1} << 20}) {
    const std::string size = tools::size_text(bytes);
    const std::uint64_t rounds = (std::size_t{4} << 30) / bytes;
    for (const auto& [name, own] : {std::pair{"one", bytes}, {"many", set}}) {
      const auto buffers = own == bytes ? "one buffer" : "many buffers";
      rows.push_back({fmt::format("two_copies_{}_{}", bytes, name), fmt::format("two copies, {}, {}", size, buffers),
                      "GB/s", rounds, [=](const bench::How& how) {
                        return std::max(bench::two_copies(how, bytes, own, kSmallRing),
                                        bench::two_copies(how, bytes, own, kLargeRing)) /
                               1e9;
                      }});
      if (bytes < (64 << 10)) continue;
      rows.push_back({fmt::format("one_copy_{}_{}", bytes, name), fmt::format("one copy, {}, {}", size, buffers),
                      "GB/s", rounds, [=](const bench::How& how) { return bench::one_copy(how, bytes, own) / 1e9; }});
    }
  }
  rows.push_back({"write_lat_8", "store into the peer's memory, 8 B", "ns", 200'000,
                  [](const bench::How& how) { return bench::write_latency(how).median; }});
}

bench::TcpOptions tcp_of(const bench::How& how, std::uint64_t size, std::uint64_t batch, std::uint64_t buffers) {
  return {.size = size, .iters = how.rounds, .batch = batch, .buffers = buffers, .cpus = how.cpus};
}

void add_kernel(std::vector<Row>& rows) {
  rows.push_back({"wake_eventfd", "wake-up by an eventfd", "ns", 20'000,
                  [](const bench::How& how) { return bench::wake_by_eventfd(how.rounds, how.cpus).median; }});
  rows.push_back({"wake_futex", "wake-up by a futex", "ns", 20'000,
                  [](const bench::How& how) { return bench::wake_by_futex(how.rounds, how.cpus).median; }});
  rows.push_back({"tcp_lat_8", "bare TCP, 8 B", "ns", 40'000,
                  [](const bench::How& how) { return bench::tcp_latency(tcp_of(how, 8, 1, 1)).median; }});
  rows.push_back({"tcp_rate_8", "bare TCP, 8 B, 64 in a write", "M/s", 5'000'000,
                  [](const bench::How& how) { return bench::tcp_rate(tcp_of(how, 8, 64, 1)) / 1e6; }});
  for (const auto& [bytes, buffers] : {std::pair<std::uint64_t, std::uint64_t>{64 << 10, 16}, {1 << 20, 4}}) {
    rows.push_back({fmt::format("tcp_bw_{}", bytes), "bare TCP, " + tools::size_text(bytes), "GB/s",
                    (std::uint64_t{4} << 30) / bytes, [=](const bench::How& how) {
                      return bench::tcp_rate(tcp_of(how, bytes, 1, buffers)) * static_cast<double>(bytes) / 1e9;
                    }});
  }
}

int run(const Options& options) {
  constexpr std::uint64_t kQuicker = 100;
  std::vector<Row> rows;
  add_messages(rows);
  add_streams(rows, large_set(options.quick));
  add_kernel(rows);
  const std::regex only(options.only);
  nlohmann::ordered_json json;
  for (const Row& row : rows) {
    if (!std::regex_search(row.key, only)) continue;
    const std::uint64_t rounds = options.quick ? std::max<std::uint64_t>(row.rounds / kQuicker, 10) : row.rounds;
    const double figure = row.measure({.cpus = options.cpus, .rounds = rounds});
    json[row.key] = figure;
    if (!options.json) fmt::print("{:<36} {:>10.2f} {}\n", row.text, figure, row.unit);
    std::fflush(stdout);
  }
  if (json.empty()) throw tools::Error(fmt::format("no figure has a name that matches '{}'", options.only));
  if (options.json) fmt::print("{}\n", json.dump());
  return tools::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What this machine allows between two processes, without the product", "floor");
  app.add_option("--cpus", options.cpus, "Processors to tie the two processes to")
      ->delimiter(',')
      ->expected(2)
      ->check(tools::usable_processor())
      ->type_name("ANSWERING,ASKING");
  app.add_flag("--quick", options.quick, "A hundredth of the rounds, to see that it works");
  app.add_option("--only", options.only, "Only the figures whose key (as in the JSON) matches this regular expression");
  app.add_flag("--json", options.json, "Print JSON: one object, a number for each key");
  app.footer(tools::examples({"floor --cpus 0,1", "floor --only '^(ring|stripped)_' --json"}));
  return tools::run_tool(app, argc, argv, [&] { return run(options); });
}
