// SPDX-License-Identifier: BSD-3-Clause
// Headers of segments, written by hand after RFC 5041 (section 4) and RFC 5040 (section 4.1), and every field wrong.
#include "nic/soft/wire/iwarp/format/ddp.h"

#include <gtest/gtest.h>

#include <random>

#include "base/big_endian.h"
#include "unit/hex.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

struct Example {
  const char* name;
  const char* bytes;
  SegmentHeader header;
};

const Example kExamples[] = {
    {"a lone Send", "41 43 00000000 00000000 00000001 00000000", {.opcode = Opcode::send, .last = true, .sequence = 1}},
    {"the middle of a Send with a solicited event",
     "01 45 00000000 00000000 00000102 00010203",
     {.opcode = Opcode::send_solicited, .sequence = 0x102, .offset = 0x10203}},
    {"a Send that invalidates",
     "41 44 a1b2c3d4 00000000 fffffffe 00000000",
     {.opcode = Opcode::send_invalidate, .last = true, .stag = 0xa1b2c3d4, .sequence = 0xfffffffe}},
    {"both",
     "41 46 a1b2c3d4 00000000 00000007 00000000",
     {.opcode = Opcode::send_solicited_invalidate, .last = true, .stag = 0xa1b2c3d4, .sequence = 7}},
    {"a Read Request",
     "41 41 00000000 00000001 00000003 00000000",
     {.opcode = Opcode::read_request, .last = true, .sequence = 3}},
    {"a Terminate",
     "41 47 00000000 00000002 00000001 00000000",
     {.opcode = Opcode::terminate, .last = true, .sequence = 1}},
    {"the last of a Write",
     "c1 40 01020304 1122334455667788",
     {.opcode = Opcode::write, .last = true, .stag = 0x01020304, .tagged_offset = 0x1122334455667788}},
    {"the first of a Read Response",
     "81 42 01020304 0000000000000010",
     {.opcode = Opcode::read_response, .stag = 0x01020304, .tagged_offset = 0x10}},
};

std::optional<TerminateCode> fault(const Bytes& bytes) {
  SegmentHeader header;
  return parse_segment_header(bytes, header);
}

TEST(IwarpSegmentHeader, IsReadAndWrittenAsItIsDrawn) {
  for (const Example& example : kExamples) {
    const Bytes bytes = hex(example.bytes);
    SegmentHeader header;
    ASSERT_EQ(parse_segment_header(bytes + hex("ff ff"), header), std::nullopt) << example.name;
    EXPECT_EQ(header, example.header) << example.name;
    EXPECT_EQ(segment_header_bytes(bytes[0]), bytes.size()) << example.name;
    EXPECT_EQ(segment_header_bytes(header.opcode), bytes.size()) << example.name;
    Bytes written(kSegmentHeaderBytesMax);
    written.resize(write_segment_header(example.header, written));
    EXPECT_EQ(written, bytes) << example.name;
  }
}

TEST(IwarpSegmentHeader, EndsWhereItsSegmentEndsOrIsMalformed) {
  EXPECT_EQ(fault({}), rdmap_error::kOperationUnspecified);
  for (const Example& example : kExamples) {
    const Bytes bytes = hex(example.bytes);
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      const Bytes begin(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut));
      EXPECT_EQ(fault(begin), rdmap_error::kOperationUnspecified) << example.name << " cut at " << cut;
    }
  }
}

TEST(IwarpSegmentHeader, OtherVersionsOfDdpAreRefusedByKindOfSegment) {
  for (const Example& example : kExamples) {
    for (const unsigned version : {0u, 2u, 3u}) {
      Bytes bytes = hex(example.bytes);
      bytes[0] = (bytes[0] & std::byte{0xfc}) | static_cast<std::byte>(version);
      EXPECT_EQ(fault(bytes),
                is_tagged(example.header.opcode) ? ddp_error::kTaggedVersion : ddp_error::kUntaggedVersion)
          << example.name << " version " << version;
    }
  }
}

TEST(IwarpSegmentHeader, OtherVersionsOfRdmapAreRefused) {
  for (const Example& example : kExamples) {
    for (const unsigned version : {0u, 2u, 3u}) {
      Bytes bytes = hex(example.bytes);
      bytes[1] = (bytes[1] & std::byte{0x3f}) | static_cast<std::byte>(version << 6);
      EXPECT_EQ(fault(bytes), rdmap_error::kVersion) << example.name << " version " << version;
    }
  }
}

TEST(IwarpSegmentHeader, ReservedBitsAreNotLookedAt) {
  for (const Example& example : kExamples) {
    Bytes bytes = hex(example.bytes);
    bytes[0] |= std::byte{0x3c};
    bytes[1] |= std::byte{0x30};
    // Where nothing is to be invalidated, the receiver does not look at the word for it.
    const bool unused = !is_tagged(example.header.opcode) && !invalidates(example.header.opcode);
    if (unused) base::store_big(&bytes[2], 0xdeadbeefu);
    SegmentHeader header;
    ASSERT_EQ(parse_segment_header(bytes, header), std::nullopt) << example.name;
    EXPECT_EQ(header, example.header) << example.name;
  }
}

