// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "base/list.h"
#include "os/nap.h"
#include "os/poller.h"

namespace anydat::nic {

enum class WaitResult : std::uint8_t { notified, timed_out, interrupted };

// One thread that sleeps in Waiting::wait() until it is notified. It sleeps in a bed of its own, or, while it drives
// the adapter for all of them, in poll(2); notify() knows how to get it out of either.
//
// Thread safety: notify() may be called by any thread, as long as the caller keeps the object alive meanwhile (the
// owner unregisters the waiter under the lock that notifiers hold).
class Waiter {
 public:
  // Cancellable: a thread that is cancelled in its sleep ends there, and unwinds (os/cancel.h).
  explicit Waiter(bool cancellable = false) : cancellable_(cancellable) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  void notify() {
    if (word_.exchange(kNotified) == kNotified) return;
    if (const os::Poller* const poller = poller_.load()) {
      poller->ring();
    } else if (asleep_.load()) {
      nap_.wake();
    }
  }
  bool notified() const { return word_.load() == kNotified; }  // as the members below demand
  // Makes the waiter usable again. Requires: no thread can notify it at the moment, or a lost notification is made up
  // for by a check that follows.
  void rearm() { word_.store(kWaiting); }

 private:
  friend class Waiting;
  static constexpr std::uint32_t kWaiting = 0;
  static constexpr std::uint32_t kNotified = 1;
  static constexpr std::uint32_t kPromoted = 2;  // wake up and try to drive the adapter

  // The sleeper announces how it sleeps, then looks at word_ once more; a notifier changes word_, then looks at how it
  // sleeps. All four are sequentially consistent, so one of the two sees the other.
  std::atomic<std::uint32_t> word_{kWaiting};
  std::atomic<bool> asleep_{false};
  std::atomic<const os::Poller*> poller_{nullptr};
  os::Nap nap_;
  const bool cancellable_;
  base::ListLinks<Waiter> follower_;
};

}  // namespace anydat::nic
