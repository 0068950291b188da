// SPDX-License-Identifier: BSD-3-Clause
// Segments with one thing wrong, on an established connection (RFC 5042, RFC 7306). Each ends its connection with the
// Terminate that the standards have for it, changes no memory that it has no right to, and touches no other connection.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "base/big_endian.h"
#include "nic/soft/wire/iwarp/terms.h"
#include "nic/types.h"
#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

struct Offence {
  std::string name;
  TerminateCode answer;
  std::function<void(MpaPeer& peer, TcpTarget& target)> commit;
};
std::ostream& operator<<(std::ostream& out, const Offence& offence) {
  return out << offence.name;
}

std::function<void(MpaPeer&, TcpTarget&)> raw(const char* segment) {
  return [bytes = hex(segment)](MpaPeer& peer, TcpTarget&) { peer.send(peer.frame(bytes)); };
}

// A Write of one byte; `where` says what memory, and the offset is added to its start.
std::function<void(MpaPeer&, TcpTarget&)> write(const Lmr& (TcpTarget::*where)() const, std::uint64_t offset,
                                                std::size_t bytes = 1, std::uint32_t key_change = 0) {
  return [=](MpaPeer& peer, TcpTarget& target) {
    const Lmr& lmr = (target.*where)();
    SegmentHeader header;
    header.opcode = Opcode::write;
    header.last = true;
    header.stag = lmr.rmr_context() ^ key_change;
    header.tagged_offset = address_of(lmr) + offset;
    peer.send_segment(header, repeat(bytes, 0xee));
  };
}

std::function<void(MpaPeer&, TcpTarget&)> read(const Lmr& (TcpTarget::*where)() const, std::uint64_t offset,
                                               std::uint32_t bytes = 1, std::uint32_t key_change = 0) {
  return [=](MpaPeer& peer, TcpTarget& target) {
    const Lmr& lmr = (target.*where)();
    peer.ask_read({.sink_stag = 1,
                   .bytes = bytes,
                   .source_stag = lmr.rmr_context() ^ key_change,
                   .source_offset = address_of(lmr) + offset});
  };
}

// A Send that asks for a key to be invalidated.
std::function<void(MpaPeer&, TcpTarget&)> invalidate(std::uint32_t key) {
  return [=](MpaPeer& peer, TcpTarget&) {
    SegmentHeader header = send_header();
    header.opcode = Opcode::send_invalidate;
    header.stag = key;
    peer.send_segment(header, hex("'x'"));
  };
}

void ask_atomic(MpaPeer& peer, const Lmr& lmr, std::uint64_t offset, std::uint32_t key_change = 0) {
  SegmentHeader header = send_header();
  header.opcode = Opcode::atomic_request;
  Bytes payload(kAtomicRequestBytes);
  write_atomic_request(
      {.id = 1, .stag = lmr.rmr_context() ^ key_change, .offset = address_of(lmr) + offset, .operand = 1}, payload);
  peer.send_segment(header, payload);
}

// One of ours, by what it says, that takes all there is.
void say_hello(MpaPeer& peer) {
  SegmentHeader header;
  header.opcode = Opcode::write;
  header.last = true;
  header.stag = kSignalStag;
  header.tagged_offset = signal_offset(Signal::hello, nic::ability::kAll << kHelloTakesAt);
  peer.send_segment(header);
}

constexpr std::uint64_t kToTheEnd = TcpTarget::kMemoryBytes;

