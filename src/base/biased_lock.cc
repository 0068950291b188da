// SPDX-License-Identifier: BSD-3-Clause
#include "base/biased_lock.h"

#include "base/clock.h"

namespace anydat::base {

namespace {

// Biases are given again only when so many times as long has gone by as it took to take the last one away. So that
// takes a few thousandths of the time of a process at most, whatever its threads do.
constexpr Nanoseconds kRest = 256;

constinit std::atomic<bool> allowed{false};
constinit std::atomic<Nanoseconds> rests_until{0};

}  // namespace

void allow_bias() {
  allowed.store(allow_thread_fences());
}

void Bias::earn() {
  if (!allowed.load(std::memory_order_relaxed) || now_ns() < rests_until.load(std::memory_order_relaxed)) return;
  // Seen by the next who has the lock underneath, by its release.
  thread_.store(this_thread(), std::memory_order_relaxed);
}

// With the lock underneath held.
void Bias::revoke() {
  if (!thread_.load(std::memory_order_relaxed)) return;
  const Nanoseconds start = now_ns();
  thread_.store(nullptr, std::memory_order_relaxed);
  thread_fence();
  const Nanoseconds end = now_ns();
  rests_until.store(end + kRest * (end - start), std::memory_order_relaxed);
}

void Bias::take_away() {
  revoke();
  spin_while([this] { return mark_.load(std::memory_order_acquire) != kFree; });
}

bool Bias::try_take_away() {
  // Its thread holds it: this thread, to which nothing happens meanwhile.
  if (thread_.load(std::memory_order_relaxed) == this_thread()) return false;
  revoke();
  // A thread that has claimed the lock knows a few instructions later whether it has it.
  spin_while([this] { return mark_.load(std::memory_order_acquire) == kClaimed; });
  return mark_.load(std::memory_order_acquire) == kFree;
}

}  // namespace anydat::base
