// SPDX-License-Identifier: BSD-3-Clause
// Which entry serves a request (RES-1..3, RES-10), against a naive twin.
#include "registry/tuple.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace anydat::registry {
namespace {

const Tuple* best(const std::vector<Tuple>& entries, const Tuple& request) {
  return best_match(entries, request, [](const Tuple& tuple) -> const Tuple& { return tuple; });
}

TEST(Tuples, AnEntryServesSmallerMinorsOfItsMajorAndThreadSafety) {
  const Tuple entry{"net0", 1, 2, DAT_FALSE};
  EXPECT_TRUE(serves(entry, {"net0", 1, 2, DAT_FALSE}));
  EXPECT_TRUE(serves(entry, {"net0", 1, 0, DAT_FALSE}));
  EXPECT_FALSE(serves(entry, {"net0", 1, 3, DAT_FALSE})) << "RES-3";
  EXPECT_FALSE(serves(entry, {"net0", 2, 2, DAT_FALSE}));
  EXPECT_FALSE(serves(entry, {"net0", 1, 2, DAT_TRUE}));
  EXPECT_FALSE(serves(entry, {"Net0", 1, 2, DAT_FALSE}));
  EXPECT_FALSE(serves(entry, {"net", 1, 2, DAT_FALSE}));
  EXPECT_FALSE(serves(entry, {"net00", 1, 2, DAT_FALSE}));
}

// RES-2.
TEST(Tuples, TheEqualMinorIsBestAndThenTheNearest) {
  const std::vector<Tuple> entries{
      {"net0", 1, 9, DAT_FALSE}, {"net0", 1, 4, DAT_FALSE}, {"net0", 1, 2, DAT_FALSE}, {"net0", 1, 4, DAT_FALSE}};
  EXPECT_EQ(best(entries, {"net0", 1, 2, DAT_FALSE}), &entries[2]);
  EXPECT_EQ(best(entries, {"net0", 1, 1, DAT_FALSE}), &entries[2]);
  EXPECT_EQ(best(entries, {"net0", 1, 3, DAT_FALSE}), &entries[1]) << "of two equal ones the earlier";
  EXPECT_EQ(best(entries, {"net0", 1, 5, DAT_FALSE}), &entries[0]);
  EXPECT_EQ(best(entries, {"net0", 1, 10, DAT_FALSE}), nullptr);
}

// D2-CONF-4.
TEST(Tuples, TheLongestPatternOfTheVersionServes) {
  struct Pattern {
    Tuple tuple;
  };
  const std::vector<Pattern> patterns{{{"*", 1, 2, DAT_FALSE}},
                                      {{"ofa-*", 1, 2, DAT_FALSE}},
                                      {{"ofa-v2-*", 2, 0, DAT_FALSE}},
                                      {{"ofa-*", 1, 1, DAT_FALSE}},
                                      {{"ofa-v2-ib*", 1, 0, DAT_FALSE}}};
  const auto best = [&](const std::string& name, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN thread_safe) {
    const Pattern* const found = best_pattern(patterns, {name, major, minor, thread_safe});
    return found ? static_cast<int>(found - patterns.data()) : -1;
  };
  EXPECT_EQ(best("ofa-v2-ib0", 2, 0, DAT_FALSE), 2);
  EXPECT_EQ(best("ofa-v2-ib0", 1, 0, DAT_FALSE), 4) << "the longest";
  EXPECT_EQ(best("ofa-v2-ib0", 1, 1, DAT_FALSE), 3) << "of those that serve; of equal ones the nearest minor";
  EXPECT_EQ(best("ofa-", 1, 2, DAT_FALSE), 1) << "nothing may follow";
  EXPECT_EQ(best("of", 1, 2, DAT_FALSE), 0);
  EXPECT_EQ(best("of", 2, 0, DAT_FALSE), -1);
  EXPECT_EQ(best("ofa-v2-ib0", 1, 2, DAT_TRUE), -1);
}

// RES-1, RES-2 and RES-10 on random registries: the twin looks for each acceptable minor in turn.
TEST(Tuples, MatchLikeTheNaiveSearch) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  const auto any = [&] {
    return Tuple{std::string(1, static_cast<char>('a' + random() % 2)), static_cast<DAT_UINT32>(1 + random() % 2),
                 static_cast<DAT_UINT32>(random() % 4), random() % 2 == 0 ? DAT_FALSE : DAT_TRUE};
  };
  for (int round = 0; round < 5000; ++round) {
    std::vector<Tuple> entries(random() % 7);
    for (Tuple& entry : entries) entry = any();
    const Tuple request = any();
    const Tuple* expected = nullptr;
    for (DAT_UINT32 minor = request.minor; minor < 4 && !expected; ++minor) {
      for (const Tuple& entry : entries) {
        if (!expected && entry == Tuple{request.name, request.major, minor, request.thread_safe}) expected = &entry;
      }
    }
    EXPECT_EQ(best(entries, request), expected);

    int furthest = 0;
    for (const Tuple& entry : entries) {
      int steps = 0;
      if (entry.name == request.name) steps = 1;
      if (steps == 1 && entry.major == request.major) steps = 2;
      if (steps == 2 && entry.minor >= request.minor) steps = 3;
      if (steps == 3 && entry.thread_safe == request.thread_safe) steps = 4;
      furthest = std::max(furthest, steps);
    }
    const DAT_RETURN subtypes[]{DAT_NAME_NOT_REGISTERED, DAT_MAJOR_NOT_FOUND, DAT_MINOR_NOT_FOUND,
                                DAT_THREAD_SAFETY_NOT_FOUND, DAT_NAME_NOT_REGISTERED};
    EXPECT_EQ(not_found_subtype(entries, request), subtypes[furthest]);
  }
}

// REG-ADD-7, and REG-LIST-3 for the longest name there can be.
TEST(Tuples, ANameInProviderInfoHasAnEnd) {
  DAT_PROVIDER_INFO info{};
  EXPECT_FALSE(tuple_of(info)) << "empty";
  std::memset(info.ia_name, 'n', sizeof info.ia_name);
  EXPECT_FALSE(tuple_of(info)) << "no NUL";
  info.ia_name[255] = '\0';
  ASSERT_TRUE(tuple_of(info));
  EXPECT_EQ(tuple_of(info)->name, std::string(255, 'n'));
  const DAT_PROVIDER_INFO back = info_of(*tuple_of(info));
  EXPECT_STREQ(back.ia_name, info.ia_name);
}

}  // namespace
}  // namespace anydat::registry
