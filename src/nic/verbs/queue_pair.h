// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "nic/adapter.h"
#include "nic/ending.h"
#include "nic/verbs/cm.h"
#include "nic/verbs/inquiry.h"
#include "nic/verbs/kernel_calls.h"
#include "nic/verbs/receive_pool.h"
#include "nic/verbs/send_ring.h"
#include "nic/verbs/shared_queue.h"
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
// Thread safety: posts and counts from any thread; everything else with the engine held. send_lock_ is the posters' own
// and comes after the engine; under it only the device's own locks and completion queues are taken. It is held while
// the device's driver works, which may be as long as sending takes, so completions are handled without it.
class VerbsQueuePair final : public QueuePair, public CmHandler {
 public:
  VerbsQueuePair(VerbsAdapter& adapter, SharedQueue* shared, QueuePairEvents& events);
  ~VerbsQueuePair() override;
  Status init(const QueuePairLimits& limits);

  // QueuePair
  Status post_send(const SendRequest& request) override;
  Status post_recv(const RecvRequest& request) override;
  Status post_bind(const BindRequest& request, std::uint32_t& key) override;
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
  RecvInfo recv_info() const override;
  std::uint32_t largest_posted_recv_segments() const override { return own_ ? own_->largest_segment_count() : 0; }
  bool recv_idle() const override { return !own_ || own_->counts().outstanding == 0; }
  bool send_idle() const override { return sends_.empty(); }
  const Counters& counters() const override { return counters_; }
  PostedReceives posted_receives() const override {
    if (!own_) return {0, 0};
    return {own_->counters().posted.get(), own_->counters().posted_bytes.get()};
  }

  // CmHandler
  void on_cm_event(const CmEvent& event) override;
  void on_dialled(rdma_cm_id* id, int error) override;

  // For requests and the adapter.
  enum class State : std::uint8_t { idle, connecting, accepting, connected, draining, ending, closed };
  State state() const { return state_.load(std::memory_order_relaxed); }
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
  void completed_shared(const ibv_wc& wc, const ReceivePool::Done& done);
  void completion_lost(const Completion& completion);
  void device_event(ibv_event_type type);
  void device_gone();
  // Whether its work is completed there; null: nowhere.
  bool uses(const Cq* cq) const;
  bool uses(const SharedQueue& shared) const { return qp_ && shared_ == &shared; }
  // The port of the service point that is wanted, or 0: none of those that its qualifier stands for is.
  void inquired(std::uint16_t port, ConnectFailure why);
  // Something of the device that it needs has failed: nothing that is under way will complete.
  void lost_by_device();

 private:
  // Over iWARP messages may arrive before it is said that the other side has accepted.
  struct Early {
    ibv_wc wc;
    WorkId id;
    std::optional<ReceivePool::Done> done;  // of a shared queue
  };
  bool comes_early();
  bool put_aside(const Early& early);
  void received(const ibv_wc& wc, const ReceivePool::Done& done);

  // The device's queue pair.
  enum class Made : std::uint8_t { ready, no_memory, connection_over };
  Made make_queue_pair(rdma_cm_id* id);
  bool change_state(rdma_cm_id* id, ibv_qp_state state);
  void remove_queue_pair();
  void queue_pair_removed();
  void discard_queue_pair();
  AbandonedAttempt take_apart();
  bool quiet();

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
  void report_end();
  void finish_draining();
  void peer_closed();
  void fail(WorkStatus first_send_status);
  void run_breaks();
  void abandon_attempt();
  void release_id();
  void flush_sends();
  void flush_receives();

  // What requests need, for so many of so many segments. May throw std::bad_alloc.
  struct RequestRoom {
    RequestRoom(const QueuePairLimits& limits, bool keeps_segments);
    SendRing::Storage ring;
    std::vector<ibv_sge> gather;
    std::vector<ibv_send_wr> chain;
    std::vector<Segment> posted_segments;
  };
  void move_to(RequestRoom room) ANYDAT_REQUIRES(send_lock_);
  WorkStatus status_of(const ibv_wc& wc, std::uint32_t number) const;
  void complete_send(SendRing::Entry& entry, WorkStatus status);
  void complete_recv(const ReceivePool::Done& done, WorkStatus status, std::uint64_t length, bool solicited);
  void retire_finished();
  std::optional<WorkStatus> carry_out(SendRing::Bind& bind);
  static void give_up(SendRing::Bind& bind);
  void go_on_behind_bind();
  bool bind_has_begun();
  void note_segments(const SendRequest& request, std::uint64_t number) ANYDAT_REQUIRES(send_lock_);
  bool begin(const SendRequest& request, std::uint64_t number, SendRing::Entry& entry) ANYDAT_REQUIRES(send_lock_);
  bool begin_late(std::uint64_t number, SendRing::Entry& entry) ANYDAT_REQUIRES(send_lock_);
  Status hand_over(const SendRequest& request, std::uint64_t number) ANYDAT_REQUIRES(send_lock_);
  void count(const SendRequest& request) ANYDAT_REQUIRES(send_lock_);
  Status keep_behind_bind(const SendRequest& request) ANYDAT_REQUIRES(send_lock_);
  void spread_read(const SendRequest& request) ANYDAT_REQUIRES(send_lock_);

