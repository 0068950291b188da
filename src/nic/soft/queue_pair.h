// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "nic/adapter.h"
#include "nic/patience.h"
#include "nic/soft/connection_state.h"
#include "nic/soft/memory_users.h"
#include "nic/soft/rdma_initiator.h"
#include "nic/soft/receive_side.h"
#include "nic/soft/scopes.h"
#include "nic/soft/send_queue.h"
#include "nic/soft/stream.h"
#include "nic/soft/window.h"

namespace anydat::nic::soft {

class SoftAdapter;

// How soon a bind, a receive that invalidates, or the end of a connection, looks again whether the peer has let go of
// what a window has shown.
inline constexpr base::Nanoseconds kWindowLook = 200'000;

// The software NIC's queue pair: the life of its connection. Its requests are in SendQueue, and what their answers come
// to in RdmaInitiator; its receives are in ReceiveSide; how bytes travel is its stream's business.
//
// Thread safety: posts and counts from any thread; everything else with the engine held.
// Always true: each posted request and each receive completes once, requests in posting order (DTO-40).
class SoftQueuePair final : public QueuePair {
 public:
  SoftQueuePair(SoftAdapter& adapter, ReceivePool* shared, QueuePairEvents& events);
  ~SoftQueuePair() override;
  Status init(const QueuePairLimits& limits);

  // QueuePair
  Status post_send(const SendRequest& request) override;
  Status post_sends(const SendRow& row, std::size_t& posted) override;
  Status post_extended(const ExtendedRequest& request) override;
  std::uint32_t peer_takes() const override { return sends_.peer_takes(); }
  void take_immediates(bool take) override { receives_.take_immediates(take); }
  bool write_again(const SingleRdma& request) override;
  bool read_again(const SingleRdma& request) override;
  bool send_again(const SingleSend& send) override;
  Status post_recv(const RecvRequest& request) override { return receives_.post(request); }
  Status post_recvs(const RecvRow& row, std::size_t& posted) override;
  Status post_bind(const BindRequest& request, std::uint32_t& key) override;
  ZoneId scope() const override { return scope_.load(std::memory_order_relaxed); }
  void set_zone(ZoneId zone) override;
  void set_completion_queues(CompletionQueue* recv, CompletionQueue* send) override;
  Status set_limits(const QueuePairLimits& limits) override;
  void set_watermarks(std::int32_t soft, std::int32_t hard) override { receives_.set_watermarks(soft, hard); }
  Status connect(const ConnectParameters& parameters) override;
  void disconnect(bool graceful) override;
  void reset() override;
  bool cut() override;
  void destroy() override;
  const ConnectionNames& names() const override { return names_; }
  const char* wire() const override { return stream_ ? stream_->wire() : nullptr; }
  RecvInfo recv_info() const override { return receives_.info(); }
  std::uint32_t largest_posted_recv_segments() const override { return receives_.largest_posted_segments(); }
  bool recv_idle() const override { return recv_info().allocated == 0; }
  bool send_idle() const override { return sends_.idle(); }
  const Counters& counters() const override { return sends_.counters(); }
  PostedReceives posted_receives() const override { return receives_.posted(); }

  // For whoever sets connections up.
  using State = ConnectionState;
  State state() const { return sends_.state(); }
  State state_now() const { return sends_.state_now(); }
  void begin_accept(std::unique_ptr<Stream> stream, const Address& local, std::uint64_t local_port,
                    const Address& remote, std::uint64_t remote_port);
  void established(std::span<const std::byte> private_data);
  void set_local(const Address& address, std::uint64_t port) {
    names_.local = address;
    names_.local_port = port;
  }
  void set_reached(ServicePointName name) { names_.reached = std::move(name); }
  void connect_failed(ConnectFailure why, std::span<const std::byte> private_data = {});
  // Nobody can be reached by the stream's wire, and nobody has been told: others may do.
  void try_another_wire(const ConnectParameters& parameters);
  void change_stream(std::unique_ptr<Stream> stream);
  void connect_again();
  void accept_failed();
  // Passive side: how long the peer may take for its part.
  void expect_established_by(base::Nanoseconds deadline);

  // ---- for the stream: what its messages, requests and answers go to
  ReceiveSide& receives() { return receives_; }
  SendQueue& sends() { return sends_; }
  RdmaInitiator& initiator() { return initiator_; }

