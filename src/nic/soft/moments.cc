// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/moments.h"

namespace anydat::nic::soft {

std::uint64_t Moments::look_at_clock() {
  const unsigned looks = looks_.load(std::memory_order_relaxed) + 1;
  looks_.store(looks % kLooks, std::memory_order_relaxed);
  if (looks == kLooks) {
    engine_.add_task(task_);
    engine_.wake_if_armed();  // a thread that is awake comes by soon
  }
  return moment_of(engine_.ticks());
}

void Moments::keep() {
  left_ = kTimes;
  engine_.keep_moment(true);
  engine_.set_timer(timer_, os::now_ns() + kEvery);
}

// The thread that runs timers has just read the clock, for the engine as well.
void Moments::look() {
  if (--left_ != 0) {
    engine_.set_timer(timer_, os::now_ns() + kEvery);
  } else {
    engine_.keep_moment(false);
  }
}

void Moments::stop() {
  engine_.cancel_task(task_);
  engine_.cancel_timer(timer_);
}

}  // namespace anydat::nic::soft
