// SPDX-License-Identifier: BSD-3-Clause
#include "support/waiter.h"

#include <fmt/format.h>

#include <stdexcept>

#include "support/dat_matchers.h"

namespace anydat::test {

Waiter::Waiter(DAT_EVD_HANDLE evd, DAT_COUNT threshold)
    : future_(std::async(std::launch::async, [evd, threshold] {
        Result result{};
        const auto timeout = std::chrono::duration_cast<std::chrono::microseconds>(2 * patience()).count();
        result.rc = dat_evd_wait(evd, static_cast<DAT_TIMEOUT>(timeout), threshold, &result.event, &result.more);
        return result;
      })) {
  // A blocked waiter owns the EVD: dequeuing is refused, even from an empty queue (EVD-DEQ-4).
  const bool blocked = eventually([evd] {
    DAT_EVENT event{};
    return is_type(dat_evd_dequeue(evd, &event), DAT_INVALID_STATE);
  });
  if (!blocked) {
    throw std::runtime_error("the thread in dat_evd_wait did not block");
  }
}

Waiter::~Waiter() {
  if (future_.valid()) {
    future_.wait();
  }
}

bool Waiter::woken_within(std::chrono::milliseconds time) const {
  return future_.wait_for(time) == std::future_status::ready;
}

Waiter::Result Waiter::result(Caller caller) {
  if (future_.wait_for(patience()) != std::future_status::ready) {
    throw std::runtime_error(fmt::format("{}:{}: the waiter was not woken", caller.file, caller.line));
  }
  return future_.get();
}

}  // namespace anydat::test
