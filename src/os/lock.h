// SPDX-License-Identifier: BSD-3-Clause
// The two locks of the library. Both cost one atomic exchange to take when no other thread wants them.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/annotations.h"
#include "os/clock.h"
#include "os/futex.h"

namespace anydat::os {

inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// What spin_while() does after so many rounds in vain: yields, or sleeps for a moment. No cancellation point.
void pause_in_spin(unsigned round);

// Returns when `condition()` has become false, which another thread sees to within some dozen instructions unless it is
// kept from its processor: spins, yields, and then sleeps for moments, which grow while it lasts.
template <typename Condition>
[[gnu::noinline, gnu::cold]] void spin_while(Condition&& condition) {
  for (unsigned round = 0;; ++round) {
    for (int i = 0; i < 64; ++i) {
      if (!condition()) return;
      cpu_relax();
    }
    pause_in_spin(round);
  }
}

// For sections of a few dozen instructions that call nothing that can block. Releasing is a plain store, so a thread
// that waits cannot be woken: it spins for a moment and then gives its processor to others (the holder may be
// preempted).
class ANYDAT_CAPABILITY("mutex") SpinLock {
 public:
  static constexpr bool kReleasedByExchange = false;

  void lock() ANYDAT_ACQUIRE() {
    if (!locked_.exchange(true, std::memory_order_acquire)) [[likely]]
      return;
    lock_contended();
  }
  bool try_lock() ANYDAT_TRY_ACQUIRE(true) {
    return !locked_.load(std::memory_order_relaxed) && !locked_.exchange(true, std::memory_order_acquire);
  }
  void unlock() ANYDAT_RELEASE() { locked_.store(false, std::memory_order_release); }

 private:
  // Apart, so that what it needs is not in the way of those who need not wait; and so below.
  [[gnu::noinline, gnu::cold]] void lock_contended() {
    spin_while([this] {
      return locked_.load(std::memory_order_relaxed) || locked_.exchange(true, std::memory_order_acquire);
    });
  }

  std::atomic<bool> locked_{false};
};

// For longer sections. A thread that waits long sleeps and is woken by the release.
class ANYDAT_CAPABILITY("mutex") Mutex {
 public:
  static constexpr bool kReleasedByExchange = true;

  void lock() ANYDAT_ACQUIRE() {
    std::uint32_t free = kFree;
    if (word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire, std::memory_order_relaxed)) return;
    lock_contended();
  }
  bool try_lock() ANYDAT_TRY_ACQUIRE(true) {
    std::uint32_t free = kFree;
    return word_.load(std::memory_order_relaxed) == kFree &&
           word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() ANYDAT_RELEASE() {
    if (word_.exchange(kFree, std::memory_order_release) == kHeldWithSleepers) futex_wake(word_, 1);
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kHeldWithSleepers = 2;

  [[gnu::noinline, gnu::cold]] void lock_contended() {
    for (int i = 0; i < 200; ++i) {
      cpu_relax();
      std::uint32_t free = kFree;
      if (word_.load(std::memory_order_relaxed) == kFree &&
          word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire, std::memory_order_relaxed)) {
        return;
      }
    }
    while (word_.exchange(kHeldWithSleepers, std::memory_order_acquire) != kFree) {
      futex_wait(word_, kHeldWithSleepers, kNever);
    }
  }

  std::atomic<std::uint32_t> word_{kFree};
};

template <typename Lock>
class ANYDAT_SCOPED_CAPABILITY Guard {
 public:
  explicit Guard(Lock& lock) ANYDAT_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ~Guard() ANYDAT_RELEASE() { lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace anydat::os
