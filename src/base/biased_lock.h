// SPDX-License-Identifier: BSD-3-Clause
// A lock that one thread takes again and again, without an atomic read-modify-write: it is biased towards that thread.
//
// Most locks of the data path are taken by one thread only, which pays some twenty cycles each time for what never
// happens. A biased lock costs its thread plain loads and stores of its own cache line. Whoever else wants it takes the
// bias away first, with a fence in all threads of the process (base/fence.h), which is dear; so a bias is given only to
// a thread that has taken the lock many times in a row, and only while little time has gone into taking biases away.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/annotations.h"
#include "base/fence.h"
#include "base/lock.h"

namespace anydat::base {

// Lets locks of this process be biased, if its kernel can take a bias away. To be called again in the child of a fork.
void allow_bias();

// What a lock knows of the thread that it is biased towards.
//
// The thread marks the lock as held and then looks whether it still has the bias; who takes the bias away clears it,
// has all threads pass a fence, and then looks for the mark: one of the two sees the other (Dekker). A bias is given by
// the thread itself, while it holds the lock underneath; whoever else gets in between has that lock, too, and passes
// what it wrote on to the next.
class Bias {
 public:
  // For a thread that holds nothing of this lock. True: it holds the lock now, and leave() gives it back. False: it has
  // to take the lock underneath. In between others may find the mark, and leave the lock to this thread.
  bool enter() { return mine() && claim(kHeld); }
  // The same for a thread that will not insist, and may hold the lock already.
  bool try_enter() {
    if (!(mine() && !marked() && claim(kClaimed))) return false;
    mark_.store(kHeld, std::memory_order_relaxed);
    return true;
  }

  // Whether the calling thread has the bias.
  bool mine() const { return thread_.load(std::memory_order_relaxed) == this_thread(); }

  // By who has entered.
  void leave() { mark_.store(kFree, std::memory_order_release); }
  // The same for who looks afterwards whether others have tried to get in meanwhile, and have gone away.
  void leave_and_look() {
    leave();
    compiler_fence();
    // Whoever has taken the bias away had us pass a fence, before which we either left, or have seen it here.
    if (!mine()) [[unlikely]]
      full_fence();
  }

  // By who holds the lock underneath. From here on until it is released nobody else holds the lock.
  void keep_out() {
    if (thread_.load(std::memory_order_relaxed) || marked()) [[unlikely]]
      take_away();
  }
  // The same, but gives up where the thread with the bias holds the lock.
  bool try_keep_out() {
    if (thread_.load(std::memory_order_relaxed) || marked()) [[unlikely]]
      return try_take_away();
    return true;
  }
  // By who has tried so in vain and has released the lock underneath. Whether it has been left since: then nobody may
  // know of this try, and it is to be made once more.
  bool left_since() const {
    full_fence();
    return !marked();
  }

  // By who holds the lock by the lock underneath, and is about to release it.
  void note_use() {
    const void* const thread = this_thread();
    if (last_ != thread) {
      last_ = thread;
      uses_ = 0;
    } else if (++uses_ == kUsesToEarn) [[unlikely]] {
      uses_ = 0;
      earn();
    }
  }

 private:
  static constexpr std::uint8_t kFree = 0;
  static constexpr std::uint8_t kClaimed = 1;  // by a thread that may find that it has lost the bias, and go away
  static constexpr std::uint8_t kHeld = 2;     // or by a thread that takes the lock underneath if it has lost the bias
  static constexpr std::uint32_t kUsesToEarn = 64;

  // A thread that is started when another has ended may come by the same address, and with it by its biases. That is as
  // good as being it: what the other did was over before.
  static const void* this_thread() { return __builtin_thread_pointer(); }

  // Also by a thread that has just lost the bias and does not know yet.
  bool marked() const { return mark_.load(std::memory_order_acquire) != kFree; }
  bool claim(std::uint8_t mark) {
    mark_.store(mark, std::memory_order_relaxed);
    compiler_fence();
    if (mine()) [[likely]]
      return true;
    leave();
    return false;
  }
  void take_away();
  bool try_take_away();
  void revoke();
  void earn();

  std::atomic<const void*> thread_{nullptr};  // that has the bias. Written with the lock underneath held
  std::atomic<std::uint8_t> mark_{kFree};     // by the thread that has the bias, or has just lost it
  // With the lock underneath held.
  std::uint32_t uses_ = 0;  // in a row, by
  const void* last_ = nullptr;
};

// The locks of base/lock.h with a bias.
template <typename Lock>
class ANYDAT_CAPABILITY("mutex") Biased {
 public:
  void lock() ANYDAT_ACQUIRE() ANYDAT_NO_ANALYSIS {
    if (bias_.enter()) [[likely]]
      return;
    lock_underneath();
  }
  // False: another thread holds it, or will take it without fail, or this one holds it.
  bool try_lock() ANYDAT_TRY_ACQUIRE(true) ANYDAT_NO_ANALYSIS {
    if (bias_.try_enter()) [[likely]]
      return true;
    return try_lock_underneath();
  }
  void unlock() ANYDAT_RELEASE() ANYDAT_NO_ANALYSIS {
    if (!underneath_) [[likely]] {
      bias_.leave();
    } else {
      unlock_underneath();
    }
  }
  // The same for a thread that looks afterwards for what others have left here for it because their try_lock() failed:
  // it finds what they had written before they tried, if both do so sequentially consistently, and Lock is one that is
  // released by an atomic exchange.
  void unlock_and_look() ANYDAT_RELEASE() ANYDAT_NO_ANALYSIS {
    if (!underneath_) [[likely]] {
      bias_.leave_and_look();
    } else {
      unlock_underneath();
    }
  }

  // Whether it is biased towards the calling thread.
  bool mine() const { return bias_.mine(); }

 private:
  [[gnu::noinline]] void lock_underneath() ANYDAT_NO_ANALYSIS {
    lock_.lock();
    bias_.keep_out();
    underneath_ = true;
  }
  [[gnu::noinline]] bool try_lock_underneath() ANYDAT_NO_ANALYSIS {
    do {
      if (!lock_.try_lock()) return false;
      if (bias_.try_keep_out()) {
        underneath_ = true;
        return true;
      }
      lock_.unlock();
      // Others have found the lock underneath taken meanwhile and rely on who has it.
    } while (bias_.left_since());
    return false;
  }
  [[gnu::noinline]] void unlock_underneath() ANYDAT_NO_ANALYSIS {
    underneath_ = false;
    bias_.note_use();
    lock_.unlock();
  }

  Bias bias_;
  bool underneath_ = false;  // how its holder has come by it; with this lock held
  Lock lock_;
};

}  // namespace anydat::base
