// SPDX-License-Identifier: BSD-3-Clause
#include "support/threads.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string>

#include "support/progress.h"

namespace anydat::test {
namespace {

std::atomic<int> signal_count;

extern "C" void count_signal(int) {
  ++signal_count;
}

// The state letter of /proc: it follows the name, which stands in parentheses and may hold anything.
bool asleep(pid_t id) {
  std::ifstream file(fmt::format("/proc/self/task/{}/stat", id));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  return name_end != std::string::npos && name_end + 2 < line.size() && line[name_end + 2] == 'S';
}

}  // namespace

WatchedThread::WatchedThread(std::function<void()> body)
    : end_(ended_.get_future()), thread_([this, body = std::move(body)] {
        id_ = ::gettid();
        body();
        ended_.set_value();
      }) {}

WatchedThread::~WatchedThread() {
  thread_.join();
}

void WatchedThread::wait_until_asleep(Caller caller) const {
  if (!falls_asleep()) throw_not_blocked(caller);
}

bool WatchedThread::falls_asleep() const {
  // A thread may also sleep for an instant where it waits for a lock; several looks in a row tell that apart.
  constexpr int kLooks = 4;
  int seen = 0;
  eventually([&] {
    const pid_t id = id_;
    seen = id != 0 && asleep(id) ? seen + 1 : 0;
    return seen == kLooks || ended_within(std::chrono::milliseconds(0));
  });
  return seen == kLooks;
}

bool WatchedThread::stays_asleep() const {
  if (!settle()) return !ended_within(quiet_time());
  // One that wakes up again and again for others, and has not ended for so long, has not been woken either.
  return falls_asleep() || !ended_within(std::chrono::milliseconds(0));
}

bool WatchedThread::ended_within(std::chrono::milliseconds time) const {
  return end_.wait_for(time) == std::future_status::ready;
}

void WatchedThread::signal(int number) const {
  if (!ended_within(std::chrono::milliseconds(0))) {
    ::pthread_kill(const_cast<std::thread&>(thread_).native_handle(), number);
  }
}

void throw_still_blocked(Caller caller) {
  // Said at once: who joins the thread may have to be ended by the watchdog.
  ADD_FAILURE_AT(caller.file, caller.line) << "the call is still blocked";
  throw std::runtime_error(fmt::format("{}:{}: the call is still blocked", caller.file, caller.line));
}

void throw_not_blocked(Caller caller) {
  throw NotBlocked(fmt::format("{}:{}: the call did not block", caller.file, caller.line));
}

void in_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back(body, i);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

CountedSignal::CountedSignal(int number, int flags) : number_(number) {
  signal_count = 0;
  struct sigaction action {};
  action.sa_handler = count_signal;
  action.sa_flags = flags;
  ::sigaction(number, &action, &before_);
}

CountedSignal::~CountedSignal() {
  ::sigaction(number_, &before_, nullptr);
}

int CountedSignal::count() const {
  return signal_count;
}

}  // namespace anydat::test
