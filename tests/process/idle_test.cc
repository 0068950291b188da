// SPDX-License-Identifier: BSD-3-Clause
// A process that has nothing to do uses no processor time, whatever it has open.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "footprint.h"
#include "peer.h"
#include "support/dat_fixture.h"
#include "support/waiter.h"

namespace anydat::test {
namespace {

constexpr std::chrono::seconds kInterval{1};

// Over one second, after one second without traffic.
std::chrono::microseconds idle_processor_time() {
  std::this_thread::sleep_for(kInterval);
  const auto before = processor_time();
  std::this_thread::sleep_for(kInterval);
  return processor_time() - before;
}

class Idle : public testing::TestWithParam<Wire> {
 protected:
  void SetUp() override {
    server_.emplace(GetParam(), 0);
    server_->serve(16, 1024);
    side_.emplace(GetParam());
    memory_.emplace(side_->ia, side_->pz, 1024);
    ep_.emplace(*side_);
    require(dat_ep_connect(ep_->get(), loopback(), server_->listen(), DAT_TIMEOUT_INFINITE, 0, nullptr,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    server_->accept(1);
    expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    // So that it is not idle for having never been busy.
    DAT_LMR_TRIPLET segment = memory_->triplet(0, 0);
    require(dat_ep_post_send(ep_->get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    expect_completion(side_->request.get());
    server_->receive(1);
  }

  void expect_little(std::chrono::microseconds used) {
    RecordProperty("used_us", static_cast<int>(used.count()));
    // A sanitizer's own threads and slowness need some.
    EXPECT_LT(used, (built_with_sanitizer() ? 10 : 1) * std::chrono::milliseconds(2));
  }

  std::optional<Peer> server_;
  std::optional<Side> side_;
  std::optional<Lmr> memory_;
  std::optional<Ep> ep_;
};

TEST_P(Idle, WithAConnection) {
  expect_little(idle_processor_time());
  // It was asleep, not dead.
  require(dat_ep_disconnect(ep_->get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_EQ(server_->connection_event(), "ESTABLISHED");
  EXPECT_EQ(server_->connection_event(), "DISCONNECTED");
}

TEST_P(Idle, WithAThreadInEvdWait) {
  DAT_LMR_TRIPLET segment = memory_->triplet();
  require(dat_ep_post_recv(ep_->get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  Waiter waiter(side_->recv.get());
  expect_little(idle_processor_time());
  server_->kill();  // wakes it
  EXPECT_THAT(waiter.result().rc, Succeeds());
}

TEST_P(Idle, WithAStoppedPeer) {
  server_->stop();
  DAT_LMR_TRIPLET segment = memory_->triplet(0, 0);
  for (int i = 0; i < 50; ++i) {
    require(dat_ep_post_send(ep_->get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  }
  expect_little(idle_processor_time());
  server_->resume();
  server_->receive(51);
  expect_completions(side_->request.get(), 50);
}

// More than the two processes can have on their way: what finds no room must wait for it asleep.
TEST_P(Idle, WithAStoppedPeerAndAFullRing) {
  std::vector<Ep> endpoints;
  for (int i = 0; i < 8; ++i) {
    const Ep& ep = endpoints.emplace_back(*side_);
    require(dat_ep_connect(ep.get(), loopback(), server_->listen(), DAT_TIMEOUT_INFINITE, 0, nullptr,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    server_->accept(1);
    expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }
  server_->stop();
  DAT_LMR_TRIPLET segment = memory_->triplet();
  for (const Ep& ep : endpoints) {
    for (int i = 0; i < 64; ++i) {
      require(dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    }
  }
  drain(side_->request.get());
  expect_little(idle_processor_time());
  Waiter waiter(side_->recv.get());
  expect_little(idle_processor_time());
  server_->kill();
  for (std::size_t i = 0; i < endpoints.size() + 1; ++i) {
    expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  }
  // The last endpoint's last message found no room.
  bool flushed = false;
  while (const auto event = poll_event(side_->request.get())) {
    flushed |= event->event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS;
  }
  EXPECT_TRUE(flushed || GetParam().taken_ahead > 0) << "there was room for all";
  EXPECT_THAT(dat_evd_set_unwaitable(side_->recv.get()), Succeeds());
  EXPECT_THAT(waiter.result().rc, HasType(DAT_INVALID_STATE));
}

INSTANTIATE_TEST_SUITE_P(Wires, Idle, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
