// SPDX-License-Identifier: BSD-3-Clause
#include "nic/waiting.h"

#include <algorithm>
#include <new>

#include "env/environment.h"
#include "nic/engine.h"
#include "os/cancel.h"
#include "os/membarrier.h"
#include "os/own_numbers.h"
#include "os/poll.h"
#include "os/thread_signals.h"

namespace anydat::nic {

namespace {

// Of looking in vain: the peer may be waiting for this very processor.
constexpr os::Nanoseconds kYieldAfter = 5'000;

// Of who leads where no descriptor tells of anything any more.
constexpr os::Nanoseconds kLookWhenLost = 10'000'000;

}  // namespace

Status Waiting::start() {
  spin_ns_ = env::number(env::Variable::spin_us).value_or(50) * 1000;
  const os::SignalsOfOurThreads mask;
  Status status = Status::ok;
  try {
    if (!thread_.start([this] { progress_thread(); })) status = Status::no_memory;
  } catch (const std::bad_alloc&) {
    status = Status::no_memory;
  }
  while (status == Status::ok && thread_id_.load() == 0) {
    os::futex_wait(thread_id_, 0, os::to_timespec(os::kForever));
  }
  return status;
}

void Waiting::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  progress_word_.store(kAwake);
  os::futex_wake(progress_word_);
  engine_.wake_leader();
  thread_.join();
}

