// SPDX-License-Identifier: BSD-3-Clause
// The head of our private data over InfiniBand: what a peer sends is taken whole or not at all.
#include "nic/verbs/cm_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/big_endian.h"

namespace anydat::nic::verbs {
namespace {

constexpr ConnQual kLarge = 0x1234'5678'9abc'def0;

std::vector<std::byte> message(CmHead::Kind kind, std::span<const std::byte> data, std::uint16_t offset = 0) {
  CmHead head;
  head.kind = kind;
  head.offset = offset;
  head.number = 7;
  const CmMessage whole(head, data);
  return {whole.bytes.begin(), whole.bytes.begin() + static_cast<std::ptrdiff_t>(whole.length)};
}

std::vector<std::byte> qualifier_and(std::size_t more) {
  std::vector<std::byte> bytes(kQualBytes + more, std::byte{0x5a});
  base::store_big(bytes.data(), std::uint64_t{kLarge});
  return bytes;
}

TEST(CmHeadParse, TakesWhatIsSaidToBeThereAndLeavesThePadding) {
  const std::array<std::byte, 5> data{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
  std::vector<std::byte> bytes = message(CmHead::Kind::data, data);
  bytes.resize(kIbRequestBytes);  // as InfiniBand pads it
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), parsed->data.begin(), parsed->data.end()));
  EXPECT_EQ(parsed->to, 0u);
  EXPECT_EQ(parsed->head.number, 7u);
}

TEST(CmHeadParse, NamesAQualifierWhole) {
  for (const auto& [sent, understood] :
       {std::pair{CmHead::Kind::data_to, CmHead::Kind::data}, std::pair{CmHead::Kind::part_to, CmHead::Kind::part}}) {
    const auto bytes = message(sent, qualifier_and(3));
    const auto parsed = parse(bytes);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->to, kLarge);
    EXPECT_EQ(parsed->head.kind, understood);
    EXPECT_EQ(parsed->data.size(), 3u);
  }
}

TEST(CmHeadParse, RefusesHalfAQualifier) {
  const std::vector<std::byte> whole = qualifier_and(0);
  for (const auto kind : {CmHead::Kind::data_to, CmHead::Kind::part_to}) {
    for (std::size_t count = 0; count < kQualBytes; ++count) {
      std::vector<std::byte> bytes = message(kind, std::span(whole).first(count));
      EXPECT_FALSE(parse(bytes)) << count;
      bytes.resize(kIbRequestBytes);  // nor does the padding make up for the rest
      EXPECT_FALSE(parse(bytes)) << count;
    }
  }
}

TEST(CmHeadParse, RefusesWhatIsCutShort) {
  const std::vector<std::byte> bytes = message(CmHead::Kind::data_to, qualifier_and(3));
  for (std::size_t count = 0; count < bytes.size(); ++count)
    EXPECT_FALSE(parse(std::span(bytes).first(count))) << count;
}

TEST(CmHeadParse, RefusesOtherMagicKindsAndPlaces) {
  std::vector<std::byte> bytes = message(CmHead::Kind::data, {});
  ASSERT_TRUE(parse(bytes));
  for (std::size_t i = 0; i < CmHead::kMagic.size(); ++i) {
    std::vector<std::byte> other = bytes;
    other[i] ^= std::byte{0x10};
    EXPECT_FALSE(parse(other)) << i;
  }
  EXPECT_FALSE(
      parse(message(static_cast<CmHead::Kind>(static_cast<int>(CmHead::Kind::part_to) + 1), qualifier_and(0))));
  constexpr auto kMost = static_cast<std::uint16_t>(kIbPrivateDataMax + kQualBytes);
  EXPECT_TRUE(parse(message(CmHead::Kind::data, {}, kMost)));
  EXPECT_FALSE(parse(message(CmHead::Kind::data, {}, kMost + 1)));
}

}  // namespace
}  // namespace anydat::nic::verbs
