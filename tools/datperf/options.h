// SPDX-License-Identifier: BSD-3-Clause
// What the user says about a run of lat, bw or rate.
#ifndef ANYDAT_TOOLS_DATPERF_OPTIONS_H
#define ANYDAT_TOOLS_DATPERF_OPTIONS_H

#include <cstdint>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "datperf/run.h"

namespace datperf {

struct Options {
  Metric metric = Metric::lat;
  std::string op = "send";
  std::uint64_t size = 0;   // 0: all powers of two up to kSweepMax
  std::uint64_t iters = 0;  // 0: by size
  double seconds = 0;       // 0: as many messages as `iters` says
  bool srq = false;
  std::string memory = "heap";
  std::uint32_t endpoints = 1;
  std::uint32_t window = 0;  // 0: by size, and so the next two
  std::uint32_t slots = 0;
  std::uint32_t batch = 0;
  std::uint32_t at_once = 0;
  bool bidirectional = false;
  std::string wait = "poll";
  std::string poll = "memory";
  std::string wire = wanted_wire();
  std::string ia = tools::kDefaultIa;
  std::vector<int> cpus;  // server, client
  std::string to;         // empty: a server of our own on this host
  bool json = false;
  bool histogram = false;
  std::string raw;      // the file; empty: none
  std::string compare;  // the same
  // Of a client among several: see many.cc.
  std::uint32_t clients = 1;
  std::uint32_t client = 0;
  std::uint32_t burst = 1;
  std::uint64_t run = 0;
};

// One size, or all powers of two.
std::vector<std::uint64_t> sizes_of(const Options& options);
Params params_of(const Options& options, std::uint64_t size);

// The subcommand of that metric. It refuses options that make no sense together.
CLI::App* add_metric(CLI::App& app, Options& options, Metric metric, const std::string& description);

template <typename AnyOptions>
void add_common(CLI::App* command, AnyOptions& options) {
  command
      ->add_option("--wire", options.wire,
                   "How bytes travel: shared memory, TCP, or whatever is best (default: DAT_WIRE, or auto)")
      ->check(CLI::IsMember({"auto", "shm", "tcp"}));
  command->add_option("--ia", options.ia, "Interface adapter")->capture_default_str();
  command->add_option("--cpus", options.cpus, "Processors to tie the two sides to")
      ->delimiter(',')
      ->expected(2)
      ->check(tools::usable_processor())
      ->type_name("SERVER,CLIENT");
  command->add_flag("--json", options.json, "Print JSON: an object, or a list of them without --size");
}

}  // namespace datperf

#endif
