// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "base/counter.h"
#include "base/lock.h"
#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/event.h"
#include "dapl/object.h"
#include "nic/adapter.h"

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

// An event dispatcher: a queue of events, one waiter at a time, and perhaps a CNO to trigger.
//
// Thread safety: any thread may call any method; those marked (engine) are called with the engine held. lock_ comes
// after the engine and a queue pair's locks; under it only a CNO's lock is taken. Always true: count_ <= capacity_;
// every event is handed out once, in order of arrival (EVM-9, EVM-13).
class Evd final : public Object, public nic::CompletionQueue {
 public:
  static constexpr HandleType kType = HandleType::evd;

  struct Counters {
    base::Counter events;     // ever queued
    base::Counter overflows;  // events lost for want of room
    base::Counter waits;      // waits that had to block
    base::Counter most_queued;
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
    base::Guard guard(lock_);
    change(streams_);
    note_streams_locked();
  }
  // It serves endpoints of another instance, now or once.
  void note_lent() { lent_.store(true, std::memory_order_relaxed); }
  std::uint32_t queued() const { return count_.load(std::memory_order_relaxed); }
  bool carries(EvdFlags kind) const { return (flags_ & kind) != 0; }

  // Arrivals. False: lost for want of room, which has been reported, except by push_request().
  using nic::CompletionQueue::push;
  std::size_t push(std::span<const nic::Completion> completions) override;
  bool push(const Event& event);
  bool push_request(const Event& event);  // EVM-53: a full queue is a full backlog, not an overflow

  // Forgets that completions on the queue came from this shared queue; it is about to go.
  void forget(const nic::ReceiveQueue& queue);
  // (engine) Takes the waiter out and drops all events; nothing but the destructor may follow.
  void shut_down();

  const Counters& counters() const { return counters_; }

 private:
  struct Entry {
    Event event;
    nic::ReceiveQueue* shared;  // to be told when a receive's completion is reaped
  };

  bool append(const Event& event, bool overflows);
  Entry& next_slot_locked() ANYDAT_REQUIRES(lock_);
  void note_streams_locked() ANYDAT_REQUIRES(lock_);
  void write(Entry& entry, const nic::Completion& completion) const;
  bool notifies(const nic::Completion& completion) const;
  bool grow_locked() ANYDAT_REQUIRES(lock_);
  void move_locked(std::unique_ptr<Entry[]> ring, std::uint32_t capacity) ANYDAT_REQUIRES(lock_);
  bool note_overflow_locked(std::size_t lost) ANYDAT_REQUIRES(lock_);
  void notify_locked() ANYDAT_REQUIRES(lock_);
  template <typename Take>
  void pop_locked(Take& take) ANYDAT_REQUIRES(lock_);
  void poll();
  Error busy_locked(const char* call) ANYDAT_REQUIRES(lock_);
  Error block(Microseconds timeout, Count threshold, Event& event, Count* nmore);

  const EvdFlags flags_;
  const bool mixes_flags_;  // as the next three, by the instance's habits
  const bool grows_;
  const Error queue_empty_;
  const Error timed_out_;
  std::atomic<bool> lent_{false};

  mutable base::SpinLock lock_;
  StreamCounts streams_ ANYDAT_GUARDED_BY(lock_);
  std::unique_ptr<Entry[]> ring_ ANYDAT_GUARDED_BY(lock_);
  std::uint32_t capacity_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::uint32_t head_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::atomic<std::uint32_t> count_{0};  // written under lock_
  // Which receives of unsolicited messages notify nobody (EVM-31): those of all streams, or of those that say so.
  enum class Unsolicited : std::uint8_t { notify, silent, ask_stream };
  std::atomic<Unsolicited> unsolicited_{Unsolicited::notify};
  Cno* cno_ ANYDAT_GUARDED_BY(lock_) = nullptr;
  nic::Waiter* waiter_ ANYDAT_GUARDED_BY(lock_) = nullptr;
  std::uint32_t threshold_ ANYDAT_GUARDED_BY(lock_) = 0;  // of the waiter
  bool enabled_ ANYDAT_GUARDED_BY(lock_) = true;
  bool waitable_ ANYDAT_GUARDED_BY(lock_) = true;
  bool turned_away_ ANYDAT_GUARDED_BY(lock_) = false;  // the waiter met set_unwaitable (ruling A61)
  bool overflowed_ ANYDAT_GUARDED_BY(lock_) = false;   // reported, and nothing dequeued since
  bool dead_ ANYDAT_GUARDED_BY(lock_) = false;
  EvdState configuration_ ANYDAT_GUARDED_BY(lock_) = evd_state::kConfigThreshold;
  Counters counters_;  // written under lock_
};

template <typename Take>
inline void Evd::pop_locked(Take& take) {
  const Entry& entry = ring_[head_];
  take(entry.event);
  nic::ReceiveQueue* const shared = entry.shared;
  if (++head_ == capacity_) head_ = 0;
  count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  overflowed_ = false;
  // SRQ-ACC-9. Under the lock: a shared queue that goes away makes the queues forget it first.
  if (shared) shared->reaped();
}

template <typename Take>
inline Error Evd::dequeue(Take take) {
  if (count_.load(std::memory_order_acquire) == 0) poll();
  base::Guard guard(lock_);
  if (waiter_) [[unlikely]]
    return busy_locked("dat_evd_dequeue");
  if (count_.load(std::memory_order_relaxed) == 0) return queue_empty_;
  pop_locked(take);
  return kSuccess;
}

}  // namespace anydat::dapl
