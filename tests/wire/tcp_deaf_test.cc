// SPDX-License-Identifier: BSD-3-Clause
// A peer of our kind that does not listen to what it is owed: that messages of its own have been delivered.
#include <gtest/gtest.h>

#include "nic/soft/wire/iwarp/terms.h"
#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

class TcpDeafPeer : public TcpTest {};

// RFC 5042, section 6: one word for all is kept for it, and it has that when it listens.
TEST_F(TcpDeafPeer, IsKeptOneWordForAllItsMessages) {
  constexpr std::uint32_t kMessages = 400;
  constexpr std::size_t kDeafBytes = kConfirmedAbove + 1;
  constexpr std::uint32_t kMuch = 64 << 20;  // more than the sockets in between hold
  Side& side = target.side();
  const Lmr much(side.ia, side.pz, kMuch);
  const Lmr buffer(side.ia, side.pz, kDeafBytes);
  MpaPeer peer(target.port());
  peer.greet({});
  const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  const Ep ep(side);
  require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
  target.expect_established(ep);
  ASSERT_TRUE(peer.hear_answer());
  SegmentHeader hello;
  hello.opcode = Opcode::write;
  hello.last = true;
  hello.stag = kSignalStag;
  hello.tagged_offset = signal_offset(Signal::hello, 0);
  peer.send_segment(hello);
  // The answer to this fills the way back.
  peer.ask_read({.sink_stag = 1, .bytes = kMuch, .source_stag = much.rmr_context(), .source_offset = address_of(much)});
  const Bytes message = repeat(kDeafBytes);
  DAT_LMR_TRIPLET segment = buffer.triplet();
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    require(dat_ep_post_recv(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    peer.send_message(message);
    expect_completion(side.recv.get(), DAT_DTO_SUCCESS);
  }
  std::uint32_t words = 0;
  std::uint64_t last = 0;
  std::uint64_t answered = 0;
  while (last < kMessages || answered < kMuch) {
    const auto said = peer.hear_any_segment();
    ASSERT_TRUE(said) << "the last word was of message " << last;
    if (said->header.opcode == Opcode::read_response) answered += said->payload.size();
    if (said->header.stag != kSignalStag || said->header.tagged_offset >> 32 != std::uint64_t{3}) continue;
    ++words;
    last = said->header.tagged_offset & 0xffff'ffff;
  }
  EXPECT_LT(words, kMessages / 4);
  EXPECT_EQ(last, kMessages);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  peer.reset();
  target.expect_end(ep);
  target.expect_unharmed();
}

}  // namespace
}  // namespace anydat::test
