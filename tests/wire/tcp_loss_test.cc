// SPDX-License-Identifier: BSD-3-Clause
// A peer that is not there any more, whichever thread of this side hears of it first.
#include <gtest/gtest.h>

#include <optional>

#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

class TcpLoss : public TcpTest {};

// EP-SM-19: a reset is no end in order. The kernel tells of it once: here to the Send that is
// posted before a thread has looked, and the one that reads the socket afterwards finds the end of the stream.
TEST_F(TcpLoss, AResetThatASendHearsOfFirstIsNoEndInOrder) {
  const Lmr memory(target.side().ia, target.side().pz, 8000);
  DAT_LMR_TRIPLET segment = memory.triplet();
  // Now and then the library's own thread is quicker.
  for (int i = 0; i < 20; ++i) {
    MpaPeer peer(target.port());
    const Ep ep = meet(peer);
    peer.send_message(hex("'now you may send'"));
    target.expect_message(ep);
    // Who polls is left alone by that thread for a moment.
    for (int look = 0; look < 100; ++look) ASSERT_FALSE(poll_event(target.side().connect.get()));
    peer.reset();
    require(dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_SUPPRESS_FLAG), "dat_ep_post_send");
    EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN);
    while (poll_event(target.side().request.get())) {
    }
    if (testing::Test::HasFailure()) return;
  }
  target.expect_unharmed();
}

// The other way round: what this side sends behind the end of a peer that has left in order is answered by a reset,
// which is none of the peer's.
TEST_F(TcpLoss, WhatIsSentBehindAnEndInOrderDoesNotMakeItALoss) {
  const Lmr memory(target.side().ia, target.side().pz, 8000);
  DAT_LMR_TRIPLET segment = memory.triplet();
  for (int i = 0; i < 20; ++i) {
    std::optional<MpaPeer> peer(std::in_place, target.port());
    const Ep ep = meet(*peer);
    peer->send_message(hex("'now you may send'"));
    target.expect_message(ep);
    for (int look = 0; look < 100; ++look) ASSERT_FALSE(poll_event(target.side().connect.get()));
    peer = std::nullopt;  // having read all, it ends in order
    for (int send = 0; send < 3; ++send) {
      const DAT_RETURN rc = dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_SUPPRESS_FLAG);
      if (rc != DAT_SUCCESS) break;
    }
    EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_DISCONNECTED);
    while (poll_event(target.side().request.get())) {
    }
    if (testing::Test::HasFailure()) return;
  }
  target.expect_unharmed();
}

}  // namespace
}  // namespace anydat::test
