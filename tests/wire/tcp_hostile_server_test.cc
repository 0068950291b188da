// SPDX-License-Identifier: BSD-3-Clause
// A program that connects to a host which does not keep to RFC 5044: the attempt ends, once, and no other connection
// notices.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "base/big_endian.h"
#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

struct Trick {
  std::string name;
  std::function<void(MpaPeer& peer)> play;  // the request has been heard
};
std::ostream& operator<<(std::ostream& out, const Trick& trick) {
  return out << trick.name;
}

Bytes redirection(std::uint32_t port) {
  Bytes data(16);
  base::store_big(data.data(), std::uint64_t{0x616e7964'6174'2d31});
  base::store_big(&data[8], std::uint32_t{2});
  base::store_big(&data[12], port);
  return data;
}

const std::vector<Trick>& tricks() {
  static const std::vector<Trick> all{
      {"HangsUp", [](MpaPeer& peer) { peer.stop_sending(); }},
      {"Resets", [](MpaPeer& peer) { peer.reset(); }},
      {"SpeaksAnotherProtocol", [](MpaPeer& peer) { peer.send(hex("'220 mail.example.org ESMTP' 0d 0a")); }},
      {"AsksBack", [](MpaPeer& peer) { peer.send(MpaPeer::request({})); }},
      {"SaysRevisionZero", [](MpaPeer& peer) { peer.send(hex("'MPA ID Rep Frame' 00 00 00 00")); }},
      {"AnnouncesTooMuchPrivateData", [](MpaPeer& peer) { peer.send(hex("'MPA ID Rep Frame' 00 01 02 01")); }},
      {"LeavesNoRoomForItsEnhancedData",
       [](MpaPeer& peer) { peer.send(hex("'MPA ID Rep Frame' 10 02 00 03 000000")); }},
      {"WantsMarkers", [](MpaPeer& peer) { peer.send(MpaPeer::answer({.markers = true})); }},
      {"Rejects", [](MpaPeer& peer) { peer.send(MpaPeer::answer({.private_data = hex("'no'")}, true)); }},
      {"RejectsWithAWrongRedirection",
       [](MpaPeer& peer) { peer.send(MpaPeer::answer({.private_data = redirection(0x12345)}, true)); }},
      {"RedirectsToNobody", [](MpaPeer& peer) { peer.send(MpaPeer::answer({.private_data = redirection(1)}, true)); }},
      {"StopsInTheMiddleOfItsAnswer",
       [](MpaPeer& peer) {
         peer.send(hex("'MPA ID Rep Frame' 00"));
         peer.stop_sending();
       }},
      {"SkipsMessages",
       [](MpaPeer& peer) {
         peer.send(MpaPeer::answer({}));
         peer.send_message(hex("'x'"), 7);
       }},
      {"AcceptsAndTalksNonsense",
       [](MpaPeer& peer) {
         peer.send(MpaPeer::answer({}));
         peer.send(repeat(1000, 0xff));
         peer.stop_sending();
       }},
  };
  return all;
}

class TcpHostileServer : public TcpTest, public testing::WithParamInterface<Trick> {
 protected:
  void connect(const Ep& ep, DAT_CONN_QUAL port, DAT_TIMEOUT timeout = DAT_TIMEOUT_INFINITE) {
    require(
        dat_ep_connect(ep.get(), loopback(), port, timeout, 0, nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
        "dat_ep_connect");
  }
};

TEST_P(TcpHostileServer, EndsTheAttemptOrTheConnection) {
  MpaListener server;
  const Ep ep(target.side(), target.srq());
  connect(ep, server.port());
  // Some are asked once more, with the older revision.
  std::atomic<bool> over{false};
  std::thread host([&] {
    std::vector<MpaPeer> kept;
    while (!over) {
      std::optional<MpaPeer> peer = server.accept();
      if (!peer || over) return;
      if (peer->hear_request()) GetParam().play(*peer);
      kept.push_back(std::move(*peer));
    }
  });
  std::optional<DAT_EVENT> event = wait_event(target.side().connect.get(), 3 * patience());
  if (event && event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
    event = wait_event(target.side().connect.get(), 3 * patience());
  }
  EXPECT_TRUE(event) << "the attempt has not ended";
  if (event) {
    EXPECT_EQ(event->event_data.connect_event_data.ep_handle, ep.get());
    EXPECT_NE(event->event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
  }
  EXPECT_FALSE(poll_event(target.side().connect.get()));
  over = true;
  MpaPeer wake(server.port());  // ends the thread's wait for another call
  host.join();
  target.expect_unharmed();
}

std::string trick_name(const testing::TestParamInfo<Trick>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Tricks, TcpHostileServer, testing::ValuesIn(tricks()), trick_name);

using TcpHostileServers = TcpHostileServer;

TEST_F(TcpHostileServers, ThatNeverAnswerAreGivenUpInTime) {
  MpaListener server;
  const Ep ep(target.side(), target.srq());
  connect(ep, server.port(), 300'000);
  const std::optional<MpaPeer> silent = server.accept();
  ASSERT_TRUE(silent);
  const auto event = wait_event(target.side().connect.get());
  ASSERT_TRUE(event);
  EXPECT_EQ(event->event_number, DAT_CONNECTION_EVENT_TIMED_OUT);
  target.expect_unharmed();
}

// RFC 6581, section 9: the reply's ORD is what this side would have to take at once.
TEST_F(TcpHostileServers, ThatAskForMoreReadsThanOfferedAreToldSo) {
  MpaListener server;
  const Ep ep(target.side(), target.srq());
  connect(ep, server.port(), 2'000'000);
  std::optional<MpaPeer> peer = server.accept();
  ASSERT_TRUE(peer);
  ASSERT_TRUE(peer->hear_request());
  peer->send(MpaPeer::answer({.revision = 2, .enhanced = Enhanced{.ird = 4, .ord = 10'000}}));
  const auto said = peer->hear_terminate();
  ASSERT_TRUE(said) << "there was no Terminate";
  EXPECT_EQ(said->code, mpa_error::kInsufficientIrd) << describe(said->code);
  const auto event = wait_event(target.side().connect.get());
  ASSERT_TRUE(event);
  EXPECT_NE(event->event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_FALSE(poll_event(target.side().connect.get()));
  target.expect_unharmed();
}

// Each answer names the server itself once more.
TEST_F(TcpHostileServers, ThatSendUsRoundInCirclesAreGivenUpInTime) {
  MpaListener server;
  const Ep ep(target.side(), target.srq());
  connect(ep, server.port(), 500'000);
  std::atomic<bool> over{false};
  std::thread host([&] {
    while (!over) {
      std::optional<MpaPeer> peer = server.accept();
      if (!peer || !peer->hear_request()) continue;
      peer->send(MpaPeer::answer({.private_data = redirection(static_cast<std::uint32_t>(server.port()))}, true));
      peer->stop_sending();
    }
  });
  const auto event = wait_event(target.side().connect.get(), 3 * patience());
  over = true;
  { MpaPeer wake(server.port()); }
  host.join();
  ASSERT_TRUE(event);
  EXPECT_NE(event->event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_FALSE(poll_event(target.side().connect.get()));
  target.expect_unharmed();
}

}  // namespace
}  // namespace anydat::test
