// SPDX-License-Identifier: BSD-3-Clause
// What the tools do when something fails: one sentence on stderr and an exit code a script can use.
#ifndef ANYDAT_TOOLS_COMMON_ERROR_H
#define ANYDAT_TOOLS_COMMON_ERROR_H

#include <anydat/anydat.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace tools {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // the work was tried and did not succeed
inline constexpr int kExitUsage = 2;   // the command line was not understood; nothing was tried

// Thrown while a tool sets up or tears down, never from a measuring loop. what() is the sentence for the user.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The constant names of a DAT return code and, when it describes the call that just failed, the library's sentence.
// Requires: called on the thread of the failing call, before its next DAT call.
std::string describe(DAT_RETURN status);

[[noreturn]] void fail(DAT_RETURN status, std::string_view call);
[[noreturn]] void fail_errno(std::string_view call);

inline void check(DAT_RETURN status, std::string_view call) {
  if (status != DAT_SUCCESS) fail(status, call);
}

// The constant's name without its prefix, for a message about a completion or a connection that went wrong.
std::string_view completion_status_name(DAT_DTO_COMPLETION_STATUS status);
std::string_view event_name(DAT_EVENT_NUMBER number);

}  // namespace tools

#endif
