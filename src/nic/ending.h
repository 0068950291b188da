// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "nic/adapter.h"

namespace anydat::nic {

// What the consumer is told about the end of a connection or an attempt, once all that was posted has completed.
struct Ending {
  enum class Report : std::uint8_t { none, closed, broken, connect_failed, accept_failed } report = Report::none;
  ConnectFailure why = ConnectFailure::refused;
  WorkStatus first_send_status = WorkStatus::flushed;

  // Once. `rejection`: the private data that came with one.
  void tell(QueuePairEvents& events, std::span<const std::byte> rejection) {
    switch (std::exchange(report, Report::none)) {
      case Report::none:
        break;
      case Report::closed:
        events.on_closed(false);
        break;
      case Report::broken:
        events.on_closed(true);
        break;
      case Report::connect_failed:
        events.on_connect_failed(why, rejection);
        break;
      case Report::accept_failed:
        events.on_accept_failed();
        break;
    }
  }
};

}  // namespace anydat::nic
