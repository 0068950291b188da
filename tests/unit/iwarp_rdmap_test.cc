// SPDX-License-Identifier: BSD-3-Clause
// Read Requests and Terminates, written by hand after RFC 5040 (sections 4.4 and 4.8).
#include "nic/soft/wire/iwarp/format/rdmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "unit/hex.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;
using testing::HasSubstr;
using testing::StartsWith;

const char* const kReadRequestBytesByHand = "01020304 1112131415161718 00010000 a1a2a3a4 b1b2b3b4b5b6b7b8";
const ReadRequest kReadRequest{.sink_stag = 0x01020304,
                               .sink_offset = 0x1112131415161718,
                               .bytes = 0x10000,
                               .source_stag = 0xa1a2a3a4,
                               .source_offset = 0xb1b2b3b4b5b6b7b8};
const char* const kTaggedHeader = "c1 40 01020304 1122334455667788";
const char* const kUntaggedHeader = "41 41 00000000 00000001 00000003 00000000";

Bytes bytes_of(std::span<const std::byte> part) {
  return Bytes(part.begin(), part.end());
}

Bytes written(const Terminate& message) {
  Bytes bytes(kTerminateBytesMax);
  bytes.resize(write_terminate(message, bytes));
  return bytes;
}

TEST(IwarpReadRequest, IsReadAndWrittenAsItIsDrawn) {
  const Bytes bytes = hex(kReadRequestBytesByHand);
  ASSERT_EQ(bytes.size(), kReadRequestBytes);
  EXPECT_EQ(parse_read_request(bytes), kReadRequest);
  Bytes written(kReadRequestBytes);
  EXPECT_EQ(write_read_request(kReadRequest, written), kReadRequestBytes);
  EXPECT_EQ(written, bytes);
}

// D2-ATOM-9: RFC 7306, sections 5.2 and 6.1.
TEST(IwarpAtomicRequest, IsReadAndWrittenAsItIsDrawn) {
  const struct {
    AtomicRequest request;
    const char* bytes;
  } kExamples[] = {
      {{.operation = AtomicRequest::Operation::fetch_add,
        .id = 0x01020304,
        .stag = 0xa1a2a3a4,
        .offset = 0xb1b2b3b4b5b6b7b8,
        .operand = 5},
       "00000000 01020304 a1a2a3a4 b1b2b3b4b5b6b7b8 0000000000000005 0000000000000000 0000000000000000 "
       "0000000000000000"},
      {{.operation = AtomicRequest::Operation::compare_swap,
        .id = 1,
        .stag = 2,
        .offset = 3,
        .operand = 0x1112131415161718,
        .compare = 0x2122232425262728},
       "00000002 00000001 00000002 0000000000000003 1112131415161718 ffffffffffffffff 2122232425262728 "
       "ffffffffffffffff"},
  };
  for (const auto& example : kExamples) {
    const Bytes bytes = hex(example.bytes);
    ASSERT_EQ(bytes.size(), kAtomicRequestBytes);
    AtomicRequest read;
    ASSERT_TRUE(parse_atomic_request(bytes, read));
    EXPECT_EQ(read, example.request);
    Bytes written(kAtomicRequestBytes);
    EXPECT_EQ(write_atomic_request(example.request, written), kAtomicRequestBytes);
    EXPECT_EQ(written, bytes);
  }
}

TEST(IwarpAtomicRequest, OfAnotherOperationOrOfAPartOfAWordIsRefused) {
  Bytes good(kAtomicRequestBytes);
  write_atomic_request({.operation = AtomicRequest::Operation::compare_swap}, good);
  AtomicRequest read;
  for (unsigned operation = 0; operation < 16; ++operation) {
    Bytes bytes = good;
    bytes[3] = static_cast<std::byte>(operation);
    // The masks are those of a swap.
    EXPECT_EQ(parse_atomic_request(bytes, read), operation == 2) << operation;
  }
  for (const std::size_t at : {28u, 35u, 44u, 51u}) {
    Bytes bytes = good;
    bytes[at] ^= std::byte{1};
    EXPECT_FALSE(parse_atomic_request(bytes, read)) << at;
  }
}

TEST(IwarpAtomicResponse, IsReadAndWrittenAsItIsDrawn) {
  const Bytes bytes = hex("01020304 1112131415161718");
  const AtomicResponse response{.id = 0x01020304, .was = 0x1112131415161718};
  EXPECT_EQ(parse_atomic_response(bytes), response);
  Bytes written(kAtomicResponseBytes);
  EXPECT_EQ(write_atomic_response(response, written), kAtomicResponseBytes);
  EXPECT_EQ(written, bytes);
}

