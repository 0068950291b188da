// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "base/counter.h"
#include "dapl/types.h"

namespace anydat::dapl {

// What an instance counts of its objects and of connections. Written with the engine held, but for the last three.
struct IaCounters {
  // By HandleType. An object that never got as far as its program is none.
  std::array<base::Counter, kHandleTypes> created;
  std::array<base::Counter, kHandleTypes> freed;
  base::Counter psps_with_any_qualifier;  // of those created
  base::Counter listens;

  // The active side.
  base::Counter requests_sent;
  base::Counter connected;
  base::Counter rejected_by_peer;
  base::Counter refused;
  base::Counter timed_out;
  base::Counter unreachable;
  // The passive side.
  base::Counter requests_received;
  base::Counter requests_refused;    // by the library, for want of a place or of a service point that is free
  base::Counter requests_delivered;  // to the program
  base::Counter accepted;
  base::Counter rejected;
  base::Counter accepted_connected;
  base::Counter accepts_failed;
  // Both.
  base::Counter disconnects_sent;
  base::Counter disconnects_received;
  base::Counter broken;

  // Asynchronous errors, whether or not there is an EVD for them; with the lock of that.
  base::Counter ep_errors;
  base::Counter evd_errors;
  base::Counter other_errors;
};

}  // namespace anydat::dapl
