// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/service_point.h"

#include <new>

#include "dapl/cr.h"
#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/qualifier.h"

namespace anydat::dapl {

// ---- what both have in common

ServicePoint::ServicePoint(Ia& ia, HandleType type, Evd& evd) : Object(ia, type), evd_(evd) {
  evd_.change_streams([](StreamCounts& counts) { ++counts.others; });
}

Error ServicePoint::check(const char* call, const Evd& evd) {
  if (!evd.carries(evd_flag::kConnectionRequest)) {
    return fail(Code::invalid_handle, Detail::handle_evd_cr, "{}: the EVD lacks DAT_EVD_CR_FLAG", call);
  }
  StreamCounts counts = evd.streams();
  ++counts.others;
  if (!evd.permits(counts)) {
    return fail(Argument::evd_handle,
                "{}: the EVD is fed by UNSIGNALLED or SOLICITED_WAIT completions, which go with no other stream", call);
  }
  return kSuccess;
}

Error ServicePoint::listen(const char* call, nic::ConnQual qual) {
  nic::Status status = nic::Status::ok;
  listener_ = ia().nic().listen(qual, *this, status);
  switch (status) {
    case nic::Status::ok:
      qual_ = listener_->qual();
      return kSuccess;
    case nic::Status::in_use:
      return fail(Code::conn_qual_in_use, Detail::none, "{}: somebody listens on {} already", call,
                  static_cast<std::uint64_t>(qual));
    case nic::Status::none_free:
      if (qual == 0) return fail(Code::conn_qual_unavailable, Detail::none, "{}: no free connection qualifier", call);
      return fail(Code::conn_qual_unavailable, Detail::none, "{}: all ports that may stand for {} are taken", call,
                  static_cast<std::uint64_t>(qual));
    case nic::Status::denied:
      return fail(Code::conn_qual_unavailable, Detail::none, "{}: {} needs a privilege", call,
                  static_cast<std::uint64_t>(qual));
    default:
      return fail(Code::insufficient_resources, Detail::device, "{}: no descriptor to listen with", call);
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
  if (ep) ep->offer(*request, qual_);
  Cr* cr = ia().adopt(std::make_unique<Cr>(ia(), std::move(request), ep));
  if (cr) {
    Event event{};
    event.kind = EventKind::connection_request;
    event.object = cr->handle();
    event.qualifier = qual_;
    event.service_point = handle();
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
  evd_.change_streams([](StreamCounts& counts) { --counts.others; });
}

// ---- public service points

Error Psp::create(Ia& ia, nic::ConnQual qual, nic::ConnQual* any, Evd& evd, PspFlags flags, Handle* handle) {
  const char* call = any ? "dat_psp_create_any" : "dat_psp_create";
  if (!handle) return fail(Argument::psp_handle, "{}: psp_handle is NULL", call);
  if (flags != PspFlags::consumer && flags != PspFlags::provider) {
    return fail(Argument::psp_flags, "{}: psp_flags {:#x} are neither CONSUMER nor PROVIDER", call,
                static_cast<unsigned>(flags));
  }
  base::Guard guard(ia.engine());
  if (!any) {
    if (const Error error = check_qualifier(call, qual, Argument::conn_qual)) return error;
  }
  if (const Error error = check(call, evd)) return error;
  Psp* psp = ia.adopt(std::make_unique<Psp>(ia, evd, flags));
  if (!psp) return ia.out_of(call, "service points", Detail::device);
  if (const Error error = psp->listen(call, any ? 0 : qual)) {
    ia.retire(*psp);
    return error;
  }
  if (any) *any = psp->qual_;
  *handle = psp->handle();
  return kSuccess;
}

PspParameters Psp::query() const {
  return {ia().handle(), qual_, evd_.handle(), flags_};
}

Error Psp::free() {
  ia().retire(*this);
  return kSuccess;
}

bool Psp::provide_endpoint(Ep*& ep) {
  if (flags_ == PspFlags::consumer) return true;
  ep = Ep::create_tentative(ia());
  return ep != nullptr;
}

// ---- reserved service points

Error Rsp::create(Ia& ia, nic::ConnQual qual, Ep* ep, Evd& evd, Handle* handle) {
  const char* call = "dat_rsp_create";
  if (!handle) return fail(Argument::rsp_handle, "{}: rsp_handle is NULL", call);
  base::Guard guard(ia.engine());
  if (const Error error = check_qualifier(call, qual, Argument::conn_qual)) return error;
  if (const Error error = check(call, evd)) return error;
  if (ep && !ep->allows(EpStep::reserve)) return ep->wrong_state(call);
  Rsp* rsp = ia.adopt(std::make_unique<Rsp>(ia, evd, ep));
  if (!rsp) return ia.out_of(call, "service points", Detail::device);
  if (const Error error = rsp->listen(call, qual)) {
    rsp->ep_ = nullptr;
    ia.retire(*rsp);
    return error;
  }
  if (ep) {
    ep->apply(EpStep::reserve);
    rsp->shown_ep_ = ep->handle();
  }
  *handle = rsp->handle();
  return kSuccess;
}

RspParameters Rsp::query() const {
  return {ia().handle(), qual_, evd_.handle(), shown_ep_};
}

Error Rsp::free() {
  ia().retire(*this);
  return kSuccess;
}

void Rsp::shut_down() {
  // RSP-FREE-1, RSP-FREE-2
  if (!used_ && ep_) ep_->apply(EpStep::release);
  ServicePoint::shut_down();
}

bool Rsp::provide_endpoint(Ep*& ep) {
  if (used_) return false;  // RSP-CREATE-6
  ep = ep_ ? ep_ : Ep::create_tentative(ia());
  if (ep_) ep_->apply(EpStep::offer);
  return ep != nullptr;
}

void Rsp::take_back(Ep& ep) {
  if (&ep != ep_) return ServicePoint::take_back(ep);
  ep_->apply(EpStep::take_offer_back);
}

void Rsp::request_delivered() {
  used_ = true;
  listener_->stop();  // RSP-CREATE-4
  ep_ = nullptr;
}

}  // namespace anydat::dapl
