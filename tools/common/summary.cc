// SPDX-License-Identifier: BSD-3-Clause
#include "common/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace tools {

Summary summarize(std::vector<std::uint32_t>& samples, double scale) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto rank = [&](double fraction) {
    const auto nth = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(samples.size())));
    return scale * samples[std::clamp<std::size_t>(nth, 1, samples.size()) - 1];
  };
  const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
  return {.min = scale * samples.front(),
          .mean = scale * sum / static_cast<double>(samples.size()),
          .median = rank(0.5),
          .p99 = rank(0.99),
          .p999 = rank(0.999),
          .max = scale * samples.back()};
}

std::vector<Bucket> histogram_of(std::span<const std::uint32_t> sorted, double scale) {
  constexpr double kOfOctave = 8;
  std::vector<Bucket> buckets;
  for (const std::uint32_t sample : sorted) {
    const double value = std::max(scale * sample, 1.0);
    if (buckets.empty() || value >= buckets.back().to) {
      const double step = std::floor(std::log2(value) * kOfOctave);
      buckets.push_back({std::exp2(step / kOfOctave), std::exp2((step + 1) / kOfOctave), 0});
    }
    ++buckets.back().count;
  }
  return buckets;
}

std::string size_text(std::uint64_t bytes) {
  static constexpr std::array<std::pair<std::uint64_t, const char*>, 3> kUnits{
      {{std::uint64_t{1} << 30, "GiB"}, {std::uint64_t{1} << 20, "MiB"}, {std::uint64_t{1} << 10, "KiB"}}};
  for (const auto& [unit, name] : kUnits)
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{} {}", bytes / unit, name);
  return fmt::format("{} B", bytes);
}

std::string time_text(double ns) {
  static constexpr std::array<std::pair<double, const char*>, 4> kUnits{
      {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1.0, "ns"}}};
  for (const auto& [unit, name] : kUnits) {
    if (ns < unit && unit > 1.0) continue;
    const double value = ns / unit;
    return fmt::format("{:.{}f} {}", value, unit == 1.0 || value >= 100 ? 0 : value >= 10 ? 1 : 2, name);
  }
  return "0 ns";
}

}  // namespace tools
