// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "base/counter.h"
#include "base/list.h"
#include "nic/activity.h"
#include "nic/loop.h"
#include "nic/poll_clock.h"
#include "nic/types.h"
#include "nic/waiter.h"
#include "os/clock.h"
#include "os/lock.h"
#include "os/poller.h"
#include "os/thread.h"

namespace anydat::nic {

class Engine;

// How threads wait for what an engine brings: they spin, then one leads and the others follow, and the progress thread
// leads when none of them does.
//
// One thread at a time leads: it sleeps in poll(2) on all descriptors, with the sources armed, on behalf of all other
// sleepers. A leader that leaves promotes another sleeper, or leaves it to the progress thread. While some thread
// polls, no source is armed, so that peers need not ring a bell that no thread needs: a leader then looks again every
// kTick, and the progress thread leads once no thread has polled, or noted a post, for half of one. Without traffic and
// without pollers all threads sleep for good.
//
// Thread safety: any thread, none of which holds the engine. Lives and dies with its engine.
class Waiting {
 public:
  static constexpr os::Nanoseconds kTick = 2'000'000;

  // Parts of the engine.
  Waiting(Engine& engine, Loop& loop, PollClock& clock, os::Poller& poller, const Activity& activity)
      : engine_(engine), loop_(loop), clock_(clock), poller_(poller), activity_(activity) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // The progress thread is there from start() to stop(), whatever the program does with its own.
  Status start();
  void stop();  // Requires: no thread in wait().
  bool started() const { return thread_.joinable(); }
  // Its number, as this process calls it.
  std::uint32_t thread_id() const { return thread_id_.load(std::memory_order_relaxed); }
  // It may sleep where no bell rings any more.
  void cancel_progress_thread() { thread_.cancel(); }

  // Blocks until the waiter is notified, the absolute time `deadline`, or a signal. Spins first. The caller's CancelOff
  // is around it.
  WaitResult wait(Waiter& waiter, os::Nanoseconds deadline);

  // For a call that waits for a peer and polls for it: drives the adapter for a moment, or sleeps.
  void pause();

  bool anybody_leads() const { return leader_.load() != nullptr; }
  std::uint64_t sleeps() const { return sleeps_.get(); }  // times a thread went to sleep armed

 private:
  bool arm(const Waiter& waiter);
  bool lock_unless_notified(const Waiter& waiter) ANYDAT_TRY_ACQUIRE(true, engine_);

  WaitResult spin(Waiter& waiter, os::Nanoseconds deadline);
  void spin_after_wakeup(const Waiter& waiter, os::Nanoseconds deadline);
  WaitResult lead(Waiter& waiter, os::Nanoseconds deadline, bool is_progress_thread);
  WaitResult follow(Waiter& waiter, os::Nanoseconds deadline);
  void stop_following(Waiter& waiter, bool for_good);
  // For the length of a scope; the thread that leads may be cancelled.
  struct Leadership {
    explicit Leadership(Waiting& waiting) : waiting_(waiting) {}
    ~Leadership() { waiting_.step_down(); }
    Leadership(const Leadership&) = delete;
    Leadership& operator=(const Leadership&) = delete;
    Waiting& waiting_;
  };
  void step_down();
  void promote_next();
  void progress_thread();

  Engine& engine_;
  Loop& loop_;          // the engine's; so are the three members below
  PollClock& clock_;    // with the engine held
  os::Poller& poller_;  // its bell gets the leader out of poll(2)
  const Activity& activity_;

  os::Nanoseconds spin_ns_ = 50'000;  // fixed by start()
  os::Thread thread_;
  std::atomic<std::uint32_t> thread_id_{0};  // fixed by start()
  base::Counter sleeps_;                     // by the thread that leads

  std::atomic<Waiter*> leader_{nullptr};
  std::atomic<bool> leader_is_progress_thread_{false};
  std::atomic<bool> yield_wanted_{false};  // asks the progress thread to let a consumer lead
  std::atomic<bool> stopping_{false};
  os::SpinLock followers_lock_;
  base::List<Waiter, &Waiter::follower_> followers_ ANYDAT_GUARDED_BY(followers_lock_);

  // The progress thread's own bed for when it need not lead.
  static constexpr std::uint32_t kAwake = 0;
  static constexpr std::uint32_t kResting = 1;
  std::atomic<std::uint32_t> progress_word_{kAwake};
};

}  // namespace anydat::nic
