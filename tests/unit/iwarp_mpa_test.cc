// SPDX-License-Identifier: BSD-3-Clause
// MPA's start-up frames, written by hand after RFC 5044 (section 7.1) and RFC 6581 (section 6), cut at every byte,
// damaged in every field, and written and read back from seeds.
#include "nic/soft/wire/iwarp/format/mpa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "unit/hex.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

const Bytes kRequestKey = hex("4d 50 41 20 49 44 20 52 65 71 20 46 72 61 6d 65");
const Bytes kReplyKey = hex("4d 50 41 20 49 44 20 52 65 70 20 46 72 61 6d 65");

Parsed parse(const Bytes& bytes, bool reply = false) {
  StartUp frame;
  std::size_t length = 0;
  return parse_start_up(bytes, reply, frame, length);
}

Bytes data_of(const StartUp& frame) {
  return Bytes(frame.private_data.begin(), frame.private_data.end());
}

// Every beginning of a good frame may become one; what follows it is not looked at.
void expect_whole_only_when_whole(const Bytes& bytes, bool reply) {
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    const Bytes begin(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut));
    ASSERT_EQ(parse(begin, reply), Parsed::incomplete) << "cut at " << cut;
  }
  StartUp frame;
  std::size_t length = 0;
  ASSERT_EQ(parse_start_up(bytes + hex("00 01 02"), reply, frame, length), Parsed::whole);
  EXPECT_EQ(length, bytes.size());
}

TEST(IwarpStartUp, ReadsARequestOfRevision1) {
  const Bytes bytes = kRequestKey + hex("40 01 00 05 'hello'");
  StartUp frame;
  std::size_t length = 0;
  ASSERT_EQ(parse_start_up(bytes, false, frame, length), Parsed::whole);
  EXPECT_FALSE(frame.reply);
  EXPECT_FALSE(frame.markers);
  EXPECT_TRUE(frame.crc);
  EXPECT_FALSE(frame.rejected);
  EXPECT_EQ(frame.revision, 1);
  EXPECT_FALSE(frame.enhanced);
  EXPECT_EQ(data_of(frame), hex("'hello'"));
  expect_whole_only_when_whole(bytes, false);
}

TEST(IwarpStartUp, ReadsARejectionThatWantsMarkers) {
  const Bytes bytes = kReplyKey + hex("a0 01 00 00");
  StartUp frame;
  std::size_t length = 0;
  ASSERT_EQ(parse_start_up(bytes, true, frame, length), Parsed::whole);
  EXPECT_TRUE(frame.reply);
  EXPECT_TRUE(frame.markers);
  EXPECT_FALSE(frame.crc);
  EXPECT_TRUE(frame.rejected);
  EXPECT_EQ(length, 20u);
  expect_whole_only_when_whole(bytes, true);
}

TEST(IwarpStartUp, ReadsTheEnhancedDataAheadOfThePrivateData) {
  // Peer to peer, 0x1234 Reads in; ready by an RDMA Write, 0x0102 Reads out.
  const Bytes bytes = kRequestKey + hex("50 02 00 07  92 34  81 02  'abc'");
  StartUp frame;
  std::size_t length = 0;
  ASSERT_EQ(parse_start_up(bytes, false, frame, length), Parsed::whole);
  ASSERT_TRUE(frame.enhanced);
  EXPECT_EQ(*frame.enhanced, (Enhanced{.ird = 0x1234, .ord = 0x0102, .peer_to_peer = true, .rtr_write = true}));
  EXPECT_EQ(data_of(frame), hex("'abc'"));
  expect_whole_only_when_whole(bytes, false);
}

