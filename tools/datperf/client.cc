// SPDX-License-Identifier: BSD-3-Clause
// The measuring half: connects, warms up, measures.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "common/error.h"
#include "common/process.h"
#include "common/ticks.h"
#include "datperf/rdma_loops.h"
#include "datperf/run.h"

namespace datperf {
namespace {

constexpr tools::Timeout kSetUpTimeout = std::chrono::seconds(10);
constexpr std::uint64_t kChunks = 100;  // of a phase: between them the progress is shown, and streams look at the time
constexpr std::uint64_t kPingsInChunk = 50'000;

Report checked_report(Side& side) {
  const Report report = side.receive_report();
  if (report.failed != 0) throw tools::Error("the server did not receive what was sent");
  return report;
}

// One run on connections that are up. AnySide: Side or RdmaSide.
template <typename AnySide>
class Run {
 public:
  Run(AnySide& side, const Progress& progress) : side_(side), params_(side.params()), progress_(progress) {}

  // As many operations as the user has said.
  void counted(Result& result) {
    if (params_.warmup > 0) phase(params_.warmup, {});
    measure(result, [&] { phase(params_.iters, progress_); });
  }

  // As many as take so long, in phases: how long the next one is, those before it tell.
  void timed(Result& result, double seconds) {
    constexpr double kShortest = 0.02;  // of a phase that says how fast the run is
    const double warm_up = std::clamp(seconds / 10, kShortest, 1.0);
    std::uint64_t count = 16;
    double took = phase(count, {});
    while (took < warm_up) {
      count = scaled(count, std::clamp(warm_up * 1.2 / std::max(took, 1e-9), 2.0, 20.0));
      took = phase(count, {});
    }
    measure(result, [&] {
      double spent = 0;
      double rate = static_cast<double>(count) / took;
      while (seconds - spent > seconds / 50) {
        const double left = seconds - spent;
        spent += phase(scaled(1, rate * std::max(left / 2, std::min(left, kShortest))), {});
        rate = static_cast<double>(measured_) / spent;
        progress_(spent / seconds);
      }
    });
  }

 private:
  static constexpr std::uint64_t kSamplesMax = 100'000'000;
  static constexpr std::uint64_t kSamplesOfPhase = 10'000'000;  // when the run is timed

  std::uint64_t scaled(std::uint64_t count, double by) const {
    const std::uint64_t most = params_.metric == Metric::lat ? kSamplesOfPhase : kItersMax;
    return static_cast<std::uint64_t>(
        std::clamp(std::ceil(static_cast<double>(count) * by), 1.0, static_cast<double>(most)));
  }

  template <typename Work>
  void measure(Result& result, Work&& work) {
    samples_.clear();
    figures_.clear();
    server_ = {};
    measured_ = 0;
    const std::uint64_t cpu_before_ns = tools::process_cpu_ns();
    const tools::TickScale scale;
    seconds_ = 0;
    work();
    const double ns_per_tick = scale.ns_per_tick();
    result.params.iters = measured_;
    result.server.messages = server_.messages;
    result.server.seconds = static_cast<double>(server_.elapsed_ns) / 1e9;
    // Only the server has seen what all clients did.
    result.seconds = params_.clients > 1 ? result.server.seconds : seconds_;
    result.cpu_s = static_cast<double>(tools::process_cpu_ns() - cpu_before_ns + server_.cpu_ns) / 1e9;
    if (params_.metric == Metric::lat) {
      // A Read is there and back in itself; of the others, the answer is a second one.
      result.take_latencies(std::move(samples_), params_.op == Op::read ? ns_per_tick : ns_per_tick / 2);
    } else {
      result.figures = std::move(figures_);
    }
  }

  // Carries out the `count` operations of a phase, which begins at sequence 0. Returns the seconds that it took.
  double phase(std::uint64_t count, const Progress& progress) {
    side_.clear_slots();
    if (announces(params_)) {
      side_.send_report({.messages = count});
      side_.await_told();  // the server is ready
    }
    if (params_.metric == Metric::lat) {
      if (samples_.size() + count > kSamplesMax) samples_.resize(kSamplesMax - std::min(kSamplesMax, count));
      samples_.resize(samples_.size() + count);
    }
    const std::uint64_t start_ns = tools::now_ns();
    side_.begin_phase();
    if (!(params_.block ? chunks<true>(count, progress) : chunks<false>(count, progress))) side_.fail();
    finish(side_, count);
    // The report of a stream is the news that its last message was read: only then is it over.
    const Report report = checked_report(side_);
    const double seconds = static_cast<double>(tools::now_ns() - start_ns) / 1e9;
    server_.messages += report.messages;
    server_.elapsed_ns += report.elapsed_ns;
    server_.cpu_ns += report.cpu_ns;
    measured_ += count;
    seconds_ += seconds;
    return seconds;
  }

