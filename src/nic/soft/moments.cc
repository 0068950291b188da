// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/moments.h"

namespace anydat::nic::soft {

std::uint64_t Moments::look_at_clock() {
  looks_.store(looks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return moment_of(engine_.ticks());
}

void Moments::keep_now() {
  looks_.store(0, std::memory_order_relaxed);
  left_ = kTimes;
  engine_.keep_moment(true);
  engine_.set_timer(timer_, base::now_ns() + kEvery);
}

// Whoever runs timers has just read the clock, for the engine as well.
void Moments::look() {
  if (--left_ != 0) {
    engine_.set_timer(timer_, base::now_ns() + kEvery);
  } else {
    engine_.keep_moment(false);
  }
}

void Moments::stop() {
  engine_.cancel_task(task_);
  engine_.cancel_timer(timer_);
}

}  // namespace anydat::nic::soft
