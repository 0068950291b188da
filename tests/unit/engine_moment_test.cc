// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <thread>

#include "nic/engine.h"
#include "nic/moment.h"
#include "nic/soft/moments.h"
#include "os/clock.h"

namespace anydat::nic {
namespace {

template <typename Condition>
bool before_long(Condition&& condition) {
  for (const os::Nanoseconds end = os::now_ns() + 10 * os::kNsPerSecond; os::now_ns() < end;) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return false;
}

// Who goes by what was seen a moment ago must not do so for hours after the last look at the clock.
TEST(EngineMoment, IsNoneOnceNobodyPolls) {
  Engine engine;
  ASSERT_EQ(engine.start(), Status::ok);
  for (int i = 0; i < 10; ++i) engine.poll();
  EXPECT_TRUE(before_long([&] { return engine.moment() == kNoMoment; }));
  EXPECT_TRUE(before_long([&] {
    engine.poll();
    return engine.moment() != kNoMoment;
  }));
  engine.waiting().stop();
}

// Who posts and polls nothing looks at the clock himself at first, and then has it looked at for a while.
TEST(EngineMoment, IsKeptForWhoAsksForItOften) {
  Engine engine;
  ASSERT_EQ(engine.start(), Status::ok);
  // No other thread is asked for a few looks. The progress thread may still be making its first pass, which tells a
  // moment.
  EXPECT_TRUE(before_long([&] {
    soft::Moments few(engine);
    if (engine.moment() != kNoMoment) return false;
    for (int i = 0; i < 10; ++i) EXPECT_NE(few.now(), kNoMoment);
    const bool none = engine.moment() == kNoMoment;
    os::Guard guard(engine);
    few.stop();
    return none;
  }));
  soft::Moments moments(engine);
  EXPECT_TRUE(before_long([&] {
    EXPECT_NE(moments.now(), kNoMoment);
    return engine.moment() != kNoMoment;
  }));
  // It goes on, and is there all the while: one that came and went with each look would be of no use in between.
  int changes = 0;
  std::uint64_t last = kNoMoment;
  EXPECT_TRUE(before_long([&] {
    const std::uint64_t moment = engine.moment();
    if (moment == kNoMoment) {  // also if this thread has not run for so long that it has been given up
      changes = 0;
      moments.now();
    } else if (moment != last) {
      ++changes;
    }
    last = moment;
    return changes == 8;
  }));
  EXPECT_TRUE(before_long([&] { return engine.moment() == kNoMoment; }));
  {
    os::Guard guard(engine);
    moments.stop();
  }
  engine.waiting().stop();
}

}  // namespace
}  // namespace anydat::nic
