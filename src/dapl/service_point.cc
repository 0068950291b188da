// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/service_point.h"

#include <new>

#include "dapl/cr.h"
#include "dapl/ep.h"
#include "dapl/error.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/qualifier.h"
#include "dapl/ranges.h"

namespace anydat::dapl {

// ---- what both have in common

ServicePoint::ServicePoint(Ia& ia, DAT_HANDLE_TYPE type, Evd& evd) : Object(ia, type), evd_(evd) {
  StreamCounts counts = evd_.streams();
  ++counts.others;
  evd_.set_streams(counts);
}

DAT_RETURN ServicePoint::check(const char* call, const Evd& evd) {
  if (!evd.carries(DAT_EVD_CR_FLAG)) {
    return fail(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR, "{}: the EVD lacks DAT_EVD_CR_FLAG", call);
  }
  StreamCounts counts = evd.streams();
  ++counts.others;
  if (!evd.permits(counts)) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
                "{}: the EVD is fed by UNSIGNALLED or SOLICITED_WAIT completions, which go with no other stream", call);
  }
  return DAT_SUCCESS;
}

DAT_RETURN ServicePoint::listen(const char* call, DAT_CONN_QUAL qual) {
  nic::Status status = nic::Status::ok;
  listener_ = ia().nic().listen(qual, *this, status);
  switch (status) {
    case nic::Status::ok:
      qual_ = listener_->qual();
      return DAT_SUCCESS;
    case nic::Status::in_use:
      return fail(DAT_CONN_QUAL_IN_USE, DAT_NO_SUBTYPE, "{}: somebody listens on {} already", call,
                  static_cast<std::uint64_t>(qual));
    case nic::Status::none_free:
      if (qual == 0) return fail(DAT_CONN_QUAL_UNAVAILABLE, DAT_NO_SUBTYPE, "{}: no free connection qualifier", call);
      return fail(DAT_CONN_QUAL_UNAVAILABLE, DAT_NO_SUBTYPE, "{}: all ports that may stand for {} are taken", call,
                  static_cast<std::uint64_t>(qual));
    case nic::Status::denied:
      return fail(DAT_CONN_QUAL_UNAVAILABLE, DAT_NO_SUBTYPE, "{}: {} needs a privilege", call,
                  static_cast<std::uint64_t>(qual));
    default:
      return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE, "{}: no descriptor to listen with", call);
  }
}

bool ServicePoint::on_request(std::unique_ptr<nic::ConnectionRequest>& request) {
  Ep* ep = nullptr;
  try {
    if (!provide_endpoint(ep)) return false;
    if (announce(request, ep)) return true;
  } catch (const std::bad_alloc&) {
    // As without a place for it.
  }
  if (ep) take_back(*ep);
  return false;
}

void ServicePoint::take_back(Ep& ep) {
  ia().retire(ep);
}

bool ServicePoint::announce(std::unique_ptr<nic::ConnectionRequest>& request, Ep* ep) {
  DAT_EVENT event{};
  event.event_number = DAT_CONNECTION_REQUEST_EVENT;
  event.evd_handle = evd_.handle();
  DAT_CR_ARRIVAL_EVENT_DATA& data = event.event_data.cr_arrival_event_data;
  data.sp_handle.psp_handle = handle();
  data.conn_qual = qual_;
  if (ep) ep->offer(*request, qual_);
  Cr* cr = ia().adopt(std::make_unique<Cr>(ia(), std::move(request), ep));
  if (cr) {
    data.cr_handle = cr->handle();
    data.local_ia_address_ptr = cr->local_address();
    if (evd_.push_request(event)) {
      request_delivered();
      return true;
    }
    request = cr->give_back();
    ia().retire(*cr);
  }
  return false;
}

void ServicePoint::shut_down() {
  listener_.reset();
  leave_evd();
}

void ServicePoint::leave_evd() {
  if (!feeds_evd_) return;
  feeds_evd_ = false;
  StreamCounts counts = evd_.streams();
  --counts.others;
  evd_.set_streams(counts);
}

// ---- public service points

