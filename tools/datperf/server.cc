// SPDX-License-Identifier: BSD-3-Clause
// The serving half: does for each run what the run's first request says.
#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "common/error.h"
#include "common/process.h"
#include "common/ticks.h"
#include "datperf/rdma_loops.h"
#include "datperf/run.h"

namespace datperf {
namespace {

constexpr tools::Timeout kSetUpTimeout = std::chrono::seconds(10);
constexpr DAT_COUNT kRequestsMax = 4096;  // that nobody has looked at yet

class Server {
 public:
  explicit Server(const ServeOptions& options)
      : options_(options),
        adapter_(options.ia),
        requests_(adapter_.make_evd(kRequestsMax, DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG)),
        listener_(adapter_, requests_.get(), options.qualifier),
        stop_(requests_.get(), options.control_fd) {}

  int run() {
    if (options_.control_fd >= 0) {
      tools::announce(options_.control_fd, listener_.qualifier());
    } else {
      fmt::print("datperf: serving on {}:{} ({}); stop with Ctrl-C\n",
                 tools::address_text(adapter_.attributes().ia_address_ptr), listener_.qualifier(), options_.ia);
      std::fflush(stdout);
    }
    while (const auto first = next_request(std::chrono::hours(24 * 365))) {
      try {
        first->params.op == Op::send ? serve_run<Side>(*first) : serve_run<RdmaSide>(*first);
      } catch (const tools::Error& error) {
        fmt::print(stderr, "datperf: a run ended early: {}\n", error.what());
      }
    }
    return tools::kExitOk;
  }

 private:
  struct Incoming {
    DAT_CR_HANDLE cr;
    Params params;
  };

  // The next request of a datperf client; nothing when it is time to stop. Rejects what it does not understand.
  std::optional<Incoming> next_request(tools::Timeout timeout) {
    for (DAT_EVENT event{}; !stopping_;) {
      if (!tools::wait_event(requests_.get(), timeout, event)) throw tools::Error("a connection of the run is missing");
      if (event.event_number == DAT_SOFTWARE_EVENT) {
        stopping_ = true;
      } else if (const DAT_CR_HANDLE cr = event.event_data.cr_arrival_event_data.cr_handle;
                 const auto params = decode(tools::request_data(cr))) {
        return Incoming{cr, *params};
      } else {
        tools::check(dat_cr_reject(cr), "dat_cr_reject");
      }
    }
    return std::nullopt;
  }

  template <typename AnySide>  // Side or RdmaSide
  void serve_run(const Incoming& first) {
    const Params& params = first.params;
    if (params.run == last_run_) {  // the rest of a run that we gave up
      tools::check(dat_cr_reject(first.cr), "dat_cr_reject");
      return;
    }
    last_run_ = params.run;
    std::optional<AnySide> side;
    try {
      side.emplace(adapter_, params, Role::server);
    } catch (const tools::Error&) {
      dat_cr_reject(first.cr);  // the client need not wait for what cannot be had
      throw;
    }
    const std::uint64_t start_ns = tools::now_ns();
    side->accept(params.index, first.cr);
    for (std::uint32_t accepted = 1; accepted < params.endpoints;) {
      const auto next = next_request(kSetUpTimeout);
      if (!next) return;
      if (next->params.run != params.run) {  // somebody else's run: one at a time, or neither measures anything
        tools::check(dat_cr_reject(next->cr), "dat_cr_reject");
        continue;
      }
      side->accept(next->params.index, next->cr);
      ++accepted;
    }
    side->await_accepted(kSetUpTimeout);
    set_up(*side, start_ns);
    if (params.warmup > 0) run_phase(*side, params.warmup);
    run_phase(*side, params.iters);
    side->wait_disconnected(kSetUpTimeout);
  }

  static void set_up(Side& side, std::uint64_t start_ns) {
    Report report;
    report.elapsed_ns = tools::now_ns() - start_ns;
    if (side.params().clients > 1) {
      const Footprint growth = footprint() - side.before();
      report.private_bytes = growth.private_bytes;
      report.system_bytes = growth.system_bytes;
    }
    side.send_report(report);
  }
  static void set_up(RdmaSide& side, std::uint64_t /*start_ns*/) {
    side.begin_phase();
    side.meet();
  }

  static void run_phase(RdmaSide& side, std::uint64_t count) {
    const std::uint64_t cpu_before_ns = tools::process_cpu_ns();
    const bool answers = side.params().metric == Metric::lat && side.params().op == Op::write;
    if (answers && !echo<false>(side, count)) side.fail();
    side.await_finish();
    Report report;
    report.cpu_ns = tools::process_cpu_ns() - cpu_before_ns;
    report.failed = side.params().op == Op::write && !side.all_written(count);
    side.begin_phase();
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
    const std::uint64_t clients = side.params().clients;
    report.failed = tally.bad != 0 || tally.sum != clients * expected_sum(side.params().size, count / clients);
    side.send_report(report);
  }

  template <bool kBlock>
  static bool run_loop(Side& side, std::uint64_t count, Tally& tally) {
    return side.params().metric == Metric::lat ? echo<kBlock>(side, count, tally) : drain<kBlock>(side, count, tally);
  }

  const ServeOptions& options_;
  tools::Adapter adapter_;
  tools::Evd requests_;
  tools::Listener listener_;
  tools::StopWatcher stop_;
  bool stopping_ = false;
  std::uint64_t last_run_ = 0;
};

}  // namespace

int serve(const ServeOptions& options) {
  tools::StopWatcher::block_signals();
  return Server(options).run();
}

}  // namespace datperf
