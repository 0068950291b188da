// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/cr.h"

#include <algorithm>
#include <new>

#include "dapl/check_qualifier.h"
#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/private_data.h"

namespace anydat::dapl {

Cr::Cr(Ia& ia, std::unique_ptr<nic::ConnectionRequest> request, Ep* ep, const Comm& comm)
    : Object(ia, kType),
      local_address_(request->local_address()),
      truncated_(request->private_data().size() > ia.nic().info().private_data_max),
      request_(std::move(request)),
      ep_(ep),
      comm_(comm) {}

CrParameters Cr::query() const {
  // Peers that are no DAT programs may send more than any DAT program can (ATTR-1).
  std::span<const std::byte> data = request_->private_data();
  data = data.first(std::min<std::size_t>(data.size(), ia().nic().info().private_data_max));
  return {&request_->remote_address().generic, request_->remote_port(), static_cast<Count>(data.size()), data.data(),
          ep_ ? ep_->handle() : nullptr};
}

Error Cr::accept(Handle given, Count private_data_size, const void* private_data) {
  const char* call = "dat_cr_accept";
  std::span<const std::byte> data;
  if (const Error error =
          read_private_data(call, ia().nic().info().private_data_max, private_data_size, private_data, data))
    return error;
  // CR-ACC-7
  if ((given != nullptr) == (ep_ != nullptr)) {
    return fail(Code::invalid_handle, Detail::handle_ep,
                "{}: the request {} an endpoint of its own, and ep_handle is {}", call, ep_ ? "has" : "has not",
                given ? "given" : "NULL");
  }
  Ep* ep = ep_ ? ep_ : lookup<Ep>(given);
  if (!ep || &ep->ia() != &ia()) {
    return fail(Code::invalid_handle, Detail::handle_ep, "{}: ep_handle {} is no live endpoint of this IA", call,
                given);
  }
  const EpState before = ep->state();
  if (!ep_ && before != EpState::unconnected) return ep->state_machine().wrong_state(call);
  if (!ep->configuration().ready_to_connect()) {
    return fail(Code::invalid_handle, Detail::handle_ep, "{}: the endpoint lacks a {}", call,
                ep->configuration().parts().pz ? "connect EVD" : "protection zone");
  }
  if (!ep->state_machine().apply(EpStep::accept)) return ep->state_machine().wrong_state(call);
  try {
    request_->accept(ep->queue_pair(), data);
  } catch (const std::bad_alloc&) {
    ep->state_machine().undo(before);
    return fail(Code::insufficient_resources, Detail::memory, "{}: no memory for the connection", call);
  }
  ia().counters().accepted.add();
  ep->connection().note_comm(comm_);
  ep_ = nullptr;
  ia().retire(*this);
  return kSuccess;
}

Error Cr::reject(Count private_data_size, const void* private_data) {
  std::span<const std::byte> data;
  if (const Error error =
          read_private_data("dat_cr_reject", ia().nic().info().reject_data_max, private_data_size, private_data, data))
    return error;
  request_->reject(data);
  ia().counters().rejected.add();
  ia().retire(*this);
  return kSuccess;
}

Error Cr::handoff(nic::ConnQual qual) {
  const char* call = "dat_cr_handoff";
  if (const Error error = check_qualifier(call, qual, Argument::handoff)) return error;
  switch (request_->hand_off(qual)) {
    case nic::Status::ok:
      break;
    case nic::Status::unreachable:
      return fail(Argument::handoff, "{}: no service point of {} listens on {}", call, ia().name(),
                  static_cast<std::uint64_t>(qual));
    default:
      return fail(Code::insufficient_resources, Detail::device, "{}: no descriptor to find out who listens", call);
  }
  ia().retire(*this);
  return kSuccess;
}

void Cr::shut_down() {
  release_endpoint();
  request_.reset();
}

// CR-REJ-3, CR-REJ-4
void Cr::release_endpoint() {
  if (!ep_) return;
  if (ep_->state() == EpState::tentative_connection_pending) {
    ia().retire(*ep_);
  } else {
    ep_->state_machine().apply(EpStep::reject);
  }
  ep_ = nullptr;
}

}  // namespace anydat::dapl
