// SPDX-License-Identifier: BSD-3-Clause
// Answers to an RDMA Read that are not what was asked for (RFC 5042, section 6: buffer overrun by a Read Response), and
// keys that are no good any more. What was not asked for is not written anywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

constexpr std::size_t kAsked = 64;
constexpr std::size_t kRoom = 256;
constexpr std::byte kOld{0x11};

struct Answer {
  std::string name;
  TerminateCode refusal;
  std::size_t placed;  // of the bytes that were asked for, at most
  std::function<void(MpaPeer& peer, const ReadRequest& asked)> give;
};
std::ostream& operator<<(std::ostream& out, const Answer& answer) {
  return out << answer.name;
}

void respond(MpaPeer& peer, std::uint32_t stag, std::uint64_t offset, std::size_t bytes, bool last) {
  SegmentHeader header;
  header.opcode = Opcode::read_response;
  header.last = last;
  header.stag = stag;
  header.tagged_offset = offset;
  peer.send_segment(header, repeat(bytes, 0xee));
}

const std::vector<Answer>& wrong_answers() {
  static const std::vector<Answer> all{
      {"ToAnotherKey", ddp_error::kInvalidStag, 0,
       [](MpaPeer& peer, const ReadRequest& asked) {
         respond(peer, asked.sink_stag + 1, asked.sink_offset, kAsked, true);
       }},
      {"BehindItsPlace", ddp_error::kBaseOrBounds, 0,
       [](MpaPeer& peer, const ReadRequest& asked) {
         respond(peer, asked.sink_stag, asked.sink_offset + 1, 8, false);
       }},
      {"BeforeItsPlace", ddp_error::kBaseOrBounds, 8,
       [](MpaPeer& peer, const ReadRequest& asked) {
         respond(peer, asked.sink_stag, asked.sink_offset, 8, false);
         respond(peer, asked.sink_stag, asked.sink_offset + 4, 8, false);
       }},
      {"TooLong", ddp_error::kBaseOrBounds, 0,
       [](MpaPeer& peer, const ReadRequest& asked) {
         respond(peer, asked.sink_stag, asked.sink_offset, kAsked + 1, true);
       }},
      {"TooLongInTheEnd", ddp_error::kBaseOrBounds, kAsked - 1,
       [](MpaPeer& peer, const ReadRequest& asked) {
         respond(peer, asked.sink_stag, asked.sink_offset, kAsked - 1, false);
         respond(peer, asked.sink_stag, asked.sink_offset + kAsked - 1, 2, true);
       }},
      {"TooShort", ddp_error::kBaseOrBounds, kAsked - 1,
       [](MpaPeer& peer, const ReadRequest& asked) {
         respond(peer, asked.sink_stag, asked.sink_offset, kAsked - 1, true);
       }},
      {"AtAnAddressThatWraps", ddp_error::kBaseOrBounds, 0,
       [](MpaPeer& peer, const ReadRequest& asked) {
         respond(peer, asked.sink_stag, asked.sink_offset - 8, 16, false);
       }},
      // The key of a Read's sink is for its answer alone.
      {"AsAWrite", ddp_error::kInvalidStag, 0,
       [](MpaPeer& peer, const ReadRequest& asked) {
         SegmentHeader header;
         header.opcode = Opcode::write;
         header.last = true;
         header.stag = asked.sink_stag;
         header.tagged_offset = asked.sink_offset;
         peer.send_segment(header, repeat(8, 0xee));
       }},
  };
  return all;
}

class TcpAnswer : public TcpTest, public testing::WithParamInterface<Answer> {};

