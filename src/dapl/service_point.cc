// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/service_point.h"

#include <netinet/in.h>

#include <cstring>
#include <new>

#include "dapl/check_qualifier.h"
#include "dapl/cr.h"
#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/ia.h"

namespace anydat::dapl {

// ---- what all have in common

ServicePoint::ServicePoint(Ia& ia, HandleType type, Evd& evd) : Object(ia, type), evd_(evd) {
  evd_.change_streams([](StreamCounts& counts) { ++counts.others; });
}

Error ServicePoint::check(const char* call, const Evd& evd) {
  if (!evd.alive()) return freed_meanwhile(call, "EVD", Detail::handle_evd_cr);
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

nic::Status ServicePoint::try_to_listen(nic::ConnQual qual) {
  nic::Status status = nic::Status::ok;
  listener_ = ia().nic().listen(qual, *this, status);
  if (status == nic::Status::ok) {
    qual_ = listener_->qual();
    ia().counters().listens.add();
  }
  return status;
}

Error ServicePoint::listen(const char* call, nic::ConnQual qual) {
  switch (try_to_listen(qual)) {
    case nic::Status::ok:
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
  IaCounters& counters = ia().counters();
  counters.requests_received.add();
  const bool delivered = deliver(request);
  (delivered ? counters.requests_delivered : counters.requests_refused).add();
  return delivered;
}

bool ServicePoint::deliver(std::unique_ptr<nic::ConnectionRequest>& request) {
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
  ia().abandon(ep);
}

bool ServicePoint::announce(std::unique_ptr<nic::ConnectionRequest>& request, Ep* ep) {
  if (ep) ep->connection().offer(*request, qual_);
  Cr* cr = ia().adopt(std::make_unique<Cr>(ia(), std::move(request), ep, comm()));
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
    ia().abandon(*cr);
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
  os::Guard guard(ia.engine());
  if (!any) {
    if (const Error error = check_qualifier(call, qual, Argument::conn_qual)) return error;
  }
  if (const Error error = check(call, evd)) return error;
  Psp* psp = ia.adopt(std::make_unique<Psp>(ia, evd, flags));
  if (!psp) return ia.out_of(call, "service points", Detail::device);
  if (const Error error = psp->listen(call, any ? 0 : qual)) {
    ia.abandon(*psp);
    return error;
  }
  if (any) {
    *any = psp->qual_;
    ia.counters().psps_with_any_qualifier.add();
  }
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

// ---- common service points

namespace {

// D2-CSP-2: the IA's address, or the wildcard of its family; the port is the Consumer's to choose.
Error read_local_address(const char* call, const Ia& ia, const Comm& comm, const sockaddr* given,
                         nic::Address& address) {
  address = {};
  if (given->sa_family != comm.domain) {
    return fail(Code::invalid_address, Detail::address_malformed, "{}: the address has family {}, and comm domain {}",
                call, given->sa_family, comm.domain);
  }
  const nic::Address& own = ia.description().address();
  const bool same_family = own.generic.sa_family == given->sa_family;
  bool good = false;
  if (given->sa_family == AF_INET) {
    std::memcpy(&address.v4, given, sizeof address.v4);
    const in_addr_t wanted = address.v4.sin_addr.s_addr;
    good = wanted == htonl(INADDR_ANY) || (same_family && wanted == own.v4.sin_addr.s_addr);
  } else {
    std::memcpy(&address.v6, given, sizeof address.v6);
    const in6_addr& wanted = address.v6.sin6_addr;
    good = IN6_IS_ADDR_UNSPECIFIED(&wanted) || (same_family && IN6_ARE_ADDR_EQUAL(&wanted, &own.v6.sin6_addr));
  }
  if (good) return kSuccess;
  return fail(Code::invalid_address, Detail::address_unsupported,
              "{}: the address is neither that of {} nor the wildcard of its family", call, ia.name());
}

in_port_t& port_of(nic::Address& address) {
  return address.generic.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port;
}

}  // namespace

Error Csp::create(Ia& ia, const Comm& comm, const sockaddr* address, Evd& evd, Handle* handle) {
  const char* call = "dat_csp_create";
  const bool internet = comm.domain == AF_INET || comm.domain == AF_INET6;
  if (!internet || comm.type != SOCK_STREAM || (comm.protocol != 0 && comm.protocol != IPPROTO_TCP)) {
    return fail(Code::comm_not_supported, Detail::none,
                "{}: domain {}, type {}, protocol {}: only streams of TCP over IPv4 and IPv6 are supported", call,
                comm.domain, comm.type, comm.protocol);
  }
  nic::Address own;
  if (const Error error = read_local_address(call, ia, comm, address, own)) return error;
  os::Guard guard(ia.engine());
  if (const Error error = check(call, evd)) return error;
  Csp* csp = ia.adopt(std::make_unique<Csp>(ia, evd, comm, own));
  if (!csp) return ia.out_of(call, "service points", Detail::device);
  if (const Error error = csp->listen_at_port()) {
    ia.abandon(*csp);
    return error;
  }
  *handle = csp->handle();
  return kSuccess;
}

// D2-CSP-3: a port that cannot be had has one code, whatever has it.
Error Csp::listen_at_port() {
  const char* call = "dat_csp_create";
  const in_port_t wanted = ntohs(port_of(address_));
  switch (try_to_listen(wanted)) {
    case nic::Status::ok:
      port_of(address_) = htons(static_cast<in_port_t>(qual_));
      return kSuccess;
    case nic::Status::in_use:
      return fail(Code::port_in_use, Detail::none, "{}: somebody listens on port {} already", call, wanted);
    case nic::Status::none_free:
      return fail(Code::port_in_use, Detail::none, "{}: no free port", call);
    case nic::Status::denied:
      return fail(Code::port_in_use, Detail::none, "{}: port {} needs a privilege", call, wanted);
    default:
      return fail(Code::insufficient_resources, Detail::device, "{}: no descriptor to listen with", call);
  }
}

CspParameters Csp::query() const {
  return {ia().handle(), &comm_, &address_.generic, evd_.handle()};
}

Error Csp::free() {
  ia().retire(*this);
  return kSuccess;
}

// ---- reserved service points

Error Rsp::create(Ia& ia, nic::ConnQual qual, Ep* ep, Evd& evd, Handle* handle) {
  const char* call = "dat_rsp_create";
  if (!handle) return fail(Argument::rsp_handle, "{}: rsp_handle is NULL", call);
  os::Guard guard(ia.engine());
  if (const Error error = check_qualifier(call, qual, Argument::conn_qual)) return error;
  if (const Error error = check(call, evd)) return error;
  if (ep && !ep->alive()) return freed_meanwhile(call, "endpoint", Detail::handle_ep);
  if (ep && !ep->state_machine().allows(EpStep::reserve)) return ep->state_machine().wrong_state(call);
  Rsp* rsp = ia.adopt(std::make_unique<Rsp>(ia, evd, ep));
  if (!rsp) return ia.out_of(call, "service points", Detail::device);
  if (const Error error = rsp->listen(call, qual)) {
    rsp->ep_ = nullptr;
    ia.abandon(*rsp);
    return error;
  }
  if (ep) {
    ep->state_machine().apply(EpStep::reserve);
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
  if (!used_ && ep_) ep_->state_machine().apply(EpStep::release);
  ServicePoint::shut_down();
}

bool Rsp::provide_endpoint(Ep*& ep) {
  if (used_) return false;  // RSP-CREATE-6
  ep = ep_ ? ep_ : Ep::create_tentative(ia());
  if (ep_) ep_->state_machine().apply(EpStep::offer);
  return ep != nullptr;
}

void Rsp::take_back(Ep& ep) {
  if (&ep != ep_) return ServicePoint::take_back(ep);
  ep_->state_machine().apply(EpStep::take_offer_back);
}

void Rsp::request_delivered() {
  used_ = true;
  listener_->stop();  // RSP-CREATE-4
  ep_ = nullptr;
}

}  // namespace anydat::dapl