  VerbsAdapter& adapter_;
  QueuePairEvents& events_;
  SharedQueue* const shared_;  // null: own_ serves
  std::unique_ptr<ReceivePool> own_;
  std::uint32_t tag_;  // in the names of work

  // Written with the engine and send_lock_ held, so that either is enough to read it; post_recv reads it bare.
  std::atomic<State> state_{State::idle};
  std::atomic<CompletionQueue*> recv_queue_{nullptr};
  std::atomic<CompletionQueue*> send_queue_{nullptr};

  mutable base::SpinLock send_lock_;
  SendRing sends_;                                    // posters hold send_lock_, the taker the engine
  std::atomic<bool> blocked_{false};                  // a request cannot be done, so none behind it is begun
  unsigned binds_ ANYDAT_GUARDED_BY(send_lock_) = 0;  // that are not done, and that what is posted waits for
  std::vector<ibv_sge> gather_ ANYDAT_GUARDED_BY(send_lock_);
  std::vector<ibv_send_wr> chain_ ANYDAT_GUARDED_BY(send_lock_);
  // Over iWARP: the segments of requests, posted_most_ of each, at the low bits of their numbers. Soft-iWARP says one
  // thing of memory that has gone and of a connection that has. Written by posters before sends_ has the request.
  std::vector<Segment> posted_segments_;
  std::size_t posted_most_ = 1;
  QpPtr qp_;                          // written as state_ is
  std::uint32_t removed_number_ = 0;  // of a queue pair that is being removed; 0: none is. With the engine
  std::uint32_t inline_max_ = 0;
  std::atomic<std::uint32_t> reads_agreed_{0};  // that may be under way to the peer

  // With the engine held.
  ZoneId zone_ = kNoZone;
  QueuePairLimits limits_{};
  PdPtr pd_;
  Cq* cq_ = nullptr;
  std::uint32_t cq_room_ = 0;
  CmIdPtr id_;
  KernelCalls::Ref dial_;  // a call that id_ is in; null: none. id_ goes by release_id() only
  ConnectionNames names_;
  Ending ending_;
  std::vector<std::byte> rejection_;     // the private data that came with it, until it is reported
  ConnQual service_ = 0;                 // the service point that is being asked
  std::uint16_t port_ = 0;               // where
  std::unique_ptr<Inquiry> inquiry_;     // that tells; what is over is kept until the next
  base::Nanoseconds resolve_until_ = 0;  // when to give up asking for the way to it
  std::uint64_t attempt_ = 0;            // names the parts of one request
  std::vector<std::byte> private_data_;  // of the request
  std::size_t private_data_sent_ = 0;    // parts that the other side has
  bool unanswered_ = false;              // it has been asked and has said nothing
  std::vector<Early> early_;
  bool accepts_ = false;  // the passive side, which settles how many Reads may be under way:
  std::uint8_t reads_in_ = 0;
  std::uint8_t reads_out_ = 0;
  bool accept_is_done_ = false;  // but for the time that the active side has to speak first
  Timer first_word_timer_;       // ends that time
  Timer deadline_timer_;
  Timer linger_timer_;
  Timer quiet_timer_;
  Timer break_timer_;

  std::atomic<WorkStatus> failure_{WorkStatus::success};  // why the connection is to be broken by run_breaks()
  std::atomic<bool> failed_{false};
  bool flushed_unasked_ = false;
  bool end_waits_ = false;   // for a bind that has begun; with the engine
  bool one_failed_ = false;  // a request, so that those after it do as well
  Task retire_task_;
  Task break_task_;
  Task quiet_task_;
  Counters counters_;
};

}  // namespace anydat::nic::verbs
