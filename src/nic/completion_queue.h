// SPDX-License-Identifier: BSD-3-Clause
// Where a NIC's completions go: a queue of events that is a DAT object's, and what the NIC itself may do with it.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "nic/event.h"
#include "os/biased_lock.h"

namespace anydat::nic {

class ReapCount;

struct Completion {
  void* owner = nullptr;  // QueuePairEvents::owner of the queue pair that did the work
  std::uint64_t cookie = 0;
  std::uint64_t length = 0;
  WorkKind kind = WorkKind::send;
  WorkStatus status = WorkStatus::success;
  bool unsignalled = false;     // of the post
  bool solicited = false;       // of the matching Send, for a receive
  std::uint32_t value = 0;      // of a receive: the immediate data, or the key that has been invalidated
  ReapCount* reaped = nullptr;  // of the shared queue a receive's buffer came from
};

// An event in its queue.
struct QueuedEvent {
  Event event;
  ReapCount* reaped;  // as in Completion; or null
};

// The events of a queue, in order of arrival. Fixed storage. Positions count from 0 for ever, and what is there to be
// told of the queue's past is told by them.
//
// Thread safety: queued() and the counts by any thread; all else with the lock of its owner held.
class EventRing {
 public:
  EventRing() = default;

  // Room for so many; keeps what is in it, which must not be more. False if there is no memory.
  bool reserve(std::uint32_t capacity) {
    const std::uint64_t slots = std::bit_ceil(std::max<std::uint64_t>(capacity, 1));
    std::unique_ptr<QueuedEvent[]> ring(new (std::nothrow) QueuedEvent[slots]);
    if (!ring) return false;
    take_over(std::move(ring), capacity);
    return true;
  }
  // The same with memory that has been got before: slots_for(capacity) of them.
  static std::uint64_t slots_for(std::uint32_t capacity) { return std::bit_ceil(std::max<std::uint64_t>(capacity, 1)); }
  void take_over(std::unique_ptr<QueuedEvent[]> ring, std::uint32_t capacity) {
    const std::uint64_t mask = slots_for(capacity) - 1;
    for (std::uint64_t n = head(); n != tail(); ++n) ring[n & mask] = ring_[n & mask_];
    ring_ = std::move(ring);
    mask_ = mask;
    capacity_ = capacity;
    forget_room();
  }

  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t queued() const {
    const std::uint64_t head = head_.load(std::memory_order_acquire);
    return static_cast<std::uint32_t>(tail_.load(std::memory_order_acquire) - head);
  }
  bool empty() const { return head() == tail(); }
  bool full() const { return room() == 0; }
  std::uint64_t room() const { return capacity_ - (tail() - head()); }
  // Whether there is room for so many by what find_room() has seen, whatever has been taken out since.
  bool has_known_room(std::size_t count) const { return tail() + count <= known_room_until_; }
  bool find_room(std::size_t count) {
    if (room() < count) return false;
    known_room_until_ = head() + capacity_;
    return true;
  }
  void forget_room() { known_room_until_ = 0; }

  std::uint64_t ever_queued() const { return tail_.load(std::memory_order_relaxed); }
  std::uint64_t ever_dropped() const { return head(); }
  // A moment ago, for a thread without the lock.
  std::uint64_t most_queued() const {
    const std::uint64_t tail = tail_.load(std::memory_order_acquire);
    const std::uint64_t head = head_.load(std::memory_order_acquire);
    return std::max(most_.load(std::memory_order_relaxed), tail > head ? tail - head : 0);
  }

  // Requires: not full.
  [[gnu::always_inline]] void append(const QueuedEvent& event) {
    const std::uint64_t tail = this->tail();
    ring_[tail & mask_] = event;
    tail_.store(tail + 1, std::memory_order_release);
  }
  // Requires: room for all.
  // next(QueuedEvent&) writes each.
  template <typename Next>
  void append(std::size_t count, Next&& next) {
    std::uint64_t tail = this->tail();
    for (const std::uint64_t end = tail + count; tail != end; ++tail) next(ring_[tail & mask_]);
    tail_.store(tail, std::memory_order_release);
  }

