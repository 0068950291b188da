// SPDX-License-Identifier: BSD-3-Clause
// A server process is killed at each step of its connections' life. Every client hears of it, and a new server can be
// reached: CONN-SEQ-15.
#include <fmt/format.h>

#include <deque>
#include <optional>

#include "footprint.h"
#include "kill_support.h"
#include "payload.h"

namespace anydat::test {
namespace {

constexpr int kBuffers = 32;
constexpr std::size_t kSmall = 100;
constexpr std::size_t kLarge = 64 * 1024;
constexpr std::size_t kHuge = 32u << 20;
constexpr std::uint64_t kMine = 1000;  // seeds; the other clients have 1, 2, ...

class KilledServer : public testing::TestWithParam<Company> {
 protected:
  void SetUp() override {
    server_.emplace(wire(), 0);
    side_.emplace(wire());
    sent_.emplace(side_->ia, side_->pz, kLarge);
    received_.emplace(side_->ia, side_->pz, kLarge);
    DAT_EP_ATTR attr = default_ep_attr();
    attr.max_message_size = kHuge;
    ep_.emplace(*side_, attr);
    before_ = Footprint::here();
  }

  void TearDown() override {
    for (Peer& other : others_) {
      EXPECT_THAT(other.connection_event(), testing::AnyOf("BROKEN", "DISCONNECTED"));
      other.finish();
    }
    others_.clear();
    server_.reset();
    EXPECT_EQ(ep_->state(), DAT_EP_STATE_DISCONNECTED);
    EXPECT_FALSE(poll_event(side_->connect.get())) << "more than one end (INV-4)";
    drain(side_->recv.get());
    drain(side_->request.get());
    require(dat_ep_reset(ep_->get()), "dat_ep_reset");  // CONN-SEQ-16
    before_.descriptors -= 1;                           // the line to the server that was killed
    expect_back_to(before_);
    EXPECT_EQ(sockets_of(qualifier_), 0);
    EXPECT_EQ(files_left(), 0);
    expect_next_works();
  }

  const Wire& wire() const { return GetParam().wire; }
  Peer& server() { return *server_; }
  DAT_EVD_HANDLE events() { return side_->connect.get(); }

  // With the other clients, if there are any, connected.
  void start_server(int buffers = kBuffers, std::size_t bytes = kLarge) {
    server().serve(buffers, bytes);
    qualifier_ = server().listen();
    for (int i = 1; i <= GetParam().others; ++i) {
      Peer& other = others_.emplace_back(wire(), static_cast<std::uint64_t>(i));
      other.connect(qualifier_);
      server().accept(static_cast<std::uint64_t>(i));
      ASSERT_EQ(server().connection_event(), "ESTABLISHED");
      ASSERT_EQ(other.connection_event(), "ESTABLISHED");
      other.send(3, kSmall);
      server().receive(3);
    }
  }

