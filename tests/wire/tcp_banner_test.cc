// SPDX-License-Identifier: BSD-3-Clause
// A program that connects to a port where somebody else listens, who speaks first.
#include <gtest/gtest.h>

#include <optional>

#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

class TcpBanner : public TcpTest {};

// RFC 5044, section 7.1: whoever answers is to answer in that way. Nobody is waited for who never will.
TEST_F(TcpBanner, ThatComesWithTheConnectionEndsTheAttempt) {
  MpaListener server;
  const Ep ep(target.side(), target.srq());
  // Who polls has the library's own thread stay away for a moment, so that the connection and the words are found
  // together.
  for (int look = 0; look < 100; ++look) ASSERT_FALSE(poll_event(target.side().connect.get()));
  require(dat_ep_connect(ep.get(), loopback(), server.port(), DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  std::optional<MpaPeer> peer = server.accept();
  ASSERT_TRUE(peer);
  peer->send(hex("'220 mail.example.org ESMTP' 0d 0a"));
  const auto event = wait_event(target.side().connect.get());
  ASSERT_TRUE(event) << "it waits for an answer that has come";
  EXPECT_EQ(event->event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  target.expect_unharmed();
}

// Nor who has gone already.
TEST_F(TcpBanner, AndAnEndThatComeWithTheConnectionEndTheAttempt) {
  MpaListener server;
  const Ep ep(target.side(), target.srq());
  for (int look = 0; look < 100; ++look) ASSERT_FALSE(poll_event(target.side().connect.get()));
  require(dat_ep_connect(ep.get(), loopback(), server.port(), DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  std::optional<MpaPeer> peer = server.accept();
  ASSERT_TRUE(peer);
  peer->send(hex("'busy' 0d 0a"));
  peer->stop_sending();
  const auto event = wait_event(target.side().connect.get());
  ASSERT_TRUE(event);
  EXPECT_EQ(event->event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  target.expect_unharmed();
}

}  // namespace
}  // namespace anydat::test