  // What was in it, apart; from now on there is room for nothing.
  struct Rest {
    std::unique_ptr<QueuedEvent[]> ring;
    std::uint64_t mask = 0, first = 0, end = 0;
    template <typename Visit>
    void for_each(Visit&& visit) {
      for (std::uint64_t n = first; n != end; ++n) visit(ring[n & mask]);
    }
  };
  Rest close() {
    Rest rest{std::move(ring_), mask_, head(), tail()};
    capacity_ = 0;
    forget_room();
    note_depth(tail() - head());
    head_.store(tail(), std::memory_order_relaxed);
    return rest;
  }

  // Null: empty. Notes how deep the queue is, which is to come before any is dropped: it has been deepest at such a
  // time, or is so now.
  const QueuedEvent* look_at_oldest() {
    const std::uint64_t head = this->head();
    const std::uint64_t queued = tail() - head;
    if (queued == 0) return nullptr;
    note_depth(queued);
    return &ring_[head & mask_];
  }
  // Requires: not empty, and looked at so since the last was appended.
  const QueuedEvent& oldest() const { return ring_[head() & mask_]; }
  void drop_oldest() { head_.store(head() + 1, std::memory_order_release); }
  // Calls visit(QueuedEvent&) for each.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (std::uint64_t n = head(); n != tail(); ++n) visit(ring_[n & mask_]);
  }

 private:
  void note_depth(std::uint64_t queued) {
    if (queued <= deepest_) [[likely]]
      return;
    deepest_ = queued;
    most_.store(queued, std::memory_order_relaxed);
  }
  std::uint64_t head() const { return head_.load(std::memory_order_relaxed); }
  std::uint64_t tail() const { return tail_.load(std::memory_order_relaxed); }

  std::unique_ptr<QueuedEvent[]> ring_;
  std::uint64_t mask_ = 0;      // the ring has mask_ + 1 >= capacity_ places
  std::uint32_t capacity_ = 0;  // 0: there is no ring
  std::uint64_t known_room_until_ = 0;
  std::atomic<std::uint64_t> head_{0};
  std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint64_t> most_{0};
  std::uint64_t deepest_ = 0;  // the same, for the thread with the lock
};

// Where completions go. May be called from any thread, with locks of the NIC held: it must not call back into the NIC.
//
// A queue that has given its ring something to hold lets a NIC append what wakes no thread; what may wake one, or finds
// no room, is its own to see to.
class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  // Adds completions in this order and returns how many found room; the others are lost.
  virtual std::size_t push(std::span<const Completion> completions) = 0;
  bool push(const Completion& completion) { return push({&completion, 1}) == 1; }

  // The short way of completions. False: none of them has been added, and push() shall have them.
  [[gnu::always_inline]] bool push_quietly(const QueuedEvent& event) {
    os::Guard guard(lock_);
    if (!ring_.has_known_room(1)) [[unlikely]] {
      if (!finds_room(1)) return false;
    }
    ring_.append(event);
    return true;
  }
  bool push_quietly(std::span<const QueuedEvent> events) {
    auto next = events.begin();
    return push_quietly(events.size(), [&](QueuedEvent& event) { event = *next++; });
  }
  // `count` of them, each written by next(QueuedEvent&) where it stays.
  template <typename Next>
  bool push_quietly(std::size_t count, Next&& next) {
    os::Guard guard(lock_);
    if (!ring_.has_known_room(count)) [[unlikely]] {
      if (!finds_room(count)) return false;
    }
    ring_.append(count, next);
    return true;
  }

  std::uint32_t queued() const { return ring_.queued(); }

 protected:
  // With lock_ held: whether a thread may have to be woken by what is added.
  void set_watched(bool watched) {
    watched_.store(watched, std::memory_order_relaxed);
    if (watched) ring_.forget_room();
  }
  bool watched() const { return watched_.load(std::memory_order_relaxed); }

  mutable os::Biased<os::SpinLock> lock_;
  EventRing ring_;  // written with lock_ held

 private:
  // A queue that is watched knows of no room, so that one question answers both.
  [[gnu::noinline, gnu::cold]] bool finds_room(std::size_t count) { return !watched() && ring_.find_room(count); }

  std::atomic<bool> watched_{false};  // written with lock_ held
};

}  // namespace anydat::nic
