// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/turns.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <random>
#include <set>
#include <vector>

namespace anydat::nic::soft::iwarp {
namespace {

// Of streams that nothing is done with.
std::deque<Turn> turns(int count) {
  std::deque<Turn> all;
  static std::byte nothing;
  for (int i = 0; i < count; ++i) all.emplace_back(reinterpret_cast<TcpStream&>(nothing));
  return all;
}

std::vector<const Turn*> round_of(Turns& line) {
  std::vector<const Turn*> had;
  while (line.left() > 0) had.push_back(&line.next());
  return had;
}

TEST(Turns, OfARoundAreThoseWhoStoodInLineWhenItBegan) {
  auto all = turns(3);
  Turns line;
  EXPECT_TRUE(line.add(all[0]));
  EXPECT_FALSE(line.add(all[0]));
  EXPECT_TRUE(line.add(all[1]));
  line.begin_round();
  EXPECT_TRUE(line.add(all[2]));
  EXPECT_EQ(round_of(line), (std::vector<const Turn*>{&all[0], &all[1]}));
  EXPECT_FALSE(line.empty());
  line.begin_round();
  EXPECT_EQ(round_of(line), std::vector<const Turn*>{&all[2]});
}

TEST(Turns, OneThatIsKeptComesFirst) {
  auto all = turns(3);
  Turns line;
  for (Turn& turn : all) line.add(turn);
  line.begin_round();
  Turn& first = line.next();
  line.keep(first);
  EXPECT_EQ(line.left(), 3u);
  EXPECT_EQ(round_of(line), (std::vector<const Turn*>{&all[0], &all[1], &all[2]}));
}

TEST(Turns, OneThatWantsNoneTakesNoneFromOthers) {
  auto all = turns(3);
  Turns line;
  line.add(all[0]);
  line.begin_round();
  line.keep(line.next());
  line.add(all[1]);  // for the next round
  line.forget(all[1]);
  EXPECT_EQ(round_of(line), std::vector<const Turn*>{&all[0]});
}

// Whatever is done: who has asked for a turn, and not been forgotten, has it in this round or the next.
TEST(Turns, AreNotLost) {
  std::mt19937 random(1);
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  auto all = turns(6);
  Turns line;
  std::set<const Turn*> wanted;
  for (int step = 0; step < 200'000; ++step) {
    Turn& one = all[below(all.size())];
    switch (below(5)) {
      case 0:
        line.add(one);
        wanted.insert(&one);
        break;
      case 1:
        line.keep(one);
        wanted.insert(&one);
        break;
      case 2:
        line.forget(one);
        wanted.erase(&one);
        break;
      case 3:
        if (line.left() > 0) wanted.erase(&line.next());
        break;
      default:
        if (line.left() == 0) line.begin_round();
    }
    if (below(50) == 0) {
      for (int round = 0; round < 3; ++round) {
        for (const Turn* had : round_of(line)) wanted.erase(had);
        line.begin_round();
      }
      ASSERT_TRUE(wanted.empty()) << "after " << step << " steps";
    }
  }
}

}  // namespace
}  // namespace anydat::nic::soft::iwarp
