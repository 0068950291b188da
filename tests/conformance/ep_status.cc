// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_get_status: section 3.10 of the rules. Its state in every state is in ep_state_table.cc.
#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

#include "ep_fixture.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

struct Idle {
  DAT_BOOLEAN recv;
  DAT_BOOLEAN request;
  bool operator==(const Idle&) const = default;
};

Idle idle(const Ep& ep) {
  Idle result{};
  require(dat_ep_get_status(ep.get(), nullptr, &result.recv, &result.request), "dat_ep_get_status");
  return result;
}

class EpStatus : public EpTest {};

TEST_P(EpStatus, AReceiveIsBusyUntilItCompletes) {
  // EP-STATUS-2, EP-STATUS-4
  const Pair pair = make_connected_pair();
  EXPECT_EQ(idle(pair.server), (Idle{DAT_TRUE, DAT_TRUE}));
  post_recv(pair.server, server_buffers, 0, 2);
  EXPECT_EQ(idle(pair.server), (Idle{DAT_FALSE, DAT_TRUE}));
  post_send(pair.client, client_buffers, 0);
  expect_completion(pair.server_evds.recv.get());
  EXPECT_EQ(idle(pair.server), (Idle{DAT_FALSE, DAT_TRUE})) << "one is still posted";
  post_send(pair.client, client_buffers, 1);
  // Completed, not reaped.
  EXPECT_TRUE(eventually([&] { return idle(pair.server) == Idle{DAT_TRUE, DAT_TRUE}; }));
  expect_completion(pair.server_evds.recv.get());
}

TEST_P(EpStatus, ARequestIsBusyUntilItCompletes) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // EP-STATUS-3, EP-STATUS-4
  const Pair pair = make_connected_pair();
  const Lmr large(client.ia, client.pz, kLarge);
  const Lmr sink(server.ia, server.pz, kLarge);
  post_large_send(pair.client, large, 1);
  EXPECT_EQ(idle(pair.client), (Idle{DAT_TRUE, DAT_FALSE}));
  DAT_LMR_TRIPLET segment = sink.triplet();
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &segment, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_TRUE(eventually([&] { return idle(pair.client) == Idle{DAT_TRUE, DAT_TRUE}; }));
  expect_completion(pair.client_evds.request.get());  // it was there, unreaped
}

TEST_P(EpStatus, BuffersOnASharedQueueMakeNobodyBusy) {
  // EP-STATUS-5
  const Srq srq(server.ia, server.pz, 4);
  server_buffers.post(srq, 0, 3);
  const Connection connection = connect_pair(server, srq, client);
  EXPECT_EQ(idle(connection.server), (Idle{DAT_TRUE, DAT_TRUE}));
}

TEST_P(EpStatus, CanBeAskedWhileOthersPost) {
  // EP-STATUS-6, MT-1
  const Pair pair = make_connected_pair();
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) {
      (void)idle(pair.server);
      (void)idle(pair.client);
    }
  });
  for (int i = 0; i < 200; ++i) {
    post_recv(pair.server, server_buffers, 0);
    post_send(pair.client, client_buffers, 0);
    expect_completion(pair.server_evds.recv.get());
    expect_completion(pair.client_evds.request.get());
  }
  done = true;
  watcher.join();
  EXPECT_EQ(idle(pair.server), (Idle{DAT_TRUE, DAT_TRUE}));
  EXPECT_EQ(idle(pair.client), (Idle{DAT_TRUE, DAT_TRUE}));
}

TEST_P(EpStatus, WhatIsIdleHasItsEventsQueued) {
  // EP-STATUS-2, EP-STATUS-3: another thread takes the messages in, and may be stopped anywhere.
  const Pair pair = make_connected_pair();
  const std::jthread progress([&](std::stop_token over) {
    DAT_EVENT event;
    while (!over.stop_requested()) (void)dat_evd_dequeue(pair.server_evds.connect.get(), &event);
  });
  const auto end = std::chrono::steady_clock::now() + 4 * patience();
  for (int i = 0; i < 1000; ++i) {
    post_recv(pair.server, server_buffers, 0);
    post_send(pair.client, client_buffers, 0);
    DAT_EVENT event;
    while (idle(pair.server).recv != DAT_TRUE) ASSERT_LT(std::chrono::steady_clock::now(), end);
    ASSERT_THAT(dat_evd_dequeue(pair.server_evds.recv.get(), &event), Succeeds()) << "at message " << i;
    while (idle(pair.client).request != DAT_TRUE) ASSERT_LT(std::chrono::steady_clock::now(), end);
    ASSERT_THAT(dat_evd_dequeue(pair.client_evds.request.get(), &event), Succeeds()) << "at message " << i;
  }
}

TEST_P(EpStatus, AnswersOnlyWhatIsAsked) {
  // EP-STATUS-7, GEN-2
  const Ep ep(server);
  DAT_EP_STATE state = DAT_EP_STATE_CONNECTED;
  DAT_BOOLEAN busy = DAT_FALSE;
  EXPECT_THAT(dat_ep_get_status(ep.get(), nullptr, nullptr, nullptr), Succeeds());
  EXPECT_THAT(dat_ep_get_status(ep.get(), &state, nullptr, nullptr), Succeeds());
  EXPECT_EQ(state, DAT_EP_STATE_UNCONNECTED);
  EXPECT_THAT(dat_ep_get_status(ep.get(), nullptr, &busy, nullptr), Succeeds());
  EXPECT_EQ(busy, DAT_TRUE);
  busy = DAT_FALSE;
  EXPECT_THAT(dat_ep_get_status(ep.get(), nullptr, nullptr, &busy), Succeeds());
  EXPECT_EQ(busy, DAT_TRUE);
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.pz.get()}) {
    const DAT_RETURN rc = dat_ep_get_status(bad, &state, nullptr, nullptr);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
  }
}

TEST_P(EpStatus, AfterTheEndBothAreIdle) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // EP-STATUS-8
  const Pair pair = make_connected_pair();
  const Lmr large(client.ia, client.pz, kLarge);
  post_recv(pair.client, client_buffers, 0, 5);
  post_large_send(pair.client, large, 1);
  EXPECT_EQ(idle(pair.client), (Idle{DAT_FALSE, DAT_FALSE}));
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_EQ(idle(pair.client), (Idle{DAT_TRUE, DAT_TRUE}));
  expect_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_EQ(idle(pair.server), (Idle{DAT_TRUE, DAT_TRUE}));
}

ANYDAT_OVER_ALL_WIRES(EpStatus);

}  // namespace
}  // namespace anydat::test
