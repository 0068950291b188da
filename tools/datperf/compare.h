// SPDX-License-Identifier: BSD-3-Clause
// A run beside a former one, as a file has it that --json has printed.
#ifndef ANYDAT_TOOLS_DATPERF_COMPARE_H
#define ANYDAT_TOOLS_DATPERF_COMPARE_H

#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace datperf {

struct Ratio {
  double median = 1;  // of this run divided by that of the former one
  double low = 1;     // the interval that holds 95 % of the medians of ratios of samples drawn anew
  double high = 1;
};
// Requires: neither is empty, and the former samples are above 0.
Ratio ratio_of(std::span<const double> now, std::span<const double> former);

class Former {
 public:
  // Throws Error when there is no such file, or something else in it.
  explicit Former(const std::string& file);
  // Beside the former run of the same size. Throws Error when there is none, or it measured something else.
  Ratio beside(const nlohmann::ordered_json& now) const;

 private:
  std::string file_;
  nlohmann::ordered_json runs_;  // a list
};

}  // namespace datperf

#endif
