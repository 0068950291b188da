// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "nic/soft/wire/shm/layout.h"

namespace anydat::nic::soft::shm {

// The long messages of a connection that are announced to the peer, each until its bytes have left: a row of at most
// kAnnouncedMax, known to the peer by their sequence numbers.
//
// One is here before its announcement is, for the answer may come at once. An answer to what has not left is a lie, and
// one that leaves now is left alone until it has: what is done with it would otherwise be done beside the thread that
// announces it, which may also find no room and take it back.
//
// Thread safety: begin(), left() and take_back() with the queue pair's send lock; any() from any thread; all else with
// the engine held.
class Announcements {
 public:
  struct Announced {
    enum class State : std::uint8_t { leaving, waiting, pieces, pushing, done };
    std::uint64_t number = 0;  // the queue pair's
    std::uint64_t offset = 0;  // what has crossed
    std::atomic<State> state{State::leaving};
    std::atomic<bool> has_grant{false};  // written last of what the posting thread writes
    std::uint32_t grant_slot = 0;
    MemoryBody target{};  // when pushing
  };
  using State = Announced::State;

  // Whether the peer has not got all yet.
  bool any() const { return retired_.load(std::memory_order_acquire) != count_.load(std::memory_order_relaxed); }

  // ---- by the thread that announces
  bool full() const {
    return count_.load(std::memory_order_relaxed) - retired_.load(std::memory_order_acquire) >= kAnnouncedMax;
  }
  std::uint32_t next() const { return count_.load(std::memory_order_relaxed); }  // its sequence number
  Announced& begin(std::uint64_t number) {
    const std::uint32_t sequence = next();
    Announced& entry = at(sequence);
    entry.number = number;
    entry.offset = 0;
    entry.has_grant.store(false, std::memory_order_relaxed);
    entry.state.store(State::leaving, std::memory_order_relaxed);
    count_.store(sequence + 1, std::memory_order_release);
    return entry;
  }
  // The newest has left.
  void left() { at(next() - 1).state.store(State::waiting, std::memory_order_release); }
  // It has not. It stays as it is: as one that is done it would be retired by who has just read how many there are.
  void take_back() { count_.store(next() - 1, std::memory_order_release); }

  // ---- with the engine held
  // Null: there is none of that number, or it has not left. await() returns when a post that announces one now has done
  // so.
  template <typename Await>
  Announced* find(std::uint32_t sequence, Await&& await) {
    Announced* entry = look(sequence);
    if (!entry || entry->state.load(std::memory_order_acquire) != State::leaving) return entry;
    await();
    entry = look(sequence);
    return entry && entry->state.load(std::memory_order_acquire) != State::leaving ? entry : nullptr;
  }
  // The first from that number on in that state; null if there is none. Its own number is put in `sequence`.
  Announced* first_in(State state, std::uint32_t& sequence) {
    for (const std::uint32_t end = count_.load(std::memory_order_acquire); sequence != end; ++sequence) {
      if (Announced& entry = at(sequence); entry.state.load(std::memory_order_relaxed) == state) return &entry;
    }
    return nullptr;
  }
  std::uint32_t first() const { return retired_.load(std::memory_order_relaxed); }
  // Calls f(Announced&) for each until it answers true; true if it has.
  template <typename F>
  bool find_if(F&& f) {
    const std::uint32_t end = count_.load(std::memory_order_acquire);
    for (std::uint32_t sequence = first(); sequence != end; ++sequence) {
      if (f(at(sequence))) return true;
    }
    return false;
  }
  // A posting thread may use the entry anew as soon as this has been called.
  void retire(Announced& entry) {
    entry.state.store(State::done);
    std::uint32_t retired = first();
    const std::uint32_t end = count_.load(std::memory_order_acquire);
    while (retired != end && at(retired).state.load() == State::done) ++retired;
    retired_.store(retired, std::memory_order_release);
  }
  // Nothing is announced any more.
  void retire_all() { retired_.store(count_.load()); }

 private:
  Announced& at(std::uint32_t sequence) { return entries_[sequence % kAnnouncedMax]; }
  Announced* look(std::uint32_t sequence) {
    const std::uint32_t retired = first();
    return sequence - retired < count_.load(std::memory_order_acquire) - retired ? &at(sequence) : nullptr;
  }

  std::array<Announced, kAnnouncedMax> entries_;
  std::atomic<std::uint32_t> count_{0};    // ever; the sequence number of the next
  std::atomic<std::uint32_t> retired_{0};  // all before this one are done
};

}  // namespace anydat::nic::soft::shm
