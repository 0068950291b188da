// SPDX-License-Identifier: BSD-3-Clause
// A clock and sleeps that a test plays: time passes when it says so, and a thread that sleeps stays where it is until
// the test has done what happens meanwhile. So what a thread sleeps for, and how long, does not depend on what else the
// machine does.
//
// One of two threads runs at a time: the test's, or the only other one that calls src/os.
#pragma once

#include <functional>
#include <vector>

#include "os/clock.h"

namespace anydat::test {

// What a thread sleeps for, and until when.
struct PlayedSleep {
  enum class Where { bell, bed, word };  // in poll(2), in an os::Nap, on a futex
  Where where;
  os::Nanoseconds until;
};

enum class SleepEnd { woken, timed_out, interrupted };

// One at a time. It outlives the other thread.
class PlayedSystem {
 public:
  // Each look at the clock takes so long.
  static constexpr os::Nanoseconds kLookAtClock = 100;

  PlayedSystem();
  ~PlayedSystem();
  PlayedSystem(const PlayedSystem&) = delete;
  PlayedSystem& operator=(const PlayedSystem&) = delete;

  os::Nanoseconds now() const;  // takes no time
  void pass(os::Nanoseconds time);

  // What happens while the test's own thread sleeps, and how that ends. Without it the time runs out.
  std::function<SleepEnd(const PlayedSleep&)> asleep;
  // What the test's own thread has slept for.
  std::vector<PlayedSleep> sleeps;
  // When it has let others have the processor.
  std::vector<os::Nanoseconds> yields;

  // The sleep of the other thread ends, and it runs until it sleeps again, for what is the answer.
  PlayedSleep let_other_run(SleepEnd end);
  // Its sleeps end at once from now on, so that it can be asked to end and joined.
  void let_other_go();
};

}  // namespace anydat::test
