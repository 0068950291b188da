// SPDX-License-Identifier: BSD-3-Clause
// How many Reads may be under way at once is what the two sides have told each other, whatever the peer is.
#include <gtest/gtest.h>

#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

class TcpDepths : public TcpTest {
 protected:
  static constexpr std::uint32_t kDeepBytes = 32 << 20;  // more than the sockets in between take
};

// RFC 6581, section 6: a peer of another kind may have as many as it was offered, and all of them may be long.
TEST_F(TcpDepths, AreForAnotherKindOfPeerWhatItWasOffered) {
  MpaPeer peer(target.port());
  peer.greet({.revision = 2, .enhanced = Enhanced{.ird = 1, .ord = 10}});
  const Ep ep = target.accept();
  target.expect_established(ep);
  const auto answer = peer.hear_answer();
  ASSERT_TRUE(answer && answer->frame.enhanced);
  const std::uint16_t offered = answer->frame.enhanced->ird;
  EXPECT_GE(offered, TcpTarget::kReadsIn);
  const Lmr large(target.side().ia, target.side().pz, kDeepBytes);
  const ReadRequest read{
      .sink_stag = 1, .bytes = kDeepBytes, .source_stag = large.rmr_context(), .source_offset = address_of(large)};
  for (std::uint16_t i = 0; i < offered; ++i) peer.ask_read(read);
  peer.send_message(hex("'all of them are in'"));
  target.expect_message(ep);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  peer.ask_read(read);
  expect_terminate(peer, ddp_error::kNoBuffer);
  EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN);
  target.expect_unharmed();
}

// RDR-12: what is offered for Reads of length 0 is for no other, where the endpoint takes none.
TEST_F(TcpDepths, OfAnEndpointThatTakesNoneAreForReadsOfNothing) {
  DAT_EP_ATTR none = default_srq_ep_attr();
  none.max_rdma_read_in = 0;
  MpaPeer peer(target.port());
  peer.greet({.revision = 2, .enhanced = Enhanced{.ird = 1, .ord = 1}});
  const DAT_EVENT request = expect_event(target.side().requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  const Ep ep(target.side(), target.srq(), none);
  require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
  target.expect_established(ep);
  ASSERT_TRUE(peer.hear_answer());
  peer.ask_read({.sink_stag = 1});
  const auto answer = peer.hear_segment();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.opcode, Opcode::read_response);
  peer.ask_read({.sink_stag = 1,
                 .bytes = 8,
                 .source_stag = target.for_reading().rmr_context(),
                 .source_offset = address_of(target.for_reading())});
  expect_terminate(peer, ddp_error::kNoBuffer);
  EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN);
  target.expect_unharmed();
}

// RDR-11, EP-CONN-18: between two of our kind unequal depths are agreed upon.
TEST_F(TcpDepths, ThatAreUnequalBreakNoConnectionOfOurs) {
  constexpr std::size_t kLong = 4 << 20;
  Side other(tcp_wire());
  DAT_EP_ATTR little = default_ep_attr();
  little.max_rdma_size = kLong;
  little.max_rdma_read_in = 1;
  DAT_EP_ATTR much = default_ep_attr();
  much.max_rdma_size = kLong;
  much.max_rdma_read_out = 8;
  const Ep server(target.side(), little);
  const Ep client(other, much);
  connect_pair(target.side(), server.get(), client.get());
  const Lmr source(target.side().ia, target.side().pz, kLong);
  const Lmr sink(other.ia, other.pz, kLong);
  DAT_LMR_TRIPLET to = sink.triplet();
  DAT_RMR_TRIPLET from = source.remote(0, kLong);
  const auto read = [&] {
    require(dat_ep_post_rdma_read(client.get(), 1, &to, {}, &from, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_read");
  };
  constexpr int kRounds = 20;
  for (int i = 0; i < kRounds; ++i) read();
  expect_completions(other.request.get(), kRounds);
  // A Write between two of them is answered by a Read of length 0, which comes on top.
  DAT_LMR_TRIPLET word = sink.triplet(0, 8);
  DAT_RMR_TRIPLET there = source.remote(0, 8);
  for (int i = 0; i < kRounds; ++i) {
    read();
    require(dat_ep_post_rdma_write(client.get(), 1, &word, {}, &there, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_write");
  }
  expect_completions(other.request.get(), 2 * kRounds);
  EXPECT_EQ(client.state(), DAT_EP_STATE_CONNECTED);
  for (const Ep* ep : {&server, &client}) dat_ep_disconnect(ep->get(), DAT_CLOSE_ABRUPT_FLAG);
}

}  // namespace
}  // namespace anydat::test
