// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/counter.h"
#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/event.h"
#include "dapl/types.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Ep;

// The connection of an endpoint: how it is asked for and ended, what the queue pair reports of it, and what is told of
// it when the endpoint is queried. Requests that the endpoint accepts are in Cr.
//
// With the engine held.
class EpConnection final : public nic::QueuePairEvents {
 public:
  explicit EpConnection(Ep& ep) : ep_(ep) {}

  Error connect(const sockaddr* remote, nic::ConnQual qual, Microseconds timeout, Count private_data_size,
                const void* private_data, Qos qos, ConnectFlags flags);
  // To the qualifier that is the address's port, without a wish for quality or paths (D2-CSP-7).
  Error common_connect(const sockaddr* remote, Microseconds timeout, Count private_data_size, const void* private_data);
  Error dup_connect(const Ep& dup, Microseconds timeout, Count private_data_size, const void* private_data, Qos qos);
  Error disconnect(CloseFlags flags);
  Error reset();
  // Notes who asks, for queries until the request is answered (EP-QUERY-7).
  void offer(const nic::ConnectionRequest& request, nic::ConnQual local_port);
  // How the connection that is being made was agreed upon, for queries until the endpoint is reset (D2-CONN-4).
  void note_comm(const Comm& comm) { comm_ = comm; }
  const Comm& comm() const { return comm_; }
  // Fills in the addresses and ports of both ends, of the state that `to` has.
  void name_ends(EpParameters& to) const;
  // What it was made to do, whatever came of it.
  std::uint64_t connects() const { return connects_.get(); }
  std::uint64_t disconnects() const { return disconnects_.get(); }

  // nic::QueuePairEvents
  void on_established(std::span<const std::byte> private_data) override;
  void on_connect_failed(nic::ConnectFailure why, std::span<const std::byte> private_data) override;
  void on_accept_failed() override;
  void on_closed(bool broken) override;
  void on_soft_watermark() override;

 private:
  // What both ways to connect have in common.
  struct Request {
    const char* call;
    nic::Address remote;
    nic::ConnQual qual;
    Microseconds timeout;
    std::span<const std::byte> private_data;
    Qos qos;
    std::string_view adapter;  // of nic::ServicePointName
  };
  Error connect(const Request& request);
  bool report(EventKind kind);

  Ep& ep_;
  Comm comm_;
  std::vector<std::byte> private_data_;  // of the last ESTABLISHED (PD-6) or PEER_REJECTED (D2-CR-2)
  struct Ends {
    nic::Address local, remote;
    std::uint64_t local_port, remote_port;
  };
  Ends offered_{};  // of the pending request that names the endpoint
  base::Counter connects_;
  base::Counter disconnects_;
};

}  // namespace anydat::dapl
