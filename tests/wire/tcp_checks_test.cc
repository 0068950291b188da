// SPDX-License-Identifier: BSD-3-Clause
// What a host may not do on an established connection (RFC 5042). Each ends its connection with the Terminate that the
// standards have for it, changes no memory that it has no right to, and touches nobody else.
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

// ---- segments with one thing wrong

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
    const auto said = peer.hear_last_words();
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

// ---- what takes more than a segment

class TcpChecks : public TcpTest {};

TEST_F(TcpChecks, ATerminateCarriesTheHeadersOfTheOffence) {
  MpaPeer peer(target.port());
  const Ep ep = meet(peer);
  const ReadRequest request{.sink_stag = 7,
                            .sink_offset = 99,
                            .bytes = 8,
                            .source_stag = target.for_writing().rmr_context(),
                            .source_offset = address_of(target.for_writing())};
  peer.ask_read(request);
  const auto said = peer.hear_last_words();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->code, rdmap_error::kAccessRights);
  EXPECT_EQ(said->segment_header, hex("41 41 00000000 00000001 00000001 00000000"));
  ASSERT_EQ(said->read_request.size(), kReadRequestBytes);
  EXPECT_EQ(parse_read_request(said->read_request), request);
  target.expect_end(ep);
}

// RFC 5044, section 4.4: data with a wrong CRC is nobody's.
TEST_F(TcpChecks, AWrongCrcEndsTheConnection) {
  for (const bool of_a_write : {false, true}) {
    MpaPeer peer(target.port());
    const Ep ep = meet(peer, {.crc = true});
    SegmentHeader header = send_header();
    if (of_a_write) {
      header = {};
      header.opcode = Opcode::write;
      header.last = true;
      header.stag = target.for_all().rmr_context();
      header.tagged_offset = address_of(target.for_all());
    }
    Bytes bytes = peer.frame(MpaPeer::segment(header, repeat(20)));
    bytes[bytes.size() - 1] ^= std::byte{1};
    peer.send(bytes);
    expect_last_words(peer, mpa_error::kCrc);
    EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN);
    // The message is not delivered.
    while (const auto event = poll_event(target.side().recv.get())) {
      EXPECT_NE(event->event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
      target.post(event->event_data.dto_completion_event_data.user_cookie);
    }
    target.expect_unharmed();
  }
}

// RFC 5040, section 4.8: errors of MPA come without a header, and that of a damaged frame may be anything.
TEST_F(TcpChecks, ATerminateForADamagedFrameRepeatsNothingOfIt) {
  for (const std::size_t bytes : {20u, 200u}) {
    MpaPeer peer(target.port());
    const Ep ep = meet(peer, {.crc = true});
    Bytes frame = peer.frame(MpaPeer::segment(send_header(), repeat(bytes)));
    frame[frame.size() - 1] ^= std::byte{1};
    peer.send(frame);
    const auto said = peer.hear_last_words();
    ASSERT_TRUE(said);
    EXPECT_EQ(said->code, mpa_error::kCrc);
    EXPECT_TRUE(said->segment_header.empty());
    EXPECT_TRUE(said->read_request.empty());
    target.expect_end(ep);
    target.expect_unharmed();
  }
}

TEST_F(TcpChecks, ADamagedByteAnywhereIsFoundByTheCrc) {
  MpaPeer sample(target.port());
  sample.greet({.crc = true});
  {
    const Ep ep = target.accept();
    target.expect_established(ep);
    ASSERT_TRUE(sample.hear_answer());
    sample.stop_sending();
    target.expect_end(ep);
  }
  const Bytes good = sample.frame(MpaPeer::segment(send_header(), hex("'twenty-one bytes here'")));
  for (std::size_t at = 2; at < good.size(); ++at) {  // a length that is damaged moves the end of the frame
    MpaPeer peer(target.port());
    const Ep ep = meet(peer, {.crc = true});
    Bytes bytes = good;
    bytes[at] ^= std::byte{0x20};
    peer.send(bytes);
    ASSERT_TRUE(peer.hear_last_words()) << "byte " << at;
    target.expect_end(ep);
    target.expect_unharmed();
  }
}

