// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/biased_lock.h"
#include "nic/adapter.h"
#include "nic/patience.h"
#include "nic/soft/local_region.h"
#include "nic/soft/memory_users.h"
#include "nic/soft/rdma_lane.h"
#include "nic/soft/receive_side.h"
#include "nic/soft/scopes.h"
#include "nic/soft/send_ring.h"
#include "nic/soft/stream.h"
#include "nic/soft/window.h"

namespace anydat::nic::soft {

class SoftAdapter;

// How soon a bind, a receive that invalidates, or the end of a connection, looks again whether the peer has let go of
// what a window has shown.
inline constexpr base::Nanoseconds kWindowLook = 200'000;

// The software NIC's queue pair: the order of its requests, and the life of its connection. Its receives are in
// ReceiveSide; how bytes travel is its stream's business.
//
// Thread safety: posts and counts from any thread; everything else with the engine held. send_lock_ guards the send
// ring and comes after the engine; under it only a stream's own lock and completion queues are taken.
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
  std::uint32_t peer_takes() const override;
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
  const Address& local_address() const override { return local_address_; }
  std::uint64_t local_port() const override { return local_port_; }
  const Address& remote_address() const override { return remote_address_; }
  std::uint64_t remote_port() const override { return remote_port_; }
  const ServicePointName& reached() const override { return reached_; }
  const char* wire() const override { return stream_ ? stream_->wire() : nullptr; }
  RecvInfo recv_info() const override { return receives_.info(); }
  std::uint32_t largest_posted_recv_segments() const override { return receives_.largest_posted_segments(); }
  bool recv_idle() const override { return recv_info().allocated == 0; }
  bool send_idle() const override;
  const Counters& counters() const override { return counters_; }
  PostedReceives posted_receives() const override { return receives_.posted(); }

  // For whoever sets connections up. `ending`: the connection is over, but the peer is still writing into a buffer;
  // nothing has been flushed yet.
  enum class State : std::uint8_t { idle, connecting, accepting, connected, draining, ending, closed };
  State state() const { return state_.load(std::memory_order_relaxed); }
  // In one order with what changes it, for a post that looks after it has posted.
  State state_now() const { return state_.load(); }
  // To come before a connection. False: there is no memory for it.
  bool make_room_for_requests();
  void begin_accept(std::unique_ptr<Stream> stream, const Address& local, std::uint64_t local_port,
                    const Address& remote, std::uint64_t remote_port);
  void established(std::span<const std::byte> private_data);
  void set_local(const Address& address, std::uint64_t port) {
    local_address_ = address;
    local_port_ = port;
  }
  void set_reached(ServicePointName name) { reached_ = std::move(name); }  // before established()
  void connect_failed(ConnectFailure why, std::span<const std::byte> private_data = {});
  // Nobody can be reached by the stream's wire, and nobody has been told: others may do.
  void try_another_wire(const ConnectParameters& parameters);
  void change_stream(std::unique_ptr<Stream> stream);
  void connect_again();
  void accept_failed();
  // Passive side: how long the peer may take for its part.
  void expect_established_by(base::Nanoseconds deadline);

  // ---- for the stream and the receiving side
  ReceiveSide& receives() { return receives_; }
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
  void resume_receiving();      // there are buffers again
  // A completion found no room: the connection breaks when the engine is released (EVM-54).
  void completion_overflowed();
  // Removals of regions come by from now on.
  void enter_memory_users();
  // Calls that if the connection is over, and lets no late post flush meanwhile.
  template <typename Action>
  void if_closed(Action&& action) {
    base::Guard guard(send_lock_);
    if (state() == State::closed) action();
  }

