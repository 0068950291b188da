// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "nic/adapter.h"
#include "nic/connection_state.h"
#include "nic/run_queue.h"
#include "nic/verbs/resources.h"
#include "nic/verbs/send_ring.h"
#include "os/lock.h"

namespace anydat::nic::verbs {

class VerbsAdapter;
class VerbsQueuePair;

// The send queue of a device's queue pair: its requests on their way to the device, and to their completions, each once
// and in posting order (DTO-40). Binds are carried out here in their turn, since the device knows nothing of windows.
//
// Thread safety: posts and counts from any thread; everything else with the engine held. lock_ is the posters' own and
// comes after the engine; under it only the device's own locks and completion queues are taken. It is held while the
// device's driver works, which may be as long as sending takes, so completions are handled without it. Lives and dies
// with its queue pair.
class SendQueue {
 public:
  using State = ConnectionState;

  SendQueue(VerbsQueuePair& queue_pair, VerbsAdapter& adapter, const QueuePairEvents& events);
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  // ---- as in QueuePair
  Status post(const SendRequest& request);
  Status post_bind(const BindRequest& request, std::uint32_t& key);
  bool idle() const { return requests_.empty(); }
  QueuePair::Counters& counters() { return counters_; }  // of all that the queue pair does
  const QueuePair::Counters& counters() const { return counters_; }

  // ---- what is set of it
  os::SpinLock& lock() const ANYDAT_RETURN_CAPABILITY(lock_) { return lock_; }
  void set_queue(CompletionQueue* queue) ANYDAT_REQUIRES(lock_) { queue_.store(queue); }
  // What requests need, for so many of so many segments. May throw std::bad_alloc.
  struct Room {
    Room(const QueuePairLimits& limits, bool keeps_segments);
    SendRing::Storage ring;
    std::vector<ibv_sge> gather;
    std::vector<ibv_send_wr> chain;
    std::vector<Segment> posted_segments;
  };
  void move_to(Room room) ANYDAT_REQUIRES(lock_);

  // ---- the state of the connection, which is written with the engine and lock_ held, so that either is enough to read
  // it; a post of a receive and a query of the receives read it bare
  State state() const { return state_.load(std::memory_order_relaxed); }
  // In one order with what changes it, for a post that looks after it has posted.
  State state_now() const { return state_.load(); }
  void enter(State state) {
    os::Guard guard(lock_);
    nic::enter(state_, state);
  }
  // The connection is over: what is posted from now on waits to be flushed. `first_status`: what the first request that
  // is flushed comes to.
  void end(WorkStatus first_status) {
    enter(State::ending);
    first_flushed_ = first_status;
  }
  // Completes what is left. Whatever is posted from now on is flushed by the thread that posts it.
  void flush();
  void reset();  // to no connection
  void destroy();

  // ---- the device's queue pair, which requests go to
  // `tag`: the queue pair's name in their completions; `inline_max`: how long a message may be to go with its request.
  void attach(ibv_qp* qp, std::uint32_t tag, std::uint32_t inline_max) {
    os::Guard guard(lock_);
    qp_ = qp;
    tag_ = tag;
    inline_max_ = inline_max;
  }
  void detach() {
    os::Guard guard(lock_);
    qp_ = nullptr;
  }
  // How many Reads may be under way to the peer.
  void agree_on_reads(std::uint32_t count) { reads_agreed_.store(count); }
  bool any_at_device() const { return requests_.any_at_device(); }
  // The device has finished with a request, of whose number these are the low bits.
  void completed(const ibv_wc& wc, std::uint32_t number);
  // Reports what is finished. What ends the connection with that is called later.
  void retire();
  // A bind has begun, which changes its window, and so it is not flushed (RMR-BIND-13).
  bool bind_has_begun();

 private:
  void note_segments(const SendRequest& request, std::uint64_t number) ANYDAT_REQUIRES(lock_);
  bool begin(const SendRequest& request, std::uint64_t number, SendRing::Entry& entry) ANYDAT_REQUIRES(lock_);
  bool begin_late(std::uint64_t number, SendRing::Entry& entry) ANYDAT_REQUIRES(lock_);
  Status hand_over(const SendRequest& request, std::uint64_t number) ANYDAT_REQUIRES(lock_);
  void spread_read(const SendRequest& request) ANYDAT_REQUIRES(lock_);
  void count(const SendRequest& request) ANYDAT_REQUIRES(lock_);
  Status keep_behind_bind(const SendRequest& request) ANYDAT_REQUIRES(lock_);
  WorkStatus status_of(const ibv_wc& wc, std::uint32_t number) const;
  void retire_finished();
  void complete(SendRing::Entry& entry, WorkStatus status);
  std::optional<WorkStatus> carry_out(SendRing::Bind& bind);
  static void give_up(SendRing::Bind& bind);
  void go_on_behind_bind();

  VerbsQueuePair& queue_pair_;
  VerbsAdapter& adapter_;
  const QueuePairEvents& events_;
  std::atomic<State> state_{State::idle};
  std::atomic<CompletionQueue*> queue_{nullptr};  // written as state_ is

  mutable os::SpinLock lock_;
  SendRing requests_;                              // posters hold lock_, the taker the engine
  std::atomic<bool> blocked_{false};               // a request cannot be done, so none behind it is begun
  unsigned binds_ ANYDAT_GUARDED_BY(lock_) = 0;    // that are not done, and that what is posted waits for
  ibv_qp* qp_ ANYDAT_GUARDED_BY(lock_) = nullptr;  // null without a connection
  std::uint32_t inline_max_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::uint32_t tag_ = 0;  // written with both
  std::vector<ibv_sge> gather_ ANYDAT_GUARDED_BY(lock_);
  std::vector<ibv_send_wr> chain_ ANYDAT_GUARDED_BY(lock_);
  // Over iWARP: the segments of requests, posted_most_ of each, at the low bits of their numbers. Soft-iWARP says one
  // thing of memory that has gone and of a connection that has. Written by posters before requests_ has the request.
  std::vector<Segment> posted_segments_;
  std::size_t posted_most_ = 1;
  std::atomic<std::uint32_t> reads_agreed_{0};

  // With the engine held.
  WorkStatus first_flushed_ = WorkStatus::flushed;  // what the next one that is flushed comes to
  bool one_failed_ = false;                         // so that those after it do as well
  Task retire_task_;
  QueuePair::Counters counters_;  // those of what is posted with lock_
};

}  // namespace anydat::nic::verbs
