// SPDX-License-Identifier: BSD-3-Clause
// Setting a connection up with a host that does not keep to RFC 5044 and RFC 6581: it is turned away, or given up when
// it does not go on; the program hears of no request, and no other connection notices.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <memory>
#include <vector>

#include "wire/mpa_peer.h"
#include "wire/tcp_target.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

const Bytes kRequestKey = hex("'MPA ID Req Frame'");

class TcpSetUp : public testing::Test {
 protected:
  // A peer that begins like this is hung up on.
  void expect_turned_away(const Bytes& beginning) {
    MpaPeer peer(target.port());
    peer.send(beginning);
    EXPECT_TRUE(peer.hung_up());
    target.expect_no_request();
    target.expect_unharmed();
  }

  TcpTarget target;
};

TEST_F(TcpSetUp, AGoodRequestIsAccepted) {
  MpaPeer peer(target.port());
  peer.greet({.private_data = hex("'hello'")});
  const Ep ep = target.accept();
  target.expect_established(ep);
  const auto answer = peer.hear_answer();
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->frame.reply);
  EXPECT_FALSE(answer->frame.rejected);
  EXPECT_FALSE(answer->frame.markers);
  peer.send_message(hex("'first'"));
  EXPECT_EQ(target.expect_message(ep), 5u);
  peer.stop_sending();
  target.expect_end(ep);
  target.expect_unharmed();
}

