// SPDX-License-Identifier: BSD-3-Clause
// Threads that are inside a blocking call: seeing that they sleep, and sending them signals.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/dat_events.h"
#include "support/patience.h"

namespace anydat::test {

// A thread that calls one function, and that can be watched meanwhile.
class WatchedThread {
 public:
  explicit WatchedThread(std::function<void()> body);
  ~WatchedThread();  // joins
  WatchedThread(const WatchedThread&) = delete;
  WatchedThread& operator=(const WatchedThread&) = delete;

  // Returns when the kernel has shown the thread asleep for a while; throws if it ends first or never sleeps.
  void wait_until_asleep(Caller caller = Caller::here()) const;
  bool ended_within(std::chrono::milliseconds time) const;
  // Asleep still, after all that has been done so far has had its effects (settle()); who is woken is not, whether it
  // has been given a processor or not.
  bool stays_asleep() const;
  void signal(int number) const;  // has no effect on a thread that has ended

 private:
  bool falls_asleep() const;  // false if it ends, or does not

  std::atomic<pid_t> id_{0};
  std::promise<void> ended_;
  std::shared_future<void> end_;
  std::thread thread_;
};

// One blocking call in a thread of its own. The constructor returns when it blocks.
template <typename Result>
class BlockedCall {
 public:
  explicit BlockedCall(std::function<Result()> call, Caller caller = Caller::here())
      : thread_([this, call = std::move(call)] { result_ = call(); }) {
    thread_.wait_until_asleep(caller);
  }

  // What has been done so far may have woken it for a moment.
  void wait_until_asleep() const { thread_.wait_until_asleep(); }
  // Whether nothing that has been done so far makes it return.
  bool stays_blocked() const { return thread_.stays_asleep(); }
  // Has it returned, or does it within that time?
  bool returned_within(std::chrono::milliseconds time) const { return thread_.ended_within(time); }
  void signal(int number) const { thread_.signal(number); }

  // What it returned. Throws if it does not return well before patience() is used up.
  Result result(Caller caller = Caller::here()) {
    require_end(caller);
    return *result_;
  }

 private:
  void require_end(Caller caller) const;

  std::optional<Result> result_;
  WatchedThread thread_;
};

// The call has come back before it was seen to block: on a busy machine its time may have run out by then.
class NotBlocked : public std::runtime_error {
  using runtime_error::runtime_error;
};

[[noreturn]] void throw_still_blocked(Caller caller);
[[noreturn]] void throw_not_blocked(Caller caller);

template <typename Result>
void BlockedCall<Result>::require_end(Caller caller) const {
  if (!returned_within(patience())) throw_still_blocked(caller);
}

// Runs `body(index)` in `count` threads and joins them all.
void in_threads(int count, const std::function<void(int)>& body);

// A handler for a signal that counts, for the length of a scope. One at a time.
class CountedSignal {
 public:
  explicit CountedSignal(int number, int flags = 0);
  ~CountedSignal();
  CountedSignal(const CountedSignal&) = delete;
  CountedSignal& operator=(const CountedSignal&) = delete;

  int number() const { return number_; }
  int count() const;  // how often the handler has run

 private:
  int number_;
  struct sigaction before_ {};
};

// Sends the signal until the call returns: one that comes while the thread is not asleep for a moment interrupts
// nothing. False if it does not return.
template <typename Result>
bool interrupt(const BlockedCall<Result>& call, const CountedSignal& signal) {
  return eventually([&] {
    call.signal(signal.number());
    return call.returned_within(std::chrono::milliseconds(1));
  });
}

}  // namespace anydat::test
