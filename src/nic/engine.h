// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

#include "nic/activity.h"
#include "nic/descriptor_loss.h"
#include "nic/loop.h"
#include "nic/poll_clock.h"
#include "nic/run_queue.h"
#include "nic/types.h"
#include "nic/waiting.h"
#include "os/biased_lock.h"
#include "os/clock.h"
#include "os/poller.h"
#include "os/ticks.h"

namespace anydat::nic {

// What makes an adapter move: a thread that calls poll() or wait() drives it inline, and a progress thread does when no
// other does.
//
// The engine is also the adapter's control lock. Arriving messages, connection set-up, and every call that creates,
// changes or destroys an object run one at a time, holding it; the posting calls and the event queues do not need it.
//
// How threads wait for it is in Waiting, and what it looks at in Loop.
class ANYDAT_CAPABILITY("mutex") Engine {
 public:
  Engine() = default;
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Status start();  // with the progress thread, which is gone after waiting().stop()
  Waiting& waiting() { return waiting_; }

  void lock() ANYDAT_ACQUIRE() ANYDAT_NO_ANALYSIS {
    mutex_.lock();
    owner_.store(this_thread(), std::memory_order_relaxed);
    if (!loss_.descriptors_are_ours()) [[unlikely]]
      loss_.tell();
  }
  bool try_lock() ANYDAT_TRY_ACQUIRE(true) ANYDAT_NO_ANALYSIS {
    if (!mutex_.try_lock()) return false;
    owner_.store(this_thread(), std::memory_order_relaxed);
    return true;
  }
  // Whether the calling thread holds it.
  bool held() const { return owner_.load(std::memory_order_relaxed) == this_thread(); }
  // Objects reach their engine by many ways, which the compiler cannot tell to be one lock: what must be called with
  // the engine held checks it when it is called.
  void assert_held() const ANYDAT_ASSERT_CAPABILITY(this) { assert(held()); }
  // Also runs the tasks that came meanwhile.
  void unlock() ANYDAT_RELEASE() ANYDAT_NO_ANALYSIS {
    if (tasks_.pending()) [[unlikely]]
      return unlock_after_work();
    owner_.store(nullptr, std::memory_order_relaxed);
    // A task that came after the look above found the engine held and relies on us: either its try_lock succeeds or we
    // see the task.
    mutex_.unlock_and_look();
    if (tasks_.pending_in_order() && try_lock()) [[unlikely]]
      unlock_after_work();
  }

  // Makes progress if there is any to make and no other thread is at it. Never blocks, but lets others have the
  // processor when it has been called in vain for some time. True if there was any.
  bool poll();

  // The same, but waits for another thread that is at it. For threads that do not hold the engine.
  bool look();

  // If all threads sleep, has one of them look at the sources. For threads that do not hold the engine.
  void wake_if_armed() {
    if (loop_.armed()) wake_leader();
  }

  // For threads that do not hold the engine: what a source has been given need not go at once, but with the next look
  // at the sources. The caller is likely to look by itself before long; if it does not, another thread does within
  // Waiting::kTick.
  void want_pass() {
    activity_.rely_on_pass();
    wake_if_armed();
  }

  // For threads whose posts bring completions: they are likely to look for them by themselves before long, and a thread
  // that is woken for each would only be in their way. If they do not look, another thread does within Waiting::kTick.
  void note_post() { activity_.note_post(); }

  // Runs the task with the engine held, soon: at once if no thread holds it, else by its holder. For posting calls,
  // which must not wait for it.
  void schedule(Task& task) {
    add_task(task);
    run_tasks_if_free();
  }
  // The same, but where a thread is polling it is left to that thread's next pass: several together cost less.
  void schedule_with_next_poll(Task& task) {
    add_task(task);
    if (loop_.armed()) {
      run_tasks_if_free();
    } else {
      activity_.want_pass();
    }
  }
  // The two halves, for callers that hold a lock the task may need.
  void add_task(Task& task) { tasks_.add(task); }
  void run_tasks_if_free() {
    if (tasks_.pending()) [[unlikely]] {
      if (try_lock()) unlock();
    }
  }
  void cancel_task(Task& task);

  DescriptorLoss& descriptor_loss() { return loss_; }

  // As Loop does, with the engine held.
  void add_source(PollSource& source);  // may throw std::bad_alloc
  void remove_source(PollSource& source);
  bool watch(int fd, std::uint32_t events, FdHandler& handler);
  void change_watch(int fd, std::uint32_t events, FdHandler& handler);
  void unwatch(int fd, FdHandler& handler);
  void set_timer(Timer& timer, os::Nanoseconds deadline);
  void cancel_timer(Timer& timer);

  // The cheapest clock there is (os/ticks.h).
  std::uint64_t ticks() const { return os::ticks(steady_counter_); }
  // The same as those who poll have read it last, which costs nothing (nic/moment.h); kNoMoment if no thread polls, and
  // it takes a few milliseconds until that is noticed. From any thread.
  std::uint64_t moment() const { return clock_.moment(); }
  // There is one although no thread polls: a caller that wants that has a timer run every few milliseconds. With the
  // engine held.
  void keep_moment(bool keep) {
    assert_held();
    clock_.keep_moment(keep);
  }

  std::uint64_t polls() const { return loop_.polls().get(); }  // passes over the sources

  // ---- for those who wait
  // Looks at everything. True if there was any progress.
  bool run_all() ANYDAT_REQUIRES(this);
  void wake_leader();

 private:
  // Tells threads apart. An address of its own costs nothing to find out, unlike pthread_self().
  static const void* this_thread() { return __builtin_thread_pointer(); }

  // One pass by who polls; the caller may have to give way once the engine is released.
  bool take_over(bool& gives_way) ANYDAT_REQUIRES(this);
  bool poll_by_clock(bool lost, bool& gives_way) ANYDAT_REQUIRES(this);
  bool look_by_time() ANYDAT_REQUIRES(this);
  void unlock_after_work();

  os::Biased<os::Mutex> mutex_;
  std::atomic<const void*> owner_{nullptr};  // of mutex_; null while no thread holds it
  os::Poller poller_;                        // fixed by start(); its bell gets the leader out of poll(2)

  Loop loop_;
  PollClock clock_;  // with the engine held, but for giving way
  RunQueue tasks_;
  Activity activity_;
  DescriptorLoss loss_{poller_, loop_, waiting_};
  const bool steady_counter_ = os::has_steady_counter();
  Waiting waiting_{*this, loop_, clock_, poller_, activity_};
};

}  // namespace anydat::nic
