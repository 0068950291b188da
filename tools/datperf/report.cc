// SPDX-License-Identifier: BSD-3-Clause
#include "datperf/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "common/ticks.h"

namespace datperf {
namespace {

constexpr std::uint64_t kQuietNs = 1'000'000'000;

// To a tenth: a clock does not tell more, and shorter numbers read better.
double rounded(double value) {
  return std::round(value * 10) / 10;
}

}  // namespace

nlohmann::ordered_json to_json(const Result& result) {
  const Params& params = result.params;
  const auto& latency = result.latency_ns;
  nlohmann::ordered_json json{
      {"metric", name_of(params.metric)},
      {"op", name_of(params.op)},
      {"size_bytes", params.size},
      {"iters", params.iters},
      {"wire", result.wire.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(result.wire)},
      {"wait", params.block ? "block" : "poll"},
      {"srq", params.srq},
      {"endpoints", params.endpoints},
  };
  // A metric that was not measured is null rather than absent, so that every line has the same keys.
  json["median_ns"] = latency ? nlohmann::ordered_json(rounded(latency->median)) : nullptr;
  json["p99_ns"] = latency ? nlohmann::ordered_json(rounded(latency->p99)) : nullptr;
  json["p999_ns"] = latency ? nlohmann::ordered_json(rounded(latency->p999)) : nullptr;
  json["gbytes_per_s"] = latency ? nullptr : nlohmann::ordered_json(result.gbytes_per_s());
  json["mmsgs_per_s"] = latency ? nullptr : nlohmann::ordered_json(result.mmsgs_per_s());
  json["cpu_s"] = result.cpu_s;
  if (params.clients > 1) {
    json["set_up_s"] = result.set_up.seconds;
    json["private_bytes"] = result.set_up.private_bytes;
    json["system_bytes"] = result.set_up.system_bytes;
  }
  return json;
}

void print_table_head(const Result& result, const std::string& server) {
  const Params& params = result.params;
  fmt::print("datperf {}: {} to {}, wire {}, {}, {}, {} endpoint{}\n", name_of(params.metric), name_of(params.op),
             server, result.wire.empty() ? "unknown" : result.wire, params.srq ? "SRQ" : "plain receive queues",
             params.block ? "blocking" : "polling", params.endpoints, params.endpoints == 1 ? "" : "s");
  if (params.metric == Metric::lat) {
    fmt::print("{:>10} {:>10} {:>12} {:>12} {:>12} {:>9}   {}\n", "size", "iters", "median", "99%", "99.9%", "cpu s",
               params.op == Op::read ? "post to completion" : "half round trip");
  } else {
    fmt::print("{:>10} {:>10} {:>12} {:>12} {:>9}\n", "size", "messages", "GB/s", "M msg/s", "cpu s");
  }
  std::fflush(stdout);
}

void print_table_row(const Result& result) {
  const std::string size = tools::size_text(result.params.size);
  if (const auto& latency = result.latency_ns) {
    fmt::print("{:>10} {:>10} {:>12} {:>12} {:>12} {:>9.3f}\n", size, result.params.iters,
               tools::time_text(latency->median), tools::time_text(latency->p99), tools::time_text(latency->p999),
               result.cpu_s);
  } else {
    fmt::print("{:>10} {:>10} {:>12.4f} {:>12.4f} {:>9.3f}\n", size, result.params.iters, result.gbytes_per_s(),
               result.mmsgs_per_s(), result.cpu_s);
  }
  std::fflush(stdout);
}

ProgressLine::ProgressLine(std::uint64_t size) : size_(size), start_ns_(tools::now_ns()) {}

ProgressLine::~ProgressLine() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void ProgressLine::show(double fraction) {
  if (tools::now_ns() - start_ns_ < kQuietNs || isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\r{:>10} {:3.0f} %", tools::size_text(size_), 100 * fraction);
  shown_ = true;
}

}  // namespace datperf
