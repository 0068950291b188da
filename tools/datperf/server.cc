// SPDX-License-Identifier: BSD-3-Clause
// The serving half: does for each run what the run's first request says.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/process.h"
#include "common/ticks.h"
#include "datperf/rdma_loops.h"
#include "datperf/requests.h"
#include "datperf/run.h"

namespace datperf {
namespace {

constexpr tools::Timeout kSetUpTimeout = std::chrono::seconds(10);
constexpr tools::Timeout kSetUpOfEach = std::chrono::milliseconds(5);
constexpr tools::Timeout kBetweenLooks = std::chrono::milliseconds(20);  // at a run that is being set up
using Clock = Requests::Clock;

// Whether a run from which nothing has come since then has to make room for the next one.
bool gives_way(const ServeOptions& options, const Requests& requests, Clock::time_point since) {
  if (options.control_fd >= 0) return false;  // there is one client, which has started us
  return Clock::now() - since >= std::chrono::duration<double>(options.patience_s) && requests.some_wait();
}

// Ends a run that has been silent for too long while another client waits for its turn.
class Patience {
 public:
  Patience(const ServeOptions& options, const Side& side, const Requests& requests) {
    // What cannot be counted looks like silence.
    if (options.control_fd >= 0 || !requests.counted()) return;
    thread_ = std::thread([&, this] {
      const auto patience = std::chrono::duration<double>(options.patience_s);
      std::uint64_t heard = side.heard();
      auto since = Clock::now();
      std::unique_lock lock(mutex_);
      while (!changed_.wait_for(lock, patience / 10, [this] { return over_; })) {
        if (const std::uint64_t now = side.heard(); now != std::exchange(heard, now)) since = Clock::now();
        if (!gives_way(options, requests, since)) continue;
        fmt::print(stderr, "datperf: a run that has been silent for {} s gives way to the next\n", options.patience_s);
        side.cut();
        return;
      }
    });
  }
  ~Patience() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

class Server {
 public:
  explicit Server(const ServeOptions& options)
      : options_(options), adapter_(options.ia), requests_(adapter_, options.qualifier, options.control_fd) {}

  int run() {
    if (options_.control_fd >= 0) {
      tools::announce(options_.control_fd, requests_.qualifier());
    } else {
      fmt::print("datperf: serving on {}:{} ({}); stop with Ctrl-C\n",
                 tools::address_text(adapter_.attributes().ia_address_ptr), requests_.qualifier(), options_.ia);
      std::fflush(stdout);
    }
    while (const auto first = requests_.next()) {
      // Whatever a client does, or lacks, ends its own run only.
      try {
        first->params.op == Op::send ? serve_run<Side>(*first) : serve_run<RdmaSide>(*first);
      } catch (const std::exception& error) {
        fmt::print(stderr, "datperf: a run ended early: {}\n", error.what());
      }
    }
    return tools::kExitOk;
  }

 private:
  // False: the run needs more than a stranger may have, which is said.
  bool affordable(const Params& params) const {
    if (options_.control_fd >= 0) return true;  // the process that has started us asks for what it wants
    const std::uint64_t needed = memory_of(params, Role::server);
    if (needed <= options_.memory) return true;
    fmt::print(stderr, "datperf: refused a run that needs {} bytes here, which --memory does not allow\n", needed);
    return false;
  }

  template <typename AnySide>  // Side or RdmaSide
  void serve_run(const Request& first) {
    const Params& params = first.params;
    // The rest of a run that we gave up, or one that is too large.
    if (params.run == last_run_ || !affordable(params)) return Requests::reject(first.cr);
    last_run_ = params.run;
    std::optional<AnySide> side;
    try {
      side.emplace(adapter_, params, Role::server);
    } catch (const std::exception&) {
      Requests::reject(first.cr);  // the client need not wait for what cannot be had
      throw;
    }
    const std::uint64_t start_ns = tools::now_ns();
    if (!accept_all(*side, first)) return;
    // From here on, since a client can be slow in completing its connections, too.
    const Patience patience(options_, *side, requests_);
    side->await_accepted(kSetUpTimeout);
    set_up(*side, start_ns);
    if (announces(params)) {
      while (const std::uint64_t count = announced(*side)) run_phase(*side, count);
    } else {
      if (params.warmup > 0) run_phase(*side, params.warmup);
      run_phase(*side, params.iters);
    }
    side->wait_disconnected(kSetUpTimeout);
  }

