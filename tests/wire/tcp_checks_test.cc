// SPDX-License-Identifier: BSD-3-Clause
// What a host may not do on an established connection and that takes more than a segment with one thing wrong, for
// which there is tcp_offences_test.cc (RFC 5042).
#include <gtest/gtest.h>

#include "nic/soft/wire/iwarp/terms.h"
#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

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
  const auto said = peer.hear_terminate();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->code, rdmap_error::kAccessRights);
  EXPECT_EQ(said->segment_header, hex("41 41 00000000 00000001 00000001 00000000"));
  ASSERT_EQ(said->read_request.size(), kReadRequestBytes);
  EXPECT_EQ(parse_read_request(said->read_request), request);
  target.expect_end(ep);
}

// RFC 5044, section 4.4: data with a wrong CRC is not delivered.
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
    expect_terminate(peer, mpa_error::kCrc);
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
    const auto said = peer.hear_terminate();
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
    ASSERT_TRUE(peer.hear_terminate()) << "byte " << at;
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
      ASSERT_TRUE(peer.hear_terminate());
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
  expect_terminate(peer, ddp_error::kNoBuffer);
  EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN);
  target.expect_unharmed();
}

TEST_F(TcpChecks, ATerminateInTheMiddleOfAMessageEndsTheConnectionOnce) {
  MpaPeer peer(target.port());
  const Ep ep = meet(peer);
  peer.send_segment(send_header(1, 0, false), repeat(20));
  Bytes words(kTerminateBytesMax);
  words.resize(write_terminate({.code = rdmap_error::kLocalCatastrophic}, words));
  peer.send_terminate(words);
  peer.send_segment(send_header(1, 20), repeat(20));  // too late
  EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_FALSE(peer.hear_terminate());  // which are not answered
  target.expect_unharmed();
}

TEST_F(TcpChecks, TerminatesOfAllKindsEndOneConnection) {
  for (const char* payload : {"", "00", "ff ff ff ff", "ff ff e0 00 ff ff ff", "20 02 00 00", "12 02 00 00",
                              "01 02 e0 00 00 2e 41 41 00000000 00000001 00000001 00000000"}) {
    MpaPeer peer(target.port());
    const Ep ep = meet(peer);
    peer.send_terminate(hex(payload));
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
  EXPECT_TRUE(peer.hear_terminate());
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

}  // namespace
}  // namespace anydat::test
