// SPDX-License-Identifier: BSD-3-Clause
#include "support/dat_events.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "support/dat_matchers.h"
#include "support/progress.h"

namespace anydat::test {
namespace {

constexpr DAT_TIMEOUT to_dat(std::chrono::microseconds time) {
  return static_cast<DAT_TIMEOUT>(time.count());
}

[[noreturn]] void give_up(Caller caller, const std::string& what) {
  throw std::runtime_error(fmt::format("{}:{}: {}", caller.file, caller.line, what));
}

std::string in_words(const DAT_EVENT& event) {
  std::string text = event_name(event.event_number);
  if (event.event_number == DAT_DTO_COMPLETION_EVENT) {
    const auto& dto = event.event_data.dto_completion_event_data;
    text += fmt::format(" (status {}, cookie {}, length {})", static_cast<int>(dto.status), dto.user_cookie.as_64,
                        dto.transfered_length);
  } else if (event.event_number >= DAT_ASYNC_ERROR_EVD_OVERFLOW && event.event_number < DAT_SOFTWARE_EVENT) {
    text += fmt::format(" (reason {})", static_cast<int>(event.event_data.asynch_error_event_data.reason));
  }
  return text;
}

}  // namespace

std::string event_name(DAT_EVENT_NUMBER number) {
  switch (number) {
    case DAT_DTO_COMPLETION_EVENT:
      return "DTO_COMPLETION";
    case DAT_RMR_BIND_COMPLETION_EVENT:
      return "RMR_BIND_COMPLETION";
    case DAT_CONNECTION_REQUEST_EVENT:
      return "CONNECTION_REQUEST";
    case DAT_CONNECTION_EVENT_ESTABLISHED:
      return "ESTABLISHED";
    case DAT_CONNECTION_EVENT_PEER_REJECTED:
      return "PEER_REJECTED";
    case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
      return "NON_PEER_REJECTED";
    case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR:
      return "ACCEPT_COMPLETION_ERROR";
    case DAT_CONNECTION_EVENT_DISCONNECTED:
      return "DISCONNECTED";
    case DAT_CONNECTION_EVENT_BROKEN:
      return "BROKEN";
    case DAT_CONNECTION_EVENT_TIMED_OUT:
      return "TIMED_OUT";
    case DAT_CONNECTION_EVENT_UNREACHABLE:
      return "UNREACHABLE";
    case DAT_ASYNC_ERROR_EVD_OVERFLOW:
      return "ASYNC_EVD_OVERFLOW";
    case DAT_ASYNC_ERROR_IA_CATASTROPHIC:
      return "ASYNC_IA_CATASTROPHIC";
    case DAT_ASYNC_ERROR_EP_BROKEN:
      return "ASYNC_EP_BROKEN";
    case DAT_ASYNC_ERROR_TIMED_OUT:
      return "ASYNC_TIMED_OUT";
    case DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR:
      return "ASYNC_PROVIDER_INTERNAL_ERROR";
    case DAT_SOFTWARE_EVENT:
      return "SOFTWARE";
    default:  // of 2.0
      break;
  }
  return fmt::format("event 0x{:x}", static_cast<unsigned>(number));
}

namespace {

// As an error or as it is, which DAT_COMPAT decides.
bool is_outcome(DAT_RETURN rc, DAT_RETURN_TYPE type) {
  return DAT_GET_TYPE(rc) == static_cast<DAT_RETURN>(type);
}

}  // namespace

DAT_TIMEOUT long_timeout() {
  return to_dat(2 * patience());
}

std::optional<DAT_EVENT> wait_event(DAT_EVD_HANDLE evd, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::microseconds>(deadline - std::chrono::steady_clock::now());
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    const DAT_RETURN rc = dat_evd_wait(evd, left.count() > 0 ? to_dat(left) : 0, 1, &event, &more);
    if (rc == DAT_SUCCESS) {
      return event;
    }
    if (is_outcome(rc, DAT_TIMEOUT_EXPIRED)) {
      return std::nullopt;
    }
    if (!is_type(rc, DAT_INTERRUPTED_CALL)) {
      throw std::runtime_error("dat_evd_wait: " + describe(rc));
    }
  }
}

std::optional<DAT_EVENT> poll_event(DAT_EVD_HANDLE evd) {
  DAT_EVENT event{};
  const DAT_RETURN rc = dat_evd_dequeue(evd, &event);
  if (rc == DAT_SUCCESS) {
    return event;
  }
  if (!is_outcome(rc, DAT_QUEUE_EMPTY)) {
    throw std::runtime_error("dat_evd_dequeue: " + describe(rc));
  }
  return std::nullopt;
}

DAT_EVENT expect_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, Caller caller) {
  const auto event = wait_event(evd);
  if (!event) {
    give_up(caller, fmt::format("expected {}, nothing came", event_name(number)));
  }
  if (event->event_number != number) {
    give_up(caller, fmt::format("expected {}, got {}", event_name(number), in_words(*event)));
  }
  return *event;
}

DAT_DTO_COMPLETION_EVENT_DATA expect_completion(DAT_EVD_HANDLE evd, DAT_DTO_COMPLETION_STATUS status, Caller caller) {
  const auto dto = expect_event(evd, DAT_DTO_COMPLETION_EVENT, caller).event_data.dto_completion_event_data;
  if (dto.status != status) {
    ADD_FAILURE_AT(caller.file, caller.line)
        << "cookie " << dto.user_cookie.as_64 << " completed with status " << dto.status << ", expected " << status;
  }
  return dto;
}

std::vector<DAT_DTO_COMPLETION_EVENT_DATA> expect_completions(DAT_EVD_HANDLE evd, int count,
                                                              DAT_DTO_COMPLETION_STATUS status, Caller caller) {
  std::vector<DAT_DTO_COMPLETION_EVENT_DATA> completions;
  for (int i = 0; i < count; ++i) {
    completions.push_back(expect_completion(evd, status, caller));
  }
  return completions;
}

void expect_no_event(DAT_EVD_HANDLE evd, Caller caller) {
  if (const auto event = wait_event(evd, settle() ? std::chrono::milliseconds(0) : quiet_time())) {
    ADD_FAILURE_AT(caller.file, caller.line) << "expected no event, got " << in_words(*event);
  }
}

int drain(DAT_EVD_HANDLE evd) {
  int count = 0;
  while (poll_event(evd)) {
    ++count;
  }
  return count;
}

}  // namespace anydat::test