TEST(IwarpStartUp, EachBitOfTheEnhancedDataHasItsMeaning) {
  const auto enhanced = [](const char* four) {
    StartUp frame;
    std::size_t length = 0;
    const Bytes bytes = kReplyKey + hex("10 02 00 04") + hex(four);
    EXPECT_EQ(parse_start_up(bytes, true, frame, length), Parsed::whole);
    return frame.enhanced.value_or(Enhanced{.ird = 0xffff});
  };
  EXPECT_EQ(enhanced("00 00 00 00"), Enhanced{});
  EXPECT_EQ(enhanced("80 00 00 00"), (Enhanced{.peer_to_peer = true}));
  EXPECT_EQ(enhanced("40 00 00 00"), (Enhanced{.rtr_empty_frame = true}));
  EXPECT_EQ(enhanced("00 00 80 00"), (Enhanced{.rtr_write = true}));
  EXPECT_EQ(enhanced("00 00 40 00"), (Enhanced{.rtr_read = true}));
  EXPECT_EQ(enhanced("3f ff 00 00"), (Enhanced{.ird = kReadDepthMax}));
  EXPECT_EQ(enhanced("00 00 3f ff"), (Enhanced{.ord = kReadDepthMax}));
}

TEST(IwarpStartUp, AByteOfTheKeyThatIsWrongIsKnownAtOnce) {
  for (std::size_t at = 0; at < kRequestKey.size(); ++at) {
    Bytes bytes(kRequestKey.begin(), kRequestKey.begin() + static_cast<std::ptrdiff_t>(at + 1));
    bytes[at] ^= std::byte{0x20};
    EXPECT_EQ(parse(bytes), Parsed::malformed) << at;
  }
  // A reply where a request is expected, and the other way round.
  EXPECT_EQ(parse(kReplyKey, false), Parsed::malformed);
  EXPECT_EQ(parse(kRequestKey, true), Parsed::malformed);
}

TEST(IwarpStartUp, RevisionZeroIsNone) {
  EXPECT_EQ(parse(kRequestKey + hex("40 00")), Parsed::malformed);
}

TEST(IwarpStartUp, AHigherRevisionIsForTheCallerToAnswer) {
  const Bytes bytes = kRequestKey + hex("40 03 00 00");
  StartUp frame;
  std::size_t length = 0;
  ASSERT_EQ(parse_start_up(bytes, false, frame, length), Parsed::whole);
  EXPECT_EQ(frame.revision, 3);
}

TEST(IwarpStartUp, MorePrivateDataThanAllowedIsKnownByItsLength) {
  EXPECT_EQ(parse(kRequestKey + hex("40 01 02 00")), Parsed::incomplete);  // 512 may come
  EXPECT_EQ(parse(kRequestKey + hex("40 01 02 00") + repeat(512)), Parsed::whole);
  EXPECT_EQ(parse(kRequestKey + hex("40 01 02 01")), Parsed::malformed);
  EXPECT_EQ(parse(kRequestKey + hex("40 01 02")), Parsed::incomplete);
  EXPECT_EQ(parse(kRequestKey + hex("40 01 03")), Parsed::malformed);  // the other byte cannot help any more
  EXPECT_EQ(parse(kRequestKey + hex("40 01 ff ff")), Parsed::malformed);
}

TEST(IwarpStartUp, EnhancedDataMustHaveRoomInTheirFrame) {
  EXPECT_EQ(parse(kRequestKey + hex("50 02 00 03 00 00 00")), Parsed::malformed);
  EXPECT_EQ(parse(kRequestKey + hex("50 02 00 00")), Parsed::malformed);
  EXPECT_EQ(parse(kRequestKey + hex("50 02 00 04 00 00 00 00")), Parsed::whole);
}

TEST(IwarpStartUp, BitsThatAreReservedMeanNothing) {
  StartUp frame;
  std::size_t length = 0;
  // In a request there is no rejection, and in revision 1 nothing enhanced.
  const Bytes bytes = kRequestKey + hex("3f 01 00 01 'x'");
  ASSERT_EQ(parse_start_up(bytes, false, frame, length), Parsed::whole);
  EXPECT_FALSE(frame.rejected);
  EXPECT_FALSE(frame.enhanced);
  EXPECT_EQ(data_of(frame), hex("'x'"));
}

