// SPDX-License-Identifier: BSD-3-Clause
// The queue that completions go to, as far as it is the same for every owner.
#include "nic/completion_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>
#include <vector>

namespace anydat::nic {
namespace {

QueuedEvent numbered(std::uint64_t number) {
  QueuedEvent queued{};
  queued.event.cookie = number;
  return queued;
}

// EVM-9, EVM-13: whatever is done to the ring, events come out once and in order.
TEST(EventRing, IsAQueueWhateverItsSize) {
  std::mt19937 random(1);
  EventRing ring;
  ASSERT_TRUE(ring.reserve(5));
  std::deque<std::uint64_t> model;
  std::uint64_t next = 0, most = 0;
  for (int step = 0; step < 20'000; ++step) {
    switch (random() % 8) {
      case 0:
      case 1:
      case 2:
        if (ring.full()) break;
        ring.append(numbered(next));
        model.push_back(next++);
        break;
      case 3: {
        std::vector<QueuedEvent> several;
        for (std::uint64_t i = random() % (ring.room() + 1); i > 0; --i) {
          several.push_back(numbered(next));
          model.push_back(next++);
        }
        ring.append(several.size(), [next = several.begin()](QueuedEvent& event) mutable { event = *next++; });
        break;
      }
      case 4: {
        const auto wanted = static_cast<std::uint32_t>(1 + random() % 40);
        if (wanted >= model.size()) {
          ASSERT_TRUE(ring.reserve(wanted));
          ASSERT_EQ(ring.capacity(), wanted);
        }
        break;
      }
      default:
        if (model.empty()) break;
        ASSERT_EQ(ring.look_at_oldest()->event.cookie, model.front());
        ASSERT_EQ(ring.oldest().event.cookie, model.front());
        ring.drop_oldest();
        model.pop_front();
    }
    most = std::max<std::uint64_t>(most, model.size());
    ASSERT_EQ(ring.queued(), model.size());
    ASSERT_EQ(ring.empty(), model.empty());
    ASSERT_EQ(ring.room(), ring.capacity() - model.size());
    ASSERT_EQ(ring.ever_queued(), next);
    ASSERT_EQ(ring.most_queued(), most);
  }
  EventRing::Rest rest = ring.close();
  std::deque<std::uint64_t> left;
  rest.for_each([&](const QueuedEvent& queued) { left.push_back(queued.event.cookie); });
  EXPECT_EQ(left, model);
  EXPECT_TRUE(ring.full());
  EXPECT_EQ(ring.queued(), 0u);
  EXPECT_EQ(ring.ever_queued(), next);
}

class Queue final : public CompletionQueue {
 public:
  explicit Queue(std::uint32_t capacity) { EXPECT_TRUE(ring_.reserve(capacity)); }
  std::size_t push(std::span<const Completion>) override { return 0; }
  void watch(bool watched) { set_watched(watched); }
  std::uint32_t queued() const { return ring_.queued(); }
};

// EVM-50: what finds no room, or may wake a thread, is the owner's to see to, all of it.
TEST(CompletionQueue, TakesQuietlyWhatHasRoomAndWakesNobody) {
  Queue queue(3);
  const std::array two{numbered(0), numbered(1)};
  EXPECT_TRUE(queue.push_quietly(two));
  EXPECT_FALSE(queue.push_quietly(two));
  EXPECT_EQ(queue.queued(), 2u);
  queue.watch(true);
  EXPECT_FALSE(queue.push_quietly(numbered(2)));
  queue.watch(false);
  EXPECT_TRUE(queue.push_quietly(numbered(2)));
  EXPECT_FALSE(queue.push_quietly(numbered(3)));
  EXPECT_EQ(queue.queued(), 3u);
}

}  // namespace
}  // namespace anydat::nic
