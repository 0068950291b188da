// SPDX-License-Identifier: BSD-3-Clause
// The record of what has come of a message whose segments overtake each other.
#include "nic/soft/byte_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace anydat::test {
namespace {

using nic::soft::ByteRanges;

TEST(ByteRanges, AgreeWithAPlainListOfBytes) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    ByteRanges ranges;
    std::vector<bool> bytes(100);
    for (int i = 0; i < 60; ++i) {
      const std::size_t begin = random() % bytes.size();
      const std::size_t end = std::min(bytes.size(), begin + random() % 12);
      const bool fresh = std::none_of(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                                      bytes.begin() + static_cast<std::ptrdiff_t>(end), [](bool came) { return came; });
      ASSERT_EQ(ranges.add(begin, end), fresh) << "seed " << seed;
      if (fresh)
        std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.begin() + static_cast<std::ptrdiff_t>(end),
                  true);
      std::size_t stretches = 0;
      for (std::size_t at = 0; at < bytes.size(); ++at) stretches += bytes[at] && (at == 0 || !bytes[at - 1]) ? 1 : 0;
      ASSERT_EQ(ranges.stretch_count(), stretches) << "seed " << seed;
    }
  }
}

TEST(ByteRanges, KeepSoManyStretchesAndNoMore) {
  ByteRanges ranges;
  for (std::uint64_t i = 0; i < ByteRanges::kStretchesMax; ++i) ASSERT_TRUE(ranges.add(2 * i, 2 * i + 1));
  EXPECT_FALSE(ranges.add(1'000'000, 1'000'001));
  EXPECT_TRUE(ranges.add(1, 2));  // which joins two
  EXPECT_TRUE(ranges.add(1'000'000, 1'000'001));
}

}  // namespace
}  // namespace anydat::test
