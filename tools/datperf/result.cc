// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "datperf/run.h"

namespace datperf {
namespace {

constexpr std::size_t kPieces = 100;

}  // namespace

void Result::take_latencies(std::vector<std::uint32_t> ticks, double ns_per_tick) {
  latencies = {.ticks = std::move(ticks), .ns_per_tick = ns_per_tick};
  std::vector<std::uint32_t> sorted = latencies.ticks;
  const std::size_t piece = std::max<std::size_t>(sorted.size() / kPieces, 1);
  for (std::size_t at = 0; at + piece <= sorted.size(); at += piece) {
    const auto begin = sorted.begin() + static_cast<std::ptrdiff_t>(at);
    const auto middle = begin + static_cast<std::ptrdiff_t>(piece / 2);
    std::nth_element(begin, middle, begin + static_cast<std::ptrdiff_t>(piece));
    figures.push_back(ns_per_tick * *middle);
  }
  latency_ns = tools::summarize(sorted, ns_per_tick);
  histogram = tools::histogram_of(sorted, ns_per_tick);
}

}  // namespace datperf
