// SPDX-License-Identifier: BSD-3-Clause
// SRQ endpoints in every state that a test can hold them in.
#pragma once

#include <array>
#include <optional>

#include "srq_fixture.h"
#include "support/properties.h"

namespace anydat::test {

// COMPLETION_PENDING passes too quickly to be held; TENTATIVE endpoints are the library's own and never have an SRQ.
inline constexpr std::array kReachableStates{
    DAT_EP_STATE_UNCONNECTED, DAT_EP_STATE_RESERVED,           DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
    DAT_EP_STATE_CONNECTED,   DAT_EP_STATE_DISCONNECT_PENDING, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,
    DAT_EP_STATE_DISCONNECTED};

// Those of them in which an endpoint over this adapter can be held; says which it leaves out and why.
std::vector<DAT_EP_STATE> reachable_states(const Ia& ia);

// An endpoint of `server` on `srq`, brought into `state`, with what keeps it there. It has EVDs of its own.
class EpInState {
 public:
  EpInState(Side& server, Side& client, const Srq& srq, DAT_EP_STATE state);
  ~EpInState();
  EpInState(const EpInState&) = delete;
  EpInState& operator=(const EpInState&) = delete;

  const Ep& get() const { return ep_; }
  // The connected peer, in the states that have one.
  const Ep& peer() const { return peer_; }
  DAT_EVD_HANDLE recv_evd() const { return recv_.get(); }

 private:
  void reserve(Side& server);
  // `ep` connects to `qualifier`; returns the request, which arrives on requests_.
  DAT_CR_HANDLE request_from(const Ep& ep, DAT_CONN_QUAL qualifier);

  Evd recv_;
  Evd request_;
  Evd connect_;
  Evd peer_connect_;
  Evd requests_;  // where connection requests to ep_ or to the point it connects to arrive
  Lmr memory_;
  std::optional<Psp> psp_;  // of the client: ep_ connects to it and is never answered
  Ep ep_;
  Ep peer_;
  Owner<dat_rsp_free> rsp_;
  DAT_CR_HANDLE pending_ = DAT_HANDLE_NULL;
};

}  // namespace anydat::test
