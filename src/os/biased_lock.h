// SPDX-License-Identifier: BSD-3-Clause
// A lock that one thread takes again and again, without an atomic read-modify-write: it is biased towards that thread.
//
// Most locks of the data path are taken by one thread only, which pays some twenty cycles each time for what never
// happens. A biased lock costs its thread plain loads and stores of its own cache line. Another thread that wants it
// takes the bias away first, with a fence in all threads of the process (os/membarrier.h), which is dear; so a bias is
// given only to a thread that has taken the lock many times in a row, and only while little time has gone into taking
// biases away.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "base/annotations.h"
#include "base/fence.h"
#include "os/lock.h"

namespace anydat::os {

// Lets locks of this process be biased, if its kernel can take a bias away. To be called again in the child of a fork.
void allow_bias();

// What a lock knows of the thread that it is biased towards.
//
// The thread marks the lock as held and then looks whether it still has the bias; who takes the bias away clears it,
// has all threads pass a fence, and then looks for the mark: one of the two sees the other (Dekker). A bias is given by
// the thread itself, while it holds the lock underneath.
//
// A thread that has lost the bias may be anywhere between its first look and wiping its mark, for any time. So each has
// a mark of its own, which no other thread ever writes.
class Bias {
 public:
  using Mark = std::atomic<std::uint8_t>;

  // For a thread that does not hold this lock. True: it holds the lock now, and leave() gives it back. False: it has to
  // take the lock underneath. In between others may find its mark, and leave the lock to it.
  bool enter() {
    Grant& grant = *granted_.load(std::memory_order_relaxed);
    if (!is_mine(grant)) return false;
    assert(grant.mark.load(std::memory_order_relaxed) == kFree);  // or this thread holds the lock
    return claim(grant, kHeld);
  }
  // The same for a thread that may hold the lock, and will not insist: others do not leave the lock to it before it has
  // it.
  bool try_enter() {
    Grant& grant = *granted_.load(std::memory_order_relaxed);
    if (!is_mine(grant) || grant.mark.load(std::memory_order_relaxed) != kFree || !claim(grant, kClaimed)) return false;
    grant.mark.store(kHeld, std::memory_order_relaxed);
    return true;
  }

  // Whether the calling thread has the bias.
  bool mine() const { return is_mine(*granted_.load(std::memory_order_relaxed)); }

  // By the thread that has entered. No other thread has earned a bias since.
  void leave() { last_->mark.store(kFree, std::memory_order_release); }
  // The same for who looks afterwards whether others have tried to get in meanwhile, and have gone away.
  void leave_and_look() {
    leave();
    base::compiler_fence();
    // The thread that has taken the bias away had us pass a fence: either we had left the lock before it, or we see
    // here that the bias is gone.
    if (!mine()) [[unlikely]]
      base::full_fence();
  }

  // By the thread that holds the lock underneath. When it returns no other thread has the lock, until that one is
  // released.
  void await_entry() {
    if (granted_.load(std::memory_order_relaxed) != &nobodys || entered()) [[unlikely]]
      take_away();
  }
  // The same, but does not wait for a thread that has the lock by its bias, or will take it without fail: then it
  // answers with that thread's mark, and else with null.
  const Mark* try_entry() {
    if (granted_.load(std::memory_order_relaxed) != &nobodys || entered()) [[unlikely]]
      return try_to_take_away();
    return nullptr;
  }
  // For a thread that has been given such a mark and has released the lock underneath since. Whether the mark's thread
  // has left the lock: it may not know then that this thread tried, so the lock is to be tried once more.
  static bool has_left(const Mark& holder) {
    base::full_fence();
    return holder.load(std::memory_order_relaxed) == kFree;
  }

  // By who holds the lock by the lock underneath, and is about to release it.
  void note_use() {
    const void* const thread = this_thread();
    if (user_ != thread) {
      user_ = thread;
      uses_ = 0;
    } else if (++uses_ == kUsesToEarn) [[unlikely]] {
      uses_ = 0;
      earn();
    }
  }

 private:
  static constexpr std::uint8_t kFree = 0;
  static constexpr std::uint8_t kClaimed = 1;  // by a thread that goes away if it finds that it has lost the bias
  static constexpr std::uint8_t kHeld = 2;     // or by a thread that takes the lock underneath if it has lost the bias
  static constexpr std::uint32_t kUsesToEarn = 64;
  static constexpr std::size_t kThreads = 4;  // that may ever have the bias of one lock

  struct Grant {
    std::atomic<const void*> thread;  // whose it is, for ever
    Mark mark;                        // by that thread; kFree to begin with
  };
  static inline constinit Grant nobodys;

  // A thread that is started when another has ended may come by the same address, and with it by its grants. That is as
  // good as being it: what the other did was over before.
  static const void* this_thread() { return __builtin_thread_pointer(); }
  static bool is_mine(const Grant& grant) { return grant.thread.load(std::memory_order_relaxed) == this_thread(); }
  // By who holds the lock underneath. Only who has had the last grant can be in by one.
  bool entered() const { return last_->mark.load(std::memory_order_acquire) != kFree; }

  bool claim(Grant& grant, std::uint8_t how) {
    grant.mark.store(how, std::memory_order_relaxed);
    base::compiler_fence();
    if (granted_.load(std::memory_order_relaxed) == &grant) [[likely]]
      return true;
    grant.mark.store(kFree, std::memory_order_release);
    return false;
  }
  void take_away();
  const Mark* try_to_take_away();
  void revoke();
  void earn();

  std::atomic<Grant*> granted_{&nobodys};  // that is good now. Written with the lock underneath held
  // Used with the lock underneath held and no thread in by a grant; only the thread that is in by the last grant reads
  // this member without that lock.
  Grant* last_ = &nobodys;
  const void* user_ = nullptr;
  std::uint32_t uses_ = 0;  // by that thread in a row
  std::array<Grant, kThreads> grants_;
};

// The locks of os/lock.h with a bias.
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
  // it finds what they had written before they tried, if all do so sequentially consistently.
  void unlock_and_look() ANYDAT_RELEASE() ANYDAT_NO_ANALYSIS {
    static_assert(Lock::kReleasedByExchange, "a look after a plain store might come before it");
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
    bias_.await_entry();
    underneath_ = true;
  }
  [[gnu::noinline]] bool try_lock_underneath() ANYDAT_NO_ANALYSIS {
    const Bias::Mark* holder = nullptr;
    do {
      if (!lock_.try_lock()) return false;
      holder = bias_.try_entry();
      if (!holder) {
        underneath_ = true;
        return true;
      }
      lock_.unlock();
      // Others have found the lock underneath taken meanwhile and rely on who has it.
    } while (Bias::has_left(*holder));
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

}  // namespace anydat::os
