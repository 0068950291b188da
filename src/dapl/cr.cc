// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/cr.h"

#include <algorithm>
#include <new>

#include "dapl/ep.h"
#include "dapl/error.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/private_data.h"
#include "dapl/qualifier.h"
#include "dapl/ranges.h"

namespace anydat::dapl {

DAT_RETURN Cr::query(DAT_CR_PARAM_MASK mask, DAT_CR_PARAM* param) {
  if (const DAT_RETURN rc = check_query("dat_cr_query", mask, DAT_CR_FIELD_ALL, param)) return rc;
  // Peers that are no DAT programs may send more than any DAT program can (ATTR-1).
  std::span<const std::byte> data = request_->private_data();
  data = data.first(std::min<std::size_t>(data.size(), ia().nic().info().private_data_max));
  param->remote_ia_address_ptr = const_cast<DAT_IA_ADDRESS_PTR>(&request_->remote_address().generic);
  param->remote_port_qual = request_->remote_port();
  param->private_data_size = static_cast<DAT_COUNT>(data.size());
  param->private_data = const_cast<std::byte*>(data.data());
  param->local_ep_handle = ep_ ? ep_->handle() : DAT_HANDLE_NULL;
  return DAT_SUCCESS;
}

DAT_RETURN Cr::accept(DAT_EP_HANDLE given, DAT_COUNT private_data_size, const void* private_data) {
  const char* call = "dat_cr_accept";
  std::span<const std::byte> data;
  if (const DAT_RETURN rc =
          read_private_data(call, ia().nic(), private_data_size, private_data, DAT_INVALID_ARG3, data))
    return rc;
  // CR-ACC-7
  if ((given != DAT_HANDLE_NULL) == (ep_ != nullptr)) {
    return fail(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
                "{}: the request {} an endpoint of its own, and ep_handle is {}", call, ep_ ? "has" : "has not",
                given ? "given" : "NULL");
  }
  Ep* ep = ep_ ? ep_ : lookup<Ep>(given);
  if (!ep || &ep->ia() != &ia()) {
    return fail(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, "{}: ep_handle {} is no live endpoint of this IA", call,
                given);
  }
  if (!ep_ && ep->state() != DAT_EP_STATE_UNCONNECTED) return ep->wrong_state(call);
  if (!ep->ready_to_connect()) {
    return fail(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, "{}: the endpoint lacks a {}", call,
                ep->parts().pz ? "connect EVD" : "protection zone");
  }
  const DAT_EP_STATE before = ep->state();
  ep->set_state(DAT_EP_STATE_COMPLETION_PENDING);
  try {
    request_->accept(ep->queue_pair(), data);
  } catch (const std::bad_alloc&) {
    ep->set_state(before);
    return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY, "{}: no memory for the connection", call);
  }
  ep_ = nullptr;
  ia().retire(*this);
  return DAT_SUCCESS;
}

DAT_RETURN Cr::reject() {
  request_->reject({});
  ia().retire(*this);
  return DAT_SUCCESS;
}

DAT_RETURN Cr::handoff(DAT_CONN_QUAL qual) {
  const char* call = "dat_cr_handoff";
  if (const DAT_RETURN rc = check_qualifier(call, qual, DAT_INVALID_ARG2)) return rc;
  switch (request_->hand_off(qual)) {
    case nic::Status::ok:
      break;
    case nic::Status::unreachable:
      return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: no service point of {} listens on {}", call,
                  ia().name(), static_cast<std::uint64_t>(qual));
    default:
      return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE, "{}: no descriptor to find out who listens", call);
  }
  ia().retire(*this);
  return DAT_SUCCESS;
}

void Cr::shut_down() {
  release_endpoint();
  request_.reset();
}

// CR-REJ-3, CR-REJ-4
void Cr::release_endpoint() {
  if (!ep_) return;
  if (ep_->state() == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
    ia().retire(*ep_);
  } else if (ep_->state() == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING) {
    ep_->set_state(DAT_EP_STATE_UNCONNECTED);
  }
  ep_ = nullptr;
}

}  // namespace anydat::dapl
