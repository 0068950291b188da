// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "nic/adapter.h"
#include "nic/verbs/receive_pool.h"
#include "nic/verbs/shared_queue.h"
#include "nic/verbs/work_id.h"

namespace anydat::nic::verbs {

class VerbsAdapter;
class VerbsQueuePair;

// The receiving side of a device's queue pair: where its messages find their buffers, its own receives or the shared
// ones; their completions; and over iWARP the messages that have come before it is said that the other side has
// accepted.
//
// Thread safety: posts and counts from any thread; everything else with the engine held. Lives and dies with its queue
// pair.
class ReceiveSide {
 public:
  // `shared`: null if it has receives of its own.
  ReceiveSide(VerbsQueuePair& queue_pair, VerbsAdapter& adapter, SharedQueue* shared, const QueuePairEvents& events,
              QueuePair::Counters& counters);
  ReceiveSide(const ReceiveSide&) = delete;
  ReceiveSide& operator=(const ReceiveSide&) = delete;
  Status init(const QueuePairLimits& limits);

  // ---- as in QueuePair
  Status post(const RecvRequest& request) { return own_->post(request); }
  QueuePair::RecvInfo info() const;
  bool idle() const { return !own_ || own_->counts().outstanding == 0; }
  std::uint32_t largest_posted_segments() const { return own_ ? own_->largest_segment_count() : 0; }
  QueuePair::PostedReceives posted() const {
    if (!own_) return {0, 0};
    return {own_->counters().posted.get(), own_->counters().posted_bytes.get()};
  }

  // ---- what is set of it, with the send lock held, too
  Status set_limits(const QueuePairLimits& limits) {
    return own_ ? own_->set_limits(limits.recv_depth, limits.recv_segments) : Status::ok;
  }
  void set_queue(CompletionQueue* queue) { queue_.store(queue); }

  // ---- the device's queue pair, which its own receives go to
  SharedQueue* shared() const { return shared_; }  // or null
  void attach(ibv_qp* qp, std::uint32_t tag, std::uint32_t room) {
    if (own_) own_->attach(qp, tag, room);
  }
  // As in ReceivePool.
  void close() {
    if (own_) own_->close();
  }
  void detach() {
    if (own_) own_->detach();
  }
  bool any_at_device() const { return own_ && own_->at_device() > 0; }
  // The device has finished with a receive: of its own, or one that is out of the shared pool.
  void completed(const ibv_wc& wc, std::uint32_t slot, ZoneId zone);
  void completed(const ibv_wc& wc, const ReceivePool::Done& done);

  // ---- what comes before a connection stands
  struct Early {
    ibv_wc wc;
    WorkId id;
    std::optional<ReceivePool::Done> done;  // of a shared queue
  };
  bool put_aside(const Early& early);  // false: there is no memory for it
  // What the device gave back of receives of its own says nothing: they wait in their pool for the next attempt.
  void attempt_is_over() {
    std::erase_if(early_, [](const Early& early) { return !early.done; });
  }
  std::vector<Early> take_early() { return std::exchange(early_, {}); }

  // ---- its end
  void flush_early();  // others than the shared ones have their buffers back in the pool
  void flush();        // what is posted
  void flush_late();   // the same by a post that finds the connection over

 private:
  void flush_locked();  // the send lock
  void complete(const ReceivePool::Done& done, WorkStatus status, std::uint64_t length, bool solicited);

  VerbsQueuePair& queue_pair_;
  VerbsAdapter& adapter_;
  const QueuePairEvents& events_;
  QueuePair::Counters& counters_;  // the queue pair's
  SharedQueue* const shared_;      // null: own_ serves
  std::unique_ptr<ReceivePool> own_;
  std::atomic<CompletionQueue*> queue_{nullptr};
  std::vector<Early> early_;
};

}  // namespace anydat::nic::verbs
