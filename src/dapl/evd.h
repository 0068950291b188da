// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "base/counter.h"
#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/event.h"
#include "dapl/object.h"
#include "nic/adapter.h"
#include "nic/outstanding_receives.h"
#include "os/lock.h"

namespace anydat::dapl {

class Cno;

// The streams that feed an event dispatcher, counted by what EVM-24 compares. Completion streams count by their flags.
struct StreamCounts {
  enum Model : std::uint8_t { kThreshold, kUnsignalled, kSolicited };
  std::array<std::uint32_t, 3> receives{};
  std::array<std::uint32_t, 3> requests{};
  std::uint32_t others = 0;  // connection, connection request and asynchronous streams

  std::uint32_t all() const;
  bool permitted(bool software) const;  // EVM-24, EP-CREATE-20 to 23
  // Whether a receive may have to be asked how its stream notifies, since not all do it alike.
  bool mixed_with_solicited() const;
  EvdState configuration() const;  // EVM-23
};

// Of a call on an EVD that a thread waits on.
Error evd_is_waited_on(const char* call);

// An event dispatcher: a queue of events, one waiter at a time, and perhaps a CNO to trigger.
//
// Thread safety: any thread may call any method; those marked (engine) are called with the engine held. lock_ comes
// after the engine and a queue pair's locks; under it only a CNO's lock is taken. Always true: no more is queued than
// there is room for; every event is handed out once, in order of arrival (EVM-9, EVM-13).
class Evd final : public Object, public nic::CompletionQueue {
 public:
  static constexpr HandleType kType = HandleType::evd;

  struct Counters {
    std::uint64_t events;     // ever queued
    std::uint64_t overflows;  // events lost for want of room
    std::uint64_t waits;      // waits that had to block
    std::uint64_t most_queued;
    std::uint64_t wait_calls;  // all waits
    std::uint64_t wake_ups;    // of waits that blocked: enough events had come, or there was something else to look at
    std::uint64_t found;       // events that were dequeued without a wait
    std::uint64_t not_found;   // dequeues that found nothing
    std::uint64_t poll_found;  // dequeues that found something only by looking for what has arrived
    std::uint64_t connection;  // events of connections queued
    std::uint64_t completions;
  };

  Evd(Ia& ia, EvdFlags flags);
  ~Evd() override;
  bool init(Count capacity);

  static Error create(Ia& ia, Count min_qlen, Cno* cno, EvdFlags flags, Handle* handle);
  EvdParameters query();
  void modify_cno(Cno* cno);
  void set_enabled(bool enabled);
  void set_waitable(bool waitable);
  Error wait(Microseconds timeout, Count threshold, Event& event, Count* nmore);
  // Hands the oldest event to take(const Event&), with lock_ held: what the face writes is written once.
  template <typename Take>
  Error dequeue(Take take);
  // As if dequeue() were called until it finds the queue empty, but up to `most` times. How many it took in `taken`;
  // none only with an error.
  template <typename Take>
  Error dequeue_many(std::size_t most, std::size_t& taken, Take take);
  Error post_software(const void* pointer);
  Error resize(Count min_qlen);
  // With the lock of all instances held, too: another may have borrowed it.
  Error free() ANYDAT_NO_ANALYSIS;

  // Streams. The engine makes a look at them and the change that follows from it one.
  StreamCounts streams() const;
  bool permits(const StreamCounts& counts) const {
    return mixes_flags_ || counts.permitted((flags_ & evd_flag::kSoftware) != 0);
  }
  // change(StreamCounts&), with lock_ held: endpoints of another instance feed the EVD with another engine.
  template <typename Change>
  void change_streams(Change change) {
    os::Guard guard(lock_);
    change(streams_);
    note_streams_locked();
  }
  // It serves endpoints of another instance, now or once.
  void note_lent() { lent_.store(true, std::memory_order_relaxed); }
  bool carries(EvdFlags kind) const { return (flags_ & kind) != 0; }

  // Arrivals. False: lost for want of room, which has been reported, except by push_request().
  using nic::CompletionQueue::push;
  std::size_t push(std::span<const nic::Completion> completions) override;
  bool push(const Event& event);
  bool push_request(const Event& event);  // EVM-53: a full queue is a full backlog, not an overflow

  // Forgets that completions on the queue came from this shared queue; it is about to go.
  void forget(const nic::ReceiveQueue& queue);
  void count_as_reaped();
  // (engine) Takes the waiter out and drops all events; nothing but the destructor may follow.
  void shut_down();

  Counters counters() const;

