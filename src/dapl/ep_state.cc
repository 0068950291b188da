// SPDX-License-Identifier: BSD-3-Clause
// Names of endpoint states, and how a refused call names the state it met (EP-SM-27).
#include "dapl/ep.h"
#include "dapl/error.h"

namespace anydat::dapl {

const char* name_of(DAT_EP_STATE state) {
  switch (state) {
    case DAT_EP_STATE_UNCONNECTED:
      return "UNCONNECTED";
    case DAT_EP_STATE_UNCONFIGURED_UNCONNECTED:
      return "UNCONFIGURED_UNCONNECTED";
    case DAT_EP_STATE_RESERVED:
      return "RESERVED";
    case DAT_EP_STATE_UNCONFIGURED_RESERVED:
      return "UNCONFIGURED_RESERVED";
    case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
      return "PASSIVE_CONNECTION_PENDING";
    case DAT_EP_STATE_UNCONFIGURED_PASSIVE:
      return "UNCONFIGURED_PASSIVE";
    case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
      return "ACTIVE_CONNECTION_PENDING";
    case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING:
      return "TENTATIVE_CONNECTION_PENDING";
    case DAT_EP_STATE_UNCONFIGURED_TENTATIVE:
      return "UNCONFIGURED_TENTATIVE";
    case DAT_EP_STATE_CONNECTED:
      return "CONNECTED";
    case DAT_EP_STATE_DISCONNECT_PENDING:
      return "DISCONNECT_PENDING";
    case DAT_EP_STATE_DISCONNECTED:
      return "DISCONNECTED";
    case DAT_EP_STATE_COMPLETION_PENDING:
      return "COMPLETION_PENDING";
  }
  return "unknown";
}

DAT_RETURN subtype_of(DAT_EP_STATE state) {
  switch (state) {
    case DAT_EP_STATE_UNCONNECTED:
      return DAT_INVALID_STATE_EP_UNCONNECTED;
    case DAT_EP_STATE_RESERVED:
      return DAT_INVALID_STATE_EP_RESERVED;
    case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
      return DAT_INVALID_STATE_EP_PASSCONNPENDING;
    case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
      return DAT_INVALID_STATE_EP_ACTCONNPENDING;
    case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING:
      return DAT_INVALID_STATE_EP_TENTCONNPENDING;
    case DAT_EP_STATE_CONNECTED:
      return DAT_INVALID_STATE_EP_CONNECTED;
    case DAT_EP_STATE_DISCONNECT_PENDING:
      return DAT_INVALID_STATE_EP_DISCPENDING;
    case DAT_EP_STATE_DISCONNECTED:
      return DAT_INVALID_STATE_EP_DISCONNECTED;
    case DAT_EP_STATE_COMPLETION_PENDING:
      return DAT_INVALID_STATE_EP_COMPLPENDING;
    default:
      return DAT_NO_SUBTYPE;
  }
}

DAT_RETURN Ep::wrong_state(const char* call) const {
  const DAT_EP_STATE now = state();
  return fail(DAT_INVALID_STATE, subtype_of(now), "{}: the endpoint is in state {}", call, name_of(now));
}

}  // namespace anydat::dapl