  template <bool kBlock>
  bool chunks(std::uint64_t count, const Progress& progress) {
    const bool lat = params_.metric == Metric::lat;
    // Of what is only posted the figure would be another one.
    const std::uint64_t in_flight = std::max(std::uint64_t{side_.sizing().window} * params_.endpoints,
                                             std::uint64_t{transfers_of(params_)} * params_.endpoints);
    const std::uint64_t least = lat ? kPingsInChunk : 4 * in_flight;
    const std::uint64_t chunk = std::max(count / kChunks, std::min(count, least));
    std::uint32_t* const samples = lat ? samples_.data() + (samples_.size() - count) : nullptr;
    tally_ = {};
    received_ = 0;
    std::uint64_t before_ns = tools::now_ns();
    for (std::uint64_t done = 0; done < count;) {
      const std::uint64_t now = std::min(chunk, count - done);
      const bool good =
          lat ? ping<kBlock>(side_, done, now, samples + done) : streamed<kBlock>(side_, done, now, count);
      if (!good) return false;
      if (!lat) note_figure(now, before_ns);
      done += now;
      if (done < count && progress) progress(static_cast<double>(done) / static_cast<double>(count));
    }
    return true;
  }

  // GB/s or M messages a second since `before_ns`, in all directions.
  void note_figure(std::uint64_t messages, std::uint64_t& before_ns) {
    const std::uint64_t now_ns = tools::now_ns();
    const std::uint64_t passed_ns = std::max<std::uint64_t>(now_ns - before_ns, 1);
    before_ns = now_ns;
    const double per_ns = static_cast<double>(messages) * params_.directions() / static_cast<double>(passed_ns);
    figures_.push_back(params_.metric == Metric::bw ? per_ns * static_cast<double>(params_.size) : per_ns * 1e3);
  }

  template <bool kBlock>
  bool streamed(Side& side, std::uint64_t first, std::uint64_t now, std::uint64_t count) {
    if (params_.at_once != 0) return stream_at_once(side, first, now);
    if (!params_.bidirectional) return stream<kBlock>(side, first, now);
    return exchange(side, first, now, count, tally_, received_);
  }
  template <bool kBlock>
  bool streamed(RdmaSide& side, std::uint64_t first, std::uint64_t now, std::uint64_t /*count*/) {
    return stream<kBlock>(side, first, now);
  }

  void finish(Side& side, std::uint64_t count) {
    if (params_.bidirectional && !as_expected(params_, tally_, count)) {
      side.corrupt();
      side.fail();
    }
    side.finish_phase();
  }
  // The server's end comes first: behind ours it sends its report, on one connection.
  void finish(RdmaSide& side, std::uint64_t count) {
    if (params_.bidirectional) side.await_finish();
    side.finish_phase();
    const bool good = side.bad() == 0 && (!params_.bidirectional || params_.op == Op::read || side.all_written(count));
    if (good) return;
    side.corrupt();
    side.fail();
  }

  AnySide& side_;
  const Params& params_;
  const Progress& progress_;
  std::vector<std::uint32_t> samples_;  // in ticks, of lat
  std::vector<double> figures_;         // of the chunks of a stream
  Tally tally_;                         // what the server's stream brought
  std::uint64_t received_ = 0;
  Report server_;  // the sums of what it reported
  std::uint64_t measured_ = 0;
  double seconds_ = 0;
};

template <typename AnySide>
Result measure_by(const tools::Adapter& adapter, const tools::Peer& server, const Params& params, double seconds,
                  const Progress& progress) {
  Result result{.params = params};
  AnySide side(adapter, params, Role::client);
  side.connect_all(server, kSetUpTimeout);
  result.wire = side.wire();
  const Report set_up = checked_report(side);  // all connections are up at the server, too
  side.meet(set_up);
  result.server.wire = text_of(set_up);
  result.set_up = {static_cast<double>(set_up.elapsed_ns) / 1e9, std::uint64_t{set_up.private_kib} << 10,
                   std::uint64_t{set_up.system_kib} << 10};
  Run<AnySide> run(side, progress);
  if (params.iters != 0) {
    run.counted(result);
  } else {
    run.timed(result, seconds);
  }
  if (announces(params)) side.send_report({.messages = 0});  // there is no further phase
  side.disconnect_all(kSetUpTimeout);
  return result;
}

}  // namespace

Result measure(const tools::Adapter& adapter, const tools::Peer& server, const Params& params, double seconds,
               const Progress& progress) {
  return params.op == Op::send ? measure_by<Side>(adapter, server, params, seconds, progress)
                               : measure_by<RdmaSide>(adapter, server, params, seconds, progress);
}

}  // namespace datperf
