// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "dapl/types.h"

namespace anydat::dapl {

enum class EventKind : std::uint8_t {
  dto_completion,
  bind_completion,
  connection_request,
  established,
  peer_rejected,
  non_peer_rejected,
  accept_completion_error,
  disconnected,
  broken,
  timed_out,
  unreachable,
  evd_overflow,
  ia_catastrophic,
  ep_broken,
  async_timed_out,
  provider_internal_error,
  software,
};

// Why an asynchronous event came; what a number means goes by the type of the object.
namespace async_reason {
inline constexpr std::uint32_t kIaCatastrophic = 0;
inline constexpr std::uint32_t kIaOther = 1;
inline constexpr std::uint32_t kEpTransferToError = 0;
inline constexpr std::uint32_t kEpSoftHighWatermark = 2;
inline constexpr std::uint32_t kEvdOverflow = 0;
inline constexpr std::uint32_t kSrqOther = 1;
inline constexpr std::uint32_t kSrqLowWatermark = 2;
}  // namespace async_reason

// What stands in the ring of an EVD. The face makes of it the event of its version when the program takes it.
struct Event {
  EventKind kind;
  nic::WorkStatus status;   // of a completion
  nic::WorkKind operation;  // of a completion, whatever its status: what was posted
  // Of a receive: the immediate data, or the window that the message has taken back, or 0. Of an asynchronous event: its
  // reason. Of a connection event: the bytes of private data.
  std::uint32_t detail;
  Handle object;  // what it is about: the endpoint, the RMR, the connection request, the object of an error
  union {
    std::uint64_t cookie;     // of a completion
    nic::ConnQual qualifier;  // of a connection request
    const void* pointer;      // of a software event as it was posted; of a connection event: the private data
  };
  union {
    std::uint64_t length;  // of a completed DTO
    Handle service_point;  // of a connection request
  };
};
static_assert(sizeof(Event) == 32);

}  // namespace anydat::dapl
