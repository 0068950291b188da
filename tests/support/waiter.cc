// SPDX-License-Identifier: BSD-3-Clause
#include "support/waiter.h"

#include <fmt/format.h>

#include <stdexcept>

#include "support/dat_matchers.h"

namespace anydat::test {

Waiter::Waiter(DAT_EVD_HANDLE evd, DAT_COUNT threshold)
    : thread_([this, evd, threshold] {
        result_.rc = dat_evd_wait(evd, long_timeout(), threshold, &result_.event, &result_.more);
      }) {
  // A blocked waiter owns the EVD: dequeuing is refused, even from an empty queue (EVD-DEQ-4).
  const bool blocked = eventually([evd] {
    DAT_EVENT event{};
    return is_type(dat_evd_dequeue(evd, &event), DAT_INVALID_STATE);
  });
  if (!blocked) {
    throw std::runtime_error("the thread in dat_evd_wait did not block");
  }
}

Waiter::Result Waiter::result(Caller caller) {
  if (!woken_within(patience())) {
    throw std::runtime_error(fmt::format("{}:{}: the waiter was not woken", caller.file, caller.line));
  }
  return result_;
}

}  // namespace anydat::test
