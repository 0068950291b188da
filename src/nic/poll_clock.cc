// SPDX-License-Identifier: BSD-3-Clause
#include "nic/poll_clock.h"

#include <algorithm>
#include <utility>

namespace anydat::nic {

PollClock::Pass PollClock::read() {
  const std::uint64_t last = std::exchange(now_, os::ticks(steady_));
  note_moment(now_);
  const std::uint64_t per_look = ticks_per_look_.load(std::memory_order_relaxed);
  const bool fast = now_ - last < per_look / 8;
  if (fast) unread_ = kUnread;
  const bool looks_by_time = now_ - looked_ >= per_look;
  // A thread that does something else between two passes does not keep the processor by polling.
  if (std::exchange(progress_, false) || now_ - last > per_look / 2) {
    vain_since_.store(now_, std::memory_order_relaxed);
    return {looks_by_time, false, fast};
  }
  const std::uint64_t patience = per_look >> (kStretchMax - stretch_.load(std::memory_order_relaxed));
  return {looks_by_time, now_ - vain_since_.load(std::memory_order_relaxed) > patience, fast};
}

void PollClock::looked() {
  const os::Nanoseconds now_ns = os::now_ns();
  const std::uint64_t now = os::ticks(steady_);
  const os::Nanoseconds passed = now_ns - looked_ns_;
  // How fast the ticks go is found out anew each time: a virtual machine may have moved to another processor. Times
  // that are too short to tell or too long to multiply tell nothing.
  if (passed > kLookEvery / 10 && passed < os::kNsPerSecond && now > looked_) {
    const std::uint64_t measured = (now - looked_) * kLookEvery / static_cast<std::uint64_t>(passed);
    ticks_per_look_.store(std::clamp(measured, kTicksPerLookMin, kTicksPerLookMax), std::memory_order_relaxed);
  }
  looked_ = now;
  looked_ns_ = now_ns;
}

void PollClock::give_way() {
  const unsigned stretch = stretch_.load(std::memory_order_relaxed);
  const std::uint64_t before = os::ticks(steady_);
  // Among threads with a real-time policy those of equal priority come first, and then those that they outrank.
  if (stretch < kStretchMax) {
    os::yield();
  } else {
    os::step_aside();
  }
  const std::uint64_t after = os::ticks(steady_);
  // Coming back from a system call takes a fraction of a microsecond, another thread's turn more than two.
  const bool somebody_ran = after - before > ticks_per_look_.load(std::memory_order_relaxed) / 25;
  stretch_.store(somebody_ran ? 0 : std::min(stretch + 1, kStretchMax), std::memory_order_relaxed);
  vain_since_.store(after, std::memory_order_relaxed);
}

}  // namespace anydat::nic