 private:
  bool append(const Event& event, bool overflows);
  void note_streams_locked() ANYDAT_REQUIRES(lock_);
  bool notifies(const nic::Completion& completion) const;
  bool grow_locked() ANYDAT_REQUIRES(lock_);
  bool note_overflow_locked(std::size_t lost) ANYDAT_REQUIRES(lock_);
  void notify_locked() ANYDAT_REQUIRES(lock_);
  void note_watched_locked() ANYDAT_REQUIRES(lock_) { set_watched(waiter_ || cno_); }
  template <typename Take>
  void take_locked(const nic::QueuedEvent& oldest, Take& take) ANYDAT_REQUIRES(lock_);
  // Apart: in a dequeue it would cost the face of 2.0, which writes more, the registers for that.
  // True if it has brought anything, to whomever, but for what came of borrowers.
  [[gnu::noinline]] bool poll() {
    const bool brought = engine_.poll();
    if (lent_.load(std::memory_order_relaxed)) [[unlikely]]
      poll_borrowers();
    return brought;
  }
  void poll_borrowers();
  bool found_empty();
  Error found_nothing();
  Error may_wait_locked(Count threshold) const ANYDAT_REQUIRES(lock_);
  Error block(Microseconds timeout, Count threshold, Event& event, Count* nmore);

  nic::Engine& engine_;  // the instance's
  const EvdFlags flags_;
  const bool mixes_flags_;  // by the instance's habits, like the three below
  const bool grows_;
  const Error queue_empty_;
  const Error timed_out_;
  std::atomic<bool> lent_{false};

  // lock_ is that of the queue, whose ring is written with it held.
  StreamCounts streams_ ANYDAT_GUARDED_BY(lock_);
  // Which receives of unsolicited messages notify no waiter (EVM-31): those of all streams, or of those that say so.
  enum class Unsolicited : std::uint8_t { notify, silent, ask_stream };
  std::atomic<Unsolicited> unsolicited_{Unsolicited::notify};
  Cno* cno_ ANYDAT_GUARDED_BY(lock_) = nullptr;
  nic::Waiter* waiter_ ANYDAT_GUARDED_BY(lock_) = nullptr;
  std::uint32_t threshold_ ANYDAT_GUARDED_BY(lock_) = 0;  // of the waiter
  // Threads that are looking before they become the waiter. The EVD does not go before they have seen that it does.
  std::uint32_t about_to_wait_ ANYDAT_GUARDED_BY(lock_) = 0;
  bool enabled_ ANYDAT_GUARDED_BY(lock_) = true;
  bool waitable_ ANYDAT_GUARDED_BY(lock_) = true;
  bool turned_away_ ANYDAT_GUARDED_BY(lock_) = false;  // the waiter met set_unwaitable (ruling A61)
  bool overflowed_ ANYDAT_GUARDED_BY(lock_) = false;   // reported, and nothing dequeued since
  bool dead_ ANYDAT_GUARDED_BY(lock_) = false;
  EvdState configuration_ ANYDAT_GUARDED_BY(lock_) = evd_state::kConfigThreshold;
  // What is counted. All but the last two written under lock_; these without it, so that an empty queue is found empty
  // without a lock: of several threads that poll one EVD at the same time, one may undo what another has just counted
  // (ruling B29).
  struct Counting {
    base::Counter overflows;
    base::Counter waits;
    base::Counter wait_calls;
    base::Counter wake_ups;
    base::Counter taken_by_waits;
    base::Counter others_queued;  // of what was queued, all but completions
    base::Counter connection_queued;
    base::Counter not_found;
    base::Counter poll_found;
  } counting_;
};

template <typename Take>
inline void Evd::take_locked(const nic::QueuedEvent& oldest, Take& take) {
  take(oldest.event);
  nic::ReapCount* const reaped = oldest.reaped;
  ring_.drop_oldest();
  overflowed_ = false;
  // SRQ-ACC-9. Under the lock: a shared queue that goes away makes the queues forget it first.
  if (reaped) reaped->add();
}

// Looks for what has arrived first. False: it is not empty, or may not be.
inline bool Evd::found_empty() {
  if (ring_.queued() != 0) return false;
  poll();
  if (ring_.queued() != 0) {
    counting_.poll_found.add();
    return false;
  }
  // Without a waiter, which would have the event, what is empty needs no lock to be found so.
  return !watched();
}

inline Error Evd::found_nothing() {
  counting_.not_found.add();
  return queue_empty_;
}

template <typename Take>
inline Error Evd::dequeue(Take take) {
  if (found_empty()) return found_nothing();
  os::Guard guard(lock_);
  if (waiter_) [[unlikely]]
    return evd_is_waited_on("dat_evd_dequeue");
  const nic::QueuedEvent* const oldest = ring_.look_at_oldest();
  if (!oldest) return found_nothing();
  take_locked(*oldest, take);
  return kSuccess;
}

template <typename Take>
inline Error Evd::dequeue_many(std::size_t most, std::size_t& taken, Take take) {
  // A thread that has something to queue waits for the lock no longer than so many take.
  constexpr std::size_t kAtOnce = 64;
  taken = 0;
  if (found_empty()) return found_nothing();
  for (bool more = true; more;) {
    os::Guard guard(lock_);
    if (waiter_) [[unlikely]]
      return taken > 0 ? kSuccess : evd_is_waited_on("anydat_evd_dequeue_many");
    const std::size_t queued = ring_.queued();
    if (!ring_.look_at_oldest()) break;
    const std::size_t end = taken + std::min({most - taken, queued, kAtOnce});
    for (; taken != end; ++taken) take_locked(ring_.oldest(), take);
    more = taken != most && queued > kAtOnce;
  }
  return taken > 0 ? kSuccess : found_nothing();
}

}  // namespace anydat::dapl
