// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "nic/adapter.h"
#include "nic/timer.h"
#include "nic/verbs/cm.h"
#include "nic/verbs/device_queue_pair.h"
#include "nic/verbs/inquiry.h"
#include "nic/verbs/kernel_calls.h"

namespace anydat::nic::verbs {

class VerbsAdapter;
class VerbsQueuePair;

// Asks for the route of an identifier whose address has been resolved. False: it does not lead over this device, or
// cannot be asked for.
bool resolve_route(VerbsAdapter& adapter, rdma_cm_id* id);

// How a connection over a device comes about, at either side, or comes to nothing: its names, its identifier at
// connection management, and what that tells of it. A request may take several attempts, which the program above sees
// as one.
//
// With the engine held. Lives and dies with its queue pair.
class Establishment final : public CmHandler {
 public:
  Establishment(VerbsQueuePair& queue_pair, VerbsAdapter& adapter, QueuePairEvents& events);
  Establishment(const Establishment&) = delete;
  Establishment& operator=(const Establishment&) = delete;

  const ConnectionNames& names() const { return names_; }

  // ---- active side
  Status connect(const ConnectParameters& parameters);
  // The port of the service point that is wanted, or 0: none of those that its qualifier stands for is.
  void inquired(std::uint16_t port, ConnectFailure why);
  std::vector<std::byte> take_rejection() { return std::exchange(rejection_, {}); }

  // ---- passive side
  struct Offer {  // a request that is being accepted
    CmIdPtr id;   // null if the device has gone
    ConnQual qual;
    Address local, remote;
    std::uint64_t remote_port;
    bool has_head;  // the peer is one of ours
    std::uint8_t responder_resources;
    std::uint8_t initiator_depth;
  };
  // May throw std::bad_alloc; nothing has changed then but that the offer may be gone. `gone`: the requester is.
  void accept(Offer& offer, bool gone, std::span<const std::byte> private_data);
  // The device has seen the first message of the active side, whose last word may have been lost.
  void first_message_seen() {
    if (id_) rdma_notify(id_.get(), IBV_EVENT_COMM_EST);
  }

  // ---- either side
  void done(std::span<const std::byte> private_data);
  void stop();  // there is, or will be, nothing to wait for
  void disconnect() {
    if (id_) rdma_disconnect(id_.get());
  }
  // True: the attempt has had no answer, and has been left to the adapter with all that belongs to it.
  bool abandon_unanswered();
  void release_id();
  void reset();  // to no connection

  // ---- CmHandler
  void on_cm_event(const CmEvent& event) override;
  void on_dialled(rdma_cm_id* id, int error) override;

 private:
  Status look_for_service();
  Status begin_attempt();
  void send_request(rdma_cm_id* id);
  void dial_plain(rdma_cm_id* id, const rdma_conn_param& parameters);
  bool send_with_head(rdma_cm_id* id, rdma_conn_param& parameters);
  std::size_t part_max() const;
  void failed(ConnectFailure why);
  void rejected(const CmEvent& event);
  void rejected_with(std::span<const std::byte> private_data);
  void ask_again(ConnQual qual);
  void attempt_again();
  void give_up_attempt();
  void answered(const CmEvent& event);
  void established_by(const CmEvent& event);
  void disconnected();
  void comes_to_nothing(ConnectFailure why);

  VerbsQueuePair& queue_pair_;
  VerbsAdapter& adapter_;
  QueuePairEvents& events_;
  ConnectionNames names_;
  CmIdPtr id_;
  KernelCalls::Ref dial_;  // a call that id_ is in; null: none. id_ goes by release_id() only

  ConnQual service_ = 0;                 // the service point that is being asked
  std::uint16_t port_ = 0;               // where
  std::unique_ptr<Inquiry> inquiry_;     // that tells; what is over is kept until the next
  os::Nanoseconds resolve_until_ = 0;    // when to give up asking for the way to it
  std::uint64_t attempt_ = 0;            // names the parts of one request
  std::vector<std::byte> private_data_;  // of the request
  std::size_t private_data_sent_ = 0;    // parts that the other side has
  bool unanswered_ = false;              // it has been asked and has said nothing
  std::vector<std::byte> rejection_;     // the private data that came with it, until it is reported
  Timer deadline_timer_;

  std::optional<DeviceQueuePair::Reads> settled_;  // by the passive side
  bool accept_is_done_ = false;                    // but for the time that the active side has to speak first
  Timer first_word_timer_;                         // ends that time
};

}  // namespace anydat::nic::verbs
