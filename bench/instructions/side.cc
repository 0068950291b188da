// SPDX-License-Identifier: BSD-3-Clause
#include "instructions/side.h"

#include <fmt/format.h>

#include "common/error.h"

namespace counting {

bool take(DAT_EVD_HANDLE evd, DAT_EVENT& event) {
  const DAT_RETURN status = dat_evd_dequeue(evd, &event);
  if (DAT_GET_TYPE(status) == DAT_QUEUE_EMPTY) return false;
  tools::check(status, "dat_evd_dequeue");
  if (event.event_number == DAT_DTO_COMPLETION_EVENT) {
    const auto completion = event.event_data.dto_completion_event_data.status;
    if (completion != DAT_DTO_SUCCESS)
      throw tools::Error(fmt::format("a transfer ended in {}", tools::completion_status_name(completion)));
  }
  return true;
}

void take_all(DAT_EVD_HANDLE evd, int count) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (DAT_EVENT event; count > 0;) {
    if (take(evd, event)) {
      --count;
    } else if (std::chrono::steady_clock::now() > deadline) {
      throw tools::Error("completions do not come");
    }
  }
}

}  // namespace counting