DAT_RETURN Psp::create(Ia& ia, DAT_CONN_QUAL qual, DAT_CONN_QUAL* any, Evd& evd, DAT_PSP_FLAGS flags,
                       DAT_PSP_HANDLE* handle) {
  const char* call = any ? "dat_psp_create_any" : "dat_psp_create";
  if (!handle) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5, "{}: psp_handle is NULL", call);
  if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, "{}: psp_flags {:#x} are neither CONSUMER nor PROVIDER", call,
                static_cast<unsigned>(flags));
  }
  base::Guard guard(ia.engine());
  if (!any) {
    if (const DAT_RETURN rc = check_qualifier(call, qual, DAT_INVALID_ARG2)) return rc;
  }
  if (const DAT_RETURN rc = check(call, evd)) return rc;
  Psp* psp = ia.adopt(std::make_unique<Psp>(ia, evd, flags));
  if (!psp) return ia.out_of(call, "service points", DAT_RESOURCE_DEVICE);
  if (const DAT_RETURN rc = psp->listen(call, any ? 0 : qual)) {
    ia.retire(*psp);
    return rc;
  }
  if (any) *any = psp->qual_;
  *handle = psp->handle();
  return DAT_SUCCESS;
}

DAT_RETURN Psp::query(DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM* param) {
  if (const DAT_RETURN rc = check_query("dat_psp_query", mask, DAT_PSP_FIELD_ALL, param)) return rc;
  param->ia_handle = ia().handle();
  param->conn_qual = qual_;
  param->evd_handle = evd_.handle();
  param->psp_flags = flags_;
  return DAT_SUCCESS;
}

DAT_RETURN Psp::free() {
  ia().retire(*this);
  return DAT_SUCCESS;
}

bool Psp::provide_endpoint(Ep*& ep) {
  if (flags_ == DAT_PSP_CONSUMER_FLAG) return true;
  ep = Ep::create_tentative(ia());
  return ep != nullptr;
}

// ---- reserved service points

DAT_RETURN Rsp::create(Ia& ia, DAT_CONN_QUAL qual, Ep* ep, Evd& evd, DAT_RSP_HANDLE* handle) {
  const char* call = "dat_rsp_create";
  if (!handle) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5, "{}: rsp_handle is NULL", call);
  base::Guard guard(ia.engine());
  if (const DAT_RETURN rc = check_qualifier(call, qual, DAT_INVALID_ARG2)) return rc;
  if (const DAT_RETURN rc = check(call, evd)) return rc;
  if (ep && ep->state() != DAT_EP_STATE_UNCONNECTED) return ep->wrong_state(call);
  Rsp* rsp = ia.adopt(std::make_unique<Rsp>(ia, evd, ep));
  if (!rsp) return ia.out_of(call, "service points", DAT_RESOURCE_DEVICE);
  if (const DAT_RETURN rc = rsp->listen(call, qual)) {
    rsp->ep_ = nullptr;
    ia.retire(*rsp);
    return rc;
  }
  if (ep) {
    ep->set_state(DAT_EP_STATE_RESERVED);
    rsp->shown_ep_ = ep->handle();
  }
  *handle = rsp->handle();
  return DAT_SUCCESS;
}

DAT_RETURN Rsp::query(DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM* param) {
  if (const DAT_RETURN rc = check_query("dat_rsp_query", mask, DAT_RSP_FIELD_ALL, param)) return rc;
  param->ia_handle = ia().handle();
  param->conn_qual = qual_;
  param->evd_handle = evd_.handle();
  param->ep_handle = shown_ep_;
  return DAT_SUCCESS;
}

DAT_RETURN Rsp::free() {
  ia().retire(*this);
  return DAT_SUCCESS;
}

void Rsp::shut_down() {
  // RSP-FREE-1, RSP-FREE-2
  if (!used_ && ep_ && ep_->state() == DAT_EP_STATE_RESERVED) ep_->set_state(DAT_EP_STATE_UNCONNECTED);
  ServicePoint::shut_down();
}

bool Rsp::provide_endpoint(Ep*& ep) {
  if (used_) return false;  // RSP-CREATE-6
  ep = ep_ ? ep_ : Ep::create_tentative(ia());
  if (ep_) ep_->set_state(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);  // EP-SM-24: before the event
  return ep != nullptr;
}

void Rsp::take_back(Ep& ep) {
  if (&ep != ep_) return ServicePoint::take_back(ep);
  ep_->set_state(DAT_EP_STATE_RESERVED);  // it waits for the next request
}

void Rsp::request_delivered() {
  used_ = true;
  listener_->stop();  // RSP-CREATE-4
  ep_ = nullptr;
}

}  // namespace anydat::dapl
