// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "base/clock.h"
#include "os/processor.h"
#include "os/ticks.h"

namespace anydat::nic {

// What those who poll do by time, not by how often they poll: look at what is dear to look at, and let others have the
// processor when they poll in vain.
//
// Thread safety: passed() and looked() by one thread at a time; give_way() by any.
class PollClock {
 public:
  // What is dear to look at is looked at that often, as long as anybody polls.
  static constexpr base::Nanoseconds kLookEvery = 50'000;

  // One more pass. True if it shall look at everything.
  bool pass_begins() {
    now_ = os::ticks(steady_);
    return now_ - looked_ >= ticks_per_look_.load(std::memory_order_relaxed);
  }
  // True if the pass was one of a row without progress, and it is time to give way.
  bool pass_ends(bool progress) {
    const std::uint64_t last = std::exchange(last_pass_, now_);
    const std::uint64_t per_look = ticks_per_look_.load(std::memory_order_relaxed);
    // Whoever does something else between two passes does not keep the processor by polling.
    if (progress || now_ - last > per_look / 2) {
      vain_since_.store(now_, std::memory_order_relaxed);
      return false;
    }
    const std::uint64_t patience = per_look >> (kStretchMax - stretch_.load(std::memory_order_relaxed));
    return now_ - vain_since_.load(std::memory_order_relaxed) > patience;
  }
  void looked();

  // Whoever else runs on this processor may be the peer that is waited for. Where nobody wants it, it is offered less
  // often. Not with the engine held.
  void give_way();

 private:
  static constexpr unsigned kStretchMax = 3;  // from 6 us in vain to 50
  static constexpr std::uint64_t kTicksPerLookMin = 5'000;
  static constexpr std::uint64_t kTicksPerLookMax = 1'000'000;

  const bool steady_ = os::has_steady_counter();
  std::uint64_t now_ = os::ticks(steady_);
  std::uint64_t looked_ = now_;
  std::uint64_t last_pass_ = now_;
  base::Nanoseconds looked_ns_ = base::now_ns();
  // Too few at first, so that it is soon known how many there are. Written like those above.
  std::atomic<std::uint64_t> ticks_per_look_{kTicksPerLookMin};
  std::atomic<std::uint64_t> vain_since_{now_};
  std::atomic<unsigned> stretch_{0};
};

}  // namespace anydat::nic
