// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Ep;

// A connection request that waits for the consumer's answer. With the engine held.
class Cr final : public Object {
 public:
  static constexpr HandleType kType = HandleType::cr;

  // `ep`: the endpoint that goes with the request (made by the provider, or the one of an RSP), or null.
  // `comm`: of the common service point that it came to; else zero.
  Cr(Ia& ia, std::unique_ptr<nic::ConnectionRequest> request, Ep* ep, const Comm& comm);

  CrParameters query() const;
  Error accept(Handle ep, Count private_data_size, const void* private_data);
  Error reject(Count private_data_size, const void* private_data);
  Error handoff(nic::ConnQual qual);
  void shut_down();  // refuses an unanswered request and lets its endpoint go

  nic::ConnectionRequest& request() { return *request_; }
  // The address that was called. An event names it by this pointer, which outlives the answer to the request by as long
  // as freed objects rest. Callers choose it, among all of 127/8 for instance, so it is kept for no longer.
  const sockaddr* local_address() const { return &local_address_.generic; }
  // The peer has sent more private data than a query shows (D2-CR-7). From any thread.
  bool truncated() const { return truncated_; }
  // Gives the request back, unanswered, for a queue that has no room for it, and lets go of the endpoint.
  std::unique_ptr<nic::ConnectionRequest> give_back() {
    ep_ = nullptr;
    return std::move(request_);
  }

 private:
  void release_endpoint();

  nic::Address local_address_;
  const bool truncated_;
  std::unique_ptr<nic::ConnectionRequest> request_;
  Ep* ep_;
  const Comm comm_;
};

}  // namespace anydat::dapl
