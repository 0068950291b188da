// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "dapl/attributes.h"
#include "dapl/ep_configuration.h"
#include "dapl/ep_posts.h"
#include "dapl/error.h"
#include "dapl/event.h"
#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Srq;

// An endpoint: the DAT state machine and rules around a queue pair.
//
// Thread safety: posts and the queries marked so may come from any thread; all else is called with the engine held, and
// so are the queue pair's reports.
class Ep final : public Object, public nic::QueuePairEvents {
 public:
  static constexpr HandleType kType = HandleType::ep;

  Ep(Ia& ia, Srq* srq);
  ~Ep() override;

  // `attr` may be null for the defaults, unless there is an SRQ.
  static Error create(Ia& ia, const EpParts& parts, Srq* srq, const EpAttributes* attr, Handle* handle);
  // A provider-made endpoint for a connection request (PSP-CREATE-6): no parts, TENTATIVE.
  static Ep* create_tentative(Ia& ia);

  EpPosts& posts() { return posts_; }
  const EpPosts& posts() const { return posts_; }
  EpConfiguration& configuration() { return configuration_; }
  Srq* srq() const { return srq_; }  // null: its buffers are its own

  // From any thread.
  const char* wire() const;  // of its connection; null if there is none
  struct ReceiveCounts {     // EP-RQ; kUnknownCount for what the NIC cannot tell
    Count allocated;
    Count span;
  };
  ReceiveCounts recv_query() const;
  EpState state() const { return state_machine().state(); }
  EpStateMachine& state_machine() { return posts_.state_machine(); }
  const EpStateMachine& state_machine() const { return posts_.state_machine(); }
  nic::QueuePair& queue_pair() const { return *posts_.queue_pair(); }
  // Whether all receives or requests have completed, which is to say that their events are queued. Without the engine.
  bool receives_idle() const;
  bool requests_idle() const;

  // With the engine held.
  EpParameters query() const;
  Error connect(const sockaddr* remote, nic::ConnQual qual, Microseconds timeout, Count private_data_size,
                const void* private_data, Qos qos, ConnectFlags flags);
  // To the qualifier that is the address's port, without a wish for quality or paths (D2-CSP-7).
  Error common_connect(const sockaddr* remote, Microseconds timeout, Count private_data_size, const void* private_data);
  Error dup_connect(const Ep& dup, Microseconds timeout, Count private_data_size, const void* private_data, Qos qos);
  Error disconnect(CloseFlags flags);
  Error reset();
  // Nothing: a peer is in the middle of writing into a buffer; ask again, with the engine released in between.
  std::optional<Error> free();
  bool cut() { return !posts_.queue_pair() || queue_pair().cut(); }
  void shut_down();

  // For service points and requests.
  // Notes who asks, for queries until the request is answered (EP-QUERY-7).
  void offer(const nic::ConnectionRequest& request, nic::ConnQual local_port);
  // How the connection that is being made was agreed upon, for queries until the endpoint is reset (D2-CONN-4).
  void note_comm(const Comm& comm) { comm_ = comm; }
  // With the engine held: what it was made to do, whatever came of it.
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
  // False: there is no memory for it.
  bool open_queue_pair(const EpAttributes& attr);

  Srq* const srq_;
  EpPosts posts_;

  EpConfiguration configuration_;

  // With the engine held.
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
