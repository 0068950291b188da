// SPDX-License-Identifier: BSD-3-Clause
#include "system/played_system.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "os/futex.h"
#include "os/nap.h"
#include "os/poll.h"
#include "os/processor.h"
#include "support/patience.h"

namespace anydat::test {

namespace {

enum class Turn { test, other, both };

PlayedSystem* system = nullptr;
std::thread::id test_thread;
std::atomic<os::Nanoseconds> time_now{0};
thread_local bool played = false;

std::mutex mutex;
std::condition_variable turn_changed;
Turn turn = Turn::test;
PlayedSleep other_sleeps{};
SleepEnd other_ends = SleepEnd::woken;

bool on_test_thread() {
  return std::this_thread::get_id() == test_thread;
}

// On the other thread.
void wait_for_turn(std::unique_lock<std::mutex>& lock) {
  turn_changed.wait(lock, [] { return turn != Turn::test; });
}

// The first that the other thread calls makes it one whose time is played.
void begin_other() {
  if (played || !system || on_test_thread()) return;
  played = true;
  std::unique_lock lock(mutex);
  wait_for_turn(lock);
}

SleepEnd sleep_on_other(const PlayedSleep& sleep) {
  begin_other();
  std::unique_lock lock(mutex);
  if (turn == Turn::both) return SleepEnd::timed_out;
  other_sleeps = sleep;
  turn = Turn::test;
  turn_changed.notify_all();
  wait_for_turn(lock);
  return turn == Turn::both ? SleepEnd::timed_out : other_ends;
}

SleepEnd sleep(const PlayedSleep& sleep) {
  if (!on_test_thread()) return sleep_on_other(sleep);
  system->sleeps.push_back(sleep);
  const SleepEnd end = system->asleep ? system->asleep(sleep) : SleepEnd::timed_out;
  if (end == SleepEnd::timed_out) {
    if (sleep.until == os::kForever) throw std::logic_error("a sleep without end has timed out");
    if (time_now < sleep.until) time_now = sleep.until;
  }
  return end;
}

os::Nanoseconds in_ns(const timespec& time) {
  return time.tv_sec >= os::kNever.tv_sec ? os::kForever : time.tv_sec * os::kNsPerSecond + time.tv_nsec;
}

}  // namespace

PlayedSystem::PlayedSystem() {
  time_now = 1'000 * os::kNsPerSecond;
  test_thread = std::this_thread::get_id();
  turn = Turn::test;
  played = true;
  system = this;
}

PlayedSystem::~PlayedSystem() {
  system = nullptr;
  played = false;
}

os::Nanoseconds PlayedSystem::now() const {
  return time_now;
}

void PlayedSystem::pass(os::Nanoseconds time) {
  time_now += time;
}

PlayedSleep PlayedSystem::let_other_run(SleepEnd end) {
  std::unique_lock lock(mutex);
  other_ends = end;
  turn = Turn::other;
  turn_changed.notify_all();
  played = false;  // this wait is the test's own
  const bool sleeps_again = turn_changed.wait_for(lock, patience(), [] { return turn == Turn::test; });
  played = true;
  if (!sleeps_again) {
    turn = Turn::both;
    turn_changed.notify_all();
    throw std::runtime_error("the other thread does not sleep");
  }
  return other_sleeps;
}

void PlayedSystem::let_other_go() {
  const std::lock_guard lock(mutex);
  turn = Turn::both;
  turn_changed.notify_all();
}

}  // namespace anydat::test

// ---- the system: the clock, and the subjects futex, nap, poll and processor of src/os

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  using namespace anydat;
  if (!test::played || clock != CLOCK_MONOTONIC) return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  *time = os::to_timespec(test::time_now += test::PlayedSystem::kLookAtClock);
  return 0;
}

namespace anydat::os {

using test::PlayedSleep;
using test::SleepEnd;

FutexResult futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec& deadline) {
  test::begin_other();
  if (test::on_test_thread()) {  // a thread that is being started answers without the help of a test
    while (word.load() == expected) std::this_thread::yield();
  }
  if (word.load() != expected) return FutexResult::changed;
  switch (test::sleep({PlayedSleep::Where::word, test::in_ns(deadline)})) {
    case SleepEnd::woken:
      return FutexResult::woken;
    case SleepEnd::timed_out:
      return FutexResult::timed_out;
    case SleepEnd::interrupted:
      break;
  }
  return FutexResult::interrupted;
}

void futex_wake(std::atomic<std::uint32_t>&, int) {
  test::begin_other();
}

Nap::Nap() {
  sem_init(&semaphore_, 0, 0);
}

Nap::~Nap() {
  sem_destroy(&semaphore_);
}

Nap::End Nap::sleep(Nanoseconds deadline) {
  if (sem_trywait(&semaphore_) == 0) return End::woken;
  const SleepEnd end = test::sleep({PlayedSleep::Where::bed, deadline});
  if (sem_trywait(&semaphore_) == 0) return End::woken;
  return end == SleepEnd::timed_out ? End::timed_out : End::interrupted;
}

void Nap::wake() {
  sem_post(&semaphore_);
}

int poll(std::span<pollfd> entries, int milliseconds) {
  return ::poll(entries.data(), entries.size(), milliseconds);
}

PollEnd sleep_until_readable(int fd, Nanoseconds time) {
  pollfd entry{fd, POLLIN, 0};
  if (fd >= 0 && ::poll(&entry, 1, 0) == 1) return PollEnd::ready_or_timed_out;
  const Nanoseconds until = time == kForever ? kForever : test::time_now + time;
  const SleepEnd end = test::sleep({PlayedSleep::Where::bell, until});
  return end == SleepEnd::interrupted ? PollEnd::interrupted : PollEnd::ready_or_timed_out;
}

void yield() {
  if (test::on_test_thread() && test::system) test::system->yields.push_back(test::time_now);
}

void step_aside() {
  yield();
}

void sleep_for(Nanoseconds time) {
  test::time_now += time;
}

}  // namespace anydat::os
