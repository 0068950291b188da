// SPDX-License-Identifier: BSD-3-Clause
// The ports of qualifiers that are none, and what travels about them: the vectors are those of docs/wire-iwarp.md.
#include "nic/qualifier_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "nic/refusal.h"
#include "nic/wanted.h"
#include "unit/hex.h"

namespace anydat::test {
namespace {

using namespace nic;
using testing::ElementsAre;

TEST(QualifierPorts, AreThoseThatAreDocumented) {
  EXPECT_THAT(derived_ports(65536), ElementsAre(20212, 20169, 20126, 20083, 20040, 19997, 19954, 19911));
  EXPECT_THAT(derived_ports(65537), ElementsAre(23617, 21442, 19267, 17092, 31301, 29126, 26951, 24776));
  EXPECT_THAT(derived_ports(72538), ElementsAre(25642, 29885, 17744, 21987, 26230, 30473, 18332, 22575));
  EXPECT_THAT(derived_ports(0x1'0000'0000), ElementsAre(21529, 29232, 20551, 28254, 19573, 27276, 18595, 26298));
  EXPECT_THAT(derived_ports(0x0123'4567'89ab'cdef),
              ElementsAre(27882, 26857, 25832, 24807, 23782, 22757, 21732, 20707));
  EXPECT_THAT(derived_ports(~ConnQual{0}), ElementsAre(24353, 20780, 17207, 30018, 26445, 22872, 19299, 32110));
}

TEST(QualifierPorts, AreDifferentAndInTheirRange) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const ConnQual qual = i < 50'000 ? 65536u + static_cast<unsigned>(i) : random() | 0x10000;
    const auto ports = derived_ports(qual);
    for (const std::uint16_t port : ports) {
      ASSERT_GE(port, 16384);
      ASSERT_LE(port, 32767);
    }
    ASSERT_EQ(std::set(ports.begin(), ports.end()).size(), ports.size()) << qual;
  }
}

TEST(QualifierPorts, OfNeighboursAreSpread) {
  // As programs choose them: a row of process numbers. Drawn at random, no port would be the first of more than a dozen
  // of them.
  std::map<std::uint16_t, int> firsts;
  for (ConnQual qual = 65536; qual < 65536 + 16384; ++qual) ++firsts[derived_ports(qual)[0]];
  const auto most = std::max_element(firsts.begin(), firsts.end(),
                                     [](const auto& one, const auto& other) { return one.second < other.second; });
  EXPECT_LE(most->second, 12);
}

Bytes all_of(std::span<const std::byte> bytes) {
  return Bytes(bytes.begin(), bytes.end());
}

TEST(Refusals, KeepTheirFormAndTellQualifiersWhole) {
  EXPECT_EQ(all_of(write_refusal({Refusal::Why::nobody_listens, 0})), hex("'anydat-1' 00000001 00000000"));
  EXPECT_EQ(all_of(write_refusal({Refusal::Why::elsewhere, 65535})), hex("'anydat-1' 00000002 0000ffff"));
  EXPECT_EQ(all_of(write_refusal({Refusal::Why::elsewhere, 65536})),
            hex("'anydat-1' 00000002 00000000 0000000000010000"));
  EXPECT_EQ(all_of(write_refusal({Refusal::Why::here, 0xfedc'ba98'7654'3210})),
            hex("'anydat-1' 00000003 00000000 fedcba9876543210"));
  for (const ConnQual qual : {ConnQual{1}, ConnQual{65535}, ConnQual{65536}, ConnQual{1} << 32, ~ConnQual{0}}) {
    const auto parsed = parse_refusal(write_refusal({Refusal::Why::elsewhere, qual}));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->qual, qual);
    EXPECT_EQ(parsed->why, Refusal::Why::elsewhere);
  }
}

TEST(Refusals, ThatSayAQualifierTheWrongWayAreNone) {
  for (const Bytes& bad : {
           hex("'anydat-1' 00000002 00010000"),                     // more than a port, in the form of a port
           hex("'anydat-1' 00000002 00000000 000000000000ffff"),    // the other way round
           hex("'anydat-1' 00000002 00000001 0000000000010000"),    // what has to be zero
           hex("'anydat-1' 00000002 00000000 00000000"),            // half a qualifier
           hex("'anydat-2' 00000002 00000000 0000000000010000"),    // another magic number
           hex("'anydat-1' 00000002 00000000 000000000001000000"),  // more than there is
       }) {
    EXPECT_FALSE(parse_refusal(bad));
  }
  const Bytes whole = all_of(write_refusal({Refusal::Why::here, ~ConnQual{0}}));
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_FALSE(cut != 16 && parse_refusal(std::span(whole).first(cut))) << cut;
  }
}

TEST(WantedServices, TravelAsDocumented) {
  const Bytes data = hex("'program'");
  const WantedBytes bytes = write_wanted({Wanted::Kind::connection, 0xfedc'ba98'7654'3210, data});
  EXPECT_EQ(all_of(bytes), hex("'anydat-q' fedcba9876543210 0002 0007 00000000 'program'") + repeat(192 - 7));
  Wanted parsed;
  ASSERT_EQ(parse_wanted(bytes, parsed), WantedParsed::good);
  EXPECT_EQ(parsed.kind, Wanted::Kind::connection);
  EXPECT_EQ(parsed.qual, 0xfedc'ba98'7654'3210);
  EXPECT_EQ(all_of(parsed.private_data), data);
  // As much as Linux' own iWARP lets through, and more.
  for (const std::size_t length : {std::size_t{0}, std::size_t{192}, std::size_t{193}, kPrivateDataMax}) {
    const Bytes much = repeat(length, 0x5a);
    const WantedBytes written = write_wanted({Wanted::Kind::connection, 65536, much});
    EXPECT_EQ(written.size(), length <= 192 ? 216u : 280u);
    ASSERT_EQ(parse_wanted(written, parsed), WantedParsed::good) << length;
    EXPECT_EQ(all_of(parsed.private_data), much);
  }
}

TEST(WantedServices, AreWhole) {
  const Bytes much = repeat(200, 1);
  Wanted parsed;
  for (const Bytes& whole : {all_of(write_wanted({Wanted::Kind::whose, 65536, {}})),
                             all_of(write_wanted({Wanted::Kind::connection, 65536, much}))}) {
    for (std::size_t cut = 0; cut < whole.size(); ++cut) {
      const WantedParsed what = parse_wanted(std::span(whole).first(cut), parsed);
      EXPECT_EQ(what, cut == 216 ? WantedParsed::bad : WantedParsed::nothing) << cut;
    }
  }
}

TEST(WantedServices, ThatCannotBeAreBad) {
  const Bytes good = all_of(write_wanted({Wanted::Kind::whose, 65536, {}}));
  Wanted parsed;
  const auto with = [&](std::size_t at, const Bytes& bytes, std::size_t size = 216) {
    Bytes changed = good;
    changed.resize(size);
    std::copy(bytes.begin(), bytes.end(), changed.begin() + static_cast<std::ptrdiff_t>(at));
    return parse_wanted(changed, parsed);
  };
  EXPECT_EQ(with(0, hex("'b'")), WantedParsed::nothing);
  EXPECT_EQ(with(8, hex("000000000000ffff")), WantedParsed::bad) << "a port";
  EXPECT_EQ(with(16, hex("0000")), WantedParsed::bad);
  EXPECT_EQ(with(16, hex("0003")), WantedParsed::bad);
  EXPECT_EQ(with(18, hex("00c0")), WantedParsed::good);
  EXPECT_EQ(with(18, hex("00c1")), WantedParsed::bad) << "more private data than there can be";
  EXPECT_EQ(with(18, hex("00c0"), 280), WantedParsed::bad) << "which the other length is for";
  EXPECT_EQ(with(18, hex("00c1"), 280), WantedParsed::good);
  EXPECT_EQ(with(18, hex("0100"), 280), WantedParsed::good);
  EXPECT_EQ(with(18, hex("0101"), 280), WantedParsed::bad);
}

}  // namespace
}  // namespace anydat::test
