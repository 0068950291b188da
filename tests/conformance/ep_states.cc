// SPDX-License-Identifier: BSD-3-Clause
#include "ep_states.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <stdexcept>

namespace anydat::test {

bool can_hold(const Ia& ia, DAT_EP_STATE state) {
  if (state == DAT_EP_STATE_DISCONNECT_PENDING && !messages_wait(ia)) {
    std::cout << "without DISCONNECT_PENDING: no Send can be kept from completing\n";
    return false;
  }
  if (state == DAT_EP_STATE_COMPLETION_PENDING && provider_attribute(ia, "ANYDAT_ACCEPT_COMPLETES") != "confirmed") {
    std::cout << "without COMPLETION_PENDING: the passive side is established by accepting\n";
    return false;
  }
  return true;
}

std::vector<DAT_EP_STATE> states_to_hold(const Ia& ia) {
  std::vector<DAT_EP_STATE> states;
  std::copy_if(kAllStates.begin(), kAllStates.end(), std::back_inserter(states),
               [&](DAT_EP_STATE state) { return can_hold(ia, state); });
  return states;
}

const char* state_name(DAT_EP_STATE state) {
  switch (state) {
    case DAT_EP_STATE_UNCONNECTED:
      return "UNCONNECTED";
    case DAT_EP_STATE_RESERVED:
      return "RESERVED";
    case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
      return "PASSIVE_CONNECTION_PENDING";
    case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING:
      return "TENTATIVE_CONNECTION_PENDING";
    case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
      return "ACTIVE_CONNECTION_PENDING";
    case DAT_EP_STATE_COMPLETION_PENDING:
      return "COMPLETION_PENDING";
    case DAT_EP_STATE_CONNECTED:
      return "CONNECTED";
    case DAT_EP_STATE_DISCONNECT_PENDING:
      return "DISCONNECT_PENDING";
    case DAT_EP_STATE_DISCONNECTED:
      return "DISCONNECTED";
    default:
      return "a state that is never reported";
  }
}

DAT_RETURN state_subtype(DAT_EP_STATE state) {
  switch (state) {
    case DAT_EP_STATE_UNCONNECTED:
      return DAT_INVALID_STATE_EP_UNCONNECTED;
    case DAT_EP_STATE_RESERVED:
      return DAT_INVALID_STATE_EP_RESERVED;
    case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
      return DAT_INVALID_STATE_EP_PASSCONNPENDING;
    case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING:
      return DAT_INVALID_STATE_EP_TENTCONNPENDING;
    case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
      return DAT_INVALID_STATE_EP_ACTCONNPENDING;
    case DAT_EP_STATE_COMPLETION_PENDING:
      return DAT_INVALID_STATE_EP_COMPLPENDING;
    case DAT_EP_STATE_CONNECTED:
      return DAT_INVALID_STATE_EP_CONNECTED;
    case DAT_EP_STATE_DISCONNECT_PENDING:
      return DAT_INVALID_STATE_EP_DISCPENDING;
    case DAT_EP_STATE_DISCONNECTED:
      return DAT_INVALID_STATE_EP_DISCONNECTED;
    default:
      throw std::runtime_error("no subtype for a state that is never reported");
  }
}

HeldEp::HeldEp(Side& server, Side& client, const Wire& wire, DAT_EP_STATE state, Way way, const Srq* srq)
    : server_(server),
      client_(client),
      wire_(wire),
      evds_(server),
      peer_evds_(client),
      requests_(server.ia, DAT_EVD_CR_FLAG),
      client_requests_(client.ia, DAT_EVD_CR_FLAG),
      large_(server.ia, server.pz, 256 * 1024),
      peer_(client.ia, client.pz, peer_evds_, default_ep_attr()) {
  if (state != DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
    create(srq);
  }
  switch (state) {
    case DAT_EP_STATE_UNCONNECTED:
      break;
    case DAT_EP_STATE_RESERVED:
      reserve();
      break;
    case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
      make_passive();
      break;
    case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING:
      make_tentative();
      break;
    case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
      make_active();
      break;
    case DAT_EP_STATE_COMPLETION_PENDING:
      make_completing(way);
      break;
    case DAT_EP_STATE_CONNECTED:
      make_connected(way);
      break;
    case DAT_EP_STATE_DISCONNECT_PENDING: {
      // The peer has no receive buffer, so the Send stays in progress and the graceful disconnect waits for it.
      make_connected(way);
      DAT_LMR_TRIPLET segment = large_.triplet();
      require(dat_ep_post_send(ep_, 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
      require(dat_ep_disconnect(ep_, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
      break;
    }
    case DAT_EP_STATE_DISCONNECTED:
      make_connected(way);
      require(dat_ep_disconnect(ep_, DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
      expect_event(evds_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
      break;
    default:
      throw std::runtime_error("no way into this endpoint state");
  }
  if (this->state() != state) {
    throw std::runtime_error(std::string("the endpoint should be ") + state_name(state) + " and is " +
                             state_name(this->state()));
  }
}

HeldEp::~HeldEp() {
  for (const DAT_CR_HANDLE request : {request_, request_made_}) {
    DAT_CR_PARAM param{};
    if (dat_cr_query(request, DAT_CR_FIELD_ALL, &param) == DAT_SUCCESS) {
      EXPECT_THAT(dat_cr_reject(request), Succeeds());
    }
  }
  rsp_.reset();
  if (exists()) {
    EXPECT_THAT(dat_ep_free(ep_), Succeeds());
  }
}

bool HeldEp::exists() const {
  return dat_ep_get_status(ep_, nullptr, nullptr, nullptr) == DAT_SUCCESS;
}

DAT_EP_PARAM HeldEp::query() const {
  DAT_EP_PARAM param{};
  require(dat_ep_query(ep_, DAT_EP_FIELD_ALL, &param), "dat_ep_query");
  return param;
}

void HeldEp::configure() {
  DAT_EP_PARAM param{};
  param.pz_handle = server_.pz.get();
  param.recv_evd_handle = evds_.recv.get();
  param.request_evd_handle = evds_.request.get();
  param.connect_evd_handle = evds_.connect.get();
  require(dat_ep_modify(ep_,
                        DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
                            DAT_EP_FIELD_CONNECT_EVD_HANDLE,
                        &param),
          "dat_ep_modify");
}

void HeldEp::create(const Srq* srq) {
  ep_ = srq == nullptr ? Ep(server_.ia, server_.pz, evds_, default_ep_attr()).release()
                       : Ep(server_.ia, server_.pz, evds_, *srq, default_srq_ep_attr()).release();
}

void HeldEp::reserve() {
  rsp_.emplace(server_, ep_, requests_.get());
}

void HeldEp::make_passive() {
  reserve();
  require(try_connect(peer_.get(), rsp_->qualifier()), "dat_ep_connect");
  request_ = expect_request(requests_.get()).cr_handle;
}

void HeldEp::make_tentative() {
  psp_.emplace(server_.ia, requests_.get(), DAT_PSP_PROVIDER_FLAG);
  require(try_connect(peer_.get(), psp_->qualifier()), "dat_ep_connect");
  request_ = expect_request(requests_.get()).cr_handle;
  ep_ = query_request(request_).local_ep_handle;
}

void HeldEp::make_active() {
  client_psp_.emplace(client_.ia, client_requests_.get());
  require(try_connect(ep_, client_psp_->qualifier()), "dat_ep_connect");
  request_made_ = expect_request(client_requests_.get()).cr_handle;
}

// Establishment needs the active side once more; it stands still.
void HeldEp::make_completing(Way way) {
  remote_.emplace(wire_);
  DAT_EP_HANDLE named = DAT_HANDLE_NULL;
  if (way == Way::kAcceptedThroughRsp) {
    reserve();
    remote_->connect(rsp_->qualifier());
  } else {
    psp_.emplace(server_.ia, requests_.get());
    remote_->connect(psp_->qualifier());
    named = ep_;
  }
  const DAT_CR_HANDLE request = expect_request(requests_.get()).cr_handle;
  remote_->stop();
  require(dat_cr_accept(request, named, 0, nullptr), "dat_cr_accept");
}

void HeldEp::make_connected(Way way) {
  if (way == Way::kAcceptedThroughRsp) {
    make_passive();
    require(dat_cr_accept(request_, DAT_HANDLE_NULL, 0, nullptr), "dat_cr_accept");
    request_ = DAT_HANDLE_NULL;
  } else {
    make_active();
    require(dat_cr_accept(request_made_, peer_.get(), 0, nullptr), "dat_cr_accept");
    request_made_ = DAT_HANDLE_NULL;
  }
  expect_event(evds_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(peer_evds_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
}

void EpStateTest::expect_unchanged(const HeldEp& ep, DAT_EP_STATE state, DAT_RETURN rc, Caller caller) {
  const testing::ScopedTrace trace(caller.file, caller.line, state_name(state));
  EXPECT_THAT(rc, Succeeds());
  ASSERT_TRUE(ep.exists());
  EXPECT_STREQ(state_name(ep.state()), state_name(state));
}

void EpStateTest::expect_refused(const HeldEp& ep, DAT_EP_STATE state, DAT_RETURN rc, Caller caller) {
  const testing::ScopedTrace trace(caller.file, caller.line, state_name(state));
  EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
  EXPECT_THAT(rc, HasSubtype(state_subtype(state)));
  ASSERT_TRUE(ep.exists());
  EXPECT_STREQ(state_name(ep.state()), state_name(state));
  for (const Evd* evd : {&ep.evds().recv, &ep.evds().request, &ep.evds().connect}) {
    EXPECT_FALSE(poll_event(evd->get())) << "a refused call was followed by an event";
  }
}

}  // namespace anydat::test
