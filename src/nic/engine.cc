// SPDX-License-Identifier: BSD-3-Clause
#include "nic/engine.h"

#include "os/biased_lock.h"
#include "os/cancel.h"

namespace anydat::nic {

namespace {

constexpr unsigned kRefusalsPerYield = 64;
constexpr int kLooksPerPoll = 4;

}  // namespace

Engine::~Engine() {
  waiting_.stop();
}

Status Engine::start() {
  if (!poller_.open()) return Status::no_memory;
  loop_.start(poller_);
  os::allow_bias();
  return waiting_.start();
}

void Engine::unlock_after_work() ANYDAT_NO_ANALYSIS {
  const os::CancelOff off;  // tasks may call what we have not written, as handlers and timers do
  do {
    tasks_.run();
    owner_.store(nullptr, std::memory_order_relaxed);
    mutex_.unlock_and_look();
  } while (tasks_.pending_in_order() && try_lock());  // as in unlock()
}

void Engine::cancel_task(Task& task) {
  assert_held();
  tasks_.cancel(task);
}

void Engine::add_source(PollSource& source) {
  assert_held();
  loop_.add_source(source);
  wake_leader();  // what the source holds already was not announced to anybody
}

void Engine::remove_source(PollSource& source) {
  assert_held();
  loop_.remove_source(source);
}

bool Engine::watch(int fd, std::uint32_t events, FdHandler& handler) {
  assert_held();
  return !loss_.noted() && loop_.watch(fd, events, handler);
}

void Engine::change_watch(int fd, std::uint32_t events, FdHandler& handler) {
  assert_held();
  loop_.change_watch(fd, events, handler);
}

void Engine::unwatch(int fd, FdHandler& handler) {
  assert_held();
  loop_.unwatch(fd, handler);
}

void Engine::set_timer(Timer& timer, os::Nanoseconds deadline) {
  assert_held();
  // A thread that leads from now on sees it.
  if (loop_.timers().set(timer, deadline) && waiting_.anybody_leads()) wake_leader();
}

void Engine::cancel_timer(Timer& timer) {
  assert_held();
  loop_.timers().cancel(timer);
}

[[gnu::noinline]] bool Engine::look_by_time() {
  const bool progress = loop_.poll_by_time();
  clock_.looked();
  if (loop_.lost()) loss_.note();
  if (loss_.noted()) [[unlikely]]
    loss_.tell();
  return progress;
}

bool Engine::run_all() {
  clock_.note_moment();
  activity_.pass_begins();
  const bool progress = loop_.poll_sources(1);
  return look_by_time() || progress;
}

inline bool Engine::take_over(bool& gives_way) {
  activity_.note_pass();
  bool lost = false;
  if (loop_.armed_hint()) [[unlikely]] {
    // A thread sleeps and relies on being woken. We take over; it must look for itself from now on, since it cannot
    // know when we stop polling.
    loop_.disarm();
    wake_leader();
    lost = loss_.noted();
  }
  activity_.pass_begins();
  // Taking and releasing costs more than looking, so an idle pass looks more than once.
  if (!lost && clock_.begin_unread_pass()) [[likely]] {
    const bool progress = loop_.poll_sources_here(kLooksPerPoll);
    if (progress) clock_.note_progress();
    return progress;
  }
  return poll_by_clock(lost, gives_way);
}

bool Engine::poll() {
  if (!try_lock()) [[unlikely]] {
    // Its holder may be waiting for this very processor, with something of ours in hand.
    static thread_local unsigned refused = 0;
    if (++refused % kRefusalsPerYield == 0) os::step_aside();
    return false;
  }
  bool gives_way = false;
  const bool progress = take_over(gives_way);
  unlock();
  if (gives_way) [[unlikely]]
    clock_.give_way();
  return progress;
}

bool Engine::look() {
  lock();
  bool gives_way = false;
  const bool progress = take_over(gives_way);
  unlock();
  return progress;
}

[[gnu::noinline]] bool Engine::poll_by_clock(bool lost, bool& gives_way) {
  const PollClock::Pass pass = clock_.read();
  if (pass.follows_fast) [[likely]]
    loop_.note_fast_passes();
  bool progress = loop_.poll_sources(pass.looks_by_time ? 1 : kLooksPerPoll);
  if (pass.looks_by_time || lost) [[unlikely]]
    progress |= look_by_time();
  if (progress) clock_.note_progress();
  gives_way = pass.gives_way && !progress;
  return progress;
}

void Engine::wake_leader() {
  if (!poller_.ring()) loss_.note();
}

}  // namespace anydat::nic
