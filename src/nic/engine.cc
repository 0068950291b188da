// SPDX-License-Identifier: BSD-3-Clause
#include "nic/engine.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "base/env.h"
#include "base/fence.h"
#include "base/log.h"

namespace anydat::nic {

namespace {

constexpr unsigned kLooksPerDescriptorPass = 1024;
constexpr unsigned kRefusalsPerYield = 64;
constexpr int kLooksPerPoll = 4;
// Of looking in vain: the peer may be waiting for this very processor.
constexpr base::Nanoseconds kYieldAfter = 5'000;

std::uint64_t drain_eventfd(int fd) {
  std::uint64_t count = 0;
  return ::read(fd, &count, sizeof count) == sizeof count ? count : 0;
}

}  // namespace

Engine::~Engine() {
  stop();
}

Status Engine::start() {
  spin_ns_ = base::env_number(base::EnvVar::spin_us).value_or(50) * 1000;
  epoll_fd_.reset(epoll_create1(EPOLL_CLOEXEC));
  kick_fd_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_fd_ || !kick_fd_) return Status::no_memory;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;  // the kick
  if (epoll_ctl(epoll_fd_.get(), EPOLL_CTL_ADD, kick_fd_.get(), &event) != 0) return Status::no_memory;

  // Signals belong to the application's threads (a handler that runs here would not interrupt a blocked call).
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status = Status::ok;
  try {
    thread_ = std::thread([this] { progress_thread(); });
  } catch (const std::system_error&) {
    status = Status::no_memory;
  } catch (const std::bad_alloc&) {
    status = Status::no_memory;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

void Engine::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  progress_word_.store(kAwake);
  base::futex_wake(progress_word_);
  kick_leader();
  thread_.join();
}

void Engine::unlock_after_work() ANYDAT_NO_ANALYSIS {
  do {
    run_kicks();
    std::list<Call> calls;
    calls.swap(deferred_);
    owner_.store(nullptr, std::memory_order_relaxed);
    mutex_.unlock();
    for (const Call& call : calls) call.function(call.first, call.second);
  } while (kicks_pending_.load() && try_lock());  // as in unlock()
}

void Engine::queue_kick(Kick& kick) {
  {
    base::Guard guard(kicks_lock_);
    if (kick.pending.listed()) return;
    kicks_.push_back(kick);
  }
  kicks_pending_.exchange(true);
}

void Engine::cancel_kick(Kick& kick) {
  assert_held();
  base::Guard guard(kicks_lock_);
  kicks_.remove(kick);
}

// What runs here handles a lack of memory by itself, where it knows what to give up for it. Should it not, the process
// still must not end by it. False if that has happened.
template <typename Action>
bool Engine::run_safely(Action&& action) {
  try {
    action();
    return true;
  } catch (const std::bad_alloc&) {
    base::log(base::LogLevel::error, "no memory for something that has arrived");
    return false;
  }
}

void Engine::run_kicks() {
  while (kicks_pending_.load(std::memory_order_relaxed)) {
    kicks_pending_.exchange(false);
    for (;;) {
      Kick* next = nullptr;
      {
        base::Guard guard(kicks_lock_);
        next = kicks_.pop_front();
      }
      if (!next) break;
      run_safely(next->action);
    }
  }
}

void Engine::add_source(PollSource& source) {
  assert_held();
  sources_.push_back(&source);
  if (armed_.load()) source.arm();
  kick_leader();  // what the source holds already was not announced to anybody
}

void Engine::remove_source(PollSource& source) {
  std::erase(sources_, &source);
}

bool Engine::watch(int fd, std::uint32_t events, FdHandler& handler) {
  assert_held();
  epoll_event event{};
  event.events = events;
  event.data.ptr = &handler;
  return epoll_ctl(epoll_fd_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Engine::change_watch(int fd, std::uint32_t events, FdHandler& handler) {
  assert_held();
  epoll_event event{};
  event.events = events;
  event.data.ptr = &handler;
  epoll_ctl(epoll_fd_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Engine::unwatch(int fd, FdHandler& handler) {
  assert_held();
  epoll_ctl(epoll_fd_.get(), EPOLL_CTL_DEL, fd, nullptr);
  // It may go away before its turn comes.
  for (epoll_event& event : ready_) {
    if (event.data.ptr == &handler) event.data.ptr = nullptr;
  }
}

void Engine::set_timer(Timer& timer, base::Nanoseconds deadline) {
  assert_held();
  cancel_timer(timer);
  timer.place_.key() = deadline;
  timer.where_ = timers_.insert(std::move(timer.place_));
  if (deadline < next_timer_.load(std::memory_order_relaxed)) {
    next_timer_.store(deadline);
    // Whoever leads from now on sees it.
    if (leader_.load() != nullptr) kick_leader();
  }
}

void Engine::cancel_timer(Timer& timer) {
  assert_held();
  if (!timer.pending()) return;
  timer.place_ = timers_.extract(timer.where_);
  next_timer_.store(timers_.empty() ? base::kForever : timers_.begin()->first);
}

bool Engine::run_timers() {
  bool any = false;
  while (!timers_.empty() && timers_.begin()->first <= base::now_ns()) {
    Timer& timer = *timers_.begin()->second;
    cancel_timer(timer);
    run_safely(timer.action_);
    any = true;
  }
  return any;
}

bool Engine::run_descriptors() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_fd_.get(), events.data(), events.size(), 0);
  bool progress = false;
  ready_ = std::span(events).first(static_cast<std::size_t>(std::max(count, 0)));
  while (!ready_.empty()) {
    const epoll_event event = ready_.front();
    ready_ = ready_.subspan(1);
    // The kick is for the leader alone. Were it taken here, a leader that has just been woken by it would find nothing
    // and go back to sleep. What another handler has unwatched meanwhile looks the same.
    if (event.data.ptr == nullptr) continue;
    run_safely([&] { static_cast<FdHandler*>(event.data.ptr)->ready(event.events); });
    progress = true;
  }
  return progress;
}

// Looks at the sources until there was something, but not more often than that. An idle look is a large part of the
// time in which a message lies unseen.
bool Engine::look_at_sources(int looks) {
  if (pass_wanted_.load(std::memory_order_relaxed)) pass_wanted_.store(false);
  bool progress = false;
  int done = 0;
  do {
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      run_safely([&] { progress |= sources_[i]->poll(); });
    }
  } while (++done < looks && !progress);
  counters_.polls.add(static_cast<std::uint64_t>(done));
  looks_since_descriptors_ += static_cast<unsigned>(done);
  return progress;
}

bool Engine::run_all() {
  bool progress = look_at_sources(1);
  looks_since_descriptors_ = 0;
  progress |= run_descriptors();
  if (!timers_.empty()) progress |= run_timers();
  return progress;
}

void Engine::disarm() {
  if (!armed_.load(std::memory_order_relaxed)) return;
  armed_.store(false);
  for (PollSource* source : sources_) source->disarm();
}

bool Engine::poll() {
  if (!try_lock()) {
    // Its holder may be waiting for this very processor, with something of ours in hand.
    static thread_local unsigned refused = 0;
    if (++refused % kRefusalsPerYield == 0) sched_yield();
    return false;
  }
  const bool progress = take_over();
  unlock();
  return progress;
}

bool Engine::look() {
  lock();
  const bool progress = take_over();
  unlock();
  return progress;
}

bool Engine::take_over() {
  activity_.store(activity_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (armed_.load(std::memory_order_relaxed)) [[unlikely]] {
    // Somebody sleeps and relies on being woken. We take over; it must look for itself from now on, since nobody
    // knows when we stop polling.
    disarm();
    kick_leader();
  }
  // Taking and releasing costs more than looking, so an idle pass looks more than once.
  return looks_since_descriptors_ < kLooksPerDescriptorPass ? look_at_sources(kLooksPerPoll) : run_all();
}

bool Engine::lock_unless_notified(const Waiter& waiter) {
  // Whoever frees an object waits, with the engine held, for its waiters to leave: they must not insist on the lock.
  for (unsigned i = 0; !try_lock(); ++i) {
    if (waiter.notified()) return false;
    if (i < 100) {
      base::cpu_relax();
    } else {
      sched_yield();
    }
  }
  return true;
}

// True if everything is quiet and armed, so that the caller may go to sleep.
bool Engine::arm(const Waiter& waiter) {
  if (!lock_unless_notified(waiter)) return false;
  armed_.store(true);
  for (PollSource* source : sources_) source->arm();
  // Orders our arming before the look that follows, and every peer's publishing before its look at our arming, without
  // a fence in the peers' fast path (they register for this when they open an adapter).
  base::remote_fence();
  const bool progress = run_all();
  if (progress) disarm();
  unlock();
  return !progress;
}

void Engine::kick_leader() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(kick_fd_.get(), &one, sizeof one);
}

WaitResult Engine::wait(Waiter& waiter, base::Nanoseconds deadline) {
  if (const WaitResult result = spin(waiter, deadline); result != WaitResult::interrupted) return result;
  for (;;) {
    if (waiter.notified()) return WaitResult::notified;
    Waiter* none = nullptr;
    const bool leads = leader_.compare_exchange_strong(none, &waiter);
    const WaitResult result = leads ? lead(waiter, deadline, false) : follow(waiter, deadline);
    if (leads) step_down();
    if (waiter.notified()) return WaitResult::notified;
    if (result != WaitResult::notified) return result;
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
    if (now - start > kYieldAfter) sched_yield();
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
    if (now - last > kYieldAfter) sched_yield();
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

    base::Nanoseconds until = std::min(deadline, next_timer_.load());
    if (others_poll) {
      until = std::min(until, now + kTick);
    } else if (!arm(waiter)) {
      continue;
    }
    counters_.sleeps.add();
    waiter.kick_fd_.store(kick_fd_.get());
    int count = 0;
    if (!waiter.notified()) {
      const base::Nanoseconds left =
          std::max<base::Nanoseconds>(until == base::kForever ? 0 : until - base::now_ns(), 0);
      const timespec timeout = base::to_timespec(left);
      pollfd bell{epoll_fd_.get(), POLLIN, 0};
      count = ppoll(&bell, 1, until == base::kForever ? nullptr : &timeout, nullptr);
    }
    const bool signalled = count < 0 && errno == EINTR;
    waiter.kick_fd_.store(-1);
    drain_eventfd(kick_fd_.get());  // what it was for is looked at below
    const bool others_post = posts_.load(std::memory_order_relaxed) != posts_seen;
    bool progress = false;
    if (lock_unless_notified(waiter)) {
      disarm();
      progress = run_all();
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
    kick_leader();
  }
  WaitResult result = WaitResult::notified;
  waiter.asleep_.store(true);
  // A leader that left before we were on the list promoted nobody.
  while (leader_.load() != nullptr && waiter.word_.load() == Waiter::kWaiting) {
    const auto slept = base::futex_wait(waiter.word_, Waiter::kWaiting, base::to_timespec(deadline));
    if (slept == base::FutexResult::timed_out) result = WaitResult::timed_out;
    if (slept == base::FutexResult::interrupted) result = WaitResult::interrupted;
    if (result != WaitResult::notified) break;
  }
  waiter.asleep_.store(false);
  bool promoted = false;
  {
    base::Guard guard(followers_lock_);
    followers_.remove(waiter);
    std::uint32_t word = Waiter::kPromoted;
    promoted = waiter.word_.compare_exchange_strong(word, Waiter::kWaiting);
  }
  // Whoever leaves for good must not take a promotion along that another sleeper waits for.
  const bool leaves = result != WaitResult::notified || waiter.notified();
  if ((promoted || leader_.load() == nullptr) && leaves) hand_over();
  return result;
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
        base::futex_wake(follower->word_, 1);
        return;
      }
      if (word == Waiter::kPromoted) return;
    }
  }
  if (progress_word_.exchange(kAwake) == kResting) base::futex_wake(progress_word_);
}

void Engine::progress_thread() {
  Waiter waiter;  // never notified: it is kicked
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
    lead(waiter, base::kForever, true);
    step_down();
    seen = activity_.load(std::memory_order_relaxed) - 1;  // whoever made us leave is active
  }
}

}  // namespace anydat::nic
