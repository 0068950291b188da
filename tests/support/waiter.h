// SPDX-License-Identifier: BSD-3-Clause
// A thread that is blocked in dat_evd_wait.
#pragma once

#include <dat/udat.h>

#include "support/dat_events.h"
#include "support/threads.h"

namespace anydat::test {

class Waiter {
 public:
  struct Result {
    DAT_RETURN rc;
    DAT_EVENT event;
    DAT_COUNT more;
  };

  // Returns when the thread is certain to be blocked. Requires: the EVD is empty, and no other thread waits on it.
  explicit Waiter(DAT_EVD_HANDLE evd, DAT_COUNT threshold = 1);

  // Whether nothing that has been done so far wakes it.
  bool stays_blocked() const { return thread_.stays_asleep(); }
  // Has it returned, or does it within that time?
  bool woken_within(std::chrono::milliseconds time) const { return thread_.ended_within(time); }

  // Its result, which must come in well under its own time-out: a wait that ends by that time-out was not woken, even
  // though it then finds the events. Throws if it does not come.
  Result result(Caller caller = Caller::here());

 private:
  Result result_{};
  WatchedThread thread_;  // whose own time-out bounds how long it is waited for
};

}  // namespace anydat::test
