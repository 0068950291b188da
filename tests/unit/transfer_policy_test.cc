// SPDX-License-Identifier: BSD-3-Clause
// Which way bytes take between the memory of two processes.
#include "nic/soft/wire/shm/transfer_policy.h"

#include <gtest/gtest.h>

#include <array>

namespace anydat::test {
namespace {

using namespace nic::soft::shm;

// Whether the buffer can be offered to the sender is found out only where it matters: it costs, and what has been
// offered would have to be taken back.
struct Offers {
  bool possible;
  int asked = 0;
  bool operator()() {
    ++asked;
    return possible;
  }
};

TEST(TransferPolicy, PullsAndPushesTurnAndTurnAbout) {
  std::array<std::size_t, 3> of{};
  for (int i = 0; i < 7; ++i) {
    Offers offers{true};
    const std::size_t pulled = of[std::size_t(MessageWay::pull)];
    const std::size_t pushed = of[std::size_t(MessageWay::push)];
    ++of[std::size_t(message_way({true, true, pulled, pushed}, offers))];
  }
  EXPECT_EQ(of[std::size_t(MessageWay::pull)], 4u);
  EXPECT_EQ(of[std::size_t(MessageWay::push)], 3u);
  EXPECT_EQ(of[std::size_t(MessageWay::pieces)], 0u);
}

TEST(TransferPolicy, ALoneMessageIsPulledAndItsBufferIsNotOffered) {
  Offers offers{true};
  EXPECT_EQ(message_way({true, true, 0, 0}, offers), MessageWay::pull);
  EXPECT_EQ(offers.asked, 0);
}

TEST(TransferPolicy, WhatCannotBePushedIsPulledBehindTheOthers) {
  Offers offers{false};
  EXPECT_EQ(message_way({true, true, 1, 0}, offers), MessageWay::pull);
  EXPECT_EQ(offers.asked, 1);
  EXPECT_EQ(message_way({true, false, 1, 0}, offers), MessageWay::pull);
  EXPECT_EQ(offers.asked, 1);
}

TEST(TransferPolicy, WhatCannotBePulledIsPushedOrComesInPieces) {
  Offers offers{true};
  EXPECT_EQ(message_way({false, true, 0, 5}, offers), MessageWay::push);
  offers.possible = false;
  EXPECT_EQ(message_way({false, true, 0, 5}, offers), MessageWay::pieces);
  EXPECT_EQ(message_way({false, false, 0, 0}, offers), MessageWay::pieces);
  EXPECT_EQ(offers.asked, 2);
}

TEST(TransferPolicy, RdmaIsThePeersWhereTheKernelForbidsTheCopyOrItHasBegun) {
  static_assert(rdma_way({.here = true, .reachable = false, .begun_by_peer = true}) == RdmaWay::here);
  static_assert(rdma_way({.here = false, .reachable = true, .begun_by_peer = false}) == RdmaWay::across);
  static_assert(rdma_way({.here = false, .reachable = true, .begun_by_peer = true}) == RdmaWay::by_peer);
  static_assert(rdma_way({.here = false, .reachable = false, .begun_by_peer = false}) == RdmaWay::by_peer);
}

}  // namespace
}  // namespace anydat::test
