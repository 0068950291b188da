// SPDX-License-Identifier: BSD-3-Clause
#include "nic/timer.h"

#include "nic/run_safely.h"
#include "os/cancel.h"

namespace anydat::nic {

bool Timers::set(Timer& timer, os::Nanoseconds deadline) {
  cancel(timer);
  timer.place_.key() = deadline;
  timer.where_ = queue_.insert(std::move(timer.place_));
  if (deadline >= next_.load(std::memory_order_relaxed)) return false;
  next_.store(deadline);
  return true;
}

void Timers::cancel(Timer& timer) {
  if (!timer.pending()) return;
  timer.place_ = queue_.extract(timer.where_);
  next_.store(queue_.empty() ? os::kForever : queue_.begin()->first);
}

bool Timers::run() {
  if (queue_.empty() || queue_.begin()->first > os::now_ns()) return false;
  const os::CancelOff off;  // they may call what we have not written
  while (!queue_.empty() && queue_.begin()->first <= os::now_ns()) {
    Timer& timer = *queue_.begin()->second;
    cancel(timer);
    run_safely(timer.action_);
  }
  return true;
}

}  // namespace anydat::nic
