// SPDX-License-Identifier: BSD-3-Clause
// The two halves of datperf, and what a run finds out.
#ifndef ANYDAT_TOOLS_DATPERF_RUN_H
#define ANYDAT_TOOLS_DATPERF_RUN_H

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/connection.h"
#include "common/summary.h"
#include "datperf/params.h"

namespace datperf {

inline constexpr DAT_CONN_QUAL kDefaultQualifier = 21122;

// What the connections of all clients have cost, as the server saw it.
struct SetUp {
  double seconds = 0;
  std::uint64_t private_bytes = 0;  // see Footprint
  std::uint64_t system_bytes = 0;
};

// What the server says of the measured phase.
struct ServerSide {
  std::uint64_t messages = 0;  // that it received and looked at
  double seconds = 0;
  std::string wire{};
};

struct Result {
  Params params;                               // iters: what was measured
  std::string wire{};                          // that carried it; empty if the adapter does not tell
  std::optional<tools::Summary> latency_ns{};  // lat: half a round trip, or all of a Read
  std::vector<tools::Bucket> histogram{};      // of the latencies
  // Of each hundredth of the run, or of larger pieces if those are too short: lat, the median in ns; bw, GB/s; rate,
  // M messages a second.
  std::vector<double> figures{};
  struct {
    std::vector<std::uint32_t> ticks{};  // in the order in which they came about
    double ns_per_tick = 1;
  } latencies{};
  SetUp set_up{};
  ServerSide server{};
  double seconds = 0;  // the measured phase, as the client saw it, or the server of several
  double cpu_s = 0;    // of both processes, in that phase

  double mmsgs_per_s() const {
    return static_cast<double>(params.iters * params.clients) * params.directions() / seconds / 1e6;
  }
  void take_latencies(std::vector<std::uint32_t> ticks, double ns_per_tick);
  double gbytes_per_s() const { return mmsgs_per_s() * static_cast<double>(params.size) / 1e3; }
};

// The wire that the environment asks for: "auto" unless DAT_WIRE is "shm" or "tcp".
std::string wanted_wire();

// The address of this host that an adapter of that name serves, as it is written in --to.
std::string own_address(const std::string& ia);

// Called now and then during a run with the fraction that is done.
using Progress = std::function<void(double)>;

// One run against a server, of `seconds` if the parameters have no count. Throws tools::Error.
Result measure(const tools::Adapter& adapter, const tools::Peer& server, const Params& params, double seconds,
               const Progress& progress);

struct ServeOptions {
  std::string ia = tools::kDefaultIa;
  DAT_CONN_QUAL qualifier = kDefaultQualifier;    // 0 lets the library choose
  int control_fd = -1;                            // set by the process that started us
  std::uint64_t memory = std::uint64_t{1} << 30;  // that one run of a stranger may need
  double patience_s = 30;                         // in which nothing comes, before a run gives way to another
};

// Serves one run after the other until told to stop.
int serve(const ServeOptions& options);

}  // namespace datperf

#endif
