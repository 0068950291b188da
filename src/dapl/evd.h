// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "base/counter.h"
#include "base/lock.h"
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
  DAT_EVD_STATE configuration() const;  // EVM-23
};

// An event dispatcher: a queue of events, one waiter at a time, and perhaps a CNO to trigger.
//
// Thread safety: any thread may call any method; those marked (engine) are called with the engine held. lock_ comes
// after the engine and a queue pair's locks; under it only a CNO's lock is taken. Always true: count_ <= capacity_;
// every event is handed out once, in order of arrival (EVM-9, EVM-13).
class Evd final : public Object, public nic::CompletionQueue {
 public:
  static constexpr DAT_HANDLE_TYPE kType = DAT_HANDLE_TYPE_EVD;

  struct Counters {
    base::Counter events;     // ever queued
    base::Counter overflows;  // events lost for want of room
    base::Counter waits;      // waits that had to block
    base::Counter most_queued;
  };

  Evd(Ia& ia, DAT_EVD_FLAGS flags);
  ~Evd() override;
  bool init(DAT_COUNT capacity);

  static DAT_RETURN create(Ia& ia, DAT_COUNT min_qlen, Cno* cno, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE* handle);
  DAT_RETURN query(DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM* param);
  DAT_RETURN modify_cno(Cno* cno);
  DAT_RETURN set_enabled(bool enabled);
  DAT_RETURN set_waitable(bool waitable);
  DAT_RETURN wait(DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* event, DAT_COUNT* nmore);
  DAT_RETURN dequeue(DAT_EVENT* event);
  DAT_RETURN post_se(const DAT_EVENT* event);
  DAT_RETURN resize(DAT_COUNT min_qlen);
  DAT_RETURN free();

  // (engine) Streams.
  const StreamCounts& streams() const { return streams_; }
  bool permits(const StreamCounts& counts) const {
    return mixes_flags_ || counts.permitted((flags_ & DAT_EVD_SOFTWARE_FLAG) != 0);
  }
  void set_streams(const StreamCounts& counts);
  std::uint32_t queued() const { return count_.load(std::memory_order_relaxed); }
  bool carries(DAT_EVD_FLAGS kind) const { return (flags_ & kind) != 0; }

  // Arrivals. False: lost for want of room, which has been reported, except by push_request().
  using nic::CompletionQueue::push;
  std::size_t push(std::span<const nic::Completion> completions) override;
  bool push(const DAT_EVENT& event);
  bool push_request(const DAT_EVENT& event);  // EVM-53: a full queue is a full backlog, not an overflow

  // (engine) Forgets that completions on the queue came from this shared queue; it is about to go.
  void forget(const nic::ReceiveQueue& queue);
  // (engine) Takes the waiter out and drops all events; nothing but the destructor may follow.
  void shut_down();

  const Counters& counters() const { return counters_; }

 private:
  struct Entry {
    DAT_EVENT event;
    nic::ReceiveQueue* shared;  // to be told when a receive's completion is reaped
    std::uint64_t spare;        // fills the cache line
  };

  bool append(const DAT_EVENT& event, bool overflows);
  Entry& next_slot_locked() ANYDAT_REQUIRES(lock_);
  void write(Entry& entry, const nic::Completion& completion) const;
  bool notifies(const nic::Completion& completion) const;
  bool grow_locked() ANYDAT_REQUIRES(lock_);
  void move_locked(std::unique_ptr<Entry[]> ring, std::uint32_t capacity) ANYDAT_REQUIRES(lock_);
  bool note_overflow_locked(std::size_t lost) ANYDAT_REQUIRES(lock_);
  void notify_locked() ANYDAT_REQUIRES(lock_);
  void pop_locked(DAT_EVENT* event, nic::ReceiveQueue*& shared) ANYDAT_REQUIRES(lock_);
  DAT_RETURN busy_locked(const char* call) ANYDAT_REQUIRES(lock_);
  DAT_RETURN block(DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* event, DAT_COUNT* nmore);

  const DAT_EVD_FLAGS flags_;
  const bool mixes_flags_;  // as the next three, by the instance's habits
  const bool grows_;
  const DAT_RETURN queue_empty_;
  const DAT_RETURN timed_out_;
  StreamCounts streams_;  // with the engine

  mutable base::SpinLock lock_;
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
  DAT_EVD_STATE configuration_ ANYDAT_GUARDED_BY(lock_) = DAT_EVD_STATE_CONFIG_THRESHOLD;
  Counters counters_;  // written under lock_
};

}  // namespace anydat::dapl
