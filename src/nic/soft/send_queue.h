// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "nic/adapter.h"
#include "nic/connection_state.h"
#include "nic/soft/pending_requests.h"
#include "nic/soft/send_lanes.h"
#include "nic/soft/stream.h"
#include "os/biased_lock.h"

namespace anydat::nic::soft {

class SoftAdapter;
class SoftQueuePair;

// The send queue of a software queue pair: its requests on their way to the stream, and to their completions. They are
// posted by way of SendSide, and what becomes of those that the stream holds is told to RequestOutcomes.
//
// A request that ends the connection has Connection::break_off() called, with the engine and without the lock.
//
// Thread safety: the calls of a stream that has been called with the lock need no more; all others with the engine
// held, which comes before the lock. Under the lock only a stream's own lock and completion queues are taken. Lives and
// dies with its queue pair.
class SendQueue {
 public:
  using State = ConnectionState;
  using Lock = os::Biased<os::SpinLock>;

  SendQueue(SoftQueuePair& queue_pair, SoftAdapter& adapter, const QueuePairEvents& events);
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  // ---- as in QueuePair, from any thread
  std::uint32_t peer_takes() const;
  bool idle() const {
    os::Guard guard(lock_);
    return requests_.empty();
  }

  // ---- for the queue pair and its parts
  Lock& lock() const ANYDAT_RETURN_CAPABILITY(lock_) { return lock_; }
  PendingRequests& requests() ANYDAT_REQUIRES(lock_) { return requests_; }
  QueuePair::Counters& counters() { return counters_; }
  const QueuePair::Counters& counters() const { return counters_; }
  // To come before a connection. False: there is no memory for its requests.
  bool make_room();
  std::uint32_t reads_out() const {
    os::Guard guard(lock_);
    return requests_.reads_out();
  }

  // ---- for the queue pair: its state, which is written with the engine and the lock held, so that either is enough to
  // read it; a post of a receive reads it bare
  State state() const { return state_.load(std::memory_order_relaxed); }
  // In one order with what changes it, for a post that looks after it has posted.
  State state_now() const { return state_.load(); }
  void enter(State state) {
    os::Guard guard(lock_);
    nic::enter(state_, state);
  }
  // From now on requests are for this stream; null: for none.
  void enter(State state, Stream* stream) {
    os::Guard guard(lock_);
    stream_ = stream;
    nic::enter(state_, state);
  }
  void change_stream(Stream* stream) {
    os::Guard guard(lock_);
    stream_ = stream;
  }
  void connection_begins() {
    os::Guard guard(lock_);
    lanes_.close();
    nic::enter(state_, State::connected);
  }
  // A bind has begun that can no longer be stopped. False: it is still to come.
  bool begun_bind_is_over();
  // The end of a connection: whatever is posted from now on is flushed by the thread that posts it.
  void flush(WorkStatus first_status);
  void reset();  // to no connection
  void destroy();
  // Calls that if the connection is over, and lets no late post flush meanwhile.
  template <typename Action>
  void if_closed(Action&& action) {
    os::Guard guard(lock_);
    if (state() == State::closed) action();
  }
  // How far it has come: any difference is progress.
  struct Progressed {
    std::uint64_t done = 0;    // requests
    std::uint64_t handed = 0;  // bytes of the next one that the stream has
    friend bool operator==(const Progressed&, const Progressed&) = default;
  };
  Progressed progressed();

  // ---- for the stream, which has been called with the lock
  SendLanes& lanes() { return lanes_; }
  // Its memory may have been freed since the post (LMR-FREE-4). A thread that removes a region from now on waits for
  // the lock (Connection::region_removed()).
  bool usable(const SendRequest& message) const {
    return message.regions_seen == regions_.removals() || usable_still(message);
  }
  // False: some of its memory may have been, and each is to be looked at by itself.
  bool surely_usable(const SendRow& row) const { return row.regions_seen == regions_.removals(); }

  // ---- for the stream, with the engine
  bool pump();  // hands requests that were blocked to the stream again; true if any of them got further
  // The memory at that address, which the first request that is blocked may wait for, is not to be had: that request
  // fails in its turn (DTO-40). False: it does not wait for that.
  bool fail_blocked(std::uint64_t address, bool to_write, WorkStatus status);
  // Calls f(const SendRequest&) for a pending request, with the lock held. False if there is no such request.
  template <typename F>
  bool with_request(std::uint64_t number, F&& f) {
    os::Guard guard(lock_);
    SendRing::Entry* entry = requests_.find(number);
    if (!entry) return false;
    f(entry->request());
    return true;
  }
  // What the peer has told that it takes, before the connection stands.
  void set_peer_takes(std::uint32_t abilities);
  // Returns when the posts that are being carried out now have been. Later ones look at everything anew.
  // `receives`: the queue pair stays among the users of memory whatever it sends.
  void await_posts(bool receives);
  // Returns when the post that is being carried out now has been.
  void await_post() { os::Guard inside_a_post(lock_); }
  // Calls that while nothing is posted, with all lanes closed.
  template <typename Action>
  void with_posts_ended(Action&& action) {
    os::Guard guard(lock_);
    lanes_.close();
    action();
  }

  // ---- for RequestOutcomes
  void retire_finished() ANYDAT_REQUIRES(lock_);
  // What an answer leaves to be done once the lock has been released.
  struct Outcome {
    WorkStatus failure = WorkStatus::success;  // what the connection ends with now
    bool drained = false;
    bool blocked = false;  // some requests wait for the stream
  };
  Outcome retire() ANYDAT_REQUIRES(lock_);

 protected:
  SendOutcome hand_over(std::uint64_t number, const SendRequest& message, Progress& progress) ANYDAT_REQUIRES(lock_);
  // To be called before a stream uses memory that has been checked earlier: from then on each removal of a region
  // visits this queue pair, and waits for its posts.
  void note_sending() ANYDAT_REQUIRES(lock_) {
    if (!noted_sending_) [[unlikely]]
      enter_to_send();
  }

  SoftQueuePair& queue_pair_;
  SoftAdapter& adapter_;
  const RegionTable& regions_;  // the adapter's
  std::atomic<State> state_{State::idle};

  mutable Lock lock_;
  PendingRequests requests_ ANYDAT_GUARDED_BY(lock_);
  SendLanes lanes_;                                    // with lock_, but for a guess
  Stream* stream_ ANYDAT_GUARDED_BY(lock_) = nullptr;  // the queue pair's
  std::uint32_t peer_takes_ ANYDAT_GUARDED_BY(lock_) = 0;
  // Since it was last looked at; while it is set, another look is sure to come.
  bool noted_sending_ ANYDAT_GUARDED_BY(lock_) = false;
  Task pump_task_;
  QueuePair::Counters counters_;  // of all that the queue pair does

 private:
  bool usable_still(const SendRequest& message) const;
  [[gnu::cold, gnu::noinline]] void enter_to_send() ANYDAT_REQUIRES(lock_);
};

// In place, since this is the way of every post. What keeps a request back besides its stream comes first.
inline SendOutcome SendQueue::hand_over(std::uint64_t number, const SendRequest& message, Progress& progress) {
  if (requests_.keeps_back(message)) [[unlikely]]
    return SendOutcome::blocked;
  if (is_read(message.kind) && requests_.reads_out() == 0) {
    progress.failure = WorkStatus::local_ep;
    return SendOutcome::failed;
  }
  const SendOutcome outcome = stream_->send(number, message, progress);
  if (outcome == SendOutcome::pending && is_read(message.kind)) requests_.note_read_held();
  return outcome;
}

}  // namespace anydat::nic::soft
