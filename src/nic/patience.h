// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace anydat::nic {

// How long something is waited for whose end is up to a peer: so long without any progress, and so long in all. The
// second bound is for peers that make as little progress as the first one allows.
class Patience {
 public:
  Patience(base::Nanoseconds idle, base::Nanoseconds total, base::Nanoseconds now)
      : idle_(idle), until_(now + idle), end_(now + total) {}

  void progress(base::Nanoseconds now) { until_ = now + idle_; }
  base::Nanoseconds deadline() const { return std::min(until_, end_); }
  bool over(base::Nanoseconds now) const { return now >= deadline(); }
  // When to look next whether there has been progress, of what does not say so by itself.
  base::Nanoseconds next_look(base::Nanoseconds now) const { return std::min(deadline(), now + idle_ / kLooks); }

 private:
  static constexpr int kLooks = 4;

  base::Nanoseconds idle_;
  base::Nanoseconds until_;
  base::Nanoseconds end_;
};

// What one side still owes the other when a connection ends in order.
inline constexpr base::Nanoseconds kEndIdle = 2 * base::kNsPerSecond;
inline constexpr base::Nanoseconds kEndTotal = 60 * base::kNsPerSecond;
// The same while an adapter closes: its program waits.
inline constexpr base::Nanoseconds kCloseIdle = base::kNsPerSecond;
inline constexpr base::Nanoseconds kCloseTotal = 10 * base::kNsPerSecond;

}  // namespace anydat::nic
