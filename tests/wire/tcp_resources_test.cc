// SPDX-License-Identifier: BSD-3-Clause
// What a host may make us keep, wait for, or do again and again (RFC 5042, section 6: denial of service): there is a
// bound to it, and no other peer notices.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

class TcpResources : public TcpTest {};

// RFC 5042, section 6: messages that no buffer is posted for cost memory only up to a bound, also those of length 0;
// then their sender is held back, and no other peer.
TEST_F(TcpResources, MessagesWithoutBuffersAreHeldBack) {
  for (const std::size_t bytes : {0u, 1u, 200u}) {
    MpaPeer peer(target.port());
    const Ep ep = meet(peer);
    Bytes many;
    std::uint32_t sequence = kFirstSequence;
    constexpr std::size_t kFlood = 24u << 20;  // more than the sockets in between hold of what is not read
    std::size_t sent = 0;
    while (sent < kFlood) {
      many.clear();
      while (many.size() < 64u << 10) {
        const Bytes next = peer.frame(MpaPeer::segment(send_header(sequence++), repeat(bytes)));
        many.insert(many.end(), next.begin(), next.end());
      }
      const std::size_t gone = peer.send_what_goes(many);
      sent += gone;
      if (gone < many.size()) break;
    }
    EXPECT_LT(sent, kFlood) << "messages of " << bytes << " bytes";
    EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
    peer.reset();
    target.expect_end(ep);
    target.expect_unharmed();
  }
}

// A peer that takes nothing of what it is sent makes its own connection stand still.
TEST_F(TcpResources, APeerThatReadsNothingHoldsUpNobody) {
  MpaPeer peer(target.port());
  const Ep ep = meet(peer);
  peer.send_message(hex("'now you may send'"));
  target.expect_message(ep);
  // More than the sockets in between take, in requests that are posted again as they complete.
  const Lmr large(target.side().ia, target.side().pz, 1 << 20);
  DAT_LMR_TRIPLET segment = large.triplet();
  int posted = 0;
  int completed = 0;
  while (posted < 64) {
    require(dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    ++posted;
    while (const auto event = wait_event(target.side().request.get(), std::chrono::milliseconds(5))) ++completed;
  }
  EXPECT_LT(completed, posted);
  target.expect_unharmed();
  require(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  target.expect_end(ep);
  while (completed < posted && wait_event(target.side().request.get())) ++completed;
  EXPECT_EQ(completed, posted);
  target.expect_unharmed();
}

// Short messages are not kept for it without limit either: the endpoint's queue of requests fills, as the standard
// says.
TEST_F(TcpResources, ShortMessagesToAPeerThatReadsNothingFillTheQueue) {
  MpaPeer peer(target.port());
  const Ep ep = meet(peer);
  peer.send_message(hex("'now you may send'"));
  target.expect_message(ep);
  const Lmr memory(target.side().ia, target.side().pz, 4096);
  DAT_LMR_TRIPLET segment = memory.triplet();
  constexpr int kMore = 100'000;  // than all sockets in between take
  int posted = 0;
  DAT_RETURN rc = DAT_SUCCESS;
  while (rc == DAT_SUCCESS && posted < kMore) {
    rc = dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_SUPPRESS_FLAG);
    ++posted;
  }
  EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES));
  target.expect_unharmed();
}

// Answers to Reads that a peer asks for and does not take wait in its own line.
TEST_F(TcpResources, AnswersThatAreNotTakenHoldUpNobody) {
  const Lmr large(target.side().ia, target.side().pz, 32 << 20);
  MpaPeer peer(target.port());
  const Ep ep = meet(peer);
  for (int i = 0; i < TcpTarget::kReadsIn; ++i) {
    peer.ask_read(
        {.sink_stag = 1, .bytes = 32 << 20, .source_stag = large.rmr_context(), .source_offset = address_of(large)});
  }
  target.expect_unharmed();
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  peer.reset();
  target.expect_end(ep);
  target.expect_unharmed();
}

TEST_F(TcpResources, FramesThatMeanNothingCostNothing) {
  MpaPeer peer(target.port());
  const Ep ep = meet(peer);
  SegmentHeader header;
  header.opcode = Opcode::write;
  header.last = true;
  Bytes many;
  for (std::uint32_t i = 0; i < 20000; ++i) {
    header.stag = i % 2 == 0 ? i : 0x414e5944;
    header.tagged_offset = std::uint64_t{i} << 29;
    // What peers of our kind end a connection with, and what they count by, would have a meaning.
    const std::uint64_t signal = header.tagged_offset >> 32;
    if (header.stag == 0x414e5944 && (signal == 2 || signal == 3)) continue;
    const Bytes next = peer.frame(MpaPeer::segment(header));
    many.insert(many.end(), next.begin(), next.end());
  }
  peer.send(many);
  peer.send_message(hex("'still here'"));
  EXPECT_EQ(target.expect_message(ep), 10u);
  peer.stop_sending();
  target.expect_end(ep);
  target.expect_unharmed();
}

TEST_F(TcpResources, ConnectionsThatComeAndGoLeaveNothing) {
  for (int i = 0; i < (built_with_sanitizer() ? 30 : 200); ++i) {
    MpaPeer peer(target.port());
    const Ep ep = meet(peer);
    peer.send_segment(send_header(1, 0, false), repeat(20));  // of a message that never ends
    if (i % 3 == 0) {
      peer.reset();
    } else if (i % 3 == 1) {
      peer.stop_sending();
    } else {
      require(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
    }
    const DAT_EVENT_NUMBER end = target.expect_end(ep);
    // A message that is cut off is no end in order.
    if (i % 3 != 2) {
      EXPECT_EQ(end, DAT_CONNECTION_EVENT_BROKEN);
    }
  }
  target.expect_unharmed();
}

}  // namespace
}  // namespace anydat::test