  // If it has failed, so that nothing can follow it, the connection breaks at once, with what is not done before it.
  void send_finished(std::uint64_t number, WorkStatus status);
  // What this end tells the peer that it takes (`ability`), and what the peer has told, before established().
  std::uint32_t takes() const;
  void set_peer_takes(std::uint32_t abilities) {
    base::Guard guard(send_lock_);
    peer_takes_ = abilities & takes_of_adapter();
  }
  // The oldest Writes that the stream holds, so many, have been done by the peer. False if there are fewer.
  bool writes_finished(std::uint32_t count);
  // The oldest atomic operation that the stream holds has been; what the word was. False if there is none.
  bool atomic_finished(std::uint64_t was);
  // Where what the word was is to be put. 0 pieces: there is no such operation, or its memory has been freed since.
  std::size_t aim_atomic(std::span<iovec> pieces);
  void atomic_failed(WorkStatus status);  // as read_failed()
  // The peer refuses a Write that reaches there, or a Read (an atomic operation): the Writes before it have been done.
  // It has failed with that status, and the end of the connection is due; Reads before it that have no answer get none.
  // False: it is none that we know.
  bool write_refused(std::uint32_t key, std::uint64_t address, WorkStatus status);
  bool read_refused(std::size_t before_it, WorkStatus status);
  // The same of one that is known by its number, or by how many of its kind that the stream holds come before it.
  void request_refused(std::uint64_t number, WorkStatus status);
  bool request_refused(bool (*wanted)(WorkKind), std::size_t before_it, WorkStatus status);
  // The same of a message, a Send or a Write with immediate data: so many have been sent from that one on, none if it
  // is still being sent. The messages before it have been done, too.
  void message_refused(const std::function<std::uint32_t()>& sent, WorkStatus status);
  // What the oldest request has ended with if the peer names none, and ends the connection for that reason.
  static WorkStatus status_of(CloseReason reason);
  // The next bytes of the oldest Read that the stream holds. False if there is none, or it wants fewer.
  bool place_read(const std::byte* bytes, std::size_t count);
  // The same in two steps, as aim(), for the bytes that follow `skipped` ones. 0 pieces: there is no such Read.
  // Nothing: its memory has been freed since; read_failed() is due.
  std::optional<std::size_t> aim_read(std::size_t skipped, std::size_t count, std::span<iovec> pieces);
  bool read_placed(std::size_t count);  // false as place_read()
  // Its memory is not to be had any more. Requests before it are still done; then the connection breaks.
  void read_failed(WorkStatus status);
  // The memory at that address, which the first request that is blocked may wait for, is not to be had: that request
  // fails in its turn (DTO-40). False: it does not wait for that.
  bool fail_blocked(std::uint64_t address, bool to_write, WorkStatus status);
  bool pump();  // hands requests that were blocked to the stream again; true if any of them got further
  // Calls f(const SendRequest&) for a pending request, with the send lock held. False if there is no such request.
  template <typename F>
  bool with_request(std::uint64_t number, F&& f);
  ZoneId zone() const { return zone_.load(std::memory_order_relaxed); }
  // As whom it, and its peer, use memory of this side.
  RegionUser user() const { return {zone(), scope()}; }
  std::uint32_t reads_in() const { return reads_in_; }
  std::uint32_t reads_out() const {
    base::Guard guard(send_lock_);
    return reads_out_;
  }
  // The like of this request may go by a lane from now on; or nothing may, because something else has to come first.
  // With the send lock.
  template <WorkKind kind>
  void open_lane(const SendRequest& request, const typename RdmaLane<kind>::Target& target) {
    if (request.segments.size() == 1) lane<kind>().open(target, request.segments.front(), regions_, zone());
  }
  // The same of Sends, which send_again() of the stream carries.
  void open_send_lane(const SendRequest& request) {
    if (request.segments.size() == 1) send_lane_.open(request.segments.front(), regions_, zone(), access::kLocalRead);
  }
  // And of Writes that the peer puts in place, which put_again() of the stream carries.
  void open_put_lane(const SendRequest& request) {
    if (request.segments.size() == 1) put_lane_.open(request.segments.front(), regions_, zone(), access::kLocalRead);
  }
  void close_lanes() {
    write_lane_.close();
    read_lane_.close();
    send_lane_.close();
    put_lane_.close();
  }
  void count_rdma_by_peer() { counters_.rdmas_by_peer.add(); }  // with the send lock, as the next
  void count_rdma_in_memory() { counters_.rdmas_in_memory.add(); }
  // Its memory may have been freed since the post (LMR-FREE-4). Whoever removes a region from now on waits for
  // send_lock_ (memory_changed()).
  bool usable(const SendRequest& message) const {
    return message.regions_seen == regions_.removals() || usable_still(message);
  }
  // False: some of its memory may have been, and each is to be looked at by itself.
  bool surely_usable(const SendRow& row) const { return row.regions_seen == regions_.removals(); }

