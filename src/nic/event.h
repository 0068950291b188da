// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "nic/types.h"

namespace anydat::nic {

// The first two are made by a NIC.
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

// What stands in a queue of events. The face makes of it the event of its version when the program takes it.
struct Event {
  EventKind kind;
  WorkStatus status;    // of a completion
  WorkKind operation;   // of a completion, whatever its status: what was posted
  std::uint8_t notice;  // of a completion: whom it wakes, a union of bits
  // Of a receive: the immediate data, or the window that the message has taken back, or 0. Of an asynchronous event:
  // its reason. Of a connection event: the bytes of private data.
  std::uint32_t detail;
  void* object;  // what it is about: the endpoint, the RMR, the connection request, the object of an error
  union {
    std::uint64_t cookie;  // of a completion
    ConnQual qualifier;    // of a connection request
    const void* pointer;   // of a software event as it was posted; of a connection event: the private data
  };
  union {
    std::uint64_t length;  // of a completed DTO
    void* service_point;   // of a connection request
  };

  static constexpr std::uint8_t kUnsignalled = 1;  // as it was posted
  static constexpr std::uint8_t kSolicited = 2;    // by the matching Send, of a receive
};
static_assert(sizeof(Event) == 32);

}  // namespace anydat::nic