// CR-HO-1: the request is there with the address that it came from, whatever has become of the peer.
TEST_F(TcpSetUp, ARequestIsHandedOffAsItWasThoughItsPeerHasGone) {
  const Psp elsewhere(target.side().ia, target.side().requests);
  MpaPeer peer(target.port());
  peer.greet({.private_data = hex("'hello'")});
  const DAT_EVENT request = expect_event(target.side().requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  peer.reset();
  require(dat_cr_handoff(request.event_data.cr_arrival_event_data.cr_handle, elsewhere.qualifier()), "dat_cr_handoff");
  const DAT_EVENT again = expect_event(target.side().requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  EXPECT_EQ(again.event_data.cr_arrival_event_data.conn_qual, elsewhere.qualifier());
  const DAT_CR_HANDLE cr = again.event_data.cr_arrival_event_data.cr_handle;
  DAT_CR_PARAM param{};
  require(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
  ASSERT_TRUE(param.remote_ia_address_ptr);
  const auto& remote = *reinterpret_cast<const sockaddr_in*>(param.remote_ia_address_ptr);
  EXPECT_EQ(remote.sin_family, AF_INET);
  EXPECT_EQ(remote.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(param.private_data_size, 5);
  require(dat_cr_reject(cr), "dat_cr_reject");
  target.expect_unharmed();
}

// MPA leaves room for 512 bytes, and programs expect no more than max_private_data_size (ATTR-1).
TEST_F(TcpSetUp, TheProgramSeesNoMorePrivateDataThanItWasTold) {
  DAT_PROVIDER_ATTR attr{};
  require(dat_ia_query(target.side().ia.get(), nullptr, 0, nullptr, DAT_PROVIDER_FIELD_ALL, &attr), "dat_ia_query");
  ASSERT_EQ(attr.max_private_data_size, 256);
  MpaPeer peer(target.port());
  peer.greet({.private_data = repeat(512, 7)});
  const DAT_EVENT request = expect_event(target.side().requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  const DAT_CR_HANDLE cr = request.event_data.cr_arrival_event_data.cr_handle;
  DAT_CR_PARAM param{};
  require(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
  EXPECT_EQ(param.private_data_size, attr.max_private_data_size);
  require(dat_cr_reject(cr), "dat_cr_reject");
}

TEST_F(TcpSetUp, AnotherProtocolIsTurnedAway) {
  expect_turned_away(hex("'GET / HTTP/1.1' 0d 0a 0d 0a"));
  for (const std::size_t at : {0u, 1u, 7u, 15u}) {
    Bytes wrong(kRequestKey.begin(), kRequestKey.begin() + static_cast<std::ptrdiff_t>(at + 1));
    wrong[at] ^= std::byte{1};
    expect_turned_away(wrong);
  }
}

TEST_F(TcpSetUp, AReplyIsNoRequest) {
  expect_turned_away(hex("'MPA ID Rep Frame' 00 01 00 00"));
}

TEST_F(TcpSetUp, RevisionZeroIsTurnedAway) {
  expect_turned_away(kRequestKey + hex("00 00"));
}

TEST_F(TcpSetUp, MorePrivateDataThanTheStandardAllowsIsTurnedAwayBeforeItComes) {
  expect_turned_away(kRequestKey + hex("00 01 02 01"));
  expect_turned_away(kRequestKey + hex("00 01 ff ff"));
}

TEST_F(TcpSetUp, EnhancedDataThatHaveNoRoomAreTurnedAway) {
  expect_turned_away(kRequestKey + hex("10 02 00 02"));
}

// RFC 5044, section 7.1: who needs markers that are not to be had is refused.
TEST_F(TcpSetUp, WhoeverNeedsMarkersIsRejected) {
  MpaPeer peer(target.port());
  peer.greet({.markers = true});
  const auto answer = peer.hear_answer();
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->frame.rejected);
  EXPECT_TRUE(peer.hung_up());
  target.expect_no_request();
  target.expect_unharmed();
}

TEST_F(TcpSetUp, AHigherRevisionIsAnsweredWithOurs) {
  MpaPeer peer(target.port());
  peer.greet({.revision = 7});
  const Ep ep = target.accept();
  const auto answer = peer.hear_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->frame.revision, 2);
  peer.reset();
  // Whether it was established before that is a matter of time.
  while (const auto event = wait_event(target.side().connect.get())) {
    if (event->event_number != DAT_CONNECTION_EVENT_ESTABLISHED) break;
  }
  target.expect_unharmed();
}

TEST_F(TcpSetUp, ARequestMayComeByteByByte) {
  MpaPeer peer(target.port());
  const Bytes bytes =
      MpaPeer::request({.revision = 2, .enhanced = Enhanced{.ird = 1, .ord = 1}, .private_data = hex("'x'")});
  for (const std::byte byte : bytes) peer.send(Bytes{byte});
  const Ep ep = target.accept();
  target.expect_established(ep);
  ASSERT_TRUE(peer.hear_answer());
  peer.stop_sending();
  target.expect_end(ep);
}

TEST_F(TcpSetUp, ARequestThatIsCutOffIsNoRequest) {
  const Bytes whole = MpaPeer::request({.revision = 2, .enhanced = Enhanced{}, .private_data = hex("'private'")});
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    MpaPeer peer(target.port());
    peer.send(std::span(whole).first(cut));
    if (cut % 2 == 0) {
      peer.stop_sending();
      EXPECT_TRUE(peer.hung_up()) << cut;
    } else {
      peer.reset();
    }
  }
  target.expect_no_request();
  target.expect_unharmed();
}

// RFC 5042, section 6: set-ups that never go on are given up, and hold up no other set-up meanwhile.
TEST_F(TcpSetUp, WhoeverNeverGoesOnIsGivenUp) {
  std::vector<std::unique_ptr<MpaPeer>> silent;
  for (std::size_t i = 0; i < 100; ++i) {
    silent.push_back(std::make_unique<MpaPeer>(target.port()));
    silent.back()->send(std::span(kRequestKey).first(i % kRequestKey.size()));
  }
  target.expect_unharmed();
  {
    MpaPeer peer(target.port());
    peer.greet();
    const Ep ep = target.accept();
    target.expect_established(ep);
    peer.stop_sending();
    target.expect_end(ep);
  }
  for (const auto& peer : silent) EXPECT_TRUE(peer->hung_up());
  target.expect_no_request();
  target.expect_unharmed();
}

// A peer that has promised a first message and lets the program wait for it.
TEST_F(TcpSetUp, AFirstMessageThatNeverComesEndsTheSetUp) {
  MpaPeer peer(target.port());
  peer.greet({.revision = 2, .enhanced = Enhanced{.ird = 1, .ord = 1, .peer_to_peer = true, .rtr_write = true}});
  const Ep ep = target.accept();
  ASSERT_TRUE(peer.hear_answer());
  const auto event = wait_event(target.side().connect.get(), 4 * patience());
  ASSERT_TRUE(event);
  EXPECT_EQ(event->event_number, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
  EXPECT_TRUE(peer.hung_up());
  target.expect_unharmed();
}

}  // namespace
}  // namespace anydat::test
