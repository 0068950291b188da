// SPDX-License-Identifier: BSD-3-Clause
// How threads wait for the engine's adapter: they spin, then one leads and the others follow. The progress thread, too.
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/fence.h"
#include "nic/engine.h"
#include "os/cancel.h"
#include "os/uncancelled.h"

namespace anydat::nic {

namespace {

// Of looking in vain: the peer may be waiting for this very processor.
constexpr base::Nanoseconds kYieldAfter = 5'000;

// Of who leads where no descriptor tells of anything any more.
constexpr base::Nanoseconds kLookWhenLost = 10'000'000;

}  // namespace

bool Engine::lock_unless_notified(const Waiter& waiter) {
  // Whoever frees an object waits, with the engine held, for its waiters to leave: they must not insist on the lock.
  for (unsigned i = 0; !try_lock(); ++i) {
    if (waiter.notified()) return false;
    if (i < 100) {
      base::cpu_relax();
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
bool Engine::arm(const Waiter& waiter) {
  if (!lock_unless_notified(waiter)) return false;
  loop_.arm();
  // Orders our arming before the look that follows, and every peer's publishing before its look at our arming, without
  // a fence in the peers' fast path (they register for this when they open an adapter).
  base::remote_fence();
  const bool progress = run_all();
  if (progress) {
    loop_.disarm();
  } else {
    clock_.stop();
  }
  unlock();
  return !progress;
}

WaitResult Engine::wait(Waiter& waiter, base::Nanoseconds deadline) {
  if (const WaitResult result = spin(waiter, deadline); result != WaitResult::interrupted) return result;
  bool followed = false;
  for (;;) {
    if (waiter.notified()) {
      // It may have been promoted just before that came, and goes without having led.
      if (followed && leader_.load() == nullptr) hand_over();
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

void Engine::pause() {
  Waiter waiter;  // which nobody notifies
  wait(waiter, base::now_ns() + kTick);
}

// Answers `interrupted` when the spin brought nothing and the thread should sleep.
WaitResult Engine::spin(Waiter& waiter, base::Nanoseconds deadline) {
  const base::Nanoseconds start = base::now_ns();
  for (unsigned i = 0;; ++i) {
    if (waiter.notified()) return WaitResult::notified;
    poll();
    if (i % 16 != 0) continue;
    const base::Nanoseconds now = base::now_ns();
    if (now >= deadline) return waiter.notified() ? WaitResult::notified : WaitResult::timed_out;
    if (now - start >= spin_ns_) return WaitResult::interrupted;
    if (now - start > kYieldAfter) os::yield();
  }
}

// What has woken the leader and not been all is often followed by the rest, as the parts of a message are by each
// other. Arming and sleeping takes longer than most gaps between them.
void Engine::linger(const Waiter& waiter, base::Nanoseconds deadline) {
  for (base::Nanoseconds last = base::now_ns(); !waiter.notified();) {
    const bool progress = poll();
    const base::Nanoseconds now = base::now_ns();
    if (progress) last = now;
    if (now - last >= spin_ns_ || now >= deadline) return;
    if (now - last > kYieldAfter) os::yield();
  }
}

WaitResult Engine::lead(Waiter& waiter, base::Nanoseconds deadline, bool is_progress_thread) {
  leader_is_progress_thread_.store(is_progress_thread);
  std::uint64_t seen = activity_.load(std::memory_order_relaxed);
  std::uint64_t posts_seen = posts_.load(std::memory_order_relaxed);
  for (;;) {
    if (waiter.notified()) return WaitResult::notified;
    const base::Nanoseconds now = base::now_ns();
    if (now >= deadline) return WaitResult::timed_out;
    const std::uint64_t activity = activity_.load(std::memory_order_relaxed);
    const bool others_poll = activity != seen;
    seen = activity;
    if (is_progress_thread && (others_poll || yield_wanted_.load() || stopping_.load())) return WaitResult::notified;

    base::Nanoseconds until = std::min(deadline, loop_.timers().next());
    if (others_poll) {
      until = std::min(until, now + kTick);
    } else if (!arm(waiter)) {
      continue;
    }
    sleeps_.add();
    const bool lost = lost_.load();
    if (lost) until = std::min(until, now + kLookWhenLost);
    waiter.poller_.store(&poller_);
    int count = 0;
    if (!waiter.notified()) {
      const base::Nanoseconds left =
          std::max<base::Nanoseconds>(until == base::kForever ? 0 : until - base::now_ns(), 0);
      const timespec timeout = base::to_timespec(left);
      pollfd bell{lost ? -1 : poller_.descriptor(), POLLIN, 0};
      try {
        const os::CancelOn point(waiter.cancellable_);
        count = ppoll(&bell, 1, until == base::kForever ? nullptr : &timeout, nullptr);
      } catch (...) {  // the thread was cancelled
        waiter.poller_.store(nullptr);
        throw;
      }
    }
    const bool signalled = count < 0 && errno == EINTR;
    waiter.poller_.store(nullptr);
    const bool ours = poller_.silence();  // what the bell was for is looked at below
    if (!ours) note_loss();
    const bool others_post = posts_.load(std::memory_order_relaxed) != posts_seen;
    bool progress = false;
    if (lock_unless_notified(waiter)) {
      loop_.disarm();
      progress = run_all(ours);
      unlock();
    }
    if (is_progress_thread && others_post) return WaitResult::notified;
    if (progress && !signalled && !is_progress_thread) {
      linger(waiter, deadline);
      seen = activity_.load(std::memory_order_relaxed);
    }
    posts_seen = posts_.load(std::memory_order_relaxed);  // with those of the calls that were put off until now
    if (signalled) return WaitResult::interrupted;
  }
}

WaitResult Engine::follow(Waiter& waiter, base::Nanoseconds deadline) {
  {
    base::Guard guard(followers_lock_);
    followers_.push_back(waiter);
  }
  if (leader_is_progress_thread_.load()) {
    yield_wanted_.store(true);
    wake_leader();
  }
  WaitResult result = WaitResult::notified;
  waiter.asleep_.store(true);
  try {
    const os::CancelOn point(waiter.cancellable_);
    // A leader that left before we were on the list promoted nobody.
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

void Engine::stop_following(Waiter& waiter, bool for_good) {
  waiter.asleep_.store(false);
  bool promoted = false;
  {
    base::Guard guard(followers_lock_);
    followers_.remove(waiter);
    std::uint32_t word = Waiter::kPromoted;
    promoted = waiter.word_.compare_exchange_strong(word, Waiter::kWaiting);
  }
  // Whoever leaves for good must not take a promotion along that another sleeper waits for.
  if ((promoted || leader_.load() == nullptr) && (for_good || waiter.notified())) hand_over();
}

void Engine::step_down() {
  leader_is_progress_thread_.store(false);
  leader_.store(nullptr);
  hand_over();
}

// Requires: nobody leads, or it does no harm that somebody looks whether he should.
void Engine::hand_over() {
  {
    base::Guard guard(followers_lock_);
    for (Waiter* follower = followers_.front(); follower; follower = followers_.after(*follower)) {
      std::uint32_t word = Waiter::kWaiting;
      if (follower->word_.compare_exchange_strong(word, Waiter::kPromoted)) {
        follower->nap_.wake();
        return;
      }
      if (word == Waiter::kPromoted) return;
    }
  }
  if (progress_word_.exchange(kAwake) == kResting) base::futex_wake(progress_word_);
}

void Engine::progress_thread() {
  thread_id_.store(static_cast<std::uint32_t>(::gettid()));
  base::futex_wake(thread_id_);
  const os::CancelOff off;
  Waiter waiter(
      true);  // never notified: it is woken by its descriptor, or cancelled when that is not possible any more
  std::uint64_t seen = activity_.load(std::memory_order_relaxed);
  std::uint64_t posts_seen = posts_.load(std::memory_order_relaxed);
  while (!stopping_.load()) {
    base::Nanoseconds rest_until = 0;
    if (leader_.load() != nullptr) {
      rest_until = base::kForever;  // step_down() wakes us
    } else if (const std::uint64_t activity = activity_.load(std::memory_order_relaxed),
               posts = posts_.load(std::memory_order_relaxed);
               activity != seen || posts != posts_seen) {
      seen = activity;
      posts_seen = posts;
      rest_until = base::now_ns() + kTick / 2;  // of two rests, the first may be spoilt by its last moment
    }
    if (rest_until != 0) {
      progress_word_.store(kResting);
      if ((rest_until != base::kForever || leader_.load() != nullptr) && !stopping_.load()) {
        base::futex_wait(progress_word_, kResting, base::to_timespec(rest_until));
      }
      progress_word_.store(kAwake);
      // Whoever polls does so without us, and would only be kept from it.
      const bool others_look = activity_.load(std::memory_order_relaxed) != seen && !pass_wanted_.load();
      if (rest_until != base::kForever && others_look) continue;
      if (leader_.load() == nullptr && try_lock()) {
        const std::uint64_t posts_before = posts_.load(std::memory_order_relaxed);
        run_all();
        unlock();
        posts_seen += posts_.load(std::memory_order_relaxed) - posts_before;  // the calls put off until now made them
      }
      continue;
    }
    Waiter* none = nullptr;
    if (!leader_.compare_exchange_strong(none, &waiter)) continue;
    yield_wanted_.store(false);
    {
      const Leadership leadership(*this);
      lead(waiter, base::kForever, true);
    }
    seen = activity_.load(std::memory_order_relaxed) - 1;  // whoever made us leave is active
  }
}

}  // namespace anydat::nic
