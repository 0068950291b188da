// SPDX-License-Identifier: BSD-3-Clause
#include "srq_states.h"

#include <iostream>
#include <stdexcept>

namespace anydat::test {

std::vector<DAT_EP_STATE> reachable_states(const Ia& ia) {
  std::vector<DAT_EP_STATE> states(kReachableStates.begin(), kReachableStates.end());
  if (!messages_wait(ia)) {
    std::cout << "without DISCONNECT_PENDING: no Send can be kept from completing\n";
    std::erase(states, DAT_EP_STATE_DISCONNECT_PENDING);
  }
  return states;
}

EpInState::EpInState(Side& server, Side& client, const Srq& srq, DAT_EP_STATE state)
    : recv_(server.ia, DAT_EVD_DTO_FLAG),
      request_(server.ia, DAT_EVD_DTO_FLAG),
      connect_(server.ia, DAT_EVD_CONNECTION_FLAG),
      peer_connect_(client.ia, DAT_EVD_CONNECTION_FLAG),
      requests_(state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING ? client.ia : server.ia, DAT_EVD_CR_FLAG),
      memory_(server.ia, server.pz, 64 * 1024),
      ep_(server.ia, server.pz, {.recv = recv_.get(), .request = request_.get(), .connect = connect_.get()}, srq,
          default_srq_ep_attr()),
      peer_(client.ia, client.pz,
            {.recv = client.recv.get(), .request = client.request.get(), .connect = peer_connect_.get()},
            default_ep_attr()) {
  switch (state) {
    case DAT_EP_STATE_UNCONNECTED:
      break;
    case DAT_EP_STATE_RESERVED:
      reserve(server);
      break;
    case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING: {
      reserve(server);
      DAT_RSP_PARAM param{};
      require(dat_rsp_query(rsp_.get(), DAT_RSP_FIELD_ALL, &param), "dat_rsp_query");
      pending_ = request_from(peer_, param.conn_qual);
      break;
    }
    case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
      psp_.emplace(client.ia, requests_);
      pending_ = request_from(ep_, psp_->qualifier());
      break;
    case DAT_EP_STATE_CONNECTED:
      connect_pair(server, ep_.get(), peer_.get());
      break;
    case DAT_EP_STATE_DISCONNECT_PENDING: {
      // The peer has no receive buffer, so a Send too large to travel at once cannot finish, and the graceful
      // disconnect waits for it.
      connect_pair(server, ep_.get(), peer_.get());
      DAT_LMR_TRIPLET segment = memory_.triplet();
      require(dat_ep_post_send(ep_.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
      require(dat_ep_disconnect(ep_.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
      break;
    }
    case DAT_EP_STATE_DISCONNECTED:
      connect_pair(server, ep_.get(), peer_.get());
      require(dat_ep_disconnect(ep_.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
      expect_event(connect_.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
      break;
    default:
      throw std::runtime_error("no way into this endpoint state");
  }
}

EpInState::~EpInState() {
  if (pending_ != DAT_HANDLE_NULL) {
    EXPECT_THAT(dat_cr_reject(pending_), Succeeds());
  }
  rsp_.reset();
}

void EpInState::reserve(Side& server) {
  // A qualifier that was free a moment ago.
  const DAT_CONN_QUAL qualifier = Psp(server.ia, requests_).qualifier();
  DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
  require(dat_rsp_create(server.ia.get(), qualifier, ep_.get(), requests_.get(), &rsp), "dat_rsp_create");
  rsp_ = Owner<dat_rsp_free>(rsp);
}

DAT_CR_HANDLE EpInState::request_from(const Ep& ep, DAT_CONN_QUAL qualifier) {
  require(dat_ep_connect(ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  return expect_event(requests_.get(), DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
}

}  // namespace anydat::test