const std::vector<Offence>& offences() {
  static const std::vector<Offence> all{
      // Segments.
      {"SegmentOfOneByte", rdmap_error::kOperationUnspecified, raw("41")},
      {"SegmentThatEndsInItsHeader", rdmap_error::kOperationUnspecified, raw("41 43 00000000 00000000 00000001 0000")},
      {"TaggedSegmentThatEndsInItsHeader", rdmap_error::kOperationUnspecified, raw("c1 40 00000001 00000000000000")},
      {"DdpVersionOfTagged", ddp_error::kTaggedVersion, raw("c2 40 00000001 0000000000000000 aa")},
      {"DdpVersionOfUntagged", ddp_error::kUntaggedVersion, raw("40 43 00000000 00000000 00000001 00000000")},
      {"RdmapVersion", rdmap_error::kVersion, raw("41 83 00000000 00000000 00000001 00000000")},
      {"UnknownOperation", rdmap_error::kUnexpectedOpcode, raw("41 4f 00000000 00000000 00000001 00000000")},
      {"TaggedSend", rdmap_error::kUnexpectedOpcode, raw("c1 43 00000001 0000000000000000")},
      {"UntaggedWrite", rdmap_error::kUnexpectedOpcode, raw("41 40 00000000 00000000 00000001 00000000")},
      {"UnknownQueue", ddp_error::kInvalidQueue, raw("41 43 00000000 00000003 00000001 00000000")},
      {"SendOnTheQueueOfReads", rdmap_error::kUnexpectedOpcode, raw("41 43 00000000 00000001 00000001 00000000")},
      {"SendOnTheQueueOfTerminates", rdmap_error::kUnexpectedOpcode, raw("41 43 00000000 00000002 00000001 00000000")},

      {"SendOnTheQueueOfAtomicResponses", ddp_error::kInvalidQueue, raw("41 43 00000000 00000003 00000001 00000000")},

      // Operations of RFC 7306, which only those may use who have told that they are one of ours and what they take.
      {"ImmediateOfAStranger", rdmap_error::kUnexpectedOpcode,
       raw("41 48 00000000 00000000 00000001 00000000 00000001 00000000")},
      {"SolicitedImmediateOfAStranger", rdmap_error::kUnexpectedOpcode,
       raw("41 49 00000000 00000000 00000001 00000000 00000001 00000000")},
      {"AtomicRequestOfAStranger", rdmap_error::kUnexpectedOpcode,
       [](MpaPeer& peer, TcpTarget& target) { ask_atomic(peer, target.for_all(), 0); }},
      {"AtomicResponseOfAStranger", rdmap_error::kUnexpectedOpcode,
       raw("41 4b 00000000 00000003 00000001 00000000 00000001 0000000000000000")},

      // Terminates.
      {"TerminateOutOfSequence", ddp_error::kSequenceRange,
       raw("41 47 00000000 00000002 00000002 00000000 20 02 00 00")},
      {"TerminateAtAnOffset", ddp_error::kInvalidOffset, raw("41 47 00000000 00000002 00000001 00000008 20 02 00 00")},
      {"TerminateInParts", ddp_error::kMessageTooLong, raw("01 47 00000000 00000002 00000001 00000000 20 02 00 00")},

      // Sends.
      {"SequenceZero", ddp_error::kSequenceRange,
       [](MpaPeer& peer, TcpTarget&) { peer.send_segment(send_header(0), hex("'x'")); }},
      {"SequenceAhead", ddp_error::kSequenceRange,
       [](MpaPeer& peer, TcpTarget&) { peer.send_segment(send_header(2), hex("'x'")); }},
      {"SequenceFarAhead", ddp_error::kSequenceRange,
       [](MpaPeer& peer, TcpTarget&) { peer.send_segment(send_header(0x80000001), hex("'x'")); }},
      {"OffsetOfAMessageThatHasNotBegun", ddp_error::kInvalidOffset,
       [](MpaPeer& peer, TcpTarget&) { peer.send_segment(send_header(1, 8), hex("'x'")); }},
      {"OffsetThatLeavesAGap", ddp_error::kInvalidOffset,
       [](MpaPeer& peer, TcpTarget&) {
         peer.send_segment(send_header(1, 0, false), repeat(8));
         peer.send_segment(send_header(1, 9), repeat(8));
       }},
      {"OffsetThatGoesBack", ddp_error::kInvalidOffset,
       [](MpaPeer& peer, TcpTarget&) {
         peer.send_segment(send_header(1, 0, false), repeat(8));
         peer.send_segment(send_header(1, 7), repeat(8));
       }},
      {"OffsetFarBeyondTheBuffer", ddp_error::kInvalidOffset,
       [](MpaPeer& peer, TcpTarget&) { peer.send_segment(send_header(1, 0xfffffff0), repeat(8)); }},
      {"MessageLongerThanItsBuffer", ddp_error::kMessageTooLong,
       [](MpaPeer& peer, TcpTarget&) { peer.send_segment(send_header(), repeat(TcpTarget::kBufferBytes + 1)); }},
      {"MessageThatGrowsBeyondItsBuffer", ddp_error::kMessageTooLong,
       [](MpaPeer& peer, TcpTarget&) {
         peer.send_segment(send_header(1, 0, false), repeat(TcpTarget::kBufferBytes));
         peer.send_segment(send_header(1, TcpTarget::kBufferBytes), repeat(1));
       }},
      {"Invalidation", rdmap_error::kCannotInvalidate,
       [](MpaPeer& peer, TcpTarget& target) {
         SegmentHeader header = send_header();
         header.opcode = Opcode::send_invalidate;
         header.stag = target.for_all().rmr_context();
         peer.send_segment(header, hex("'x'"));
       }},
      {"InvalidationOfNoKey", rdmap_error::kCannotInvalidate, invalidate(0x12345678)},
      {"InvalidationOfZero", rdmap_error::kCannotInvalidate, invalidate(0)},
      {"InvalidationThatComesLater", rdmap_error::kCannotInvalidate,
       [](MpaPeer& peer, TcpTarget& target) {
         peer.send_segment(send_header(1, 0, false), repeat(8));
         SegmentHeader header = send_header(1, 8);
         header.opcode = Opcode::send_invalidate;
         header.stag = target.for_all().rmr_context();
         peer.send_segment(header, repeat(8));
       }},
      {"InvalidationOfZeroThatComesLater", rdmap_error::kCannotInvalidate,
       [](MpaPeer& peer, TcpTarget&) {
         peer.send_segment(send_header(1, 0, false), repeat(8));
         SegmentHeader header = send_header(1, 8);
         header.opcode = Opcode::send_invalidate;
         peer.send_segment(header, repeat(8));
       }},

      // Writes.
      {"WriteToNoRegion", ddp_error::kInvalidStag, write(&TcpTarget::for_all, 0, 1, 0x10)},
      {"WriteToTheNextKey", ddp_error::kInvalidStag, write(&TcpTarget::for_all, 0, 1, 1u << 31)},
      {"WriteBeforeTheRegion", ddp_error::kBaseOrBounds, write(&TcpTarget::for_all, ~std::uint64_t{0})},
      {"WriteBehindTheRegion", ddp_error::kBaseOrBounds, write(&TcpTarget::for_all, kToTheEnd)},
      {"WriteOverTheEndOfTheRegion", ddp_error::kBaseOrBounds, write(&TcpTarget::for_all, kToTheEnd - 8, 9)},
      {"WriteOfMemoryForReading", rdmap_error::kAccessRights, write(&TcpTarget::for_reading, 0)},
      {"WriteIntoAnotherZone", ddp_error::kStagOfOtherStream, write(&TcpTarget::of_other_zone, 0)},
      {"WriteThatWrapsAround", ddp_error::kOffsetWraps,
       [](MpaPeer& peer, TcpTarget& target) {
         SegmentHeader header;
         header.opcode = Opcode::write;
         header.last = true;
         header.stag = target.for_all().rmr_context();
         header.tagged_offset = ~std::uint64_t{0} - 3;
         peer.send_segment(header, repeat(8, 0xee));
       }},

      // Reads.
      {"ReadOfNoRegion", rdmap_error::kInvalidStag, read(&TcpTarget::for_all, 0, 1, 0x10)},
      {"ReadBeforeTheRegion", rdmap_error::kBaseOrBounds, read(&TcpTarget::for_all, ~std::uint64_t{0})},
      {"ReadBehindTheRegion", rdmap_error::kBaseOrBounds, read(&TcpTarget::for_all, kToTheEnd)},
      {"ReadOverTheEndOfTheRegion", rdmap_error::kBaseOrBounds, read(&TcpTarget::for_all, kToTheEnd - 8, 9)},
      {"ReadOfMoreThanTheRegion", rdmap_error::kBaseOrBounds, read(&TcpTarget::for_all, 0, 0xffffffff)},
      {"ReadOfMemoryForWriting", rdmap_error::kAccessRights, read(&TcpTarget::for_writing, 0)},
      {"ReadFromAnotherZone", rdmap_error::kStagOfOtherStream, read(&TcpTarget::of_other_zone, 0)},
      {"ReadThatWrapsAround", rdmap_error::kOffsetWraps,
       [](MpaPeer& peer, TcpTarget& target) {
         peer.ask_read({.sink_stag = 1,
                        .bytes = 8,
                        .source_stag = target.for_all().rmr_context(),
                        .source_offset = ~std::uint64_t{0} - 3});
       }},
      {"ReadRequestTooShort", rdmap_error::kOperationUnspecified,
       [](MpaPeer& peer, TcpTarget&) {
         SegmentHeader header = send_header();
         header.opcode = Opcode::read_request;
         peer.send_segment(header, repeat(kReadRequestBytes - 1));
       }},
      {"ReadRequestTooLong", ddp_error::kMessageTooLong,
       [](MpaPeer& peer, TcpTarget&) {
         SegmentHeader header = send_header();
         header.opcode = Opcode::read_request;
         peer.send_segment(header, repeat(kReadRequestBytes + 1));
       }},
      {"ReadRequestOutOfSequence", ddp_error::kSequenceRange,
       [](MpaPeer& peer, TcpTarget&) {
         SegmentHeader header = send_header(2);
         header.opcode = Opcode::read_request;
         peer.send_segment(header, repeat(kReadRequestBytes));
       }},
      {"ReadResponseToNobody", ddp_error::kInvalidStag,
       [](MpaPeer& peer, TcpTarget& target) {
         SegmentHeader header;
         header.opcode = Opcode::read_response;
         header.last = true;
         header.stag = target.for_all().rmr_context();
         header.tagged_offset = address_of(target.for_all());
         peer.send_segment(header, repeat(8, 0xee));
       }},
      {"ReadResponseOfNothingToNobody", ddp_error::kInvalidStag,
       [](MpaPeer& peer, TcpTarget&) {
         SegmentHeader header;
         header.opcode = Opcode::read_response;
         header.last = true;
         peer.send_segment(header);
       }},
  };
  return all;
}

