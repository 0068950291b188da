// SPDX-License-Identifier: BSD-3-Clause
// A thread that is blocked in dat_evd_wait.
#pragma once

#include <dat/udat.h>

#include <future>

#include "support/dat_events.h"

namespace anydat::test {

class Waiter {
 public:
  struct Result {
    DAT_RETURN rc;
    DAT_EVENT event;
    DAT_COUNT more;
  };

  // Returns when the thread is certain to be blocked. Requires: the EVD is empty, and nobody else waits on it.
  explicit Waiter(DAT_EVD_HANDLE evd, DAT_COUNT threshold = 1);
  ~Waiter();  // waits for the thread, whose own time-out bounds that

  // Has it returned, or does it within that time? Pass quiet_time() to see that it stays blocked.
  bool woken_within(std::chrono::milliseconds time) const;

  // Its result, which must come in well under its own time-out: a wait that ends by that time-out was not woken, even
  // though it then finds the events. Throws if it does not come.
  Result result(Caller caller = Caller::here());

 private:
  std::future<Result> future_;
};

}  // namespace anydat::test
