// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/negotiation.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

RdmaTerms Negotiation::terms() const {
  return {stream_.queue_pair().memory().zone(), stream_.queue_pair().scope(), stream_.queue_pair().reads_in(),
          stream_.queue_pair().takes()};
}

void Negotiation::ask() {
  stream_.link()->sender().send_control(CellKind::connect, 0, 0, std::as_bytes(std::span(request_.get(), 1)));
}

bool Negotiation::awaits_ready_from(std::uint32_t remote) const {
  return stream_.remote() == remote && stream_.queue_pair().state() == ConnectionState::accepting;
}

bool Negotiation::reject_arrived(const CellView& view) {
  if (view.length > std::min<std::size_t>(view.body_room, kPrivateDataMax)) return false;
  std::array<std::byte, kPrivateDataMax> data;
  std::copy_n(view.body, view.length, data.begin());
  stream_.set_over();
  Establishment& establishment = stream_.queue_pair().connection().establishment();
  if (view.aux == static_cast<std::uint32_t>(RejectReason::by_consumer)) {
    establishment.failed(ConnectFailure::rejected_by_peer, std::span(data).first(view.length));
  } else {
    establishment.failed(ConnectFailure::refused);
  }
  return true;
}

bool Negotiation::accept_arrived(const CellView& view) {
  AcceptBody body;
  if (view.body_room < sizeof body) return false;
  std::memcpy(&body, view.body, sizeof body);
  if (body.private_data_bytes > sizeof body.private_data || body.at.scope[kScopeBytes - 1] != '\0') return false;
  if (stream_.over() || stream_.queue_pair().state() != ConnectionState::connecting) {
    // EP-CONN-9: too late. The other side learns that its accept failed.
    stream_.link()->sender().send_control(CellKind::close, body.connection,
                                          static_cast<std::uint32_t>(CloseReason::abrupt));
    return true;
  }
  stream_.set_remote(body.connection, body.rdma);
  request_.reset();
  stream_.link()->sender().send_control(CellKind::ready, stream_.remote(), 0);
  stream_.rdma().wait_for_word();
  stream_.queue_pair().connection().set_reached({body.at.qual, body.at.scope});
  stream_.queue_pair().connection().establishment().done({body.private_data, body.private_data_bytes});
  return true;
}

// CR-HO-3: the queue pair does not notice, and its deadline keeps running.
bool Negotiation::redirect_arrived(const CellView& view) {
  ServicePointBody body;
  if (view.body_room < sizeof body) return false;
  std::memcpy(&body, view.body, sizeof body);
  if (body.scope[kScopeBytes - 1] != '\0') return false;
  bool asks = false;
  try {
    const std::string scope = body.scope;
    std::vector<std::string> scopes;
    // Only a node that serves the address that was asked for.
    if (stream_.fabric().adapter().scopes_of(request_->local, scopes) != Status::ok) {
      asks = false;
    } else if (scopes.empty()) {
      asks = stream_.fabric().is_published(request_->local, body.qual);
      if (asks) stream_.fabric().attempt(stream_, {}, request_->local, body.qual);
    } else {
      asks = std::find(scopes.begin(), scopes.end(), scope) != scopes.end();
      if (asks) stream_.fabric().attempt(stream_, {scope}, request_->local, body.qual);
    }
  } catch (const std::bad_alloc&) {
    asks = false;
  }
  request_->qual = body.qual;
  stream_.detach();
  if (!asks) {
    stream_.set_over();
    stream_.queue_pair().connection().establishment().failed(ConnectFailure::refused);
  }
  return true;
}

// Nothing does by shared memory; perhaps a program of another user does, or of another kind.
void Negotiation::nobody_listens() {
  stream_.set_over();
  const ConnectBody asked = *request_;
  stream_.queue_pair().connection().establishment().try_another_wire(
      {asked.local, asked.qual, os::kForever, {asked.private_data, asked.private_data_bytes}, asked.qos, {}});
}

}  // namespace anydat::nic::soft::shm
