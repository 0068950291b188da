// SPDX-License-Identifier: BSD-3-Clause
// Order statistics of a set of samples, and sizes as people write them.
#ifndef ANYDAT_TOOLS_COMMON_SUMMARY_H
#define ANYDAT_TOOLS_COMMON_SUMMARY_H

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tools {

struct Summary {
  double min = 0;
  double mean = 0;
  double median = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
};

// Percentiles by nearest rank, each sample multiplied by `scale`. Sorts `samples` in place; all zero if there are none.
Summary summarize(std::vector<std::uint32_t>& samples, double scale);

// How many samples are from `from` up to, and without, `to`.
struct Bucket {
  double from = 0;
  double to = 0;
  std::uint64_t count = 0;
};
// The samples, which are sorted, in buckets of which eight make a factor of two; those without any are left out.
std::vector<Bucket> histogram_of(std::span<const std::uint32_t> sorted, double scale);

// "512 B", "64 KiB", "4 MiB": exact multiples only, so that no size is rounded.
std::string size_text(std::uint64_t bytes);

// Three significant places in a unit that suits: "870 ns", "12.3 us", "4.56 ms", "1.20 s".
std::string time_text(double ns);

}  // namespace tools

#endif
