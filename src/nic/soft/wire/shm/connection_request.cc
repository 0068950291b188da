// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/connection_request.h"

#include <algorithm>
#include <new>

#include "nic/soft/adapter.h"
#include "nic/soft/queue_pair.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/link.h"
#include "nic/soft/wire/shm/meeting.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

ShmRequest::ShmRequest(Fabric& fabric, std::shared_ptr<Link> link, const ConnectBody& body)
    : fabric_(fabric), link_(std::move(link)), body_(body) {
  link_->users().add(*this);
}

ShmRequest::~ShmRequest() {
  if (!answered_) answer(RejectReason::nobody_listens);
  link_->users().remove(*this);
}

void ShmRequest::answer(RejectReason reason, std::span<const std::byte> private_data) {
  answered_ = true;
  if (gone_) return;
  link_->users().remove(*this);
  link_->sender().send_control(CellKind::reject, body_.connection, static_cast<std::uint32_t>(reason), private_data);
}

Status ShmRequest::hand_off(ConnQual qual) {
  if (ListenerEvents* listener = fabric_.listener(qual)) {
    ConnectBody body = body_;
    body.qual = qual;
    auto request = std::make_unique<ShmRequest>(fabric_, link_, body);  // takes our place at the link
    answered_ = true;
    if (gone_) {
      link_->users().remove(*request);
      request->requester_gone();
    }
    fabric_.deliver(std::move(request), *listener);
    return Status::ok;
  }
  // Another process, or another instance of the adapter: the active side asks there itself, once it is known that a
  // process listens there.
  const std::string name = service_name(fabric_.adapter().scope(), qual);
  if (const Status status = probe_listener(name); status != Status::ok) return status;
  answered_ = true;
  if (gone_) return Status::ok;
  const ServicePointBody body = fabric_.name_of(qual);
  link_->users().remove(*this);
  link_->sender().send_control(CellKind::redirect, body_.connection, 0, std::as_bytes(std::span(&body, 1)));
  return Status::ok;
}

void ShmRequest::accept(QueuePair& queue_pair, std::span<const std::byte> private_data) {
  auto& soft = static_cast<SoftQueuePair&>(queue_pair);
  if (!soft.sends().make_room()) throw std::bad_alloc();
  auto stream = std::make_unique<ShmStream>(fabric_, soft);
  stream->attach(link_);
  answered_ = true;
  stream->set_remote(body_.connection, body_.rdma);
  AcceptBody body{};
  body.at = fabric_.name_of(body_.qual);
  body.connection = stream->name();
  body.rdma = stream->negotiation().terms();
  body.private_data_bytes = static_cast<std::uint32_t>(private_data.size());
  std::copy(private_data.begin(), private_data.end(), body.private_data);
  soft.connection().establishment().accept(std::move(stream),
                                           {body_.local, body_.remote, body_.qual, body_.remote_port, {}});
  link_->users().remove(*this);
  if (gone_ || link_->dead()) {
    soft.connection().establishment().accept_failed();  // CR-ACC-5
    return;
  }
  link_->sender().send_control(CellKind::accept, body_.connection, 0, std::as_bytes(std::span(&body, 1)));
}

}  // namespace anydat::nic::soft::shm
