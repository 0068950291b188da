// SPDX-License-Identifier: BSD-3-Clause
// The pool of posted receives, compared with a model of what the standard says of a shared queue.
#include "nic/soft/receive_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace anydat::nic::soft {
namespace {

struct PoolEvents final : ReceiveQueueEvents {
  void on_fault() override { ++faults; }
  void on_low_watermark() override { ++low_watermarks; }
  int faults = 0;
  std::atomic<int> low_watermarks = 0;
};

class ReceivePoolTest : public testing::Test {
 protected:
  void make(std::uint32_t depth, std::uint32_t segments) {
    pool = ReceivePool::create(engine, depth, segments, kNoZone, &events);
    ASSERT_NE(pool, nullptr);
  }
  void TearDown() override {
    os::Guard guard(engine);
    pool.reset();
  }
  Status post(std::uint64_t cookie, std::size_t segments = 1) {
    const std::vector<Segment> all(segments, Segment{.key = 7, .pad = 0, .address = cookie, .length = 100});
    return pool->post({.cookie = cookie, .segments = all, .zone = 3, .regions_seen = cookie + 1});
  }
  bool take(std::uint64_t cookie) {
    Receive receive;
    return pool->take(receive) && receive.cookie == cookie;
  }
  ReceiveQueue::Counts counts() const { return pool->counts(); }

