// SPDX-License-Identifier: BSD-3-Clause
#include "nic/poll_clock.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "base/lock.h"

namespace anydat::nic {
namespace {

constexpr base::Nanoseconds kPause = 3 * PollClock::kLookEvery;
// Passes, of which one at least reads the clock.
constexpr int kRow = 4;

void pass_time(base::Nanoseconds time) {
  for (const base::Nanoseconds end = base::now_ns() + time; base::now_ns() < end;) {
  }
}

PollClock::Pass begin_pass(PollClock& clock) {
  return clock.begin_unread_pass() ? PollClock::Pass{} : clock.read();
}

bool pass(PollClock& clock) {
  const bool looks = begin_pass(clock).looks_by_time;
  if (looks) clock.looked();
  return looks;
}

// Fast passes, until the clock knows how fast its ticks go.
void poll_for_a_while(PollClock& clock) {
  for (const base::Nanoseconds end = base::now_ns() + 20 * PollClock::kLookEvery; base::now_ns() < end;) pass(clock);
}

TEST(PollClock, WhoPollsFastLooksByTimeRarely) {
  PollClock clock;
  poll_for_a_while(clock);
  const base::Nanoseconds start = base::now_ns();
  int looks = 0;
  constexpr int kPasses = 100'000;
  for (int i = 0; i < kPasses; ++i) looks += pass(clock);
  const base::Nanoseconds took = base::now_ns() - start;
  EXPECT_LE(looks, took / (PollClock::kLookEvery / 2) + 1);
  EXPECT_LT(looks, kPasses / 2);
}

TEST(PollClock, WhoPausesBetweenPassesLooksInEach) {
  PollClock clock;
  poll_for_a_while(clock);
  for (int i = 0; i < kRow; ++i) {
    pass_time(kPause);
    pass(clock);
  }
  for (int i = 0; i < 20; ++i) {
    pass_time(kPause);
    EXPECT_TRUE(pass(clock)) << i;
  }
}

TEST(PollClock, APauseAfterFastPassesIsNoticedByTheFourth) {
  PollClock clock;
  for (int round = 0; round < 20; ++round) {
    poll_for_a_while(clock);
    pass_time(kPause);
    int looks = 0;
    for (int i = 0; i < kRow; ++i) looks += pass(clock);
    EXPECT_GE(looks, 1) << round;
  }
}

TEST(PollClock, WhoPollsInVainGivesWay) {
  PollClock clock;
  poll_for_a_while(clock);
  bool gives_way = false;
  for (const base::Nanoseconds end = base::now_ns() + base::kNsPerSecond; !gives_way && base::now_ns() < end;) {
    const PollClock::Pass pass = begin_pass(clock);
    if (pass.looks_by_time) clock.looked();
    gives_way = pass.gives_way;
  }
  EXPECT_TRUE(gives_way);
}

// Another that computes on this thread's processor for as long as it lives.
class BusyNeighbour {
 public:
  BusyNeighbour() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &here);
    sched_setaffinity(0, sizeof here, &here);
    thread_ = std::thread([this] {
      while (!over_.load(std::memory_order_relaxed)) base::cpu_relax();
    });
  }
  ~BusyNeighbour() {
    over_.store(true);
    thread_.join();
    sched_setaffinity(0, sizeof before_, &before_);
  }
  BusyNeighbour(const BusyNeighbour&) = delete;
  BusyNeighbour& operator=(const BusyNeighbour&) = delete;

 private:
  cpu_set_t before_{};
  std::atomic<bool> over_{false};
  std::thread thread_;  // with this one's affinity
};

// How long the clock kept the processor after a turn of another's that long; nothing where nobody is given such a turn.
struct Kept {
  base::Nanoseconds away = 0;
  base::Nanoseconds kept = 0;
};
std::optional<Kept> lose_the_processor(PollClock& clock) {
  constexpr base::Nanoseconds kLong = 2'000'000, kTooLong = 100'000'000;
  for (const base::Nanoseconds end = base::now_ns() + base::kNsPerSecond; base::now_ns() < end;) {
    const base::Nanoseconds before = base::now_ns();
    clock.give_way();
    const base::Nanoseconds back = base::now_ns();
    if (back - before < kLong || back - before > kTooLong) continue;
    Kept result{back - before, 0};
    for (bool gives_way = false; !gives_way && base::now_ns() < end;) {
      const PollClock::Pass pass = begin_pass(clock);
      if (pass.looks_by_time) clock.looked();
      gives_way = pass.gives_way;
    }
    result.kept = base::now_ns() - back;
    return result;
  }
  return std::nullopt;
}

// Else it would have the processor for the small part of the time in which nobody else computes.
TEST(PollClock, WhoHasLostTheProcessorForLongKeepsItForAWhile) {
  PollClock clock;
  poll_for_a_while(clock);
  const BusyNeighbour neighbour;
  // More than once, since the processor may also be taken away between two looks at a clock.
  bool kept = false;
  for (int tries = 0; !kept && tries < 5; ++tries) {
    const std::optional<Kept> result = lose_the_processor(clock);
    if (!result) GTEST_SKIP() << "nobody is given a long turn here";
    kept = result->kept >= std::min<base::Nanoseconds>(result->away / 3, 3'000'000);
  }
  EXPECT_TRUE(kept);
}

// Passes in vain for longer than any patience, but never without progress since the clock was last read.
TEST(PollClock, WhoMakesProgressDoesNotGiveWay) {
  PollClock clock;
  poll_for_a_while(clock);
  clock.note_progress();
  for (int i = 0; i < kRow; ++i) begin_pass(clock);
  for (int i = 0; i < 100'000; ++i) {
    clock.note_progress();
    EXPECT_FALSE(begin_pass(clock).gives_way) << i;
    if (i % 1000 == 0) clock.looked();
  }
}

}  // namespace
}  // namespace anydat::nic
