// SPDX-License-Identifier: BSD-3-Clause
// Long messages that are announced to a local peer, and what its answers may mean.
#include "nic/soft/wire/shm/announcements.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace anydat::test {
namespace {

using nic::soft::shm::Announcements;
using nic::soft::shm::kAnnouncedMax;
using State = Announcements::State;

class AnnouncedMessages : public testing::Test {
 protected:
  Announcements::Announced& announce(std::uint64_t number) {
    Announcements::Announced& entry = all.begin(number);
    all.left();
    return entry;
  }
  Announcements::Announced* find(std::uint32_t sequence) {
    return all.find(sequence, [] { ADD_FAILURE() << "nobody announces anything"; });
  }

  Announcements all;
};

TEST_F(AnnouncedMessages, AreFoundByTheirNumbersUntilTheyHaveLeft) {
  EXPECT_FALSE(all.any());
  EXPECT_EQ(find(0), nullptr);
  EXPECT_EQ(find(UINT32_MAX), nullptr);
  for (std::uint32_t i = 0; i < kAnnouncedMax; ++i) {
    EXPECT_FALSE(all.full());
    announce(100 + i);
  }
  EXPECT_TRUE(all.full());
  EXPECT_TRUE(all.any());
  ASSERT_NE(find(1), nullptr);
  EXPECT_EQ(find(1)->number, 101u);
  EXPECT_EQ(find(kAnnouncedMax), nullptr);
  // Each has its place until all before it have left.
  all.retire(*find(1));
  EXPECT_TRUE(all.full());
  EXPECT_EQ(find(1)->state.load(), State::done);
  all.retire(*find(0));
  EXPECT_FALSE(all.full());
  EXPECT_EQ(find(1), nullptr);
  EXPECT_EQ(all.first(), 2u);
  announce(200);
  EXPECT_EQ(find(kAnnouncedMax)->number, 200u);
  all.retire_all();
  EXPECT_FALSE(all.any());
}

// A peer may answer at once: before the thread that announces has had the time to note that it has.
TEST_F(AnnouncedMessages, ThatLeaveNowAreAwaited) {
  announce(100);
  Announcements::Announced& entry = all.begin(101);
  EXPECT_EQ(all.find(1, [&] { all.left(); }), &entry);
  EXPECT_EQ(entry.state.load(), State::waiting);
}

// A peer that answers what it cannot know yet tells a lie, which has no part in what becomes of the message.
TEST_F(AnnouncedMessages, ThatHaveNotLeftAreNotAnswered) {
  announce(100);
  all.begin(101);
  EXPECT_EQ(all.find(1, [&] { all.take_back(); }), nullptr);
  EXPECT_EQ(find(1), nullptr);
  all.begin(101);
  EXPECT_EQ(all.find(1, [] {}), nullptr);
  std::uint32_t sequence = all.first();
  EXPECT_EQ(all.first_in(State::pieces, sequence), nullptr);
  // Its place is its own, and not retired with those before it.
  all.retire(*find(0));
  EXPECT_TRUE(all.any());
  all.take_back();
  EXPECT_FALSE(all.any());
  EXPECT_FALSE(all.full());
  const Announcements::Announced& next = announce(102);
  EXPECT_EQ(find(1), &next);
}

TEST_F(AnnouncedMessages, AreLookedForInTheirOrder) {
  for (std::uint64_t i = 0; i < 4; ++i) announce(i);
  find(1)->state = State::pushing;
  find(3)->state = State::pushing;
  std::uint32_t sequence = all.first();
  EXPECT_EQ(all.first_in(State::pushing, sequence)->number, 1u);
  EXPECT_EQ(sequence++, 1u);
  EXPECT_EQ(all.first_in(State::pushing, sequence)->number, 3u);
  EXPECT_EQ(sequence++, 3u);
  EXPECT_EQ(all.first_in(State::pushing, sequence), nullptr);
  std::uint64_t seen = 0;
  const auto is_third = [&](Announcements::Announced& entry) {
    EXPECT_EQ(entry.number, seen++);
    return seen == 3;
  };
  EXPECT_TRUE(all.find_if(is_third));
  EXPECT_EQ(seen, 3u);
  EXPECT_FALSE(all.find_if([](Announcements::Announced&) { return false; }));
}

// One thread announces, and often finds no room; another answers all that it can guess, early and late.
TEST_F(AnnouncedMessages, StayInOrderWhateverIsAnsweredMeanwhile) {
  constexpr std::uint64_t kMessages = 50'000;
  std::mutex send_lock;
  std::atomic<bool> over{false};
  std::uint64_t answered = 0;
  std::thread answers([&] {
    for (std::uint32_t guess = 0; !over || all.any();) {
      Announcements::Announced* const entry = all.find(guess, [&] { const std::scoped_lock guard(send_lock); });
      if (!entry) {
        std::this_thread::yield();
        continue;
      }
      EXPECT_EQ(entry->state.load(), State::waiting);
      EXPECT_EQ(entry->number, answered);
      all.retire(*entry);
      ++answered;
      ++guess;
    }
  });
  std::uint64_t number = 0;
  for (unsigned round = 0; number < kMessages; ++round) {
    if (all.full()) std::this_thread::yield();
    const std::scoped_lock guard(send_lock);
    if (all.full()) continue;
    all.begin(number);
    if (round % 3 == 0) {
      all.take_back();
    } else {
      all.left();
      ++number;
    }
  }
  over = true;
  answers.join();
  EXPECT_EQ(answered, kMessages);
  EXPECT_FALSE(all.any());
}

}  // namespace
}  // namespace anydat::test
