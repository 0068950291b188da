// SPDX-License-Identifier: BSD-3-Clause
// Sends that take a window of their receiver back (dat_ep_post_send_with_invalidate), over each wire.
#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "face20/fixture.h"

namespace anydat::test {
namespace {

constexpr std::size_t kMessageMax = 256 << 10;
constexpr auto kPlain = DAT_COMPLETION_DEFAULT_FLAG;

DAT_DTO_COOKIE tagged(DAT_UINT64 number) {
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = number;
  return cookie;
}

// The server opens windows, and the client gives them back.
class Dat2SendInvalidate : public Dat2 {
 protected:
  void SetUp() override {
    if (server.ia.provider().rmr_scope_supported == DAT_RMR_SCOPE_PZ) {
      connection.emplace(connect_pair(server, client));
      EXPECT_THAT(send(8, 1), HasType(DAT_MODEL_NOT_SUPPORTED));  // D2-SENDINV-5
      GTEST_SKIP() << "the adapter has no windows of one endpoint";
    }
    connection.emplace(connect_pair(server, client));
    for (std::size_t i = 0; i < kMessageMax; ++i) source.bytes()[i] = static_cast<std::byte>(i * 5 + 1);
  }
  Owner<dat_rmr_free> make(bool of_endpoint = true) const {
    DAT_RMR_HANDLE made = DAT_HANDLE_NULL;
    require(of_endpoint ? dat_rmr_create_for_ep(server.pz.get(), &made) : dat_rmr_create(server.pz.get(), &made),
            "dat_rmr_create");
    return Owner<dat_rmr_free>(made);
  }
  DAT_RMR_CONTEXT bind(const Owner<dat_rmr_free>& window, const Ep& by) const {
    const DAT_LMR_TRIPLET part = opened.triplet();
    DAT_RMR_CONTEXT context = 0;
    require(
        dat_rmr_bind(window.get(), opened.get(), &part,
                     static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG),
                     DAT_VA_TYPE_VA, by.get(), {}, kPlain, &context),
        "dat_rmr_bind");
    (void)expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
    return context;
  }
  DAT_RMR_CONTEXT bind(const Owner<dat_rmr_free>& window) const { return bind(window, connection->server); }
  static DAT_RMR_CONTEXT context_of(const Owner<dat_rmr_free>& window) {
    DAT_RMR_PARAM param{};
    require(dat_rmr_query(window.get(), DAT_RMR_FIELD_ALL, &param), "dat_rmr_query");
    return param.rmr_context;
  }
  void receive(DAT_UINT64 number) const { receive(number, sink); }
  void receive(DAT_UINT64 number, const Lmr& into) const {
    DAT_LMR_TRIPLET segment = into.triplet();
    require(dat_ep_post_recv(connection->server.get(), 1, &segment, tagged(number), kPlain), "dat_ep_post_recv");
  }
  DAT_RETURN send(std::size_t bytes, DAT_RMR_CONTEXT context, DAT_COMPLETION_FLAGS flags = kPlain) const {
    DAT_LMR_TRIPLET segment = source.triplet(0, bytes);
    return dat_ep_post_send_with_invalidate(connection->client.get(), 1, &segment, tagged(77), flags, DAT_TRUE,
                                            context);
  }
  DAT_RETURN send_plain(std::size_t bytes) const {
    DAT_LMR_TRIPLET segment = source.triplet(0, bytes);
    return dat_ep_post_send(connection->client.get(), 1, &segment, tagged(78), kPlain);
  }
  DAT_RETURN rdma(DAT_RMR_CONTEXT context, bool reads) const {
    DAT_LMR_TRIPLET local = source.triplet(0, 64);
    DAT_RMR_TRIPLET there = opened.remote(0, 64);
    there.rmr_context = context;
    return reads ? dat_ep_post_rdma_read(connection->client.get(), 1, &local, tagged(79), &there, kPlain)
                 : dat_ep_post_rdma_write(connection->client.get(), 1, &local, tagged(79), &there, kPlain);
  }
  // D2-SENDINV-3, D2-EVT-6.
  void expect_invalidated(DAT_UINT64 number, std::size_t bytes, DAT_RMR_CONTEXT context) {
    expect_invalidated(number, bytes, context, sink);
  }
  void expect_invalidated(DAT_UINT64 number, std::size_t bytes, DAT_RMR_CONTEXT context, Lmr& into) {
    const DAT_DTO_COMPLETION_EVENT_DATA dto = expect_completion(server.recv.get());
    EXPECT_EQ(dto.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
    EXPECT_EQ(dto.rmr_context, context);
    EXPECT_EQ(dto.user_cookie.as_64, number);
    EXPECT_EQ(dto.transfered_length, bytes);
    EXPECT_EQ(std::memcmp(into.bytes().data(), source.bytes().data(), bytes), 0) << bytes;
  }
  void expect_broken() {
    (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  }

  Lmr opened{server.ia, server.pz, 4096};
  Lmr sink{server.ia, server.pz, kMessageMax};
  Lmr source{client.ia, client.pz, kMessageMax};
  std::optional<Connection> connection;
};
INSTANTIATE_TEST_SUITE_P(Wires, Dat2SendInvalidate, testing::ValuesIn(all_wires()), wire_name);

// D2-SENDINV-2, D2-SENDINV-3, D2-RMR-9, D2-EVT-6: of each length, and what comes of the window.
TEST_P(Dat2SendInvalidate, TheWindowIsUnboundWhenItsReceiveCompletes) {
  const Owner<dat_rmr_free> window = make();
  DAT_RMR_CONTEXT last = 0;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4000}, std::size_t{8193}, kMessageMax}) {
    const DAT_RMR_CONTEXT context = bind(window);
    EXPECT_NE(context, last);
    last = context;
    for (const bool reads : {false, true}) {
      ASSERT_THAT(rdma(context, reads), Succeeds());
      (void)expect_completion(client.request.get());
    }
    std::ranges::fill(sink.bytes(), std::byte{0});
    receive(bytes);
    ASSERT_THAT(send(bytes, context), Succeeds());
    const DAT_DTO_COMPLETION_EVENT_DATA sent = expect_completion(client.request.get());
    EXPECT_EQ(sent.operation, DAT_DTO_SEND);
    EXPECT_EQ(sent.user_cookie.as_64, 77u);
    EXPECT_EQ(sent.transfered_length, bytes);
    expect_invalidated(bytes, bytes, context);
    EXPECT_EQ(context_of(window), 0u);
  }
  // Others are as they were.
  receive(1);
  ASSERT_THAT(send_plain(16), Succeeds());
  const DAT_DTO_COMPLETION_EVENT_DATA dto = expect_completion(server.recv.get());
  EXPECT_EQ(dto.operation, DAT_DTO_RECEIVE);
  EXPECT_EQ(dto.rmr_context, 0u);
  (void)expect_completion(client.request.get());
  // Nothing of the last window is left.
  ASSERT_THAT(rdma(last, true), Succeeds());
  (void)expect_completion(client.request.get(), DAT_DTO_ERR_REMOTE_ACCESS);
  expect_broken();
}