TEST(IwarpImmediateData, IsTheValueAndTheLengthOfTheWrite) {
  // D2-IMM-7
  const Bytes bytes = hex("00007777 00010000");
  const ImmediateData data{.value = 0x7777, .length = 0x10000};
  EXPECT_EQ(parse_immediate(bytes), data);
  Bytes written(kImmediateBytes);
  EXPECT_EQ(write_immediate(data, written), kImmediateBytes);
  EXPECT_EQ(written, bytes);
}

TEST(IwarpTerminate, OfNoSegmentIsAWordOfControl) {
  EXPECT_EQ(written({.code = mpa_error::kCrc}), hex("20 02 00 00"));
  EXPECT_EQ(written({.code = rdmap_error::kLocalCatastrophic}), hex("00 00 00 00"));
  EXPECT_EQ(written({.code = ddp_error::kMessageTooLong}), hex("12 05 00 00"));
  EXPECT_EQ(written({.code = rdmap_error::kOperationUnspecified}), hex("02 ff 00 00"));
}

TEST(IwarpTerminate, CarriesTheLengthAndHeaderOfTheSegment) {
  const Bytes header = hex(kTaggedHeader);
  EXPECT_EQ(written({.code = ddp_error::kBaseOrBounds,
                     .segment_bytes_valid = true,
                     .segment_bytes = 0x0123,
                     .segment_header = header}),
            hex("11 01 c0 00 01 23") + header);
}

TEST(IwarpTerminate, CarriesTheReadRequestThatWasRefused) {
  const Bytes header = hex(kUntaggedHeader);
  const Bytes request = hex(kReadRequestBytesByHand);
  EXPECT_EQ(written({.code = rdmap_error::kAccessRights,
                     .segment_bytes_valid = true,
                     .segment_bytes = 46,
                     .segment_header = header,
                     .read_request = request}),
            hex("01 02 e0 00 00 2e") + header + request);
}

TEST(IwarpTerminate, IsReadWithAllItsParts) {
  const Bytes bytes = hex("01 02 e0 00 00 2e") + hex(kUntaggedHeader) + hex(kReadRequestBytesByHand);
  Terminate message;
  ASSERT_TRUE(parse_terminate(bytes, message));
  EXPECT_EQ(message.code, rdmap_error::kAccessRights);
  EXPECT_TRUE(message.segment_bytes_valid);
  EXPECT_EQ(message.segment_bytes, 46);
  EXPECT_EQ(bytes_of(message.segment_header), hex(kUntaggedHeader));
  EXPECT_EQ(bytes_of(message.read_request), hex(kReadRequestBytesByHand));
}

TEST(IwarpTerminate, CutShortStillTellsTheError) {
  const Bytes bytes = hex("01 02 e0 00 00 2e") + hex(kUntaggedHeader) + hex(kReadRequestBytesByHand);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    const Bytes begin(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut));
    Terminate message;
    ASSERT_EQ(parse_terminate(begin, message), cut >= 4) << cut;
    if (cut < 4) continue;
    EXPECT_EQ(message.code, rdmap_error::kAccessRights) << cut;
    EXPECT_EQ(message.segment_bytes_valid, cut >= 6) << cut;
    EXPECT_EQ(message.segment_header.size(), cut >= 24 ? 18u : 0u) << cut;
    EXPECT_TRUE(message.read_request.empty()) << cut;
  }
}

TEST(IwarpTerminate, ALengthWithoutAHeaderAndAHeaderWithoutALength) {
  Terminate message;
  ASSERT_TRUE(parse_terminate(hex("20 03 80 00 ab cd"), message));
  EXPECT_TRUE(message.segment_bytes_valid);
  EXPECT_EQ(message.segment_bytes, 0xabcd);
  EXPECT_TRUE(message.segment_header.empty());
  // The length's room is there, and means nothing.
  ASSERT_TRUE(parse_terminate(hex("11 00 40 00 ab cd") + hex(kTaggedHeader), message));
  EXPECT_FALSE(message.segment_bytes_valid);
  EXPECT_EQ(message.segment_bytes, 0);
  EXPECT_EQ(message.segment_header.size(), kTaggedHeaderBytes);
}

TEST(IwarpTerminate, IsMadeOfTheSegmentAtFault) {
  const Bytes write = hex(kTaggedHeader) + repeat(100);
  EXPECT_EQ(written(terminate_for(ddp_error::kInvalidStag, write, write.size())),
            hex("11 00 c0 00 00 72") + hex(kTaggedHeader));
  const Bytes read = hex(kUntaggedHeader) + hex(kReadRequestBytesByHand);
  EXPECT_EQ(written(terminate_for(rdmap_error::kInvalidStag, read, read.size())), hex("01 00 e0 00 00 2e") + read);
  // Of a request that is not whole there is only the header, of a header that is not whole nothing.
  const Bytes part(read.begin(), read.end() - 1);
  EXPECT_EQ(written(terminate_for(rdmap_error::kOperationUnspecified, part, part.size())),
            hex("02 ff c0 00 00 2d") + hex(kUntaggedHeader));
  EXPECT_EQ(written(terminate_for(rdmap_error::kOperationUnspecified, hex("41 43 00"), 3)), hex("02 ff 00 00"));
  EXPECT_EQ(written(terminate_for(mpa_error::kCrc, {}, 0)), hex("20 02 00 00"));
}