// The same behind good messages, which a receiver may take a shorter way with.
TEST_F(TcpChecks, ADamagedByteBehindGoodMessagesIsFoundByTheCrc) {
  constexpr std::uint32_t kGood = 3;
  const Bytes payload = hex("'twenty-one bytes here'");
  std::size_t frame_bytes = 8;
  for (std::size_t at = 2; at < frame_bytes; at += 3) {  // the length, header, payload and CRC each have their turn
    for (const bool in_one_piece : {false, true}) {
      SCOPED_TRACE(testing::Message() << "byte " << at << (in_one_piece ? ", in one piece" : ", alone"));
      MpaPeer peer(target.port());
      const Ep ep = meet(peer, {.crc = true});
      Bytes bytes;
      for (std::uint32_t sequence = 1; sequence <= kGood; ++sequence) {
        const Bytes good = peer.frame(MpaPeer::segment(send_header(sequence), payload));
        bytes.insert(bytes.end(), good.begin(), good.end());
      }
      Bytes damaged = peer.frame(MpaPeer::segment(send_header(kGood + 1), payload));
      frame_bytes = damaged.size();
      damaged[at] ^= std::byte{0x20};
      if (in_one_piece) {
        bytes.insert(bytes.end(), damaged.begin(), damaged.end());
        peer.send(bytes);
      }
      if (!in_one_piece) peer.send(bytes);
      for (std::uint32_t i = 0; i < kGood; ++i) EXPECT_EQ(target.expect_message(ep), payload.size());
      if (!in_one_piece) peer.send(damaged);
      ASSERT_TRUE(peer.hear_last_words());
      EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN);
      while (const auto event = poll_event(target.side().recv.get())) {
        EXPECT_NE(event->event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS)
            << "the damaged one is delivered";
        target.post(event->event_data.dto_completion_event_data.user_cookie);
      }
    }
  }
  target.expect_unharmed();
}

