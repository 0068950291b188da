// SPDX-License-Identifier: BSD-3-Clause
// Sends that are like the ones before them: what has been found out for those is not believed for longer than it is
// true.
#include <string>

#include "ep_fixture.h"

namespace anydat::test {
namespace {

class SendAgain : public EpTest {
 protected:
  static constexpr int kBefore = 4;  // so that what can be known of their region is

  static DAT_RETURN post(const Ep& ep, DAT_LMR_TRIPLET triplet) {
    return dat_ep_post_send(ep.get(), 1, &triplet, DAT_DTO_COOKIE{.as_64 = 0}, DAT_COMPLETION_DEFAULT_FLAG);
  }
  void send_some(const Pair& pair, const DAT_LMR_TRIPLET& triplet, int first_receive, int count = kBefore) {
    post_recv(pair.server, server_buffers, first_receive, count);
    for (int i = 0; i < count; ++i) ASSERT_THAT(post(pair.client, triplet), Succeeds());
    expect_completions(pair.client_evds.request.get(), count);
    expect_completions(pair.server_evds.recv.get(), count);
  }
};

TEST_P(SendAgain, FromARegionThatIsGoneIsRefused) {
  // LMR-FREE-3, DTO-11
  const Pair pair = make_connected_pair();
  DAT_LMR_TRIPLET triplet{};
  {
    const Lmr gone(client.ia, client.pz, 64);
    triplet = gone.triplet();
    ASSERT_NO_FATAL_FAILURE(send_some(pair, triplet, 0));
  }
  EXPECT_THAT(post(pair.client, triplet), HasType(DAT_PRIVILEGES_VIOLATION));
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
  // The connection is as it was.
  ASSERT_NO_FATAL_FAILURE(send_some(pair, client_buffers.triplet(0), kBefore));
  EXPECT_THAT(post(pair.client, triplet), HasType(DAT_PRIVILEGES_VIOLATION));
}

TEST_P(SendAgain, ReachesToTheEdgesOfItsRegionAndNotBeyond) {
  // DTO-9, DTO-11
  const Pair pair = make_connected_pair();
  const Lmr lmr(client.ia, client.pz, 64);
  ASSERT_NO_FATAL_FAILURE(send_some(pair, lmr.triplet(), 0));
  DAT_LMR_TRIPLET last = lmr.triplet(63, 1), beyond = lmr.triplet(63, 1), before = lmr.triplet(0, 1);
  beyond.segment_length = 2;
  before.virtual_address -= 1;
  DAT_LMR_TRIPLET other_key = lmr.triplet();
  other_key.lmr_context ^= 1;
  DAT_LMR_TRIPLET no_key = lmr.triplet();
  no_key.lmr_context = 0;
  for (const DAT_LMR_TRIPLET& outside : {beyond, before}) {
    EXPECT_THAT(post(pair.client, outside), HasType(DAT_INVALID_PARAMETER));
  }
  for (const DAT_LMR_TRIPLET& unknown : {other_key, no_key}) {
    EXPECT_THAT(post(pair.client, unknown), HasType(DAT_PRIVILEGES_VIOLATION));
  }
  fill_pattern(lmr.bytes(), 7);
  ASSERT_NO_FATAL_FAILURE(send_some(pair, last, kBefore));
  EXPECT_EQ(server_buffers[kBefore][0], lmr.bytes()[63]);
  EXPECT_FALSE(poll_event(pair.server_evds.recv.get())) << "none more has been sent";
}

TEST_P(SendAgain, WhatWasFoundOutForOneRegionIsNotTrueForAnother) {
  // DTO-9. The second one on a region has it looked up, and the next may find what is known of its memory. Which it is
  // for a moment only, so that it takes several attempts.
  constexpr int kUntilLookedUp = 2;
  const Pair pair = make_connected_pair();
  const Lmr one(client.ia, client.pz, 64), other(client.ia, client.pz, 64);
  DAT_LMR_TRIPLET mixed = other.triplet();
  mixed.virtual_address = one.triplet().virtual_address;
  for (int i = 0; i < 50; ++i) {
    ASSERT_NO_FATAL_FAILURE(send_some(pair, one.triplet(), 0));
    ASSERT_NO_FATAL_FAILURE(send_some(pair, other.triplet(), 0, kUntilLookedUp));
    ASSERT_THAT(post(pair.client, mixed), HasType(DAT_INVALID_PARAMETER)) << "at round " << i;
  }
}

TEST_P(SendAgain, EachBringsTheBytesOfItsMoment) {
  // SEND-1: of every length that takes a way of its own, from two regions in turn and from one.
  const Pair pair = make_connected_pair();
  const Lmr one(client.ia, client.pz, kLarge), other(client.ia, client.pz, kLarge);
  const Lmr target(server.ia, server.pz, kLarge);
  DAT_UINT64 seed = 0;
  for (const std::size_t length : {1, 7, 8, 9, 15, 16, 17, 47, 48, 49, 64, 1000, 8192, 8193}) {
    for (int i = 0; i < 6; ++i) {
      SCOPED_TRACE(std::to_string(length) + " bytes, round " + std::to_string(i));
      const Lmr& source = i < 3 || i % 2 == 0 ? one : other;
      fill_pattern(source.bytes().first(length), ++seed);
      DAT_LMR_TRIPLET to = target.triplet();
      ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &to, DAT_DTO_COOKIE{.as_64 = 0}, DAT_COMPLETION_DEFAULT_FLAG),
                  Succeeds());
      ASSERT_THAT(post(pair.client, source.triplet(0, length)), Succeeds());
      expect_completions(pair.client_evds.request.get(), 1);
      const auto received = expect_completions(pair.server_evds.recv.get(), 1);
      EXPECT_EQ(received.front().transfered_length, length);
      EXPECT_TRUE(has_pattern(target.bytes().first(length), seed));
    }
  }
}