// By a peer that says it is one of ours.
const std::vector<Offence>& offences_of_ours() {
  const auto with_opcode = [](Opcode opcode, std::size_t bytes, std::uint32_t sequence = kFirstSequence) {
    return [=](MpaPeer& peer, TcpTarget&) {
      SegmentHeader header = send_header(sequence);
      header.opcode = opcode;
      peer.send_segment(header, repeat(bytes, 0));
    };
  };
  static const std::vector<Offence> all{
      {"AtomicToNoRegion", rdmap_error::kInvalidStag,
       [](MpaPeer& peer, TcpTarget& target) { ask_atomic(peer, target.for_all(), 0, 0x10); }},
      {"AtomicWithoutTheRight", rdmap_error::kAccessRights,
       [](MpaPeer& peer, TcpTarget& target) { ask_atomic(peer, target.for_all(), 0); }},
      {"AtomicOfAnUnknownOperation", rdmap_error::kUnexpectedOpcode,
       [](MpaPeer& peer, TcpTarget&) {
         SegmentHeader header = send_header();
         header.opcode = Opcode::atomic_request;
         peer.send_segment(header, repeat(kAtomicRequestBytes, 0xff));
       }},
      {"AtomicRequestTooShort", rdmap_error::kOperationUnspecified,
       with_opcode(Opcode::atomic_request, kAtomicRequestBytes - 1)},
      {"AtomicRequestTooLong", ddp_error::kMessageTooLong,
       with_opcode(Opcode::atomic_request, kAtomicRequestBytes + 1)},
      {"AtomicRequestOutOfSequence", ddp_error::kSequenceRange,
       with_opcode(Opcode::atomic_request, kAtomicRequestBytes, 2)},
      {"AtomicResponseToNobody", rdmap_error::kUnexpectedOpcode,
       with_opcode(Opcode::atomic_response, kAtomicResponseBytes)},
      // D2-IMM-9: this program is one of 1.2.
      {"ImmediateThatIsNotTaken", rdmap_error::kUnexpectedOpcode, with_opcode(Opcode::immediate, kImmediateBytes)},
  };
  return all;
}

