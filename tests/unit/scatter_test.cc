// SPDX-License-Identifier: BSD-3-Clause
// Where the bytes of a message are, in however many segments.
#include "nic/soft/scatter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace anydat::nic::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr std::array kSegments{Segment{1, 0, 1000, 4}, Segment{1, 0, 2000, 0}, Segment{1, 0, 3000, 8},
                               Segment{1, 0, 4000, 2}};

std::vector<std::pair<std::uint64_t, std::uint64_t>> visited(std::uint64_t offset, std::uint64_t count,
                                                             std::size_t most = 10) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> result;
  const bool all = for_each_piece(std::span<const Segment>(kSegments), offset, count, [&](const Piece& piece) {
    if (result.size() == most) return false;
    result.emplace_back(piece.address, piece.count);
    return true;
  });
  EXPECT_EQ(all, result.size() < most);
  return result;
}

TEST(Scatter, VisitsThePiecesOfARange) {
  EXPECT_THAT(visited(0, 14), ElementsAre(Pair(1000, 4), Pair(3000, 8), Pair(4000, 2)));
  EXPECT_THAT(visited(0, 4), ElementsAre(Pair(1000, 4)));
  EXPECT_THAT(visited(3, 2), ElementsAre(Pair(1003, 1), Pair(3000, 1)));
  EXPECT_THAT(visited(4, 8), ElementsAre(Pair(3000, 8)));
  EXPECT_THAT(visited(5, 8), ElementsAre(Pair(3001, 7), Pair(4000, 1)));
  EXPECT_THAT(visited(13, 1), ElementsAre(Pair(4001, 1)));
}

TEST(Scatter, VisitsNothingThatIsEmptyOrBehindTheEnd) {
  EXPECT_THAT(visited(0, 0), IsEmpty());
  EXPECT_THAT(visited(4, 0), IsEmpty());
  EXPECT_THAT(visited(14, 5), IsEmpty());
  EXPECT_THAT(visited(20, 5), IsEmpty());
  EXPECT_THAT(visited(12, 5), ElementsAre(Pair(4000, 2)));
}

TEST(Scatter, EndsWhereItIsTold) {
  EXPECT_THAT(visited(0, 14, 2), ElementsAre(Pair(1000, 4), Pair(3000, 8)));
}

TEST(Scatter, TellsHowMuchOfASegmentThereIs) {
  std::vector<std::uint64_t> rooms;
  for_each_piece(std::span<const Segment>(kSegments), 1, 5, [&](const Piece& piece) { rooms.push_back(piece.room); });
  EXPECT_THAT(rooms, ElementsAre(3, 8));
}

TEST(Scatter, FillsAsManyPiecesAsThereIsRoomFor) {
  std::array<iovec, 2> pieces{};
  EXPECT_EQ(pieces_of(std::span<const Segment>(kSegments), 2, 12, pieces), 2u);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(pieces[0].iov_base), 1002u);
  EXPECT_EQ(pieces[0].iov_len, 2u);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(pieces[1].iov_base), 3000u);
  EXPECT_EQ(pieces[1].iov_len, 8u);
}

TEST(Scatter, CopiesToWhereTheBytesGo) {
  std::string first = "....", second = "......";
  const std::array segments{Segment{1, 0, reinterpret_cast<std::uint64_t>(first.data()), first.size()},
                            Segment{1, 0, reinterpret_cast<std::uint64_t>(second.data()), second.size()}};
  const std::string bytes = "abcde";
  scatter(segments, 2, reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  EXPECT_EQ(first + second, "..abcde...");
}

}  // namespace
}  // namespace anydat::nic::soft