  void peer_closed(CloseReason reason);
  // `why`: what the oldest request ends with (STAT-7, STAT-10).
  void peer_lost(WorkStatus why);
  void break_connection(WorkStatus send_status, CloseReason tell_peer);
  void let_go_finished();  // see Stream::let_go()
  // A region has been removed: nobody acts on an older check afterwards, if this answers true (Adapter::quiesce()).
  bool memory_changed();
  // Returns when the posts that are being carried out now have been. Later ones look at everything anew.
  void let_posts_end();
  // Calls that while nothing is posted, with all lanes closed.
  template <typename Action>
  void with_posts_ended(Action&& action) {
    base::Guard guard(send_lock_);
    close_lanes();
    action();
  }
  // What is posted from now on is kept to be flushed, and what is being posted has been. The end is near.
  void stop_sending() {
    base::Guard guard(send_lock_);
    state_.store(State::ending);
  }

 private:
  // What the consumer is told about the end of a connection or an attempt.
  struct Ending {
    enum class Report : std::uint8_t { none, closed, broken, connect_failed, accept_failed } report = Report::none;
    ConnectFailure why = ConnectFailure::refused;
    WorkStatus first_send_status = WorkStatus::flushed;
  };
  void end(Ending ending);
  void flush_sends(WorkStatus first_status);
  // What a post leaves to be done once the send lock has been released.
  struct Aftermath {
    bool overflowed = false;  // a completion found no room
    bool failed = false;
  };
  template <typename Request>
  Status post(const Request& request);
  template <typename Request>
  Status post_locked(const Request& request, Aftermath& after) ANYDAT_REQUIRES(send_lock_);
  [[gnu::noinline]] Status post_of_row(const SendRequest& request, Aftermath& after) ANYDAT_REQUIRES(send_lock_);
  void see_to(const Aftermath& after);
  std::size_t send_at_once(const SendRow& row, Aftermath& after) ANYDAT_REQUIRES(send_lock_);
  std::uint32_t takes_of_adapter() const;
  bool oldest_finished(bool (*wanted)(WorkKind), std::uint32_t count = 1);
  void fail_oldest(bool (*wanted)(WorkKind), WorkStatus status);
  void write_completed(QueuedEvent& event, std::uint64_t cookie, std::uint64_t length, WorkKind kind) const;
  bool complete_at_once(std::uint64_t cookie, std::uint64_t length, WorkKind kind, WorkFlags flags)
      ANYDAT_REQUIRES(send_lock_);
  bool complete_at_once(std::span<const SingleSend> sends) ANYDAT_REQUIRES(send_lock_);
  void complete_send(const SendRing::Entry& entry, WorkStatus status) ANYDAT_REQUIRES(send_lock_);
  template <WorkKind kind>
  RdmaLane<kind>& lane() {
    if constexpr (kind == WorkKind::rdma_read) {
      return read_lane_;
    } else {
      return write_lane_;
    }
  }
  template <WorkKind kind>
  [[gnu::noinline]] bool again(const SingleRdma& request);
  [[gnu::noinline]] bool put_again(const SingleRdma& request);
  std::optional<bool> carry_out(SendRing::Entry& entry);
  bool begun_bind_is_over();
  void note_send_limits(const QueuePairLimits& limits) ANYDAT_REQUIRES(send_lock_);
  void retire_finished() ANYDAT_REQUIRES(send_lock_);
  std::uint64_t finished_plainly() ANYDAT_REQUIRES(send_lock_);
  bool complete_in_a_row(std::uint64_t count) ANYDAT_REQUIRES(send_lock_);
  SendOutcome hand_over(std::uint64_t number, const SendRequest& message, Progress& progress)
      ANYDAT_REQUIRES(send_lock_);
  // What the oldest request has failed with, while others before it were not done (DTO-40).
  WorkStatus failure_at_front() ANYDAT_REQUIRES(send_lock_);
  template <typename Wanted>
  SendRing::Entry* oldest_held(Wanted&& wanted) ANYDAT_REQUIRES(send_lock_);
  template <typename Wanted>
  static bool is_held(const SendRing::Entry& entry, Wanted&& wanted);
  SendRing::Entry* oldest_read() ANYDAT_REQUIRES(send_lock_);
  template <typename Culprit>
  bool writes_done_up_to(Culprit&& culprit, WorkStatus status);
  bool is_under_way(std::uint64_t number) ANYDAT_REQUIRES(send_lock_);
  static void note_failure(SendRing::Entry& entry, WorkStatus status);
  void look_at_windows();
  void linger();
  void look_whether_to_linger();
  // What one side still owes the other while the connection ends in order: any difference is progress.
  struct Owed {
    std::uint64_t sent = 0;      // requests that are done
    std::uint64_t handed = 0;    // bytes of the next one that its stream has
    std::uint64_t untaken = 0;   // as Stream::untaken()
    std::uint64_t received = 0;  // messages
    friend bool operator==(const Owed&, const Owed&) = default;
  };
  Owed owed();
  void finish_draining();
  bool usable_still(const SendRequest& message) const;
  // To be called before a stream uses memory on the word of a check: each removal of a region comes by from then on.
  void note_sending() ANYDAT_REQUIRES(send_lock_) {
    if (!noted_sending_) [[unlikely]]
      enter_to_send();
  }
  [[gnu::cold, gnu::noinline]] void enter_to_send() ANYDAT_REQUIRES(send_lock_);

