// SPDX-License-Identifier: BSD-3-Clause
#include "datperf/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <utility>

#include "common/error.h"
#include "common/ticks.h"

namespace datperf {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kQuietNs = 1'000'000'000;

// To a tenth: a clock does not tell more, and shorter numbers read better.
double rounded(double value) {
  return std::round(value * 10) / 10;
}

template <typename Value>
Json or_null(bool there, const Value& value) {
  return there ? Json(value) : Json(nullptr);
}

}  // namespace

Json to_json(const Result& result) {
  const Params& params = result.params;
  const auto& latency = result.latency_ns;
  const bool stream = params.metric != Metric::lat;
  const Sizing sizing = sizing_of(params, Role::client);
  Json json{
      {"metric", name_of(params.metric)},
      {"op", name_of(params.op)},
      {"size_bytes", params.size},
      {"iters", params.iters},
      {"wire", or_null(!result.wire.empty(), result.wire)},
      {"wait", params.block ? "block" : "poll"},
      {"poll", or_null(!stream && params.op == Op::write, params.notices ? "events" : "memory")},
      {"srq", params.srq},
      {"mem", params.shareable ? "shareable" : "heap"},
      {"endpoints", params.endpoints},
      {"window",
       or_null(stream, params.op == Op::send || params.window != 0 ? sizing.window
                                                                   : std::max(sizing.window, transfers_of(params)))},
      {"slots", params.op == Op::send ? sizing.send_slots : rdma_slots(params)},
      {"receives", or_null(params.op == Op::send, sizing_of(params, Role::server).receives)},
      {"batch", or_null(params.batch != 0, params.batch)},
      {"at_once", or_null(params.at_once != 0, params.at_once)},
      {"bidirectional", params.bidirectional},
  };
  // A metric that was not measured is null rather than absent, so that every line has the same keys.
  const tools::Summary summary = latency.value_or(tools::Summary{});
  for (const auto& [key, value] : {std::pair{"min_ns", summary.min},
                                   {"mean_ns", summary.mean},
                                   {"median_ns", summary.median},
                                   {"p99_ns", summary.p99},
                                   {"p999_ns", summary.p999},
                                   {"max_ns", summary.max}})
    json[key] = or_null(latency.has_value(), rounded(value));
  json["gbytes_per_s"] = or_null(stream, result.gbytes_per_s());
  json["mmsgs_per_s"] = or_null(stream, result.mmsgs_per_s());
  json["seconds"] = result.seconds;
  json["cpu_s"] = result.cpu_s;
  json["server"] = {{"messages", result.server.messages},
                    {"elapsed_s", result.server.seconds},
                    {"carried_by", or_null(!result.server.wire.empty(), result.server.wire)}};
  json["samples"] = result.figures;
  if (params.clients > 1) {
    json["set_up_s"] = result.set_up.seconds;
    json["private_bytes"] = result.set_up.private_bytes;
    json["system_bytes"] = result.set_up.system_bytes;
  }
  return json;
}

Json to_json(const std::vector<tools::Bucket>& histogram) {
  Json json = Json::array();
  for (const tools::Bucket& bucket : histogram)
    json.push_back({{"from_ns", rounded(bucket.from)}, {"to_ns", rounded(bucket.to)}, {"count", bucket.count}});
  return json;
}

Json to_json(const Ratio& ratio) {
  return {{"ratio", ratio.median}, {"low", ratio.low}, {"high", ratio.high}};
}

void print_table_head(const Result& result, const std::string& server) {
  const Params& params = result.params;
  fmt::print("datperf {}: {} to {}{}, wire {}, {}, {}, {} endpoint{}\n", name_of(params.metric), name_of(params.op),
             server, params.bidirectional ? " and back" : "", result.wire.empty() ? "unknown" : result.wire,
             params.srq ? "SRQ" : "plain receive queues", params.block ? "blocking" : "polling", params.endpoints,
             params.endpoints == 1 ? "" : "s");
  if (params.metric == Metric::lat) {
    fmt::print("{:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9}   {}\n", "size", "iters", "min", "mean",
               "median", "99%", "99.9%", "max", "cpu s",
               params.op == Op::read ? "post to completion" : "half round trip");
  } else {
    fmt::print("{:>10} {:>10} {:>12} {:>12} {:>12} {:>10} {:>8} {:>9}\n", "size", "messages", "GB/s", "M msg/s",
               "looked at", "server s", "wire", "cpu s");
  }
  std::fflush(stdout);
}

void print_table_row(const Result& result) {
  const std::string size = tools::size_text(result.params.size);
  if (const auto& latency = result.latency_ns) {
    fmt::print("{:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9.3f}\n", size, result.params.iters,
               tools::time_text(latency->min), tools::time_text(latency->mean), tools::time_text(latency->median),
               tools::time_text(latency->p99), tools::time_text(latency->p999), tools::time_text(latency->max),
               result.cpu_s);
  } else {
    fmt::print("{:>10} {:>10} {:>12.4f} {:>12.4f} {:>12} {:>10.4f} {:>8} {:>9.3f}\n", size, result.params.iters,
               result.gbytes_per_s(), result.mmsgs_per_s(), result.server.messages, result.server.seconds,
               result.server.wire.empty() ? "unknown" : result.server.wire, result.cpu_s);
  }
  std::fflush(stdout);
}

void print_histogram(const Result& result) {
  constexpr double kWidest = 50;
  std::uint64_t most = 1;
  for (const tools::Bucket& bucket : result.histogram) most = std::max(most, bucket.count);
  for (const tools::Bucket& bucket : result.histogram) {
    const auto bar =
        static_cast<std::size_t>(std::ceil(kWidest * static_cast<double>(bucket.count) / static_cast<double>(most)));
    fmt::print("{:>12} up to {:>8} {:>12}  {}\n", tools::time_text(bucket.from), tools::time_text(bucket.to),
               bucket.count, std::string(bar, '#'));
  }
}

void print_ratio(const Ratio& ratio, const std::string& file) {
  fmt::print("{:>10} of {}: {:.4f}, between {:.4f} and {:.4f} at 95 %\n", "ratio", file, ratio.median, ratio.low,
             ratio.high);
}

void write_raw(const Result& result, const std::string& file) {
  std::ofstream lines(file);
  for (const std::uint32_t ticks : result.latencies.ticks)
    lines << fmt::format("{:.1f}\n", result.latencies.ns_per_tick * ticks);
  if (result.params.metric != Metric::lat)
    for (const double figure : result.figures) lines << fmt::format("{:.6f}\n", figure);
  if (!lines.flush()) throw tools::Error(fmt::format("{} cannot be written", file));
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
