// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace anydat::nic::verbs {

// Of a device's queue pair. `ending`: the connection is over, but the device has not given back all that it was given;
// nothing else has been flushed yet.
enum class ConnectionState : std::uint8_t { idle, connecting, accepting, connected, draining, ending, closed };

// What was sent before its end still arrives.
constexpr bool stands(ConnectionState state) {
  return state == ConnectionState::connected || state == ConnectionState::draining;
}

}  // namespace anydat::nic::verbs
