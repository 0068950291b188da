// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Ep;
class Evd;

// What service points of all kinds share: listening on a qualifier, and turning requests that arrive there into
// CRs and events. With the engine held.
class ServicePoint : public Object, public nic::ListenerEvents {
 public:
  bool on_request(std::unique_ptr<nic::ConnectionRequest>& request) override;
  void shut_down();
  ~ServicePoint() override { leave_evd(); }

 protected:
  ServicePoint(Ia& ia, HandleType type, Evd& evd);
  // qual 0 picks one.
  nic::Status try_to_listen(nic::ConnQual qual);
  Error listen(const char* call, nic::ConnQual qual);
  // The endpoint for an arriving request; false: the request is refused.
  virtual bool provide_endpoint(Ep*& ep) = 0;
  virtual void take_back(Ep& ep);  // that endpoint, of a request that found no room
  virtual void request_delivered() {}
  virtual Comm comm() const { return {}; }  // that a request to it agrees on
  // Makes the request a CR and an event. False: no room; the endpoint is gone if it is null afterwards.
  bool deliver(std::unique_ptr<nic::ConnectionRequest>& request);
  bool announce(std::unique_ptr<nic::ConnectionRequest>& request, Ep* ep);
  static Error check(const char* call, const Evd& evd);

  void leave_evd();

  Evd& evd_;
  bool feeds_evd_ = true;
  nic::ConnQual qual_ = 0;
  std::unique_ptr<nic::Listener> listener_;
};

class Psp final : public ServicePoint {
 public:
  static constexpr HandleType kType = HandleType::psp;

  Psp(Ia& ia, Evd& evd, PspFlags flags) : ServicePoint(ia, kType, evd), flags_(flags) {}

  // `any`: where to store a qualifier picked by us; null: `qual` is wanted.
  static Error create(Ia& ia, nic::ConnQual qual, nic::ConnQual* any, Evd& evd, PspFlags flags, Handle* handle);
  PspParameters query() const;
  Error free();

 private:
  bool provide_endpoint(Ep*& ep) override;

  const PspFlags flags_;
};

class Rsp final : public ServicePoint {
 public:
  static constexpr HandleType kType = HandleType::rsp;

  // `ep` null: the provider makes one when the request arrives.
  Rsp(Ia& ia, Evd& evd, Ep* ep) : ServicePoint(ia, kType, evd), ep_(ep) {}

  static Error create(Ia& ia, nic::ConnQual qual, Ep* ep, Evd& evd, Handle* handle);
  RspParameters query() const;
  Error free();
  void shut_down();

 private:
  bool provide_endpoint(Ep*& ep) override;
  void take_back(Ep& ep) override;
  void request_delivered() override;

  Ep* ep_;
  Handle shown_ep_ = nullptr;  // what a query answers, also once the endpoint has gone its own way
  bool used_ = false;
};

// A common service point: a PSP at the port of a socket address, for programs that agree on a Comm (D2-CSP). Endpoints
// are the Consumer's.
class Csp final : public ServicePoint {
 public:
  static constexpr HandleType kType = HandleType::csp;

  Csp(Ia& ia, Evd& evd, const Comm& comm, const nic::Address& address)
      : ServicePoint(ia, kType, evd), comm_(comm), address_(address) {}

  static Error create(Ia& ia, const Comm& comm, const sockaddr* address, Evd& evd, Handle* handle);
  CspParameters query() const;
  Error free();

 private:
  Error listen_at_port();
  bool provide_endpoint(Ep*&) override { return true; }
  Comm comm() const override { return comm_; }

  const Comm comm_;
  nic::Address address_;  // its port, too, is fixed when the handle is told
};

}  // namespace anydat::dapl
