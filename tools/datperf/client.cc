// SPDX-License-Identifier: BSD-3-Clause
// The measuring half: connects, warms up, measures.
#include <algorithm>
#include <chrono>

#include "common/error.h"
#include "common/process.h"
#include "common/ticks.h"
#include "datperf/rdma_loops.h"
#include "datperf/run.h"

namespace datperf {
namespace {

constexpr tools::Timeout kSetUpTimeout = std::chrono::seconds(10);
constexpr std::uint64_t kChunks = 50;  // between them the progress is shown; short runs are one chunk
constexpr std::uint64_t kChunkLeast = 50'000;

// Carries out the `count` operations of a phase, which begins at sequence 0. AnySide: Side or RdmaSide.
template <bool kBlock, typename AnySide>
void run_phase(AnySide& side, std::uint64_t count, std::uint32_t* samples, const Progress& progress) {
  const std::uint64_t chunk = std::max(count / kChunks, std::min(count, kChunkLeast));
  side.begin_phase();
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t now = std::min(chunk, count - done);
    const bool good = side.params().metric == Metric::lat ? ping<kBlock>(side, done, now, samples + done)
                                                          : stream<kBlock>(side, done, now);
    if (!good) side.fail();
    done += now;
    if (done < count) progress(static_cast<double>(done) / static_cast<double>(count));
  }
  side.finish_phase();
}

template <typename AnySide>
void run_phase(AnySide& side, std::uint64_t count, std::uint32_t* samples, const Progress& progress) {
  side.params().block ? run_phase<true>(side, count, samples, progress)
                      : run_phase<false>(side, count, samples, progress);
}

Report checked_report(Side& side) {
  const Report report = side.receive_report();
  if (report.failed != 0) throw tools::Error("the server did not receive what was sent");
  return report;
}

template <typename AnySide>
Result measure_by(const tools::Adapter& adapter, const tools::Peer& server, const Params& params,
                  const Progress& progress) {
  Result result{.params = params, .wire = {}, .latency_ns = std::nullopt, .set_up = {}};
  std::vector<std::uint32_t> samples(params.metric == Metric::lat ? std::max(params.iters, params.warmup) : 0);
  AnySide side(adapter, params, Role::client);
  side.connect_all(server, kSetUpTimeout);
  result.wire = side.wire();
  const Report set_up = checked_report(side);  // all connections are up at the server, too
  side.meet(set_up);
  result.set_up = {static_cast<double>(set_up.elapsed_ns) / 1e9, set_up.private_bytes, set_up.system_bytes};

  run_phase(side, params.warmup, samples.data(), [](double) {});
  if (params.warmup > 0) checked_report(side);

  const std::uint64_t cpu_before_ns = tools::process_cpu_ns();
  const tools::TickScale scale;
  const std::uint64_t start_ns = tools::now_ns();
  run_phase(side, params.iters, samples.data(), progress);
  // The report of a stream is the news that its last message was read: only then is it over.
  const Report report = checked_report(side);
  // Only the server has seen what all clients did.
  result.seconds = static_cast<double>(params.clients > 1 ? report.elapsed_ns : tools::now_ns() - start_ns) / 1e9;
  const double ns_per_tick = scale.ns_per_tick();
  result.cpu_s = static_cast<double>(tools::process_cpu_ns() - cpu_before_ns + report.cpu_ns) / 1e9;

  if (params.metric == Metric::lat) {
    samples.resize(params.iters);
    // A Read is there and back in itself; of the others, the answer is a second one.
    result.latency_ns = tools::summarize(samples, params.op == Op::read ? ns_per_tick : ns_per_tick / 2);
  }
  side.disconnect_all(kSetUpTimeout);
  return result;
}

}  // namespace

Result measure(const tools::Adapter& adapter, const tools::Peer& server, const Params& params,
               const Progress& progress) {
  return params.op == Op::send ? measure_by<Side>(adapter, server, params, progress)
                               : measure_by<RdmaSide>(adapter, server, params, progress);
}

}  // namespace datperf