// D2-RMR-9, RMR-BIND-15: the region is free again.
TEST_P(Dat2SendInvalidate, TheRegionOfTheWindowIsFreeAgain) {
  const Owner<dat_rmr_free> window = make();
  Lmr region(server.ia, server.pz, 64);
  const DAT_LMR_TRIPLET part = region.triplet();
  DAT_RMR_CONTEXT context = 0;
  require(dat_rmr_bind(window.get(), region.get(), &part, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
                       connection->server.get(), {}, kPlain, &context),
          "dat_rmr_bind");
  (void)expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  EXPECT_THAT(dat_lmr_free(region.get()), HasType(DAT_INVALID_STATE));
  receive(5);
  ASSERT_THAT(send(8, context), Succeeds());
  expect_invalidated(5, 8, context);
  EXPECT_THAT(region.free(), Succeeds());
  (void)expect_completion(client.request.get());
}

// D2-SENDINV-7: a window keeps its place among messages: not before those that were sent before it have been received.
TEST_P(Dat2SendInvalidate, ItKeepsItsPlaceAmongSends) {
  const Owner<dat_rmr_free> first = make(), second = make(), third = make();
  const DAT_RMR_CONTEXT contexts[] = {bind(first), bind(second), bind(third)};
  ASSERT_THAT(send_plain(100), Succeeds());
  ASSERT_THAT(send(200, contexts[0]), Succeeds());
  ASSERT_THAT(send(kMessageMax, contexts[1]), Succeeds());
  ASSERT_THAT(send_plain(300), Succeeds());
  ASSERT_THAT(send(400, contexts[2]), Succeeds());
  receive(1);
  EXPECT_EQ(expect_completion(server.recv.get()).operation, DAT_DTO_RECEIVE);
  EXPECT_EQ(context_of(first), contexts[0]) << "its message has no receive yet";
  receive(2);
  expect_invalidated(2, 200, contexts[0]);
  EXPECT_EQ(context_of(first), 0u);
  EXPECT_EQ(context_of(second), contexts[1]);
  // The last two come while the one before them is being read.
  Lmr fourth(server.ia, server.pz, 300), fifth(server.ia, server.pz, 400);
  receive(3);
  receive(4, fourth);
  receive(5, fifth);
  expect_invalidated(3, kMessageMax, contexts[1]);
  EXPECT_EQ(expect_completion(server.recv.get()).user_cookie.as_64, 4u);
  expect_invalidated(5, 400, contexts[2], fifth);
  EXPECT_EQ(context_of(third), 0u);
  (void)expect_completions(client.request.get(), 5);
}