class TcpOffence : public testing::TestWithParam<Offence> {
 protected:
  // On a new connection, at once or behind a message.
  void commit(bool crc, bool first) {
    MpaPeer peer(target.port());
    peer.greet({.crc = crc});
    const Ep ep = target.accept();
    target.expect_established(ep);
    ASSERT_TRUE(peer.hear_answer());
    if (ours_) say_hello(peer);
    if (!first) {
      SegmentHeader header;
      header.opcode = Opcode::write;
      header.last = true;
      header.stag = target.for_all().rmr_context();
      header.tagged_offset = address_of(target.for_all());
      peer.send_segment(header, Bytes(target.for_all().bytes().begin(), target.for_all().bytes().begin() + 100));
    }
    GetParam().commit(peer, target);
    const auto said = peer.hear_terminate();
    ASSERT_TRUE(said) << "there was no Terminate";
    EXPECT_EQ(said->code, GetParam().answer) << nic::soft::iwarp::describe(said->code);
    EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN);
    EXPECT_TRUE(target.memory_is_untouched());
    target.expect_unharmed();
  }

  TcpTarget target;
  bool ours_ = false;
};

class TcpOffenceOfOurs : public TcpOffence {
 protected:
  TcpOffenceOfOurs() { ours_ = true; }
};

