// SPDX-License-Identifier: BSD-3-Clause
// The states of a connection, in software or of a device, and what each NIC does in which of them.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

namespace anydat::nic {

// `ending`: the connection is over, but the peer is still writing into a buffer, or the device has not given back all
// that it was given; nothing else has been flushed yet.
enum class ConnectionState : std::uint8_t { idle, connecting, accepting, connected, draining, ending, closed };
inline constexpr std::size_t kConnectionStates = 7;

// What was sent before its end still arrives.
constexpr bool stands(ConnectionState state) {
  return state == ConnectionState::connected || state == ConnectionState::draining;
}

constexpr bool is_over(ConnectionState state) {
  return state == ConnectionState::ending || state == ConnectionState::closed;
}

// Which state may follow which.
constexpr bool may_follow(ConnectionState from, ConnectionState to) {
  using enum ConnectionState;
  switch (from) {
    case idle:
      return to == connecting || to == accepting || to == idle;
    case connecting:
    case accepting:
      return to == connected || to == ending;
    case connected:
      return to == draining || to == ending;
    case draining:
      return to == ending;
    case ending:
      return to == closed || to == ending;
    case closed:
      return to == idle;
  }
  return false;
}

// The one way from a state to the next. With the lock held that posts look at the state with.
inline void enter(std::atomic<ConnectionState>& state, ConnectionState next) {
  assert(may_follow(state.load(std::memory_order_relaxed), next));
  state.store(next);
}

// What befalls a connection.
enum class Occurrence : std::uint8_t {
  disconnect_in_order,  // the program asks for an orderly end
  disconnect_at_once,   // or for an abrupt one
  peer_gone,            // the peer has ended or refused it, or cannot be reached any more
  failure,              // something at this side has failed that breaks a connection
};

// What is to be done about it.
enum class Step : std::uint8_t {
  nothing,
  drain,          // what one side owes the other comes before the end
  close,          // the connection, or what is to become one, is given up
  attempt_fails,  // the program is told of its request
  accept_fails,   // the program is told of its answer to a request
  end,            // the connection ends, for the reason that is known
};

constexpr Step step_for(Occurrence occurrence, ConnectionState state) {
  using enum Step;
  constexpr std::array<std::array<Step, kConnectionStates>, 4> kSteps{{
      // idle, connecting, accepting, connected, draining, ending, closed
      {nothing, close, close, drain, nothing, nothing, nothing},           // disconnect_in_order
      {nothing, close, close, close, close, nothing, nothing},             // disconnect_at_once
      {nothing, attempt_fails, accept_fails, end, end, nothing, nothing},  // peer_gone
      {nothing, nothing, nothing, end, end, nothing, nothing},             // failure
  }};
  return kSteps[static_cast<std::size_t>(occurrence)][static_cast<std::size_t>(state)];
}

}  // namespace anydat::nic
