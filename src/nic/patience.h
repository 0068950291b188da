// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include "os/clock.h"

namespace anydat::nic {

// How long something is waited for whose end is up to a peer: so long without any progress, and so long in all. The
// second bound is for peers that make as little progress as the first one allows.
class Patience {
 public:
  Patience(os::Nanoseconds idle, os::Nanoseconds total, os::Nanoseconds now)
      : idle_(idle), until_(now + idle), end_(now + total) {}

  void progress(os::Nanoseconds now) { until_ = now + idle_; }
  os::Nanoseconds deadline() const { return std::min(until_, end_); }
  bool over(os::Nanoseconds now) const { return now >= deadline(); }
  // When to look next whether there has been progress, of what does not say so by itself.
  os::Nanoseconds next_look(os::Nanoseconds now) const { return std::min(deadline(), now + idle_ / kLooks); }

 private:
  static constexpr int kLooks = 4;

  os::Nanoseconds idle_;
  os::Nanoseconds until_;
  os::Nanoseconds end_;
};

// What one side still owes the other when a connection ends in order.
inline constexpr os::Nanoseconds kEndIdle = 2 * os::kNsPerSecond;
inline constexpr os::Nanoseconds kEndTotal = 60 * os::kNsPerSecond;
// The same while an adapter closes: its program waits.
inline constexpr os::Nanoseconds kCloseIdle = os::kNsPerSecond;
inline constexpr os::Nanoseconds kCloseTotal = 10 * os::kNsPerSecond;

}  // namespace anydat::nic
