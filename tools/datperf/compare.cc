// SPDX-License-Identifier: BSD-3-Clause
#include "datperf/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <vector>

#include "common/error.h"

namespace datperf {
namespace {

using Json = nlohmann::ordered_json;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::vector<double> samples_of(const Json& run) {
  std::vector<double> samples;
  const auto found = run.find("samples");
  if (found == run.end() || !found->is_array()) return samples;
  for (const Json& sample : *found)
    if (sample.is_number() && sample.get<double>() > 0) samples.push_back(sample.get<double>());
  return samples;
}

}  // namespace

Ratio ratio_of(std::span<const double> now, std::span<const double> former) {
  constexpr std::size_t kDraws = 1000;
  constexpr std::size_t kTail = kDraws * 25 / 1000;
  std::mt19937_64 draw(1);  // so that the same two results give the same interval
  const auto one_of = [&](std::span<const double> samples) { return samples[draw() % samples.size()]; };
  std::vector<double> medians(kDraws);
  std::vector<double> ratios(std::min(now.size(), former.size()));
  for (double& median : medians) {
    for (double& ratio : ratios) ratio = one_of(now) / one_of(former);
    median = median_of(ratios);
  }
  std::sort(medians.begin(), medians.end());
  return {.median = median_of({now.begin(), now.end()}) / median_of({former.begin(), former.end()}),
          .low = medians[kTail],
          .high = medians[kDraws - 1 - kTail]};
}

Former::Former(const std::string& file) : file_(file) {
  std::ifstream text(file);
  if (!text) throw tools::Error(fmt::format("{} cannot be read", file));
  runs_ = Json::parse(text, nullptr, false);
  if (runs_.is_object()) runs_ = Json::array({runs_});
  const bool good = runs_.is_array() && !runs_.empty() &&
                    std::all_of(runs_.begin(), runs_.end(), [](const Json& run) { return run.is_object(); });
  if (!good) throw tools::Error(fmt::format("{} is not what --json has printed", file));
}

Ratio Former::beside(const Json& now) const {
  const auto same = std::find_if(runs_.begin(), runs_.end(), [&](const Json& run) {
    return run.contains("size_bytes") && run["size_bytes"] == now["size_bytes"];
  });
  if (same == runs_.end())
    throw tools::Error(fmt::format("{} has no run of {} bytes", file_, now["size_bytes"].dump()));
  for (const char* key : {"metric", "op", "wire", "wait", "poll", "srq", "mem", "endpoints", "window", "slots", "batch",
                          "bidirectional"}) {
    const Json there = same->contains(key) ? (*same)[key] : Json(nullptr);
    if (there != now.at(key))
      throw tools::Error(fmt::format("{} is of another run: {} is {} there and {} here", file_, key, there.dump(),
                                     now.at(key).dump()));
  }
  const std::vector<double> before = samples_of(*same);
  const std::vector<double> after = samples_of(now);
  if (before.empty() || after.empty())
    throw tools::Error(fmt::format("there are no samples {}", before.empty() ? "in " + file_ : "of this run"));
  return ratio_of(after, before);
}

}  // namespace datperf
