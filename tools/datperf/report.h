// SPDX-License-Identifier: BSD-3-Clause
// How results are shown.
#ifndef ANYDAT_TOOLS_DATPERF_REPORT_H
#define ANYDAT_TOOLS_DATPERF_REPORT_H

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "datperf/compare.h"

#include "datperf/run.h"

namespace datperf {

// What a run was, in the words of the command line; the wire is the one that carried it, or null if that is not known.
nlohmann::ordered_json to_json(const Result& result);
nlohmann::ordered_json to_json(const std::vector<tools::Bucket>& histogram);
nlohmann::ordered_json to_json(const Ratio& ratio);

void print_table_head(const Result& result, const std::string& server);
void print_table_row(const Result& result);
void print_histogram(const Result& result);
void print_ratio(const Ratio& ratio, const std::string& file);
// One figure a line: each latency, or the pieces of a stream. Throws Error.
void write_raw(const Result& result, const std::string& file);

// The fraction of a run that is done, on one line of a terminal that the next output overwrites. Silent elsewhere, and
// in the first second.
class ProgressLine {
 public:
  explicit ProgressLine(std::uint64_t size);
  ~ProgressLine();
  void show(double fraction);

 private:
  std::uint64_t size_;
  std::uint64_t start_ns_;
  bool shown_ = false;
};

}  // namespace datperf

#endif