bool Waiting::lock_unless_notified(const Waiter& waiter) {
  // A thread that frees an object waits, with the engine held, for its waiters to leave: they must not insist on the
  // lock. Nor need they, once they have slept for it, where others look one pass after the other: those see to all that
  // there is, and every moment in which they are kept from their processor is lost.
  const std::uint64_t passes = activity_.passes();
  for (unsigned i = 0; !engine_.try_lock(); ++i) {
    if (waiter.notified()) return false;
    if (i > 150 && activity_.passes() != passes && !activity_.pass_wanted()) return false;
    if (i < 100) {
      os::cpu_relax();
    } else if (i < 150) {
      os::step_aside();
    } else {
      // The holder may be preempted by a thread that outranks us both.
      os::sleep_for(50'000);
    }
  }
  return true;
}

// True if everything is quiet and armed, so that the caller may go to sleep.
bool Waiting::arm(const Waiter& waiter) {
  if (!lock_unless_notified(waiter)) return false;
  loop_.arm();
  // Orders our arming before the look that follows, and every peer's publishing before its look at our arming, without
  // a fence in the peers' fast path (they register for this when they open an adapter).
  os::remote_fence();
  const bool progress = engine_.run_all();
  if (progress) {
    loop_.disarm();
  } else {
    clock_.stop();
  }
  engine_.unlock();
  return !progress;
}

WaitResult Waiting::wait(Waiter& waiter, os::Nanoseconds deadline) {
  if (const WaitResult result = spin(waiter, deadline); result != WaitResult::interrupted) return result;
  bool followed = false;
  for (;;) {
    if (waiter.notified()) {
      // It may have been promoted just before that came, and goes without having led.
      if (followed && leader_.load() == nullptr) promote_next();
      return WaitResult::notified;
    }
    Waiter* none = nullptr;
    const bool leads = leader_.compare_exchange_strong(none, &waiter);
    WaitResult result = WaitResult::notified;
    if (leads) {
      const Leadership leadership(*this);
      result = lead(waiter, deadline, false);
    } else {
      followed = true;
      result = follow(waiter, deadline);
    }
    if (result != WaitResult::notified && !waiter.notified()) return result;
  }
}

void Waiting::pause() {
  Waiter waiter;  // which no thread notifies
  wait(waiter, os::now_ns() + kTick);
}

// Answers `interrupted` when the spin brought nothing and the thread should sleep.
WaitResult Waiting::spin(Waiter& waiter, os::Nanoseconds deadline) {
  const os::Nanoseconds start = os::now_ns();
  for (unsigned i = 0;; ++i) {
    if (waiter.notified()) return WaitResult::notified;
    engine_.poll();
    if (i % 16 != 0) continue;
    const os::Nanoseconds now = os::now_ns();
    if (now >= deadline) return waiter.notified() ? WaitResult::notified : WaitResult::timed_out;
    if (now - start >= spin_ns_) return WaitResult::interrupted;
    if (now - start > kYieldAfter) os::yield();
  }
}

// What has woken the leader and not been all is often followed by the rest, as the parts of a message are by each
// other. Arming and sleeping takes longer than most gaps between them.
void Waiting::spin_after_wakeup(const Waiter& waiter, os::Nanoseconds deadline) {
  for (os::Nanoseconds last = os::now_ns(); !waiter.notified();) {
    const bool progress = engine_.poll();
    const os::Nanoseconds now = os::now_ns();
    if (progress) last = now;
    if (now - last >= spin_ns_ || now >= deadline) return;
    if (now - last > kYieldAfter) os::yield();
  }
}

WaitResult Waiting::lead(Waiter& waiter, os::Nanoseconds deadline, bool is_progress_thread) {
  leader_is_progress_thread_.store(is_progress_thread);
  std::uint64_t seen = activity_.passes();
  std::uint64_t posts_seen = activity_.posts();
  for (;;) {
    if (waiter.notified()) return WaitResult::notified;
    const os::Nanoseconds now = os::now_ns();
    if (now >= deadline) return WaitResult::timed_out;
    const std::uint64_t activity = activity_.passes();
    const bool others_poll = activity != seen;
    seen = activity;
    if (is_progress_thread && (others_poll || yield_wanted_.load() || stopping_.load())) return WaitResult::notified;

    os::Nanoseconds until = std::min(deadline, loop_.timers().next());
    if (others_poll) {
      until = std::min(until, now + kTick);
    } else if (!arm(waiter)) {
      continue;
    }
    sleeps_.add();
    const bool lost = engine_.descriptor_loss().noted();
    if (lost) until = std::min(until, now + kLookWhenLost);
    waiter.poller_.store(&poller_);
    bool signalled = false;
    if (!waiter.notified()) {
      const os::Nanoseconds left = until == os::kForever ? until : std::max<os::Nanoseconds>(until - os::now_ns(), 0);
      try {
        const os::CancelOn point(waiter.cancellable_);
        const int bell = lost ? -1 : poller_.descriptor();
        signalled = os::sleep_until_readable(bell, left) == os::PollEnd::interrupted;
      } catch (...) {  // the thread was cancelled
        waiter.poller_.store(nullptr);
        throw;
      }
    }
    waiter.poller_.store(nullptr);
    // What the bell was for is looked at below.
    if (!poller_.silence()) engine_.descriptor_loss().note();
    const bool others_post = activity_.posts() != posts_seen;
    bool progress = false;
    if (lock_unless_notified(waiter)) {
      loop_.disarm();
      progress = engine_.run_all();
      engine_.unlock();
    }
    if (is_progress_thread && others_post) return WaitResult::notified;
    if (progress && !signalled && !is_progress_thread) {
      spin_after_wakeup(waiter, deadline);
      seen = activity_.passes();
    }
    posts_seen = activity_.posts();  // with those of the calls that were put off until now
    if (signalled) return WaitResult::interrupted;
  }
}

WaitResult Waiting::follow(Waiter& waiter, os::Nanoseconds deadline) {
  {
    os::Guard guard(followers_lock_);
    followers_.push_back(waiter);
  }
  if (leader_is_progress_thread_.load()) {
    yield_wanted_.store(true);
    engine_.wake_leader();
  }
  WaitResult result = WaitResult::notified;
  waiter.asleep_.store(true);
  try {
    const os::CancelOn point(waiter.cancellable_);
    // A leader that left before we were on the list has not promoted us.
    while (leader_.load() != nullptr && waiter.word_.load() == Waiter::kWaiting) {
      const os::Nap::End end = waiter.nap_.sleep(deadline);
      if (end == os::Nap::End::timed_out) result = WaitResult::timed_out;
      if (end == os::Nap::End::interrupted) result = WaitResult::interrupted;
      if (result != WaitResult::notified) break;
    }
  } catch (...) {  // the thread was cancelled
    stop_following(waiter, true);
    throw;
  }
  stop_following(waiter, result != WaitResult::notified);
  return result;
}

void Waiting::stop_following(Waiter& waiter, bool for_good) {
  waiter.asleep_.store(false);
  bool promoted = false;
  {
    os::Guard guard(followers_lock_);
    followers_.remove(waiter);
    std::uint32_t word = Waiter::kPromoted;
    promoted = waiter.word_.compare_exchange_strong(word, Waiter::kWaiting);
  }
  // A thread that leaves for good must not take a promotion along that another sleeper waits for.
  if ((promoted || leader_.load() == nullptr) && (for_good || waiter.notified())) promote_next();
}

void Waiting::step_down() {
  leader_is_progress_thread_.store(false);
  leader_.store(nullptr);
  promote_next();
}

// Requires: no thread leads, or it does no harm that one looks whether it should.
void Waiting::promote_next() {
  {
    os::Guard guard(followers_lock_);
    for (Waiter* follower = followers_.front(); follower; follower = followers_.after(*follower)) {
      std::uint32_t word = Waiter::kWaiting;
      if (follower->word_.compare_exchange_strong(word, Waiter::kPromoted)) {
        follower->nap_.wake();
        return;
      }
      if (word == Waiter::kPromoted) return;
    }
  }
  if (progress_word_.exchange(kAwake) == kResting) os::futex_wake(progress_word_);
}

void Waiting::progress_thread() {
  thread_id_.store(static_cast<std::uint32_t>(os::own_thread_number()));
  os::futex_wake(thread_id_);
  const os::CancelOff off;
  Waiter waiter(
      true);  // never notified: it is woken by its descriptor, or cancelled when that is not possible any more
  std::uint64_t seen = activity_.passes();
  std::uint64_t posts_seen = activity_.posts();
  while (!stopping_.load()) {
    os::Nanoseconds rest_until = 0;
    if (leader_.load() != nullptr) {
      rest_until = os::kForever;  // step_down() wakes us
    } else if (const std::uint64_t activity = activity_.passes(), posts = activity_.posts();
               activity != seen || posts != posts_seen) {
      seen = activity;
      posts_seen = posts;
      rest_until = os::now_ns() + kTick / 2;  // of two rests, the first may be spoilt by its last moment
    }
    if (rest_until != 0) {
      progress_word_.store(kResting);
      if ((rest_until != os::kForever || leader_.load() != nullptr) && !stopping_.load()) {
        os::futex_wait(progress_word_, kResting, os::to_timespec(rest_until));
      }
      progress_word_.store(kAwake);
      // A thread that polls does so without us, and would only be kept from it.
      const bool others_look = activity_.passes() != seen && !activity_.pass_wanted();
      if (rest_until != os::kForever && others_look) continue;
      if (leader_.load() == nullptr && engine_.try_lock()) {
        const std::uint64_t posts_before = activity_.posts();
        engine_.run_all();
        engine_.unlock();
        posts_seen += activity_.posts() - posts_before;  // the calls put off until now made them
      }
      continue;
    }
    Waiter* none = nullptr;
    if (!leader_.compare_exchange_strong(none, &waiter)) continue;
    yield_wanted_.store(false);
    {
      const Leadership leadership(*this);
      lead(waiter, os::kForever, true);
    }
    seen = activity_.passes() - 1;  // the thread that made us leave is active
  }
}

}  // namespace anydat::nic
