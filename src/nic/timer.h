// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <map>

#include "os/clock.h"

namespace anydat::nic {

// A callback at a time, run with the engine held; at most one time is pending. A timer brings its own place among the
// engine's timers, so that setting it cannot fail.
class Timer {
 public:
  explicit Timer(std::function<void()> action) : action_(std::move(action)) {
    Queue one;
    place_ = one.extract(one.emplace(0, this));
  }
  ~Timer() = default;  // Requires: cancelled.
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // With the engine held. Setting and cancelling a timer costs more than letting it run for nothing: an object that
  // would do so often leaves it be.
  bool pending() const { return place_.empty(); }

 private:
  friend class Timers;
  using Queue = std::multimap<os::Nanoseconds, Timer*>;
  std::function<void()> action_;
  Queue::node_type place_;  // while it is not pending
  Queue::iterator where_;   // while it is
};

// Those of an engine, in the order of their times.
//
// Thread safety: all with the engine held, but for next(), which any thread may call.
class Timers {
 public:
  // True if it is the next of all now.
  bool set(Timer& timer, os::Nanoseconds deadline);
  void cancel(Timer& timer);
  // Those whose time has come, which may set and cancel any. True if there was one.
  bool run();
  os::Nanoseconds next() const { return next_.load(); }  // or kForever

 private:
  Timer::Queue queue_;
  std::atomic<os::Nanoseconds> next_{os::kForever};
};

}  // namespace anydat::nic