// Which operation may stand in which kind of segment and on which queue; everything else is refused.
TEST(IwarpSegmentHeader, AnOperationBelongsToOneKindOfSegmentAndOneQueue) {
  for (unsigned opcode = 0; opcode < 16; ++opcode) {
    const bool known = opcode <= 11;
    const bool tagged = opcode == 0 || opcode == 2;
    Bytes bytes = hex("c1 40 01020304 0000000000000000");
    bytes[1] |= static_cast<std::byte>(opcode);
    EXPECT_EQ(fault(bytes), known && tagged ? std::nullopt : std::optional(rdmap_error::kUnexpectedOpcode)) << opcode;

    for (std::uint32_t queue = 0; queue < 5; ++queue) {
      bytes = hex("41 40 00000000 00000000 00000001 00000000");
      bytes[1] |= static_cast<std::byte>(opcode);
      base::store_big(&bytes[6], queue);
      std::optional<TerminateCode> expected = rdmap_error::kUnexpectedOpcode;
      // The fourth queue is RFC 7306's, for responses to atomic operations.
      if (queue > 3 || (queue == 3 && opcode != 11)) expected = ddp_error::kInvalidQueue;
      const std::uint32_t right = opcode == 1 || opcode == 10 ? 1 : opcode == 7 ? 2 : opcode == 11 ? 3 : 0;
      if (known && !tagged && queue == right) expected = std::nullopt;
      EXPECT_EQ(fault(bytes), expected) << "opcode " << opcode << " queue " << queue;
    }
  }
}

TEST(IwarpSegmentHeader, ANumberOfAQueueIsReadWithAllItsBits) {
  for (unsigned bit = 2; bit < 32; ++bit) {
    Bytes bytes = hex("41 43 00000000 00000000 00000001 00000000");
    base::store_big(&bytes[6], std::uint32_t{1} << bit);
    EXPECT_EQ(fault(bytes), ddp_error::kInvalidQueue) << bit;
  }
}

TEST(IwarpSegmentHeader, WhatIsWrittenIsRead) {
  std::mt19937_64 random(5041);
  for (int round = 0; round < 5000; ++round) {
    SegmentHeader header{.opcode = static_cast<Opcode>(random() % 12), .last = (random() & 1) != 0};
    if (is_tagged(header.opcode)) {
      header.stag = static_cast<std::uint32_t>(random());
      header.tagged_offset = random();
    } else {
      if (invalidates(header.opcode)) header.stag = static_cast<std::uint32_t>(random());
      header.sequence = static_cast<std::uint32_t>(random());
      header.offset = static_cast<std::uint32_t>(random());
    }
    Bytes bytes(kSegmentHeaderBytesMax);
    bytes.resize(write_segment_header(header, bytes));
    SegmentHeader read;
    ASSERT_EQ(parse_segment_header(bytes, read), std::nullopt) << "round " << round;
    ASSERT_EQ(read, header) << "round " << round;
  }
}

// The short look at a header says of a message what the whole one does.
TEST(IwarpSegmentHeader, OfAWholeSendIsTheOneThatSaysSo) {
  constexpr std::uint32_t kExpected = 0x80000001;
  std::mt19937_64 random(5041);
  int whole = 0;
  for (int round = 0; round < 100000; ++round) {
    SegmentHeader header;
    header.opcode = random() % 2 == 0 ? Opcode::send : Opcode::send_solicited;
    header.last = random() % 8 != 0;
    header.sequence = kExpected - (random() % 8 == 0 ? 1 : 0);
    header.offset = random() % 8 == 0 ? 1U << random() % 32 : 0;
    Bytes bytes(kSegmentHeaderBytesMax);
    write_segment_header(header, bytes);
    if (random() % 4 == 0) bytes[random() % bytes.size()] ^= static_cast<std::byte>(1U << random() % 8);
    bool solicited = false;
    SegmentHeader parsed;
    const bool good = !parse_segment_header(bytes, parsed);
    const bool sure = is_whole_send(bytes.data(), kExpected, solicited);
    const bool is_one = good && parsed.last && parsed.sequence == kExpected && parsed.offset == 0 &&
                        (parsed.opcode == Opcode::send || parsed.opcode == Opcode::send_solicited);
    // Bits that the whole look skips may keep the short one from being sure.
    const bool plain = (bytes[0] & std::byte{0x3c}) == std::byte{0} && (bytes[1] & std::byte{0x30}) == std::byte{0};
    ASSERT_EQ(sure, is_one && plain) << "round " << round;
    if (!sure) continue;
    ASSERT_EQ(solicited, is_solicited(parsed.opcode));
    ++whole;
  }
  EXPECT_GT(whole, 10000);
}

// Whatever is accepted is what would be written, but for the bits that are not looked at.
TEST(IwarpSegmentHeader, OfAnyBytesAreEitherRefusedOrMeanOneThing) {
  std::mt19937_64 random(5040);
  int accepted = 0;
  for (int round = 0; round < 200000; ++round) {
    Bytes bytes(random() % 24);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    // Mostly plausible, or nothing would be accepted.
    if (bytes.size() > 10 && round % 8 != 0) {
      bytes[0] = (bytes[0] & std::byte{0xc0}) | std::byte{1};
      bytes[1] = (bytes[1] & std::byte{0x0f}) | std::byte{0x40};
      if ((bytes[0] & std::byte{0x80}) == std::byte{0})
        base::store_big(&bytes[6], static_cast<std::uint32_t>(random() % 4));
    }
    SegmentHeader header;
    if (parse_segment_header(bytes, header)) continue;
    ++accepted;
    Bytes written(kSegmentHeaderBytesMax);
    written.resize(write_segment_header(header, written));
    SegmentHeader again;
    ASSERT_EQ(parse_segment_header(written, again), std::nullopt);
    ASSERT_EQ(again, header);
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace anydat::test
