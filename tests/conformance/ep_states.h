// SPDX-License-Identifier: BSD-3-Clause
// Endpoints held in any of the nine states.
#pragma once

#include <array>
#include <optional>

#include "ep_fixture.h"
#include "support/properties.h"
#include "support/remote_peer.h"

namespace anydat::test {

inline constexpr std::array kAllStates{
    DAT_EP_STATE_UNCONNECTED,
    DAT_EP_STATE_RESERVED,
    DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
    DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
    DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,
    DAT_EP_STATE_COMPLETION_PENDING,
    DAT_EP_STATE_CONNECTED,
    DAT_EP_STATE_DISCONNECT_PENDING,
    DAT_EP_STATE_DISCONNECTED,
};

// Those of them in which a test can hold an endpoint over this adapter; says which it leaves out and why.
std::vector<DAT_EP_STATE> states_to_hold(const Ia& ia);
bool can_hold(const Ia& ia, DAT_EP_STATE state);

const char* state_name(DAT_EP_STATE state);
// Table 2.4: what DAT_INVALID_STATE carries for an endpoint in that state (EP-SM-27).
DAT_RETURN state_subtype(DAT_EP_STATE state);

// How an endpoint got beyond UNCONNECTED, in the states where there is a choice.
enum class Way { kConnected, kAcceptedThroughRsp };

// An endpoint of `server` in a given state, with EVDs of its own and with everything that keeps it there. Nothing of
// this depends on time, except that DISCONNECT_PENDING ends by itself when the library gives up on the peer
// (EP-DISC-18): use such an endpoint at once.
//
// The endpoint has a zone and EVDs, but in TENTATIVE_CONNECTION_PENDING, where the provider has made it (EP-QUERY-8).
class HeldEp {
 public:
  HeldEp(Side& server, Side& client, const Wire& wire, DAT_EP_STATE state, Way way = Way::kConnected,
         const Srq* srq = nullptr);
  ~HeldEp();
  HeldEp(const HeldEp&) = delete;
  HeldEp& operator=(const HeldEp&) = delete;

  DAT_EP_HANDLE get() const { return ep_; }
  bool exists() const;
  DAT_EP_STATE state() const { return state_of(ep_); }
  const OwnEvds& evds() const { return evds_; }
  DAT_EP_PARAM query() const;
  // Gives a provider-made endpoint the zone and the EVDs.
  void configure();

  // The pending request that names the endpoint: PASSIVE and TENTATIVE.
  DAT_CR_HANDLE request() const { return request_; }
  // RESERVED, PASSIVE, and what was accepted through it.
  DAT_RSP_HANDLE rsp() const { return rsp_ ? rsp_->get() : DAT_HANDLE_NULL; }
  DAT_RETURN free_rsp() { return rsp_->free(); }
  // The request that the endpoint has made and its peer does not answer: ACTIVE. It belongs to the client.
  DAT_CR_HANDLE request_made() const { return request_made_; }

  // Where the other side has asked for the connection: COMPLETION_PENDING.
  DAT_CONN_QUAL asked_at() const { return rsp_ ? rsp_->qualifier() : psp_->qualifier(); }

  // The other end: an endpoint of `client`, or, in COMPLETION_PENDING, of a process that stands still.
  const Ep& peer() const { return peer_; }
  const OwnEvds& peer_evds() const { return peer_evds_; }
  RemotePeer& remote() { return *remote_; }

 private:
  void create(const Srq* srq);
  void reserve();
  void make_passive();
  void make_tentative();
  void make_active();
  void make_completing(Way way);
  void make_connected(Way way);

  Side& server_;
  Side& client_;
  const Wire& wire_;
  OwnEvds evds_;
  OwnEvds peer_evds_;
  Evd requests_;         // of the server
  Evd client_requests_;  // of the client
  Lmr large_;
  std::optional<AnyPsp> psp_;         // of the server
  std::optional<AnyPsp> client_psp_;  // of the client
  Ep peer_;
  std::optional<RemotePeer> remote_;
  std::optional<Rsp> rsp_;
  DAT_EP_HANDLE ep_ = DAT_HANDLE_NULL;
  DAT_CR_HANDLE request_ = DAT_HANDLE_NULL;
  DAT_CR_HANDLE request_made_ = DAT_HANDLE_NULL;
};

// An endpoint-test that runs an operation in every state.
class EpStateTest : public EpTest {
 protected:
  // Succeeded, and the endpoint is still in `state`.
  static void expect_unchanged(const HeldEp& ep, DAT_EP_STATE state, DAT_RETURN rc, Caller caller = Caller::here());
  // DAT_INVALID_STATE with the subtype of `state`; nothing has changed, nothing was reported.
  static void expect_refused(const HeldEp& ep, DAT_EP_STATE state, DAT_RETURN rc, Caller caller = Caller::here());
};

}  // namespace anydat::test