  Engine engine;  // not started
  PoolEvents events;
  std::unique_ptr<ReceivePool> pool;
};

// EP-MODIFY-8, MT-4: a thread may post by a limit that another one is just lowering.
TEST_F(ReceivePoolTest, HasNoRoomForMoreSegmentsThanItsLimit) {
  make(4, 4);
  ASSERT_EQ(post(1, 4), Status::ok);
  EXPECT_EQ(pool->set_limits(4, 3), Status::queue_full);
  EXPECT_EQ(pool->set_limits(0, 4), Status::queue_full);
  ASSERT_TRUE(take(1));
  pool->reaped();
  ASSERT_EQ(pool->set_limits(2, 1), Status::ok);
  EXPECT_EQ(post(2, 2), Status::queue_full);
  EXPECT_EQ(post(3), Status::ok);
  EXPECT_TRUE(take(3));
}

// SRQ-ACC-1 to SRQ-ACC-9, SRQ-LW-3, SRQ-LW-17, SRQ-RESIZE-14, SRQ-ORD-1: whatever is done in whatever order.
TEST_F(ReceivePoolTest, IsWhatTheStandardSays) {
  struct Posted {
    std::uint64_t cookie;
    std::size_t segments;
  };
  for (std::uint64_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::uint32_t depth = 1 + static_cast<std::uint32_t>(random() % 20),
                  most = 1 + static_cast<std::uint32_t>(random() % 4);
    make(depth, most);
    std::deque<Posted> available;
    std::uint64_t held = 0;  // taken, not reaped
    std::uint64_t cookie = 0, taken = 0, posted = 0;
    std::uint32_t watermark = 0;
    int low_watermarks = 0;
    events.low_watermarks = 0;
    const auto test_watermark = [&] {
      if (available.size() >= watermark) return;
      watermark = 0;
      ++low_watermarks;
    };
    for (int step = 0; step < 3'000; ++step) {
      switch (random() % 8) {
        case 0:
        case 1:
        case 2: {
          const std::size_t segments = random() % (most + 1);
          const bool room = available.size() + held < depth;
          ASSERT_EQ(post(cookie, segments), room ? Status::ok : Status::queue_full);
          if (room) {
            available.push_back({cookie, segments});
            ++posted;
          }
          ++cookie;
          break;
        }
        case 3:
        case 4: {
          Receive receive;
          ASSERT_EQ(pool->take(receive), !available.empty());
          if (available.empty()) break;
          EXPECT_EQ(receive.cookie, available.front().cookie);
          EXPECT_EQ(receive.zone, 3u);
          EXPECT_EQ(receive.regions_seen, receive.cookie + 1);
          ASSERT_EQ(receive.all().size(), available.front().segments);
          for (const Segment& segment : receive.all()) EXPECT_EQ(segment.address, receive.cookie);
          available.pop_front();
          ++held;
          ++taken;
          if (watermark > 0) test_watermark();
          break;
        }
        case 5:
          if (held > 0) {
            pool->reaped();
            --held;
          }
          break;
        case 6:
          if (random() % 4 == 0) {
            watermark = static_cast<std::uint32_t>(random() % (depth + 2));
            pool->arm(watermark);
            if (watermark > 0) test_watermark();
          }
          break;
        default: {
          if (random() % 4 != 0) break;
          const auto wanted = static_cast<std::uint32_t>(random() % 25);
          const bool fits = available.size() + held <= wanted;
          ASSERT_EQ(pool->resize(wanted), fits ? Status::ok : Status::queue_full);
          if (fits) depth = wanted;
          if (random() % 2 == 0) {
            ++most;
            ASSERT_EQ(pool->set_limits(depth, most), Status::ok);
          }
        }
      }
      const ReceiveQueue::Counts counts = pool->counts();
      ASSERT_EQ(counts.depth, depth);
      ASSERT_EQ(counts.available, available.size());
      ASSERT_EQ(counts.outstanding, available.size() + held);
      ASSERT_EQ(events.low_watermarks, low_watermarks);
      std::size_t largest = 0;
      for (const Posted& each : available) largest = std::max(largest, each.segments);
      ASSERT_EQ(pool->largest_segment_count(), largest);
    }
    EXPECT_EQ(pool->counters().posted.get(), posted);
    EXPECT_EQ(pool->counters().taken.get(), taken);
    EXPECT_EQ(events.faults, 0);
    TearDown();
  }
}

// The counts by which a program sizes the queue (dat-srq(7), COUNTERS).
TEST_F(ReceivePoolTest, CountsHowLowItWasAndHowOftenEmpty) {
  make(4, 1);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(post(i), Status::ok);
  EXPECT_TRUE(take(0));
  EXPECT_EQ(pool->counters().lowest_available.get(), 2u);
  EXPECT_EQ(pool->counters().times_empty.get(), 0u);
  EXPECT_TRUE(take(1));
  EXPECT_TRUE(take(2));
  EXPECT_EQ(pool->counters().lowest_available.get(), 0u);
  EXPECT_EQ(pool->counters().times_empty.get(), 1u);
  EXPECT_EQ(pool->counters().empty_ns.get(), 0u);
  const os::Nanoseconds since = os::now_ns();
  while (os::now_ns() == since) {
  }
  ASSERT_EQ(post(3), Status::ok);
  EXPECT_GT(pool->counters().empty_ns.get(), 0u);
  EXPECT_TRUE(take(3));
  EXPECT_EQ(pool->counters().times_empty.get(), 2u);
}

// SRQ-ACC-13, SRQ-LW-17: threads that post, take, reap and look at the counts.
TEST_F(ReceivePoolTest, NothingIsLostBetweenThreads) {
  constexpr std::uint64_t kReceives = 100'000;
  make(16, 1);
  pool->arm(8);
  std::atomic<std::uint64_t> taken{0};
  std::atomic<bool> over{false};
  os::Mutex turn;
  // More queues than there are counts of their own: some of them share one.
  std::array<std::uint64_t, 6> queues{};
  std::array<ReapCount*, queues.size()> counts_of{};
  for (std::size_t i = 0; i < queues.size(); ++i) {
    counts_of[i] = &pool->reap_count(reinterpret_cast<const CompletionQueue*>(&queues[i]));
  }
  {
    std::vector<std::jthread> threads;
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < kReceives;) {
        if (post(i) == Status::ok) {
          ++i;
        } else {
          std::this_thread::yield();
        }
      }
    });
    for (std::size_t i = 0; i < queues.size(); ++i) {
      threads.emplace_back([&, i] {
        ReapCount& reaped = *counts_of[i];
        while (taken.load() < kReceives) {
          Receive receive;
          bool found = false;
          {
            os::Guard guard(turn);
            found = pool->take(receive);
          }
          if (found) {
            taken.fetch_add(1);
            reaped.add();
          } else {
            std::this_thread::yield();
          }
        }
        over = true;
      });
    }
    while (!over) {
      const ReceiveQueue::Counts seen = counts();
      ASSERT_LE(seen.available, seen.outstanding);
      ASSERT_LE(seen.outstanding, seen.depth);
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(counts().available, 0u);
  EXPECT_EQ(counts().outstanding, 0u);
  EXPECT_EQ(events.low_watermarks, 1);
}

}  // namespace
}  // namespace anydat::nic::soft