  SoftAdapter& adapter_;
  const RegionTable& regions_;  // the adapter's
  QueuePairEvents& events_;
  ReceiveSide receives_;

  // Written with the engine and send_lock_ held, so that either is enough to read it; a post of a receive reads
  // the state bare.
  std::atomic<State> state_{State::idle};
  std::atomic<ZoneId> zone_{kNoZone};
  std::atomic<ZoneId> scope_;
  std::atomic<CompletionQueue*> send_queue_{nullptr};

  mutable base::Biased<base::SpinLock> send_lock_;
  SendRing sends_ ANYDAT_GUARDED_BY(send_lock_);
  RdmaLane<WorkKind::rdma_write> write_lane_;  // these four likewise, but for a guess
  RdmaLane<WorkKind::rdma_read> read_lane_;
  SeenLocalRegion send_lane_;
  LocalRegion put_lane_;
  std::uint32_t reads_held_ ANYDAT_GUARDED_BY(send_lock_) = 0;  // Reads, and atomic operations, that the stream holds
  std::uint32_t peer_takes_ ANYDAT_GUARDED_BY(send_lock_) = 0;
  std::uint32_t reads_out_ ANYDAT_GUARDED_BY(send_lock_) = 0;
  // Since it was last looked at; while it is set, another look is sure to come.
  bool noted_sending_ ANYDAT_GUARDED_BY(send_lock_) = false;
  MemoryUsers::Entry memory_user_{*this};
  std::uint32_t reads_in_ = 0;    // with the engine
  std::uint32_t send_depth_ = 0;  // likewise, as the next: what sends_ gets room for when there is to be a connection
  std::uint32_t send_segments_ = 0;
  std::unique_ptr<Stream> stream_;  // written as state_ is

  // With the engine held.
  OwnWindows windows_;
  Address local_address_{};
  Address remote_address_{};
  std::uint64_t local_port_ = 0;
  std::uint64_t remote_port_ = 0;
  ServicePointName reached_;
  Ending ending_;
  std::vector<std::byte> rejection_;  // the private data that came with it, until it is reported
  std::uint64_t unwanted_ = 0;        // bytes that are still to come for a Read that has failed
  bool peer_closing_ = false;         // the peer closed in order; what it sent before is still to be delivered
  // A bind, the end, or a message that invalidates waits for a peer that uses what a window has shown.
  Timer window_timer_;
  bool invalidation_waits_ = false;
  Owed owed_;
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
  Task pump_task_;
  Counters counters_;
};

template <typename F>
bool SoftQueuePair::with_request(std::uint64_t number, F&& f) {
  base::Guard guard(send_lock_);
  SendRing::Entry* entry = sends_.find(number);
  if (!entry) return false;
  f(entry->request());
  return true;
}

}  // namespace anydat::nic::soft
