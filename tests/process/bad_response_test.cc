// SPDX-License-Identifier: BSD-3-Clause
// A peer whose answer to a Send is none that the format allows: STAT-7, STAT-15, STAT-16.
#include <gtest/gtest.h>

#include "fake_service.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

DAT_DTO_COOKIE numbered(DAT_UINT64 number) {
  DAT_DTO_COOKIE cookie{};
  cookie.as_64 = number;
  return cookie;
}

class BadResponse : public testing::TestWithParam<shm::CellKind> {};

// STAT-7, STAT-15, STAT-16: two Sends wait for the peer to say how they shall cross, and it says what makes no sense.
// The first one carries the news, the second is flushed with the receives, and then the connection is broken.
TEST_P(BadResponse, EndsTheRequestThatItAnswersAndTheConnection) {
  Random random(announced_seed());
  Side side(wire_by_name("shm"));
  FakeService service(random);
  const Ep ep(side);
  const Lmr large(side.ia, side.pz, 100'000);
  DAT_LMR_TRIPLET segment = large.triplet();
  ASSERT_THAT(dat_ep_post_recv(ep.get(), 1, &segment, numbered(9), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_THAT(dat_ep_connect(ep.get(), loopback(), service.qualifier(), DAT_TIMEOUT_INFINITE, 0, nullptr,
                             DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
              Succeeds());
  RawPeer peer = service.accept();
  const std::uint32_t name = asked(peer);
  peer.put(acceptance(name));
  peer.ring();
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  for (const DAT_UINT64 number : {1, 2}) {
    ASSERT_THAT(dat_ep_post_send(ep.get(), 1, &segment, numbered(number), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  }

  peer.put({.kind = GetParam(), .connection = name, .aux = 77});  // no message has that number
  peer.ring();
  const auto first = expect_completion(side.request.get(), DAT_DTO_ERR_BAD_RESPONSE);
  EXPECT_EQ(first.user_cookie.as_64, 1u);
  EXPECT_EQ(expect_completion(side.request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 2u);
  EXPECT_EQ(expect_completion(side.recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 9u);
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
  EXPECT_TRUE(peer.cut());
}

std::string kind_name(const testing::TestParamInfo<shm::CellKind>& info) {
  switch (info.param) {
    case shm::CellKind::clear_to_send:
      return "ClearToSend";
    case shm::CellKind::push:
      return "Push";
    default:
      return "Pulled";
  }
}

INSTANTIATE_TEST_SUITE_P(Answers, BadResponse,
                         testing::Values(shm::CellKind::clear_to_send, shm::CellKind::push, shm::CellKind::pulled),
                         kind_name);

}  // namespace
}  // namespace anydat::test
