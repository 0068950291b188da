// SPDX-License-Identifier: BSD-3-Clause
#include "nic/engine.h"

#include <sys/eventfd.h>

#include <new>

#include "base/env.h"
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
  kick_fd_ = base::UniqueFd::of([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (!kick_fd_ || !loop_.start(kick_fd_.get())) return Status::no_memory;

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
    tasks_.run();
    owner_.store(nullptr, std::memory_order_relaxed);
    mutex_.unlock();
  } while (tasks_.pending_in_order() && try_lock());  // as in unlock()
}

void Engine::cancel_kick(Task& task) {
  assert_held();
  tasks_.cancel(task);
}

void Engine::add_source(PollSource& source) {
  assert_held();
  loop_.add_source(source);
  kick_leader();  // what the source holds already was not announced to anybody
}

void Engine::remove_source(PollSource& source) {
  assert_held();
  loop_.remove_source(source);
}

bool Engine::watch(int fd, std::uint32_t events, FdHandler& handler) {
  assert_held();
  return loop_.watch(fd, events, handler);
}

void Engine::change_watch(int fd, std::uint32_t events, FdHandler& handler) {
  assert_held();
  loop_.change_watch(fd, events, handler);
}

void Engine::unwatch(int fd, FdHandler& handler) {
  assert_held();
  loop_.unwatch(fd, handler);
}

void Engine::set_timer(Timer& timer, base::Nanoseconds deadline) {
  assert_held();
  // Whoever leads from now on sees it.
  if (loop_.set_timer(timer, deadline) && leader_.load() != nullptr) kick_leader();
}

void Engine::cancel_timer(Timer& timer) {
  assert_held();
  loop_.cancel_timer(timer);
}

[[gnu::noinline]] bool Engine::look_by_time() {
  const bool progress = loop_.poll_by_time();
  clock_.looked();
  return progress;
}

bool Engine::run_all() {
  if (pass_wanted_.load(std::memory_order_relaxed)) pass_wanted_.store(false);
  const bool progress = loop_.poll_sources(1);
  return look_by_time() || progress;
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
  if (loop_.armed_hint()) [[unlikely]] {
    // Somebody sleeps and relies on being woken. We take over; it must look for itself from now on, since nobody
    // knows when we stop polling.
    loop_.disarm();
    kick_leader();
  }
  if (pass_wanted_.load(std::memory_order_relaxed)) pass_wanted_.store(false);
  const PollClock::Pass pass = clock_.begin_pass();
  // Taking and releasing costs more than looking, so an idle pass looks more than once.
  bool progress = loop_.poll_sources(pass.looks_by_time ? 1 : kLooksPerPoll);
  if (pass.looks_by_time) [[unlikely]]
    progress |= look_by_time();
  if (progress) clock_.note_progress();
  return {progress, pass.gives_way && !progress};
}

void Engine::kick_leader() {
  os::uncancelled::ring(kick_fd_.get());
}

}  // namespace anydat::nic
