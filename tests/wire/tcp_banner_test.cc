// SPDX-License-Identifier: BSD-3-Clause
// A program that connects to a port where a server of another protocol listens, which speaks first.
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <utility>

#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

class TcpBanner : public TcpTest {
 protected:
  // Who polls has the library's own thread stay away for a moment, so that the connection and what is said on it are
  // found together.
  MpaPeer answer_call() {
    for (int look = 0; look < 100; ++look) EXPECT_FALSE(poll_event(target.side().connect.get()));
    require(dat_ep_connect(ep_.get(), loopback(), server_.port(), DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    std::optional<MpaPeer> peer = server_.accept();
    if (!peer) throw std::runtime_error("nobody has called");
    return std::move(*peer);
  }
  void expect_no_peer() {
    const auto event = wait_event(target.side().connect.get());
    ASSERT_TRUE(event) << "it waits for an answer that has come";
    EXPECT_EQ(event->event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    target.expect_unharmed();
  }

 private:
  MpaListener server_;
  const Ep ep_{target.side(), target.srq()};
};

// RFC 5044, section 7.1: a peer is to answer in that way. The attempt does not wait for one that never will.
TEST_F(TcpBanner, ThatComesWithTheConnectionEndsTheAttempt) {
  MpaPeer peer = answer_call();
  peer.send(hex("'220 mail.example.org ESMTP' 0d 0a"));
  expect_no_peer();
}

// Nor for one that has gone already.
TEST_F(TcpBanner, AndAnEndThatComeWithTheConnectionEndTheAttempt) {
  MpaPeer peer = answer_call();
  peer.send(hex("'busy' 0d 0a"));
  peer.stop_sending();
  expect_no_peer();
}

}  // namespace
}  // namespace anydat::test