TEST(IwarpStartUp, IsWrittenAsItIsDrawn) {
  Bytes bytes(kStartUpBytesMax);
  const Bytes data = hex("'abc'");
  const StartUp frame{.crc = true,
                      .revision = 2,
                      .enhanced = Enhanced{.ird = 0x1234, .ord = 0x0102, .peer_to_peer = true, .rtr_write = true},
                      .private_data = data};
  bytes.resize(write_start_up(frame, bytes));
  EXPECT_EQ(bytes, kRequestKey + hex("50 02 00 07  92 34  81 02  'abc'"));

  bytes.assign(kStartUpBytesMax, std::byte{0});
  bytes.resize(write_start_up({.reply = true, .markers = true, .rejected = true}, bytes));
  EXPECT_EQ(bytes, kReplyKey + hex("a0 01 00 00"));
}

TEST(IwarpStartUp, WhatIsWrittenIsRead) {
  std::mt19937_64 random(5044);
  for (int round = 0; round < 2000; ++round) {
    const auto bit = [&] { return (random() & 1) != 0; };
    StartUp frame{
        .reply = bit(), .markers = bit(), .crc = bit(), .revision = static_cast<std::uint8_t>(1 + random() % 2)};
    frame.rejected = frame.reply && bit();
    if (frame.revision == 2 && bit()) {
      frame.enhanced = Enhanced{.ird = static_cast<std::uint16_t>(random() % (kReadDepthMax + 1)),
                                .ord = static_cast<std::uint16_t>(random() % (kReadDepthMax + 1)),
                                .peer_to_peer = bit(),
                                .rtr_empty_frame = bit(),
                                .rtr_write = bit(),
                                .rtr_read = bit()};
    }
    Bytes data(random() % (kStartUpDataBytesMax - (frame.enhanced ? kEnhancedBytes : 0) + 1));
    for (std::byte& byte : data) byte = static_cast<std::byte>(random());
    frame.private_data = data;
    Bytes bytes(kStartUpBytesMax);
    bytes.resize(write_start_up(frame, bytes));

    StartUp read;
    std::size_t length = 0;
    ASSERT_EQ(parse_start_up(bytes, frame.reply, read, length), Parsed::whole) << "round " << round;
    ASSERT_EQ(length, bytes.size());
    ASSERT_EQ(read.reply, frame.reply);
    ASSERT_EQ(read.markers, frame.markers);
    ASSERT_EQ(read.crc, frame.crc);
    ASSERT_EQ(read.rejected, frame.rejected);
    ASSERT_EQ(read.revision, frame.revision);
    ASSERT_EQ(read.enhanced, frame.enhanced);
    ASSERT_EQ(data_of(read), data);
    bytes.resize(random() % bytes.size());
    ASSERT_EQ(parse(bytes, frame.reply), Parsed::incomplete) << "round " << round;
  }
}

TEST(IwarpFrame, IsPaddedToWords) {
  for (std::size_t bytes = 0; bytes <= kSegmentBytesMax; ++bytes) {
    ASSERT_EQ(frame_bytes(bytes) % 4, 0u) << bytes;
    ASSERT_LE(frame_padding(bytes), 3u) << bytes;
    ASSERT_EQ(frame_bytes(bytes), 2 + bytes + frame_padding(bytes) + 4) << bytes;
  }
}

TEST(IwarpFrame, TheLongestSegmentFillsTheTcpSegment) {
  for (std::size_t bytes = 9; bytes <= kSegmentBytesMax + 6; ++bytes) {
    ASSERT_LE(frame_bytes(largest_segment(bytes)), bytes);
    ASSERT_GT(frame_bytes(largest_segment(bytes) + 1), bytes);
  }
  EXPECT_EQ(largest_segment(0), 0u);
  EXPECT_EQ(largest_segment(8), 2u);
  EXPECT_EQ(largest_segment(1 << 20), kSegmentBytesMax);
}

}  // namespace
}  // namespace anydat::test
