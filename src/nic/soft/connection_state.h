// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace anydat::nic::soft {

// Of a software queue pair. `ending`: the connection is over, but the peer is still writing into a buffer; nothing has
// been flushed yet.
enum class ConnectionState : std::uint8_t { idle, connecting, accepting, connected, draining, ending, closed };

// What was sent before its end still arrives.
constexpr bool stands(ConnectionState state) {
  return state == ConnectionState::connected || state == ConnectionState::draining;
}

constexpr bool is_over(ConnectionState state) {
  return state == ConnectionState::ending || state == ConnectionState::closed;
}

}  // namespace anydat::nic::soft
