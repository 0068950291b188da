// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "nic/adapter.h"
#include "nic/ending.h"
#include "nic/verbs/cm.h"
#include "nic/verbs/device_queue_pair.h"
#include "nic/verbs/inquiry.h"
#include "nic/verbs/kernel_calls.h"
#include "nic/verbs/receive_side.h"
#include "nic/verbs/send_queue.h"
#include "nic/verbs/work_id.h"

namespace anydat::nic::verbs {

class VerbsAdapter;
struct AbandonedAttempt;

// A queue pair of the device, and what the device does not do for a DAT endpoint: receives may be posted before there
// is a connection, and requests after it; every piece of work completes once and in order; its end is told when all
// has.
//
// The device's queue pair lives from the set-up of a connection to its end, so that its protection domain, its sizes
// and its peer are those of the moment.
//
// Thread safety: posts and counts from any thread; everything else with the engine held.
class VerbsQueuePair final : public QueuePair, public CmHandler {
 public:
  VerbsQueuePair(VerbsAdapter& adapter, SharedQueue* shared, QueuePairEvents& events);
  ~VerbsQueuePair() override;
  Status init(const QueuePairLimits& limits);

  // QueuePair
  Status post_send(const SendRequest& request) override;
  Status post_recv(const RecvRequest& request) override { return receives_.post(request); }
  Status post_bind(const BindRequest& request, std::uint32_t& key) override { return sends_.post_bind(request, key); }
  void set_zone(ZoneId zone) override { zone_ = zone; }
  void set_completion_queues(CompletionQueue* recv, CompletionQueue* send) override;
  Status set_limits(const QueuePairLimits& limits) override;
  void set_watermarks(std::int32_t, std::int32_t) override {}  // has_watermarks is false
  Status connect(const ConnectParameters& parameters) override;
  void disconnect(bool graceful) override;
  void reset() override;
  bool cut() override;
  void destroy() override;
  const ConnectionNames& names() const override { return names_; }
  const char* wire() const override { return "verbs"; }
  RecvInfo recv_info() const override { return receives_.info(); }
  std::uint32_t largest_posted_recv_segments() const override { return receives_.largest_posted_segments(); }
  bool recv_idle() const override { return receives_.idle(); }
  bool send_idle() const override { return sends_.idle(); }
  const Counters& counters() const override { return sends_.counters(); }
  PostedReceives posted_receives() const override { return receives_.posted(); }

  // CmHandler
  void on_cm_event(const CmEvent& event) override;
  void on_dialled(rdma_cm_id* id, int error) override;

  // For requests and the adapter.
  using State = ConnectionState;
  State state() const { return sends_.state(); }
  const QueuePairLimits& limits() const { return limits_; }
  ZoneId zone() const { return zone_; }
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
  void completed(const ibv_wc& wc, const WorkId& id);
  // A window has let go of what it showed.
  void go_on();
  // ---- its parts, for each other
  SendQueue& sends() { return sends_; }
  ReceiveSide& receives() { return receives_; }
  DeviceQueuePair& device() { return device_; }
  const DeviceQueuePair& device() const { return device_; }
  void report_end();
  // Something has failed, and breaks the connection when the engine is released.
  void break_soon();
  void break_once_told();
  // What an end waits for may have been done.
  void look_soon();
  void completed_shared(const ibv_wc& wc, const ReceivePool::Done& done);
  void completion_lost(const Completion& completion);
  void device_event(ibv_event_type type);
  void device_gone();
  // The port of the service point that is wanted, or 0: none of those that its qualifier stands for is.
  void inquired(std::uint16_t port, ConnectFailure why);
  // Something of the device that it needs has failed: nothing that is under way will complete.
  void lost_by_device();

 private:
  bool comes_early();

  // Active side.
  Status look_for_service();
  Status begin_attempt();
  void send_request(rdma_cm_id* id);
  void rejected(const CmEvent& event);
  void established_by(const CmEvent& event);
  void comes_to_nothing(ConnectFailure why);
  void rejected_with(std::span<const std::byte> private_data);
  void ask_again(ConnQual qual);
  void dial_plain(rdma_cm_id* id, const rdma_conn_param& parameters);
  void not_sent(int error);
  bool send_with_head(rdma_cm_id* id, rdma_conn_param& parameters);
  std::size_t part_max() const;
  void attempt_again();
  void give_up_attempt();
  void answered(const CmEvent& event);
  void established(std::span<const std::byte> private_data);

  // Ends.
  void end(Ending ending);
  void end_now(Ending ending);
  void end_if_quiet();
  void finish();
  void finish_draining();
  void peer_closed();
  void fail(WorkStatus first_send_status);
  void run_breaks();
  void abandon_attempt();
  void release_id();

  VerbsAdapter& adapter_;
  QueuePairEvents& events_;

  SendQueue sends_;
  ReceiveSide receives_;
  DeviceQueuePair device_;

  // With the engine held.
  ZoneId zone_ = kNoZone;
  QueuePairLimits limits_{};
  CmIdPtr id_;
  KernelCalls::Ref dial_;  // a call that id_ is in; null: none. id_ goes by release_id() only
  ConnectionNames names_;
  Ending ending_;
  std::vector<std::byte> rejection_;               // the private data that came with it, until it is reported
  ConnQual service_ = 0;                           // the service point that is being asked
  std::uint16_t port_ = 0;                         // where
  std::unique_ptr<Inquiry> inquiry_;               // that tells; what is over is kept until the next
  base::Nanoseconds resolve_until_ = 0;            // when to give up asking for the way to it
  std::uint64_t attempt_ = 0;                      // names the parts of one request
  std::vector<std::byte> private_data_;            // of the request
  std::size_t private_data_sent_ = 0;              // parts that the other side has
  bool unanswered_ = false;                        // it has been asked and has said nothing
  std::optional<DeviceQueuePair::Reads> settled_;  // by the passive side
  bool accept_is_done_ = false;                    // but for the time that the active side has to speak first
  Timer first_word_timer_;                         // ends that time
  Timer deadline_timer_;
  Timer linger_timer_;
  Timer quiet_timer_;
  Timer break_timer_;

  bool failed_ = false;  // the connection is to be broken by run_breaks()
  bool flushed_unasked_ = false;
  bool end_waits_ = false;  // for a bind that has begun
  Task break_task_;
  Task quiet_task_;
};

}  // namespace anydat::nic::verbs