  void ask(DAT_CONN_QUAL qualifier) {
    require(dat_ep_connect(ep_->get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
  }
  void connect(Peer& to) {
    ask(qualifier_);
    to.accept(kMine);
    expect_event(events(), DAT_CONNECTION_EVENT_ESTABLISHED);
    ASSERT_EQ(to.connection_event(), "ESTABLISHED");
  }

  // Another one, after the end of the connection to the first.
  void restart_server(int buffers, std::size_t bytes) {
    require(dat_ep_reset(ep_->get()), "dat_ep_reset");
    server_.emplace(wire(), 0);
    server().serve(buffers, bytes);
    qualifier_ = server().listen();
  }

  void send(int count, std::size_t bytes) {
    for (int i = 0; i < count; ++i) {
      const std::size_t offset = static_cast<std::size_t>(i) * bytes;
      fill_message(sent_->bytes().subspan(offset, bytes), kMine, static_cast<std::uint64_t>(i));
      DAT_LMR_TRIPLET segment = sent_->triplet(offset, bytes);
      DAT_DTO_COOKIE cookie{};
      cookie.as_64 = static_cast<DAT_UINT64>(i);
      require(dat_ep_post_send(ep_->get(), 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    }
  }
  void post_receives(int count) {
    for (int i = 0; i < count; ++i) {
      DAT_LMR_TRIPLET segment = received_->triplet(static_cast<std::size_t>(i) * kSmall, kSmall);
      require(dat_ep_post_recv(ep_->get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    }
  }

  void expect_next_works() {
    Peer next(wire(), 0);
    next.serve(kBuffers, kLarge);
    qualifier_ = next.listen();
    connect(next);
    send(3, kSmall);
    next.receive(3);
    EXPECT_EQ(reap_sends(side_->request.get(), 3), 3);
    next.finish();
    expect_event(events(), DAT_CONNECTION_EVENT_DISCONNECTED);
  }

  std::optional<Peer> server_;
  DAT_CONN_QUAL qualifier_ = 0;
  std::deque<Peer> others_;
  std::optional<Side> side_;
  std::optional<Lmr> sent_;
  std::optional<Lmr> received_;
  std::optional<Ep> ep_;
  Footprint before_;
};

TEST_P(KilledServer, BeforeAnybodyAsks) {
  start_server();
  server().kill();
  ask(qualifier_);  // CONN-SEQ-5
  expect_event(events(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

TEST_P(KilledServer, BeforeItLooksAtTheClient) {
  start_server();
  server().stop();
  ask(qualifier_);
  EXPECT_THAT(kill_and_hear(server(), events()), IsEvent(DAT_CONNECTION_EVENT_NON_PEER_REJECTED));
}

TEST_P(KilledServer, AtAnyMomentOfConnecting) {
  start_server();
  ask(qualifier_);
  EXPECT_THAT(kill_and_hear(server(), events()), IsEvent(DAT_CONNECTION_EVENT_NON_PEER_REJECTED));
}

TEST_P(KilledServer, WhileItHoldsTheRequest) {
  start_server();
  ask(qualifier_);
  server().await_request();
  EXPECT_THAT(kill_and_hear(server(), events()), IsEvent(DAT_CONNECTION_EVENT_NON_PEER_REJECTED));
}

TEST_P(KilledServer, RightAfterItsAccept) {
  start_server();
  ask(qualifier_);
  server().accept(kMine);
  const Heard heard = kill_and_hear(server(), events());
  if (heard.event == DAT_CONNECTION_EVENT_ESTABLISHED) {
    const auto end = wait_event(events());
    ASSERT_TRUE(end);
    EXPECT_THAT((Heard{.event = end->event_number, .after = {}}), IsEndByDeath());
  } else {
    EXPECT_THAT(heard, IsEvent(DAT_CONNECTION_EVENT_NON_PEER_REJECTED));
  }
}

TEST_P(KilledServer, WhenConnected) {
  start_server();
  connect(server());
  EXPECT_THAT(kill_and_hear(server(), events()), IsEndByDeath());
}

TEST_P(KilledServer, WithSmallSendsUnread) {
  start_server();
  connect(server());
  server().stop();
  send(20, kSmall);
  EXPECT_THAT(kill_and_hear(server(), events()), IsEndByDeath());
  reap_sends(side_->request.get(), 20);
}

TEST_P(KilledServer, WithALargeSendUnanswered) {
  start_server();
  connect(server());
  server().stop();
  send(1, kLarge);
  EXPECT_THAT(kill_and_hear(server(), events()), IsEndByDeath());
  EXPECT_EQ(reap_sends(side_->request.get(), 1), 0);
}

TEST_P(KilledServer, WithinALargeSend) {
  sent_.emplace(side_->ia, side_->pz, kHuge);
  start_server(2, kHuge);
  // The kill has to come before the end of the transfer, which is not certain; but it soon does.
  for (int attempt = 0;; ++attempt) {
    connect(server());
    send(1, kHuge);
    server().stop_within_receive();
    EXPECT_THAT(kill_and_hear(server(), events()), IsEndByDeath());
    if (reap_sends(side_->request.get(), 1) == 0) {
      break;
    }
    ASSERT_LT(attempt, 20) << "no kill came within a transfer";
    restart_server(2, kHuge);
  }
}

TEST_P(KilledServer, WithReceivesPosted) {
  start_server();
  connect(server());
  post_receives(8);
  EXPECT_THAT(kill_and_hear(server(), events()), IsEndByDeath());
  expect_completions(side_->recv.get(), 8, DAT_DTO_ERR_FLUSHED);
}

TEST_P(KilledServer, WhileItSends) {
  start_server();
  connect(server());
  post_receives(8);
  server().send(8, kSmall);
  EXPECT_THAT(kill_and_hear(server(), events()), IsEndByDeath());
  // A post that had returned may still have been on its way. Success first, then flushes; nothing twice.
  int succeeded = 0;
  for (int i = 0; i < 8; ++i) {
    const auto dto = expect_event(side_->recv.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
    if (dto.status == DAT_DTO_SUCCESS) {
      EXPECT_EQ(succeeded++, i);
      const auto place = received_->bytes().subspan(static_cast<std::size_t>(i) * kSmall, kSmall);
      EXPECT_TRUE(is_message(place, kMine, static_cast<std::uint64_t>(i)));
    } else {
      EXPECT_EQ(dto.status, DAT_DTO_ERR_FLUSHED);
    }
  }
  EXPECT_FALSE(poll_event(side_->recv.get()));
}

TEST_P(KilledServer, WhileTheClientDisconnects) {
  start_server();
  connect(server());
  server().stop();
  send(1, kLarge);
  EXPECT_THAT(dat_ep_disconnect(ep_->get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  EXPECT_THAT(kill_and_hear(server(), events()), IsEvent(DAT_CONNECTION_EVENT_DISCONNECTED));
  EXPECT_EQ(reap_sends(side_->request.get(), 1), 0);
}

TEST_P(KilledServer, WhileItDisconnects) {
  start_server();
  connect(server());
  server().disconnect(DAT_CLOSE_GRACEFUL_FLAG);
  EXPECT_THAT(kill_and_hear(server(), events()), IsEndByDeath());
}

// A machine that is busy with other things may delay any one of them.
TEST_P(KilledServer, ItsDeathIsHeardOfWithinASecond) {
  auto fastest = std::chrono::milliseconds::max();
  start_server();
  for (int attempt = 0;; ++attempt) {
    connect(server());
    const Heard heard = kill_and_hear(server(), events());
    EXPECT_THAT(heard, IsEndByDeath());
    fastest = std::min(fastest, heard.after);
    if (attempt == 4 || fastest < std::chrono::seconds(1)) {
      break;
    }
    restart_server(kBuffers, kLarge);
  }
  RecordProperty("heard_after_ms", static_cast<int>(fastest.count()));
  EXPECT_LT(fastest, std::chrono::seconds(1));
}

INSTANTIATE_TEST_SUITE_P(Companies, KilledServer, testing::ValuesIn(all_companies()), company_name);

}  // namespace
}  // namespace anydat::test