TEST(IwarpTerminate, WhatIsWrittenIsRead) {
  std::mt19937_64 random(48);
  for (int round = 0; round < 2000; ++round) {
    Bytes header = random() % 2 == 0 ? hex(kTaggedHeader) : hex(kUntaggedHeader);
    Bytes request(kReadRequestBytes);
    for (std::byte& byte : request) byte = static_cast<std::byte>(random());
    Terminate message;
    message.code = {static_cast<std::uint8_t>(random() % 16), static_cast<std::uint8_t>(random() % 16),
                    static_cast<std::uint8_t>(random())};
    message.segment_bytes_valid = random() % 2 == 0;
    if (message.segment_bytes_valid) message.segment_bytes = static_cast<std::uint16_t>(random());
    if (random() % 2 == 0) message.segment_header = header;
    if (random() % 2 == 0) message.read_request = request;
    const Bytes bytes = written(message);
    Terminate read;
    ASSERT_TRUE(parse_terminate(bytes, read)) << "round " << round;
    ASSERT_EQ(read.code, message.code);
    ASSERT_EQ(read.segment_bytes_valid, message.segment_bytes_valid);
    ASSERT_EQ(read.segment_bytes, message.segment_bytes);
    ASSERT_EQ(bytes_of(read.segment_header), bytes_of(message.segment_header));
    ASSERT_EQ(bytes_of(read.read_request), bytes_of(message.read_request));
  }
}

// Numbers as the RFCs print them, once more and apart from the header.
TEST(IwarpTerminate, CodesAreThoseOfTheStandards) {
  const auto number = [](TerminateCode code) { return code.layer << 12 | code.type << 8 | code.code; };
  EXPECT_EQ(number(rdmap_error::kInvalidStag), 0x0100);
  EXPECT_EQ(number(rdmap_error::kBaseOrBounds), 0x0101);
  EXPECT_EQ(number(rdmap_error::kAccessRights), 0x0102);
  EXPECT_EQ(number(rdmap_error::kStagOfOtherStream), 0x0103);
  EXPECT_EQ(number(rdmap_error::kOffsetWraps), 0x0104);
  EXPECT_EQ(number(rdmap_error::kVersion), 0x0205);
  EXPECT_EQ(number(rdmap_error::kUnexpectedOpcode), 0x0206);
  EXPECT_EQ(number(ddp_error::kInvalidStag), 0x1100);
  EXPECT_EQ(number(ddp_error::kBaseOrBounds), 0x1101);
  EXPECT_EQ(number(ddp_error::kStagOfOtherStream), 0x1102);
  EXPECT_EQ(number(ddp_error::kOffsetWraps), 0x1103);
  EXPECT_EQ(number(ddp_error::kTaggedVersion), 0x1104);
  EXPECT_EQ(number(ddp_error::kInvalidQueue), 0x1201);
  EXPECT_EQ(number(ddp_error::kNoBuffer), 0x1202);
  EXPECT_EQ(number(ddp_error::kSequenceRange), 0x1203);
  EXPECT_EQ(number(ddp_error::kInvalidOffset), 0x1204);
  EXPECT_EQ(number(ddp_error::kMessageTooLong), 0x1205);
  EXPECT_EQ(number(ddp_error::kUntaggedVersion), 0x1206);
  EXPECT_EQ(number(mpa_error::kCrc), 0x2002);
  EXPECT_EQ(number(mpa_error::kMarker), 0x2003);
  EXPECT_EQ(number(mpa_error::kStartUp), 0x2004);
  EXPECT_EQ(number(mpa_error::kLocalCatastrophic), 0x2005);
  EXPECT_EQ(number(mpa_error::kInsufficientIrd), 0x2006);
  EXPECT_EQ(number(mpa_error::kNoMatchingRtr), 0x2007);
}

TEST(IwarpTerminate, EveryCodeHasWordsOfItsOwn) {
  std::set<std::string> words;
  int described = 0;
  for (unsigned number = 0; number < 0x10000; ++number) {
    const TerminateCode code{static_cast<std::uint8_t>(number >> 12), static_cast<std::uint8_t>(number >> 8 & 15),
                             static_cast<std::uint8_t>(number)};
    const std::string text(describe(code));
    if (text == "unknown error") continue;
    EXPECT_THAT(text, StartsWith(code.layer == 0 ? "RDMAP: " : code.layer == 1 ? "DDP: " : "MPA: "));
    words.insert(text);
    ++described;
  }
  EXPECT_EQ(described, 33);
  EXPECT_EQ(words.size(), 33u);
}

}  // namespace
}  // namespace anydat::test
