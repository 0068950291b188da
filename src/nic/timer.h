// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>

#include "base/clock.h"

namespace anydat::nic {

// A callback at a time, run with the engine held; at most one time is pending. A timer brings its own place among the
// loop's timers, so that setting it cannot fail.
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
  friend class Loop;
  using Queue = std::multimap<base::Nanoseconds, Timer*>;
  std::function<void()> action_;
  Queue::node_type place_;  // while it is not pending
  Queue::iterator where_;   // while it is
};

}  // namespace anydat::nic
