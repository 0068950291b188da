// SPDX-License-Identifier: BSD-3-Clause
#include "common/error.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace tools {

std::string describe(DAT_RETURN status) {
  const char* major = "unknown code";
  const char* minor = "";
  if (dat_strerror(status, &major, &minor) != DAT_SUCCESS) return fmt::format("DAT_RETURN {:#010x}", status);
  std::string text = *minor != '\0' ? fmt::format("{} ({})", major, minor) : std::string(major);
  // An empty queue and a wait that ran out are answers, not mistakes: the library has no sentence for them, and the one
  // it still holds is about something else.
  const bool answer = DAT_GET_TYPE(status) == DAT_TIMEOUT_EXPIRED || DAT_GET_TYPE(status) == DAT_QUEUE_EMPTY;
  if (const char* sentence = anydat_last_error(); !answer && *sentence != '\0') text += fmt::format(": {}", sentence);
  return text;
}

void fail(DAT_RETURN status, std::string_view call) {
  throw Error(fmt::format("{} failed with {}", call, describe(status)));
}

void fail_errno(std::string_view call) {
  throw Error(fmt::format("{} failed: {}", call, std::generic_category().message(errno)));
}

std::string_view completion_status_name(DAT_DTO_COMPLETION_STATUS status) {
  static constexpr std::array<std::string_view, 12> kNames{"SUCCESS",
                                                           "ERR_FLUSHED",
                                                           "ERR_LOCAL_LENGTH",
                                                           "ERR_LOCAL_EP",
                                                           "ERR_LOCAL_PROTECTION",
                                                           "ERR_BAD_RESPONSE",
                                                           "ERR_REMOTE_ACCESS",
                                                           "ERR_REMOTE_RESPONDER",
                                                           "ERR_TRANSPORT",
                                                           "ERR_RECEIVER_NOT_READY",
                                                           "ERR_PARTIAL_PACKET",
                                                           "RMR_OPERATION_FAILED"};
  const auto index = static_cast<std::size_t>(status);
  return index < kNames.size() ? kNames[index] : "an unknown status";
}

std::string_view event_name(DAT_EVENT_NUMBER number) {
  switch (number) {
    case DAT_DTO_COMPLETION_EVENT:
      return "DTO_COMPLETION";
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
    case DAT_SOFTWARE_EVENT:
      return "SOFTWARE";
    default:
      return "an unexpected event";
  }
}

}  // namespace tools
