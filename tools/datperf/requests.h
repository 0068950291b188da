// SPDX-License-Identifier: BSD-3-Clause
// Who asks the server for connections: those of one run at a time have their turn, others wait in the order in which
// they have come.
#ifndef ANYDAT_TOOLS_DATPERF_REQUESTS_H
#define ANYDAT_TOOLS_DATPERF_REQUESTS_H

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "common/connection.h"
#include "common/process.h"
#include "datperf/params.h"

namespace datperf {

struct Request {
  DAT_CR_HANDLE cr;
  Params params;
};

class Requests {
 public:
  using Clock = std::chrono::steady_clock;

  // control_fd: as in ServeOptions.
  Requests(const tools::Adapter& adapter, DAT_CONN_QUAL qualifier, int control_fd);

  DAT_CONN_QUAL qualifier() const { return listener_.qualifier(); }
  bool stopping() const { return stopping_; }
  // The one whose turn is next; nothing when it is time to stop.
  std::optional<Request> next();
  // The next one of that run; nothing when none has come until then, or when it is time to stop.
  std::optional<Request> next_of(std::uint64_t run, Clock::time_point until);
  // Whether there is one that has had no turn yet, maybe from a client that has gone meanwhile. Any thread may ask, but
  // not while another one is in a call above.
  bool some_wait() const;
  // Whether the adapter counts what comes. Requires: something has come.
  bool counted() const { return tools::events_of(evd_.get()) != 0; }
  // The client that asked may have gone already, so that none is left to be told.
  static void reject(DAT_CR_HANDLE cr) { dat_cr_reject(cr); }

 private:
  std::optional<Request> waiting_of(std::uint64_t run);
  std::optional<DAT_EVENT> arrived(tools::Timeout timeout);
  std::optional<Request> understood(const DAT_EVENT& event);
  void let_wait(const Request& request);

  tools::Evd evd_;
  tools::Listener listener_;
  tools::StopWatcher stop_;
  bool stopping_ = false;
  const bool others_wait_;  // the process that has started us wants no other client to be served
  std::uint64_t seen_ = 0;
  std::deque<Request> waiting_;  // that the turn of another run has met
};

}  // namespace datperf

#endif
