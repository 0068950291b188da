// SPDX-License-Identifier: BSD-3-Clause
// The states of an endpoint as one table: which step each allows and where it leads (tables 2.2 and 2.3 of the rules).
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "dapl/error.h"
#include "dapl/types.h"

namespace anydat::dapl {

const char* name_of(EpState state);
Detail detail_of(EpState state);  // table 2.4

enum class EpStep : std::uint8_t {
  // Calls of the program.
  connect,
  duplicate,  // to be the connection that dat_ep_dup_connect repeats
  modify_zone,
  modify_parts,  // EVDs and attributes
  modify_named,  // attributes of transport and Provider
  post_request,
  disconnect,
  reset,
  free,
  // Service points and requests.
  reserve,         // by a new RSP
  release,         // by an RSP that goes unused
  make_tentative,  // by a service point that makes the endpoints itself
  offer,           // a request is about to name it
  take_offer_back,
  accept,
  reject,  // or hand the request off, or free it
  // Reports of the queue pair.
  established,
  connect_failed,
  accept_failed,
  closed,
};

class EpStates {
 public:
  constexpr EpStates(std::initializer_list<EpState> states) {
    for (const EpState state : states) bits_ |= bit(state);
  }
  constexpr bool contain(EpState state) const { return (bits_ & bit(state)) != 0; }
  constexpr void add(EpStates others) { bits_ |= others.bits_; }

 private:
  static constexpr std::uint32_t bit(EpState state) { return 1u << static_cast<std::uint32_t>(state); }
  std::uint32_t bits_ = 0;
};

struct EpTransition {
  EpStep step;
  EpStates from;
  std::optional<EpState> to;  // nothing: the state stays
};

// A step that no row has for a state is not allowed in it. No two rows of a step have a state in common.
inline constexpr EpTransition kEpTransitions[] = {
    {EpStep::connect, {EpState::unconnected}, EpState::active_connection_pending},
    {EpStep::duplicate, {EpState::connected}, {}},
    {EpStep::modify_zone, {EpState::unconnected, EpState::tentative_connection_pending}, {}},
    {EpStep::modify_parts,
     {EpState::unconnected, EpState::reserved, EpState::passive_connection_pending,
      EpState::tentative_connection_pending},
     {}},
    {EpStep::modify_named, {EpState::unconnected}, {}},
    {EpStep::post_request, {EpState::connected, EpState::disconnected}, {}},  // flushed at once in the latter
    {EpStep::disconnect, {EpState::connected}, EpState::disconnect_pending},
    // What is under way already ends with a report; what has ended has nothing to end (EP-DISC-12).
    {EpStep::disconnect,
     {EpState::active_connection_pending, EpState::completion_pending, EpState::disconnect_pending,
      EpState::disconnected},
     {}},
    {EpStep::reset, {EpState::disconnected}, EpState::unconnected},
    {EpStep::reset, {EpState::unconnected}, {}},  // EP-RESET-2
    {EpStep::free,
     {EpState::unconnected, EpState::active_connection_pending, EpState::completion_pending, EpState::connected,
      EpState::disconnect_pending, EpState::disconnected},
     {}},

    {EpStep::reserve, {EpState::unconnected}, EpState::reserved},
    {EpStep::release, {EpState::reserved}, EpState::unconnected},  // RSP-FREE-1
    {EpStep::make_tentative, {EpState::unconnected}, EpState::tentative_connection_pending},
    {EpStep::offer, {EpState::reserved}, EpState::passive_connection_pending},            // EP-SM-15
    {EpStep::take_offer_back, {EpState::passive_connection_pending}, EpState::reserved},  // for the next request
    {EpStep::accept,
     {EpState::unconnected, EpState::passive_connection_pending, EpState::tentative_connection_pending},
     EpState::completion_pending},
    {EpStep::reject, {EpState::passive_connection_pending}, EpState::unconnected},  // CR-REJ-3

    {EpStep::established,
     {EpState::active_connection_pending, EpState::completion_pending},
     EpState::connected},                                                                   // EP-SM-10, 16
    {EpStep::connect_failed, {EpState::active_connection_pending}, EpState::disconnected},  // EP-SM-11 to 14
    {EpStep::accept_failed, {EpState::completion_pending}, EpState::disconnected},          // EP-SM-17
    {EpStep::closed,
     {EpState::active_connection_pending, EpState::completion_pending, EpState::connected, EpState::disconnect_pending},
     EpState::disconnected},  // EP-SM-18 to 21
};

// The row of a step for a state; null: not allowed.
constexpr const EpTransition* find_transition(EpState state, EpStep step) {
  for (const EpTransition& transition : kEpTransitions) {
    if (transition.step == step && transition.from.contain(state)) return &transition;
  }
  return nullptr;
}
constexpr bool allows(EpState state, EpStep step) {
  return find_transition(state, step) != nullptr;
}

// All that allow a step, for where looking through the table takes too long.
consteval EpStates states_that_allow(EpStep step) {
  EpStates states{};
  for (const EpTransition& transition : kEpTransitions) {
    if (transition.step == step) states.add(transition.from);
  }
  return states;
}

// The state that an endpoint is in. From any thread; steps are taken with the engine held.
class EpStateMachine {
 public:
  EpState state() const { return state_.load(std::memory_order_acquire); }
  bool allows(EpStep step) const { return dapl::allows(state(), step); }
  bool open_to_requests() const {
    constexpr EpStates kOpen = states_that_allow(EpStep::post_request);
    return kOpen.contain(state());
  }
  // Takes the step, before its event can be reaped (EP-SM-24). False: the state does not allow it, and stays.
  bool apply(EpStep step);
  // Back to the state before a step that turned out to be impossible.
  void undo(EpState before) { state_.store(before, std::memory_order_release); }
  Error wrong_state(const char* call) const;

 private:
  std::atomic<EpState> state_{EpState::unconnected};
};

}  // namespace anydat::dapl
