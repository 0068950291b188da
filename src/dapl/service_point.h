// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Ep;
class Evd;

// What public and reserved service points share: listening on a qualifier, and turning requests that arrive there into
// CRs and events. With the engine held.
class ServicePoint : public Object, public nic::ListenerEvents {
 public:
  bool on_request(std::unique_ptr<nic::ConnectionRequest>& request) override;
  void shut_down();
  ~ServicePoint() override { leave_evd(); }

 protected:
  ServicePoint(Ia& ia, DAT_HANDLE_TYPE type, Evd& evd);
  // qual 0 picks one.
  DAT_RETURN listen(const char* call, DAT_CONN_QUAL qual);
  // The endpoint for an arriving request; false: the request is refused.
  virtual bool provide_endpoint(Ep*& ep) = 0;
  virtual void take_back(Ep& ep);  // that endpoint, of a request that found no room
  virtual void request_delivered() {}
  // Makes the request a CR and an event. False: no room; the endpoint is gone if it is null afterwards.
  bool announce(std::unique_ptr<nic::ConnectionRequest>& request, Ep* ep);
  static DAT_RETURN check(const char* call, const Evd& evd);

  void leave_evd();

  Evd& evd_;
  bool feeds_evd_ = true;
  DAT_CONN_QUAL qual_ = 0;
  std::unique_ptr<nic::Listener> listener_;
};

class Psp final : public ServicePoint {
 public:
  static constexpr DAT_HANDLE_TYPE kType = DAT_HANDLE_TYPE_PSP;

  Psp(Ia& ia, Evd& evd, DAT_PSP_FLAGS flags) : ServicePoint(ia, kType, evd), flags_(flags) {}

  // `any`: where to store a qualifier picked by us; null: `qual` is wanted.
  static DAT_RETURN create(Ia& ia, DAT_CONN_QUAL qual, DAT_CONN_QUAL* any, Evd& evd, DAT_PSP_FLAGS flags,
                           DAT_PSP_HANDLE* handle);
  DAT_RETURN query(DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM* param);
  DAT_RETURN free();

 private:
  bool provide_endpoint(Ep*& ep) override;

  const DAT_PSP_FLAGS flags_;
};

class Rsp final : public ServicePoint {
 public:
  static constexpr DAT_HANDLE_TYPE kType = DAT_HANDLE_TYPE_RSP;

  // `ep` null: the provider makes one when the request arrives.
  Rsp(Ia& ia, Evd& evd, Ep* ep) : ServicePoint(ia, kType, evd), ep_(ep) {}

  static DAT_RETURN create(Ia& ia, DAT_CONN_QUAL qual, Ep* ep, Evd& evd, DAT_RSP_HANDLE* handle);
  DAT_RETURN query(DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM* param);
  DAT_RETURN free();
  void shut_down();

 private:
  bool provide_endpoint(Ep*& ep) override;
  void take_back(Ep& ep) override;
  void request_delivered() override;

  Ep* ep_;
  DAT_EP_HANDLE shown_ep_ = DAT_HANDLE_NULL;  // what a query answers, also once the endpoint has gone its own way
  bool used_ = false;
};

}  // namespace anydat::dapl
