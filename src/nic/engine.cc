// SPDX-License-Identifier: BSD-3-Clause
#include "nic/engine.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <new>

#include "base/env.h"
#include "base/log.h"
#include "os/cancel.h"
#include "os/thread_signals.h"
#include "os/uncancelled.h"

namespace anydat::nic {

namespace {

constexpr unsigned kRefusalsPerYield = 64;
constexpr int kLooksPerPoll = 4;

}  // namespace

Engine::~Engine() {
  stop();
}

Status Engine::start() {
  spin_ns_ = base::env_number(base::EnvVar::spin_us).value_or(50) * 1000;
  epoll_fd_ = base::UniqueFd::of([] { return epoll_create1(EPOLL_CLOEXEC); });
  kick_fd_ = base::UniqueFd::of([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (!epoll_fd_ || !kick_fd_) return Status::no_memory;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;  // the kick
  if (epoll_ctl(epoll_fd_.get(), EPOLL_CTL_ADD, kick_fd_.get(), &event) != 0) return Status::no_memory;

  const os::SignalsOfOurThreads mask;
  Status status = Status::ok;
  try {
    if (!thread_.start([this] { progress_thread(); })) status = Status::no_memory;
  } catch (const std::bad_alloc&) {
    status = Status::no_memory;
  }
  while (status == Status::ok && thread_id_.load() == 0) {
    base::futex_wait(thread_id_, 0, base::to_timespec(base::kForever));
  }
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
    owner_.store(nullptr, std::memory_order_relaxed);
    mutex_.unlock();
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
  if (timers_.begin()->first > base::now_ns()) return false;
  const os::CancelOff off;  // they may call what we have not written
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
  const int count = os::uncancelled::epoll_wait(epoll_fd_.get(), events.data(), events.size(), 0);
  bool progress = false;
  if (count <= 0) return false;
  const os::CancelOff off;  // the handlers may call what we have not written
  ready_ = std::span(events).first(static_cast<std::size_t>(count));
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
  return progress;
}

bool Engine::run_all() {
  const bool progress = look_at_sources(1);
  return look_by_time() || progress;
}

// Apart, for those who count what a call costs: whether it also does this is a matter of chance.
[[gnu::noinline]] bool Engine::look_by_time() {
  bool progress = false;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    run_safely([&] { progress |= sources_[i]->look_by_time(); });
  }
  progress |= run_descriptors();
  if (!timers_.empty()) progress |= run_timers();
  clock_.looked();
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
    if (++refused % kRefusalsPerYield == 0) os::step_aside();
    return false;
  }
  const Pass pass = take_over();
  unlock();
  if (pass.gives_way) [[unlikely]]
    clock_.give_way();
  return pass.progress;
}

bool Engine::look() {
  lock();
  const Pass pass = take_over();
  unlock();
  return pass.progress;
}

Engine::Pass Engine::take_over() {
  activity_.store(activity_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (armed_.load(std::memory_order_relaxed)) [[unlikely]] {
    // Somebody sleeps and relies on being woken. We take over; it must look for itself from now on, since nobody
    // knows when we stop polling.
    disarm();
    kick_leader();
  }
  // Taking and releasing costs more than looking, so an idle pass looks more than once.
  const PollClock::Pass pass = clock_.begin_pass();
  const bool progress = pass.looks_by_time ? run_all() : look_at_sources(kLooksPerPoll);
  if (progress) clock_.note_progress();
  return {progress, pass.gives_way && !progress};
}

void Engine::kick_leader() {
  os::uncancelled::ring(kick_fd_.get());
}

}  // namespace anydat::nic