TEST_P(TcpOffence, IsAnsweredWithItsTerminateAndHarmsNobody) {
  for (const bool crc : {false, true}) {
    for (const bool first : {true, false}) {
      SCOPED_TRACE(std::string(crc ? "with" : "without") + " CRC, " + (first ? "at once" : "later"));
      ASSERT_NO_FATAL_FAILURE(commit(crc, first));
    }
  }
}

std::string offence_name(const testing::TestParamInfo<Offence>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Rfc5042, TcpOffence, testing::ValuesIn(offences()), offence_name);

TEST_P(TcpOffenceOfOurs, IsAnsweredWithItsTerminateAndHarmsNobody) {
  for (const bool first : {true, false}) {
    SCOPED_TRACE(first ? "at once" : "later");
    ASSERT_NO_FATAL_FAILURE(commit(false, first));
  }
}

INSTANTIATE_TEST_SUITE_P(Rfc7306, TcpOffenceOfOurs, testing::ValuesIn(offences_of_ours()), offence_name);

class TcpOffences : public TcpTest {};

// A Write that is allowed, so that the offences above are refused for what is wrong with them.
TEST_F(TcpOffences, WhatIsAllowedIsDone) {
  MpaPeer peer(target.port());
  const Ep ep = meet(peer, {.crc = true});
  write(&TcpTarget::for_all, kToTheEnd - 8, 8)(peer, target);
  write(&TcpTarget::for_writing, 0, 8)(peer, target);
  read(&TcpTarget::for_all, kToTheEnd - 8, 8)(peer, target);
  const auto answer = peer.hear_segment();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.opcode, Opcode::read_response);
  EXPECT_EQ(answer->header.stag, 1u);
  EXPECT_TRUE(answer->header.last);
  EXPECT_EQ(answer->payload, repeat(8, 0xee));
  EXPECT_EQ(target.for_writing().bytes()[7], std::byte{0xee});
  peer.send_message(hex("'bye'"));
  EXPECT_EQ(target.expect_message(ep), 3u);
  peer.stop_sending();
  target.expect_end(ep);
}

}  // namespace
}  // namespace anydat::test