// D2-SENDINV-7: what was posted before it has been done: Writes are in place, and Reads are kept behind by the fence.
TEST_P(Dat2SendInvalidate, RequestsBeforeItStillReachTheWindow) {
  for (int i = 0; i < 200; ++i) {
    const Owner<dat_rmr_free> window = make();
    const DAT_RMR_CONTEXT context = bind(window);
    receive(6);
    std::ranges::fill(opened.bytes(), std::byte{0});
    ASSERT_THAT(rdma(context, false), Succeeds());
    ASSERT_THAT(rdma(context, true), Succeeds());
    ASSERT_THAT(send(32, context, DAT_COMPLETION_BARRIER_FENCE_FLAG), Succeeds());
    expect_invalidated(6, 32, context);
    EXPECT_EQ(std::memcmp(opened.bytes().data(), source.bytes().data(), 64), 0);
    (void)expect_completions(client.request.get(), 3);
  }
}

// D2-SENDINV-2: the solicited one wakes a waiter that wants just those.
TEST_P(Dat2SendInvalidate, ASolicitedOneIsSolicited) {
  const Owner<dat_rmr_free> window = make();
  DAT_EP_ATTR attr = default_ep_attr();
  attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
  const Evd received(server.ia, DAT_EVD_DTO_FLAG);
  EpEvds evds = evds_of(server);
  evds.recv = received.get();
  Connection other{Ep(server.ia, server.pz, evds, attr), Ep(client)};
  connect_pair(server, other.server.get(), other.client.get());
  std::swap(*connection, other);
  const DAT_RMR_CONTEXT context = bind(window);
  receive(8);
  ASSERT_THAT(send(64, context, DAT_COMPLETION_SOLICITED_WAIT_FLAG), Succeeds());
  const std::optional<DAT_EVENT> event = wait_event(received.get());
  ASSERT_TRUE(event);
  EXPECT_EQ(event->event_data.dto_completion_event_data.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
  EXPECT_EQ(event->event_data.dto_completion_event_data.rmr_context, context);
  std::swap(*connection, other);
}

// D2-SENDINV-4: what must not be invalidated, and stays what it is.
TEST_P(Dat2SendInvalidate, WhatIsNotThePeersOwnIsNotInvalidated) {
  const Owner<dat_rmr_free> of_zone = make(false), of_other = make(), gone = make();
  const Connection other = connect_pair(server, client);
  const DAT_RMR_CONTEXT others = bind(of_other, other.server);
  const DAT_RMR_CONTEXT zones = bind(of_zone, other.server);
  for (int which = 0; which < 5; ++which) {
    const DAT_RMR_CONTEXT once = bind(gone);
    if (which == 4) {
      receive(9);
      ASSERT_THAT(send(8, once), Succeeds());
      expect_invalidated(9, 8, once);
      (void)expect_completion(client.request.get());
    }
    const DAT_RMR_CONTEXT contexts[] = {opened.rmr_context(), zones, others, once ^ 0x1000, once};
    for (const std::size_t bytes : {std::size_t{16}, kMessageMax}) {
      std::ranges::fill(sink.bytes(), std::byte{0x77});
      receive(3);
      ASSERT_THAT(send(bytes, contexts[which]), Succeeds());
      const DAT_EVENT flushed = expect_event(server.recv.get(), DAT_DTO_COMPLETION_EVENT);
      EXPECT_EQ(flushed.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED) << which;
      expect_broken();
      EXPECT_TRUE(std::ranges::all_of(sink.bytes(), [](std::byte byte) { return byte == std::byte{0x77}; }));
      // The Send may have completed already.
      const DAT_EVENT sent = expect_event(client.request.get(), DAT_DTO_COMPLETION_EVENT);
      const DAT_DTO_COMPLETION_STATUS status = sent.event_data.dto_completion_event_data.status;
      EXPECT_TRUE(status == DAT_DTO_SUCCESS || status == DAT_DTO_ERR_REMOTE_ACCESS) << status;
      connection.emplace(connect_pair(server, client));
    }
  }
  EXPECT_EQ(context_of(of_zone), zones);
  EXPECT_EQ(context_of(of_other), others);
  DAT_LMR_TRIPLET local = source.triplet(0, 8);
  for (const DAT_RMR_CONTEXT context : {others, zones}) {
    DAT_RMR_TRIPLET there = opened.remote(0, 8);
    there.rmr_context = context;
    ASSERT_THAT(dat_ep_post_rdma_read(other.client.get(), 1, &local, {}, &there, kPlain), Succeeds());
    (void)expect_completion(client.request.get());
  }
}

// D2-SENDINV-4: the window has been taken back by its own side when the message finds its receive.
// D2-SENDINV-4, DTO-40
TEST_P(Dat2SendInvalidate, WhatComesBeforeOneThatIsRefusedArrives) {
  for (const std::size_t bytes : {std::size_t{16}, kMessageMax}) {
    SCOPED_TRACE(bytes);
    receive(1);
    receive(2);
    ASSERT_THAT(send_plain(kMessageMax), Succeeds());
    ASSERT_THAT(send(bytes, 0x5a5a5a), Succeeds());
    EXPECT_EQ(expect_completion(server.recv.get()).user_cookie.as_64, 1U);
    EXPECT_EQ(expect_completion(server.recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 2U);
    EXPECT_EQ(expect_completion(client.request.get()).user_cookie.as_64, 78U);
    EXPECT_EQ(expect_event(client.request.get(), DAT_DTO_COMPLETION_EVENT)
                  .event_data.dto_completion_event_data.user_cookie.as_64,
              77U);
    expect_broken();
    connection.emplace(connect_pair(server, client));
  }
}

TEST_P(Dat2SendInvalidate, AWindowThatIsGoneWhenItsTurnComesIsNone) {
  for (const std::size_t bytes : {std::size_t{16}, kMessageMax}) {
    Owner<dat_rmr_free> window = make();
    const DAT_RMR_CONTEXT context = bind(window);
    ASSERT_THAT(send_plain(8), Succeeds());
    ASSERT_THAT(send(bytes, context), Succeeds());
    receive(1);
    (void)expect_completion(server.recv.get());
    EXPECT_THAT(window.free(), Succeeds());
    receive(2);
    const DAT_EVENT event = expect_event(server.recv.get(), DAT_DTO_COMPLETION_EVENT);
    EXPECT_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
    expect_broken();
    (void)expect_completion(client.request.get());
    (void)expect_event(client.request.get(), DAT_DTO_COMPLETION_EVENT);
    connection.emplace(connect_pair(server, client));
  }
}

// DTO-20, D2-SENDINV-2: flushed, refused, and counted as any Send.
TEST_P(Dat2SendInvalidate, AllElseIsAsOfASend) {
  DAT_LMR_TRIPLET segment = source.triplet(0, 8);
  const auto post = [&](DAT_EP_HANDLE ep, DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT context) {
    return dat_ep_post_send_with_invalidate(ep, 1, &segment, tagged(1), flags, DAT_TRUE, context);
  };
  const DAT_EP_HANDLE ep = connection->client.get();
  EXPECT_THAT(post(ep, kPlain, 0), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(post(ep, flags_of(0x4000), 1), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(post(client.pz.get(), kPlain, 1), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_ep_post_send_with_invalidate(ep, 65, &segment, {}, kPlain, DAT_TRUE, 1),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ep_post_send_with_invalidate(ep, 1, nullptr, {}, kPlain, DAT_TRUE, 1),
              HasType(DAT_INVALID_PARAMETER));
  const Ep idle(client);
  EXPECT_THAT(post(idle.get(), kPlain, 1), HasType(DAT_INVALID_STATE));
  segment.lmr_context ^= 0x55;
  EXPECT_THAT(post(ep, kPlain, 1), HasType(DAT_PRIVILEGES_VIOLATION));
  segment.lmr_context ^= 0x55;
  EXPECT_FALSE(poll_event(client.request.get()));
  // Suppressed.
  const Owner<dat_rmr_free> window = make();
  const DAT_RMR_CONTEXT context = bind(window);
  receive(4);
  ASSERT_THAT(post(ep, DAT_COMPLETION_SUPPRESS_FLAG, context), Succeeds());
  expect_invalidated(4, 8, context);
  require(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  ASSERT_THAT(post(ep, kPlain, context), Succeeds());
  const DAT_DTO_COMPLETION_EVENT_DATA dto = expect_completion(client.request.get(), DAT_DTO_ERR_FLUSHED);
  EXPECT_EQ(dto.operation, DAT_DTO_SEND);
}

// D2-SENDINV-3: once the receive has completed, memory stays as it is, though the peer goes on writing.
TEST_P(Dat2SendInvalidate, NothingIsWrittenOnceItsReceiveHasCompleted) {
  constexpr std::size_t kLong = 1 << 20;
  const Lmr region(server.ia, server.pz, kLong);
  const Lmr from(client.ia, client.pz, kLong);
  for (int round = 1; round <= 30; ++round) {
    const Owner<dat_rmr_free> window = make();
    const DAT_LMR_TRIPLET part = region.triplet();
    DAT_RMR_TRIPLET there = region.remote(0, kLong);
    require(dat_rmr_bind(window.get(), region.get(), &part, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA,
                         connection->server.get(), {}, kPlain, &there.rmr_context),
            "dat_rmr_bind");
    (void)expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
    std::ranges::fill(from.bytes(), static_cast<std::byte>(round));
    receive(1);
    std::vector<std::byte> seen;
    std::thread receiver([&] {
      const std::optional<DAT_EVENT> event = wait_event(server.recv.get());
      if (event) seen.assign(region.bytes().begin(), region.bytes().end());
    });
    DAT_LMR_TRIPLET local = from.triplet();
    EXPECT_THAT(send(8, there.rmr_context), Succeeds());
    EXPECT_THAT(dat_ep_post_rdma_write(connection->client.get(), 1, &local, {}, &there, kPlain), Succeeds());
    receiver.join();
    (void)expect_completion(client.request.get());
    const DAT_EVENT written = expect_event(client.request.get(), DAT_DTO_COMPLETION_EVENT);
    EXPECT_TRUE(std::ranges::equal(seen, region.bytes())) << round;
    if (written.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS) continue;
    expect_broken();
    connection.emplace(connect_pair(server, client));
  }
}

// A shared queue's buffers are taken as by any message.
TEST_P(Dat2SendInvalidate, ASharedQueueServesIt) {
  const Srq srq(server.ia, server.pz, 8);
  connection.emplace(connect_pair(server, srq, client));
  const Owner<dat_rmr_free> window = make();
  for (const std::size_t bytes : {std::size_t{24}, kMessageMax}) {
    const DAT_RMR_CONTEXT context = bind(window);
    DAT_LMR_TRIPLET segment = sink.triplet();
    require(dat_srq_post_recv(srq.get(), 1, &segment, tagged(bytes)), "dat_srq_post_recv");
    ASSERT_THAT(send(bytes, context), Succeeds());
    expect_invalidated(bytes, bytes, context);
    EXPECT_EQ(srq.outstanding(), 0);
    (void)expect_completion(client.request.get());
  }
  connection.reset();  // it uses the queue
}

}  // namespace
}  // namespace anydat::test