  // ---- for the stream, and for these three
  // Whether the peer may have this key invalidated: it is of a window that is open to nobody else (D2-SENDINV-4).
  bool may_invalidate(std::uint32_t key) const { return key != 0 && windows_.find(key); }
  // Of a message that is all there: takes back what it invalidates, before it is finished (D2-SENDINV-3). not_yet: the
  // peer is in the middle of using that, and Stream::resume_receiving() will come. no: it may not (any more); the
  // stream ends the connection.
  enum class Readiness : std::uint8_t { yes, not_yet, no };
  Readiness make_ready(Incoming& message);
  bool stands() const { return state() == State::connected || state() == State::draining; }
  bool broken() const { return state() == State::ending || state() == State::closed; }
  bool peer_closing() const { return peer_closing_; }
  void delivered_everything();  // what was parked is all delivered
  void message_finished() {     // one that had taken its buffer before it was there
    if (state() == State::draining) [[unlikely]]
      look_soon_whether_drained();
  }
  void resume_receiving();  // there are buffers again
  // A completion found no room: the connection breaks when the engine is released (EVM-54).
  void completion_overflowed();
  // Removals of regions come by from now on.
  void enter_memory_users();
  // What this end tells the peer that it takes (`ability`).
  std::uint32_t takes() const;
  // What the oldest request has ended with if the peer names none, and ends the connection for that reason.
  static WorkStatus status_of(CloseReason reason);
  ZoneId zone() const { return zone_.load(std::memory_order_relaxed); }
  // As whom it, and its peer, use memory of this side.
  RegionUser user() const { return {zone(), scope()}; }
  std::uint32_t reads_in() const { return reads_in_; }
  // A bind whose turn it is. False: its region has gone. Nothing: a peer is in the middle of using what its window
  // showed, and it is looked at again.
  std::optional<bool> carry_out(SendRing::Entry& entry);
  // No request is left.
  void drained() { finish_if_drained(); }

  void peer_closed(CloseReason reason);
  // `why`: what the oldest request ends with (STAT-7, STAT-10).
  void peer_lost(WorkStatus why);
  void break_connection(WorkStatus send_status, CloseReason tell_peer);
  void let_go_finished();  // see Stream::let_go()
  // A region has been removed: nobody acts on an older check afterwards, if this answers true (Adapter::quiesce()).
  bool memory_changed();
  // Returns when the posts that are being carried out now have been. Later ones look at everything anew.
  void let_posts_end();
  // What is posted from now on is kept to be flushed, and what is being posted has been. The end is near.
  void stop_sending() { sends_.enter(State::ending); }

 private:
  // What the consumer is told about the end of a connection or an attempt.
  struct Ending {
    enum class Report : std::uint8_t { none, closed, broken, connect_failed, accept_failed } report = Report::none;
    ConnectFailure why = ConnectFailure::refused;
    WorkStatus first_send_status = WorkStatus::flushed;
  };
  void end(Ending ending);
  void look_at_windows();
  void linger();
  void look_whether_to_linger();
  // What one side still owes the other while the connection ends in order: any difference is progress.
  struct Owed {
    SendQueue::Progressed sent;
    std::uint64_t untaken = 0;   // as Stream::untaken()
    std::uint64_t received = 0;  // messages
    std::uint64_t placed = 0;    // bytes of the next one
    friend bool operator==(const Owed&, const Owed&) = default;
  };
  Owed owed();
  bool arrivals_over();
  void look_soon_whether_drained();
  void finish_if_drained();
  void finish_draining();
  void take_stream(std::unique_ptr<Stream> stream, State state);

  SoftAdapter& adapter_;
  QueuePairEvents& events_;
  SendQueue sends_;
  ReceiveSide receives_;
  RdmaInitiator initiator_{*this, sends_};
  std::atomic<ZoneId> zone_{kNoZone};
  std::atomic<ZoneId> scope_;
  MemoryUsers::Entry memory_user_{*this};

  // With the engine held.
  std::uint32_t reads_in_ = 0;
  std::unique_ptr<Stream> stream_;  // sends_ knows it, too
  OwnWindows windows_;
  ConnectionNames names_;
  Ending ending_;
  std::vector<std::byte> rejection_;  // the private data that came with it, until it is reported
  bool peer_closing_ = false;         // the peer closed in order; what it sent before is still to be delivered
  // A bind, the end, or a message that invalidates waits for a peer that uses what a window has shown.
  Timer window_timer_;
  bool invalidation_waits_ = false;
  Owed owed_;
  std::optional<std::uint64_t> awaited_;  // the last message that an orderly end of this side waits for
  Patience linger_patience_{0, 0, 0};
  Timer linger_timer_;
  Timer deadline_timer_;
  // The attempt of ConnectParameters::patience, if one was made.
  struct Attempt {
    ConnectParameters parameters;
    std::vector<std::byte> private_data;
    std::string adapter;
    base::Nanoseconds until;
  };
  std::unique_ptr<Attempt> attempt_;
  Timer again_timer_{[this] { connect_again(); }};

  Task overflow_task_;
  Task drained_task_;
};

}  // namespace anydat::nic::soft
