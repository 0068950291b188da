// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Ep;

// A connection request that waits for the consumer's answer. With the engine held.
class Cr final : public Object {
 public:
  static constexpr DAT_HANDLE_TYPE kType = DAT_HANDLE_TYPE_CR;

  // `ep`: the endpoint that goes with the request (made by the provider, or the one of an RSP), or null.
  Cr(Ia& ia, std::unique_ptr<nic::ConnectionRequest> request, Ep* ep)
      : Object(ia, kType), local_address_(request->local_address()), request_(std::move(request)), ep_(ep) {}

  DAT_RETURN query(DAT_CR_PARAM_MASK mask, DAT_CR_PARAM* param);
  DAT_RETURN accept(DAT_EP_HANDLE ep, DAT_COUNT private_data_size, const void* private_data);
  DAT_RETURN reject();
  DAT_RETURN handoff(DAT_CONN_QUAL qual);
  void shut_down();  // refuses an unanswered request and lets its endpoint go

  nic::ConnectionRequest& request() { return *request_; }
  // The address that was called. An event names it by this pointer, which outlives the answer to the request by as long
  // as freed objects rest. Callers choose it, among all of 127/8 for instance, so that nobody keeps it for longer.
  DAT_IA_ADDRESS_PTR local_address() { return &local_address_.generic; }
  // Gives the request back, unanswered, for a queue that has no room for it, and lets go of the endpoint.
  std::unique_ptr<nic::ConnectionRequest> give_back() {
    ep_ = nullptr;
    return std::move(request_);
  }

 private:
  void release_endpoint();

  nic::Address local_address_;
  std::unique_ptr<nic::ConnectionRequest> request_;
  Ep* ep_;
};

}  // namespace anydat::dapl
