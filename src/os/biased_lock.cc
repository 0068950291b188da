// SPDX-License-Identifier: BSD-3-Clause
#include "os/biased_lock.h"

#include <algorithm>

#include "os/clock.h"
#include "os/membarrier.h"

namespace anydat::os {

namespace {

// Biases are given again only when so many times as long has gone by as it took to take away all before: that takes
// half a percent of the time of a process at most, whatever its threads do. A thread that has to wait for its processor
// meanwhile is not counted with that.
constexpr Nanoseconds kRest = 256;
constexpr Nanoseconds kCountedAtMost = 100'000;

constinit std::atomic<bool> allowed{false};
constinit std::atomic<Nanoseconds> rests_until{0};

void rest_for(Nanoseconds spent, Nanoseconds now) {
  const Nanoseconds rest = kRest * std::min(spent, kCountedAtMost);
  Nanoseconds until = rests_until.load();
  while (!rests_until.compare_exchange_weak(until, std::max(until, now) + rest)) {
  }
}

}  // namespace

void allow_bias() {
  allowed.store(allow_thread_fences());
}

void Bias::earn() {
  if (!allowed.load(std::memory_order_relaxed) || now_ns() < rests_until.load(std::memory_order_relaxed)) return;
  const auto of = [&](const void* thread) {
    return std::find_if(grants_.begin(), grants_.end(), [=](const Grant& grant) { return grant.thread == thread; });
  };
  auto mine = of(this_thread());
  if (mine == grants_.end()) mine = of(nullptr);
  if (mine == grants_.end()) return;
  mine->thread.store(this_thread(), std::memory_order_relaxed);
  last_ = &*mine;
  // Seen by the next who has the lock underneath, by its release.
  granted_.store(last_, std::memory_order_relaxed);
}

// With the lock underneath held.
void Bias::revoke() {
  if (granted_.load(std::memory_order_relaxed) == &nobodys) return;
  const Nanoseconds start = now_ns();
  granted_.store(&nobodys, std::memory_order_relaxed);
  thread_fence();
  const Nanoseconds end = now_ns();
  rest_for(end - start, end);
}

void Bias::take_away() {
  revoke();
  spin_while([this] { return entered(); });
}

const Bias::Mark* Bias::try_to_take_away() {
  // This thread's own: it holds the lock, and stays as it is.
  const Mark& holder = last_->mark;
  if (mine()) return &holder;
  revoke();
  // A thread that has claimed the lock knows a few instructions later whether it has it. What is seen first is what
  // counts: a thread that has lost the bias may claim the lock once more, and goes away.
  std::uint8_t seen = kFree;
  spin_while([&] {
    seen = holder.load(std::memory_order_acquire);
    return seen == kClaimed;
  });
  return seen == kFree ? nullptr : &holder;
}

}  // namespace anydat::os