  // All connections of a run. False: it is time to stop. Throws Error if one is missing for too long, or has ended.
  bool accept_all(Side& side, const Request& first) {
    const Params& params = first.params;
    // However many they are, and not so long for each.
    const Clock::time_point deadline = Clock::now() + kSetUpTimeout + params.endpoints * kSetUpOfEach;
    std::vector<bool> accepted(params.endpoints);
    std::uint32_t left = params.endpoints;
    Clock::time_point since;
    const auto accept = [&](const Request& request) {
      side.accept(request.params.index, request.cr);
      accepted[request.params.index] = true;
      --left;
      since = Clock::now();
    };
    accept(first);
    while (left > 0) {
      side.note_established();
      const auto next = requests_.next_of(params.run, std::min(deadline, Clock::now() + kBetweenLooks));
      if (requests_.stopping()) return false;
      if (next && next->params.index < params.endpoints && !accepted[next->params.index]) {
        accept(*next);
      } else if (next) {
        Requests::reject(next->cr);  // none of those that this run has left
      }
      // What has come is accepted before: a server that was kept from looking blames no client for it.
      if (left > 0) check_patience(since, deadline);
    }
    return true;
  }

  // With a run whose last connection came at `since`.
  void check_patience(Clock::time_point since, Clock::time_point deadline) const {
    if (Clock::now() >= deadline) throw tools::Error("a connection of the run is missing");
    if (gives_way(options_, requests_, since))
      throw tools::Error(fmt::format("no connection has been added to it for {} s, and it gives way to the next",
                                     options_.patience_s));
  }

  // How long the client's next phase is; 0: there is none.
  template <typename AnySide>
  static std::uint64_t announced(AnySide& side) {
    const std::uint64_t count = side.receive_report().messages;
    if (count > kItersMax) throw tools::Error("a phase of more messages than there may be");
    if (count != 0) side.tell();  // that we are ready for it
    return count;
  }

  static void set_up(Side& side, std::uint64_t start_ns) {
    Report report;
    report.elapsed_ns = tools::now_ns() - start_ns;
    if (side.params().clients > 1) {
      const Footprint growth = footprint() - side.before();
      report.private_kib = static_cast<std::uint32_t>(growth.private_bytes >> 10);
      report.system_kib = static_cast<std::uint32_t>(growth.system_bytes >> 10);
    }
    side.send_report(report);
  }
  static void set_up(RdmaSide& side, std::uint64_t /*start_ns*/) {
    side.clear_slots();
    side.meet();
  }

  static void run_phase(RdmaSide& side, std::uint64_t count) {
    const Params& params = side.params();
    const std::uint64_t cpu_before_ns = tools::process_cpu_ns();
    const std::uint64_t start_ns = tools::now_ns();
    side.begin_phase();
    const bool answers = params.metric == Metric::lat && params.op == Op::write;
    if (answers && !(params.block ? echo<true>(side, count) : echo<false>(side, count))) side.fail();
    if (params.bidirectional) {
      if (!stream<false>(side, 0, count)) side.fail();
      side.finish_phase();
    }
    side.await_finish();
    Report report;
    report.elapsed_ns = tools::now_ns() - start_ns;
    report.cpu_ns = tools::process_cpu_ns() - cpu_before_ns;
    report.messages = side.looked_at(count);
    report.failed = side.bad() != 0 || (params.op == Op::write && !side.all_written(count));
    side.clear_slots();
    side.send_report(report);
  }

  static void run_phase(Side& side, std::uint64_t count) {
    const std::uint64_t cpu_before_ns = tools::process_cpu_ns();
    const std::uint64_t start_ns = tools::now_ns();
    Tally tally;
    const bool good = side.params().block ? run_loop<true>(side, count, tally) : run_loop<false>(side, count, tally);
    if (!good) side.fail();
    Report report;
    report.elapsed_ns = tools::now_ns() - start_ns;
    report.cpu_ns = tools::process_cpu_ns() - cpu_before_ns;
    report.messages = count;
    report.failed = !as_expected(side.params(), tally, count);
    side.await_finish();
    side.send_report(report);
  }

  template <bool kBlock>
  static bool run_loop(Side& side, std::uint64_t count, Tally& tally) {
    if (side.params().metric == Metric::lat) return echo<kBlock>(side, count, tally);
    if (side.params().at_once != 0) return drain_at_once(side, count, tally);
    std::uint64_t received = 0;
    return side.params().bidirectional ? exchange(side, 0, count, count, tally, received)
                                       : drain<kBlock>(side, count, tally);
  }

  const ServeOptions& options_;
  tools::Adapter adapter_;
  Requests requests_;
  std::uint64_t last_run_ = 0;
};

}  // namespace

int serve(const ServeOptions& options) {
  tools::StopWatcher::block_signals();
  return Server(options).run();
}

}  // namespace datperf