// DTO-41: a message that has half arrived has the oldest receive, which comes back first.
TEST_F(TcpChecks, ReceivesComeBackInOrderWhenAMessageHasHalfArrived) {
  constexpr DAT_UINT64 kReceives = 3;
  Side& side = target.side();
  const Evd recv(side.ia, DAT_EVD_DTO_FLAG);
  const Lmr memory(side.ia, side.pz, kReceives * 64);
  MpaPeer peer(target.port());
  peer.greet();
  const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  const Ep ep(side.ia, side.pz, {.recv = recv.get(), .request = side.request.get(), .connect = side.connect.get()},
              default_ep_attr());
  for (DAT_UINT64 i = 0; i < kReceives; ++i) {
    DAT_LMR_TRIPLET segment = memory.triplet(i * 64, 64);
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = i;
    require(dat_ep_post_recv(ep.get(), 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  }
  require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
  target.expect_established(ep);
  ASSERT_TRUE(peer.hear_answer());
  peer.send_segment(send_header(1, 0, false), repeat(20));
  peer.stop_sending();
  EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN);
  for (DAT_UINT64 i = 0; i < kReceives; ++i) {
    EXPECT_EQ(expect_completion(recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, i);
  }
  EXPECT_FALSE(poll_event(recv.get()));
}

// SRQ-ARR-6: what waits for a buffer is as long as it is, also if it goes on only later.
TEST_F(TcpChecks, AMessageThatHasHalfArrivedTakesTheBufferThatItFits) {
  Side& side = target.side();
  const Evd recv(side.ia, DAT_EVD_DTO_FLAG);
  const Lmr memory(side.ia, side.pz, 30);
  MpaPeer peer(target.port());
  peer.greet();
  const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  const Ep ep(side.ia, side.pz, {.recv = recv.get(), .request = side.request.get(), .connect = side.connect.get()},
              default_ep_attr());
  require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
  target.expect_established(ep);
  ASSERT_TRUE(peer.hear_answer());
  peer.send_segment(send_header(1, 0, false), repeat(20));
  EXPECT_FALSE(wait_event(recv.get(), quiet_time()));  // it is set aside meanwhile
  DAT_LMR_TRIPLET segment = memory.triplet();
  require(dat_ep_post_recv(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  EXPECT_FALSE(wait_event(recv.get(), quiet_time()));
  peer.send_segment(send_header(1, 20, true), repeat(10));
  EXPECT_EQ(expect_completion(recv.get()).transfered_length, 30u);
  peer.stop_sending();
  EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_DISCONNECTED);
}

// RFC 5042, section 6: a peer that asks for more Reads at once than it was told it may.
TEST_F(TcpChecks, MoreReadsThanAgreedOnEndTheConnection) {
  MpaPeer peer(target.port());
  const Ep ep = meet(peer);
  // It takes none of the answers meanwhile, and they are more than the sockets in between take.
  const Lmr large(target.side().ia, target.side().pz, 32 << 20);
  for (int i = 0; i < 20; ++i) {
    peer.ask_read(
        {.sink_stag = 1, .bytes = 32 << 20, .source_stag = large.rmr_context(), .source_offset = address_of(large)});
  }
  expect_last_words(peer, ddp_error::kNoBuffer);
  EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN);
  target.expect_unharmed();
}

TEST_F(TcpChecks, ATerminateInTheMiddleOfAMessageEndsTheConnectionOnce) {
  MpaPeer peer(target.port());
  const Ep ep = meet(peer);
  peer.send_segment(send_header(1, 0, false), repeat(20));
  Bytes words(kTerminateBytesMax);
  words.resize(write_terminate({.code = rdmap_error::kLocalCatastrophic}, words));
  SegmentHeader header;
  header.opcode = Opcode::terminate;
  header.last = true;
  header.sequence = kFirstSequence;
  peer.send_segment(header, words);
  peer.send_segment(send_header(1, 20), repeat(20));  // too late
  EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_FALSE(peer.hear_last_words());  // which are not answered
  target.expect_unharmed();
}

TEST_F(TcpChecks, TerminatesOfAllKindsEndOneConnection) {
  for (const char* payload : {"", "00", "ff ff ff ff", "ff ff e0 00 ff ff ff", "20 02 00 00", "12 02 00 00",
                              "01 02 e0 00 00 2e 41 41 00000000 00000001 00000001 00000000"}) {
    MpaPeer peer(target.port());
    const Ep ep = meet(peer);
    SegmentHeader header;
    header.opcode = Opcode::terminate;
    header.last = true;
    header.sequence = kFirstSequence;
    peer.send_segment(header, hex(payload));
    target.expect_end(ep);
    EXPECT_TRUE(peer.hung_up());
    target.expect_unharmed();
  }
}

TEST_F(TcpChecks, ASecondStartUpFrameIsNoSegment) {
  MpaPeer peer(target.port());
  const Ep ep = meet(peer);
  peer.send(MpaPeer::request({}));
  peer.send(repeat(0x5050));  // as much as its first two bytes announce
  EXPECT_TRUE(peer.hear_last_words());
  target.expect_end(ep);
  target.expect_unharmed();
}

TEST_F(TcpChecks, AStreamThatEndsInAFrameIsBroken) {
  const Bytes whole = MpaPeer(target.port()).frame(MpaPeer::segment(send_header(), hex("'message'")));
  for (std::size_t cut = 1; cut < whole.size(); ++cut) {
    MpaPeer peer(target.port());
    const Ep ep = meet(peer);
    peer.send(std::span(whole).first(cut));
    peer.stop_sending();
    EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN) << cut;
    target.expect_unharmed();
  }
}

// A Write that is allowed, so that the offences above are refused for what is wrong with them.
TEST_F(TcpChecks, WhatIsAllowedIsDone) {
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
