// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace anydat::nic {

// Of a queue pair, in software or of a device. `ending`: the connection is over, but the peer is still writing into a
// buffer, or the device has not given back all that it was given; nothing else has been flushed yet.
enum class ConnectionState : std::uint8_t { idle, connecting, accepting, connected, draining, ending, closed };

// What was sent before its end still arrives.
constexpr bool stands(ConnectionState state) {
  return state == ConnectionState::connected || state == ConnectionState::draining;
}

constexpr bool is_over(ConnectionState state) {
  return state == ConnectionState::ending || state == ConnectionState::closed;
}

}  // namespace anydat::nic
