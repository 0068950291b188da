// SPDX-License-Identifier: BSD-3-Clause
// What a server of another kind may send before the active side has heard what it is (RFC 6581, section 8): it has
// accepted, and need not wait for anything.
#include <gtest/gtest.h>

#include <optional>

#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

class TcpGreeting : public TcpTest {
 protected:
  // The server accepts, and does not answer the Read by which the active side finds out whom it has reached.
  std::optional<MpaPeer> accept_silently(const Ep& ep) {
    require(dat_ep_connect(ep.get(), loopback(), server.port(), DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    std::optional<MpaPeer> peer = server.accept();
    if (!peer || !peer->hear_request()) throw std::runtime_error("nobody has called");
    peer->send(MpaPeer::answer({.revision = 2, .enhanced = Enhanced{.ird = 4, .ord = 1}}));
    return peer;
  }
  DAT_EVENT_NUMBER next_event() {
    const std::optional<DAT_EVENT> event = wait_event(target.side().connect.get(), 3 * patience());
    return event ? event->event_number : DAT_EVENT_NUMBER{};
  }

  MpaListener server;
};

TEST_F(TcpGreeting, AMessageBeforeItIsDelivered) {
  const Ep ep(target.side(), target.srq());
  std::optional<MpaPeer> peer = accept_silently(ep);
  peer->send_message(hex("'early'"));
  EXPECT_EQ(next_event(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(target.expect_message(ep), 5u);
  peer->send_message(hex("'and on time'"));
  EXPECT_EQ(target.expect_message(ep), 11u);
  peer->stop_sending();
  EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_DISCONNECTED);
  target.expect_unharmed();
}

// EP-CONN-6; RFC 5040, section 4.8: it ends what has not begun, whatever it says.
class TcpTerminate : public TcpGreeting {
 protected:
  static void send_terminate(MpaPeer& peer, bool malformed = false) {
    Bytes words(kTerminateBytesMax);
    words.resize(malformed ? 3 : write_terminate({.code = mpa_error::kInsufficientIrd}, words));
    peer.send_terminate(words);
  }
};

TEST_F(TcpTerminate, InItsPlaceIsNoConnection) {
  for (const bool malformed : {false, true}) {
    const Ep ep(target.side(), target.srq());
    std::optional<MpaPeer> peer = accept_silently(ep);
    send_terminate(*peer, malformed);
    EXPECT_EQ(next_event(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
    EXPECT_FALSE(poll_event(target.side().connect.get()));
    target.expect_unharmed();
  }
}

// The same of a caller that has been accepted: EP-DISC-15.
TEST_F(TcpTerminate, InThePlaceOfTheCallersFirstMessageIsNoConnection) {
  MpaPeer peer(target.port());
  peer.greet({.revision = 2, .enhanced = Enhanced{.ird = 1, .ord = 1, .peer_to_peer = true, .rtr_write = true}});
  const Ep ep = target.accept();
  ASSERT_TRUE(peer.hear_answer());
  send_terminate(peer);
  EXPECT_EQ(next_event(), DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
  EXPECT_TRUE(peer.hung_up());
  EXPECT_FALSE(poll_event(target.side().connect.get()));
  target.expect_unharmed();
}

// STAT-18: it ends its connection with the one receive that it has taken of those that others share.
TEST_F(TcpGreeting, AMessageBeforeItThatIsTooLongTakesOneReceive) {
  const Ep ep(target.side(), target.srq());
  std::optional<MpaPeer> peer = accept_silently(ep);
  peer->send_message(repeat(TcpTarget::kBufferBytes + 1));
  expect_terminate(*peer, ddp_error::kMessageTooLong);
  EXPECT_EQ(next_event(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(target.srq().available(), TcpTarget::kBuffers - 1);
  const DAT_DTO_COMPLETION_EVENT_DATA dto = expect_completion(target.side().recv.get(), DAT_DTO_ERR_LOCAL_LENGTH);
  EXPECT_EQ(dto.ep_handle, ep.get());
  target.post(dto.user_cookie);
  target.expect_unharmed();
}

// The memory of its receive goes while it arrives (LMR-FREE-8).
TEST_F(TcpGreeting, AMessageBeforeItWhoseBufferIsFreedEndsItsConnection) {
  const Ep ep(target.side());
  Lmr buffer(target.side().ia, target.side().pz, 256);
  DAT_LMR_TRIPLET segment = buffer.triplet();
  require(dat_ep_post_recv(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  std::optional<MpaPeer> peer = accept_silently(ep);
  const Bytes whole = peer->frame(MpaPeer::segment(send_header(), repeat(200, 0xee)));
  peer->send(std::span(whole).first(100));
  ASSERT_TRUE(eventually([&] { return buffer.bytes()[0] == std::byte{0xee}; }));
  buffer.reset();
  peer->send(std::span(whole).subspan(100));
  EXPECT_EQ(next_event(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(target.expect_end(ep), DAT_CONNECTION_EVENT_BROKEN);
  expect_completion(target.side().recv.get(), DAT_DTO_ERR_LOCAL_PROTECTION);
  target.expect_unharmed();
}

}  // namespace
}  // namespace anydat::test