TEST_P(TcpAnswer, ThatWasNotAskedForEndsItsConnection) {
  MpaPeer peer(target.port());
  const Ep ep = meet(peer);
  peer.send_message(hex("'now you may send'"));
  target.expect_message(ep);
  const Lmr sink(target.side().ia, target.side().pz, kRoom);
  std::ranges::fill(sink.bytes(), kOld);
  DAT_LMR_TRIPLET local = sink.triplet(16, kAsked);
  DAT_RMR_TRIPLET remote{};
  remote.rmr_context = 5;
  remote.segment_length = kAsked;
  require(dat_ep_post_rdma_read(ep.get(), 1, &local, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_rdma_read");
  const auto request = peer.hear_segment();
  ASSERT_TRUE(request);
  ASSERT_EQ(request->header.opcode, Opcode::read_request);
  const ReadRequest asked = parse_read_request(request->payload);
  EXPECT_EQ(asked.bytes, kAsked);
  EXPECT_NE(asked.sink_stag, sink.context());  // the program's own key stays here

  GetParam().give(peer, asked);
  expect_terminate(peer, GetParam().refusal);
  EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN);
  const auto event = wait_event(target.side().request.get());
  ASSERT_TRUE(event);
  EXPECT_NE(event->event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
  EXPECT_TRUE(std::ranges::all_of(sink.bytes().first(16), [](std::byte byte) { return byte == kOld; }));
  EXPECT_TRUE(
      std::ranges::all_of(sink.bytes().subspan(16 + GetParam().placed), [](std::byte byte) { return byte == kOld; }));
  target.expect_unharmed();
}

std::string answer_name(const testing::TestParamInfo<Answer>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Wrong, TcpAnswer, testing::ValuesIn(wrong_answers()), answer_name);

// ---- keys that were good

class TcpKeys : public TcpTest {
 protected:
  static void write(MpaPeer& peer, std::uint32_t key, std::uint64_t address, std::size_t bytes, bool last = true) {
    SegmentHeader header;
    header.opcode = Opcode::write;
    header.last = last;
    header.stag = key;
    header.tagged_offset = address;
    peer.send_segment(header, repeat(bytes, 0xee));
  }
};

// LMR-FREE-6, LMR-FREE-8
TEST_F(TcpKeys, OfFreedMemoryIsNoKey) {
  std::vector<std::byte> memory(kRoom, kOld);
  Lmr lmr(target.side().ia, target.side().pz, memory);
  const std::uint32_t key = lmr.rmr_context();
  const std::uint64_t address = address_of(lmr);
  lmr.reset();
  {
    MpaPeer peer(target.port());
    const Ep ep = meet(peer);
    write(peer, key, address, 8);
    expect_terminate(peer, ddp_error::kInvalidStag);
    target.expect_end(ep);
  }
  MpaPeer peer(target.port());
  const Ep ep = meet(peer);
  peer.ask_read({.sink_stag = 1, .bytes = 8, .source_stag = key, .source_offset = address});
  expect_terminate(peer, rdmap_error::kInvalidStag);
  target.expect_end(ep);
  EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte byte) { return byte == kOld; }));
  target.expect_unharmed();
}

// The memory goes while a segment is on its way into it: what has come has come, and nothing more does.
TEST_F(TcpKeys, OfMemoryThatIsFreedInTheMiddleOfAWriteIsNoKeyFromThenOn) {
  std::vector<std::byte> memory(kRoom, kOld);
  Lmr lmr(target.side().ia, target.side().pz, memory);
  MpaPeer peer(target.port());
  const Ep ep = meet(peer);
  SegmentHeader header;
  header.opcode = Opcode::write;
  header.last = true;
  header.stag = lmr.rmr_context();
  header.tagged_offset = address_of(lmr);
  const Bytes whole = peer.frame(MpaPeer::segment(header, repeat(200, 0xee)));
  peer.send(std::span(whole).first(100));
  const auto arrived = [&] { return std::ranges::count(memory, std::byte{0xee}); };
  ASSERT_TRUE(eventually([&] { return arrived() > 0; }));
  lmr.reset();
  const auto before = arrived();
  peer.send(std::span(whole).subspan(100));
  expect_terminate(peer, ddp_error::kInvalidStag);
  EXPECT_EQ(arrived(), before);
  target.expect_end(ep);
  target.expect_unharmed();
}

// The context that a program uses for its own buffers opens nothing unless the memory was opened.
TEST_F(TcpKeys, OfMemoryForLocalUseOpensNothing) {
  const Lmr lmr(target.side().ia, target.side().pz, kRoom,
                static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG));
  EXPECT_EQ(lmr.rmr_context(), 0u);
  MpaPeer peer(target.port());
  const Ep ep = meet(peer);
  write(peer, lmr.context(), address_of(lmr), 8);
  expect_terminate(peer, rdmap_error::kAccessRights);
  target.expect_end(ep);
  target.expect_unharmed();
}

// Guesses end the connection they are made on, each; the keys are those of a server that has been running for a while.
TEST_F(TcpKeys, AreNotFoundByTryingTheNeighbours) {
  const std::uint32_t known = target.for_all().rmr_context();
  for (const std::uint32_t step : {1u, 1u << 19, 1u << 20, 1u << 21, 0x80000000u}) {
    for (const std::uint32_t key : {known + step, known - step}) {
      MpaPeer peer(target.port());
      const Ep ep = meet(peer);
      write(peer, key, address_of(target.for_all()), 1);
      expect_terminate(peer, ddp_error::kInvalidStag);
      target.expect_end(ep);
    }
  }
  EXPECT_TRUE(target.memory_is_untouched());
  target.expect_unharmed();
}

}  // namespace
}  // namespace anydat::test
