// SPDX-License-Identifier: BSD-3-Clause
#include "nic/poll_clock.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <vector>

namespace anydat::nic {
namespace {

constexpr os::Nanoseconds kPause = 3 * PollClock::kLookEvery;
// Passes, of which one at least reads the clock.
constexpr int kRow = 4;

void pass_time(os::Nanoseconds time) {
  for (const os::Nanoseconds end = os::now_ns() + time; os::now_ns() < end;) {
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
  for (const os::Nanoseconds end = os::now_ns() + 20 * PollClock::kLookEvery; os::now_ns() < end;) pass(clock);
}

// The thread may be without a processor for milliseconds at any place here, so what the clock tells is compared with
// what it was before the step and what it is after it.
TEST(PollClock, TellsAMomentWhileAnybodyPolls) {
  PollClock clock;
  EXPECT_EQ(clock.moment(), kNoMoment);
  const auto now = [] { return moment_of(os::ticks(os::has_steady_counter())); };
  const auto is_since = [&](std::uint64_t before) {
    return ((clock.moment() - before) & kMomentMask) <= ((now() - before) & kMomentMask);
  };
  poll_for_a_while(clock);
  const std::uint64_t before_row = now();
  for (int i = 0; i < kRow; ++i) pass(clock);
  EXPECT_TRUE(is_since(before_row));
  pass_time(20'000'000);
  const std::uint64_t before_note = now();
  EXPECT_FALSE(is_since(before_note)) << "nobody has looked at the time since";
  clock.note_moment();
  EXPECT_TRUE(is_since(before_note));
  poll_for_a_while(clock);
  clock.stop();
  EXPECT_EQ(clock.moment(), kNoMoment);
  EXPECT_FALSE(clock.begin_unread_pass()) << "after a pause nobody knows the time";
  const std::uint64_t before_read = now();
  clock.read();
  EXPECT_NE(clock.moment(), kNoMoment);
  EXPECT_TRUE(is_since(before_read));
}

TEST(PollClock, WhoPollsFastLooksByTimeRarely) {
  PollClock clock;
  poll_for_a_while(clock);
  const os::Nanoseconds start = os::now_ns();
  int looks = 0;
  constexpr int kPasses = 100'000;
  for (int i = 0; i < kPasses; ++i) looks += pass(clock);
  const os::Nanoseconds took = os::now_ns() - start;
  EXPECT_LE(looks, took / (PollClock::kLookEvery / 2) + 1);
  EXPECT_LT(looks, kPasses / 2);
}

// Of the time that this thread has the processor: meanwhile none goes by for a poller that has been sent away.
os::Nanoseconds time_here() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * os::kNsPerSecond + now.tv_nsec;
}

// What is due is 100 us late at most while anybody polls, whatever a pass costs: in the median, since the machine may
// take the processor away from all of us.
TEST(PollClock, WhoPollsLooksEveryHundredMicroseconds) {
  PollClock clock;
  poll_for_a_while(clock);
  for (const os::Nanoseconds pass_takes : {0, 300, 3'000, 30'000}) {
    std::vector<os::Nanoseconds> between;
    os::Nanoseconds looked = time_here();
    for (const os::Nanoseconds end = looked + os::kNsPerSecond / 20; time_here() < end;) {
      for (const os::Nanoseconds done = os::now_ns() + pass_takes; os::now_ns() < done;) {
      }
      if (!pass(clock)) continue;
      const os::Nanoseconds now = time_here();
      between.push_back(now - looked);
      looked = now;
    }
    ASSERT_FALSE(between.empty());
    // Some have met an interrupt, or a processor that was taken from the whole machine.
    const auto middle = between.begin() + static_cast<std::ptrdiff_t>(between.size() / 2);
    std::nth_element(between.begin(), middle, between.end());
    EXPECT_LE(*middle, 2 * PollClock::kLookEvery) << "passes of " << pass_takes << " ns";
  }
}

TEST(PollClock, WhoPollsFastReadsTheClockInEveryFourthPass) {
  PollClock clock;
  poll_for_a_while(clock);
  int unread = 0;
  constexpr int kPasses = 100'000;
  for (int i = 0; i < kPasses; ++i) {
    if (clock.begin_unread_pass()) {
      ++unread;
    } else if (clock.read().looks_by_time) {
      clock.looked();
    }
  }
  EXPECT_GT(unread, kPasses / 2);
  EXPECT_LE(unread, kPasses * 3 / 4);
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
  for (const os::Nanoseconds end = os::now_ns() + os::kNsPerSecond; !gives_way && os::now_ns() < end;) {
    const PollClock::Pass pass = begin_pass(clock);
    if (pass.looks_by_time) clock.looked();
    gives_way = pass.gives_way;
  }
  EXPECT_TRUE(gives_way);
}

// How long this thread polls in vain before it gives way.
os::Nanoseconds patience_of(PollClock& clock) {
  const os::Nanoseconds begun = time_here();
  for (;;) {
    const PollClock::Pass pass = begin_pass(clock);
    if (pass.looks_by_time) clock.looked();
    if (pass.gives_way) return time_here() - begun;
  }
}

long times_sent_away() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

TEST(PollClock, WhoGivesWayToNobodyDoesSoLessOften) {
  PollClock clock;
  poll_for_a_while(clock);
  int alone = 0;
  os::Nanoseconds longest = 0;
  for (const os::Nanoseconds end = os::now_ns() + os::kNsPerSecond; alone < 20 && os::now_ns() < end;) {
    const long before = times_sent_away();
    for (int i = 0; i < 3; ++i) clock.give_way();
    const os::Nanoseconds patience = patience_of(clock);
    if (times_sent_away() != before) continue;
    ++alone;
    longest = std::max(longest, patience);
  }
  if (alone < 20) GTEST_SKIP() << "there is always somebody else for this processor";
  EXPECT_GT(longest, PollClock::kLookEvery / 2);
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
