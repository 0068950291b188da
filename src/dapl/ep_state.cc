// SPDX-License-Identifier: BSD-3-Clause
// Names of endpoint states, and how a refused call names the state it met (EP-SM-27).
#include "dapl/ep_state.h"

namespace anydat::dapl {

const char* name_of(EpState state) {
  switch (state) {
    case EpState::unconnected:
      return "UNCONNECTED";
    case EpState::unconfigured_unconnected:
      return "UNCONFIGURED_UNCONNECTED";
    case EpState::reserved:
      return "RESERVED";
    case EpState::unconfigured_reserved:
      return "UNCONFIGURED_RESERVED";
    case EpState::passive_connection_pending:
      return "PASSIVE_CONNECTION_PENDING";
    case EpState::unconfigured_passive:
      return "UNCONFIGURED_PASSIVE";
    case EpState::active_connection_pending:
      return "ACTIVE_CONNECTION_PENDING";
    case EpState::tentative_connection_pending:
      return "TENTATIVE_CONNECTION_PENDING";
    case EpState::unconfigured_tentative:
      return "UNCONFIGURED_TENTATIVE";
    case EpState::connected:
      return "CONNECTED";
    case EpState::disconnect_pending:
      return "DISCONNECT_PENDING";
    case EpState::disconnected:
      return "DISCONNECTED";
    case EpState::completion_pending:
      return "COMPLETION_PENDING";
  }
  return "unknown";
}

Detail detail_of(EpState state) {
  switch (state) {
    case EpState::unconnected:
      return Detail::ep_unconnected;
    case EpState::reserved:
      return Detail::ep_reserved;
    case EpState::passive_connection_pending:
      return Detail::ep_passive_pending;
    case EpState::active_connection_pending:
      return Detail::ep_active_pending;
    case EpState::tentative_connection_pending:
      return Detail::ep_tentative_pending;
    case EpState::connected:
      return Detail::ep_connected;
    case EpState::disconnect_pending:
      return Detail::ep_disconnect_pending;
    case EpState::disconnected:
      return Detail::ep_disconnected;
    case EpState::completion_pending:
      return Detail::ep_completion_pending;
    default:
      return Detail::none;
  }
}

bool EpStateMachine::apply(EpStep step) {
  const EpTransition* const transition = find_transition(state(), step);
  if (!transition) return false;
  if (transition->to) state_.store(*transition->to, std::memory_order_release);
  return true;
}

Error EpStateMachine::wrong_state(const char* call) const {
  const EpState now = state();
  return fail(Code::invalid_state, detail_of(now), "{}: the endpoint is in state {}", call, name_of(now));
}

}  // namespace anydat::dapl
