// SPDX-License-Identifier: BSD-3-Clause
// Messages without buffers, and those who are held back for how much of them is kept.
#include "nic/soft/wire/iwarp/receive_backlog.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <cstddef>
#include <vector>

namespace anydat::nic::soft::iwarp {
namespace {

class MessagesInBacklog : public testing::Test {
 protected:
  static constexpr std::size_t kMax = 64 << 20;
  static constexpr std::size_t kOfEach = 64;  // what a message of length 0 costs
  static constexpr int kMessages = 100;

  // The last two of them are as many as there is room for.
  MessagesInBacklog() {
    all.more(kMax - 2 * kOfEach);
    for (int i = 0; i < kMessages; ++i) messages.add(false);
    for (Turn& turn : waiting) all.wait_for_room(turn);
  }

  int calls = 0;
  ReceiveBacklogs all{[this] { ++calls; }};
  ReceiveBacklog messages{all};
  std::byte nothing{};
  std::array<Turn, 2> waiting{Turn(reinterpret_cast<TcpStream&>(nothing)), Turn(reinterpret_cast<TcpStream&>(nothing))};
};

TEST_F(MessagesInBacklog, CallThoseWhoWaitOnceWhenThereIsRoomAgain) {
  for (int left = kMessages; left > 2; --left) messages.drop_oldest();
  EXPECT_TRUE(all.full());
  EXPECT_EQ(calls, 0);
  messages.drop_oldest();
  EXPECT_FALSE(all.full());
  EXPECT_EQ(calls, 1);
  messages.drop_oldest();
  EXPECT_EQ(calls, 1);
  // Each has the next called.
  EXPECT_EQ(all.next_for_room(), &waiting[0]);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(all.next_for_room(), &waiting[1]);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(all.next_for_room(), nullptr);
}

TEST_F(MessagesInBacklog, CallNobodyWhereNobodyWaits) {
  for (Turn& turn : waiting) all.forget(turn);
  messages.clear();
  EXPECT_EQ(calls, 0);
}

// What is counted as gone is gone, although the backlog never gets empty: else one that is read as slowly as it fills
// would keep thousands of messages that have been delivered.
TEST_F(MessagesInBacklog, GiveTheirMemoryBackOneByOne) {
  const auto in_use = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const std::vector<std::byte> some(11 << 10);
  const std::size_t before = in_use();
  for (int i = 0; i < 1000; ++i) {
    messages.add(false);
    for (int part = 0; part < 3; ++part) messages.append(some);
    if (i % 2 == 0) continue;
    messages.end_newest();
    EXPECT_TRUE(messages.newest().whole);
  }
  const std::size_t full = in_use() - before;
  if (full == 0) GTEST_SKIP() << "the allocator does not tell what is in use";
  EXPECT_GT(messages.cost(), full * 9 / 10) << "more is kept than is counted";
  EXPECT_LT(messages.cost(), 40u * 1000 << 10) << "whole ones keep room for more";
  for (int i = 0; i < kMessages + 999; ++i) messages.drop_oldest();
  EXPECT_LT(in_use(), before + full / 100);
  EXPECT_FALSE(messages.empty());
}

TEST_F(MessagesInBacklog, AreClearedTogether) {
  messages.drop_oldest();
  messages.clear();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(messages.empty());
  EXPECT_EQ(messages.cost(), 0u);
  // And nothing of them is counted any more.
  EXPECT_FALSE(all.full());
  all.more(2 * kOfEach - 1);
  EXPECT_FALSE(all.full());
  all.more(1);
  EXPECT_TRUE(all.full());
  all.less(2 * kOfEach);
  messages.add(false);
  EXPECT_EQ(messages.cost(), kOfEach);
  EXPECT_FALSE(messages.oldest().whole);
}

}  // namespace
}  // namespace anydat::nic::soft::iwarp