TEST_P(SendAgain, LongOnesBetweenShortOnesOfTheirRegion) {
  // SEND-1
  const Pair pair = make_connected_pair();
  const Lmr source(client.ia, client.pz, kLarge), target(server.ia, server.pz, kLarge);
  for (const std::size_t length : {std::size_t{4096}, std::size_t{4097}, kLarge}) {
    SCOPED_TRACE(length);
    ASSERT_NO_FATAL_FAILURE(send_some(pair, source.triplet(0, 64), 0));
    fill_pattern(source.bytes().first(length), length);
    DAT_LMR_TRIPLET to = target.triplet();
    ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &to, DAT_DTO_COOKIE{.as_64 = 0}, DAT_COMPLETION_DEFAULT_FLAG),
                Succeeds());
    ASSERT_THAT(post(pair.client, source.triplet(0, length)), Succeeds());
    expect_completions(pair.client_evds.request.get(), 1);
    EXPECT_EQ(expect_completions(pair.server_evds.recv.get(), 1).front().transfered_length, length);
    EXPECT_TRUE(has_pattern(target.bytes().first(length), length));
  }
}

TEST_P(SendAgain, OfAnEndpointThatIsConnectedAnew) {
  // EP-RESET-1, SEND-5
  Pair pair = make_connected_pair();
  ASSERT_NO_FATAL_FAILURE(send_some(pair, client_buffers.triplet(0), 0));
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_terminal_event(pair.client_evds.connect.get(), pair.client.get());
  expect_terminal_event(pair.server_evds.connect.get(), pair.server.get());
  EXPECT_THAT(post(pair.client, client_buffers.triplet(0)), Succeeds());
  expect_completions(pair.client_evds.request.get(), 1, DAT_DTO_ERR_FLUSHED);
  ASSERT_THAT(dat_ep_reset(pair.client.get()), Succeeds());
  EXPECT_THAT(post(pair.client, client_buffers.triplet(0)), HasType(DAT_INVALID_STATE));
  const Ep peer(server);
  connect_pair(server, peer.get(), pair.client.get());
  post_recv(peer, server_buffers, kBefore, 1);
  EXPECT_THAT(post(pair.client, client_buffers.triplet(0)), Succeeds());
  expect_completions(pair.client_evds.request.get(), 1);
}

ANYDAT_OVER_ALL_WIRES(SendAgain);

}  // namespace
}  // namespace anydat::test
