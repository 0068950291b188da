// SPDX-License-Identifier: BSD-3-Clause
// dat_srq_free: chapter 1.5 of the rules.
#include <algorithm>

#include "srq_states.h"

namespace anydat::test {
namespace {

class SrqFree : public SrqTest {};

TEST_P(SrqFree, SucceedsWithoutEndpointsWhateverIsOnTheQueue) {
  // SRQ-FREE-1
  for (const int posted : {0, 1, 10}) {
    Srq srq(server.ia, server.pz, 10);
    buffers.post(srq, 0, posted);
    EXPECT_THAT(srq.free(), Succeeds()) << posted << " buffers posted";
  }
}

TEST_P(SrqFree, FailsWhileAnEndpointExistsInAnyState) {
  // SRQ-FREE-2, SRQ-FREE-3
  for (const DAT_EP_STATE state : reachable_states(server.ia)) {
    Srq srq(server.ia, server.pz, 10);
    {
      const EpInState ep(server, client, srq, state);
      ASSERT_EQ(ep.get().state(), state);
      const DAT_RETURN rc = srq.free();
      EXPECT_THAT(rc, HasType(DAT_INVALID_STATE)) << "endpoint state " << state;
      EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_SRQ_IN_USE)) << "endpoint state " << state;
      EXPECT_THAT(buffers.try_post(srq, 0), Succeeds()) << "the SRQ stays usable";
      EXPECT_EQ(counts(srq), (Counts{.available = 1, .outstanding = 1}));
    }
    EXPECT_THAT(srq.free(), Succeeds()) << "endpoint state " << state;
  }
}

TEST_P(SrqFree, RefusedFreeLeavesTheConnectionWorking) {
  // SRQ-FREE-2
  Srq srq(server.ia, server.pz, 10);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 2);
  EXPECT_THAT(srq.free(), HasType(DAT_INVALID_STATE));
  EXPECT_TRUE(has_pattern(buffers[static_cast<int>(pass_message(connection, 9).user_cookie.as_64)].first(32), 9));
}

TEST_P(SrqFree, GivesBackBuffersWithoutCompletingThem) {
  // SRQ-FREE-4
  Srq srq(server.ia, server.pz, 10);
  Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 3);
  fill_pattern(buffers.lmr().bytes(), 5);
  Lmr extra(server.ia, server.pz, kBytes);
  DAT_LMR_TRIPLET segment = extra.triplet();
  ASSERT_THAT(dat_srq_post_recv(srq.get(), 1, &segment, cookie(3)), Succeeds());
  connection.server.reset();
  ASSERT_THAT(srq.free(), Succeeds());
  expect_no_event(server.recv.get());
  EXPECT_TRUE(has_pattern(buffers.lmr().bytes(), 5)) << "the memory was written to";
  EXPECT_THAT(extra.free(), Succeeds());
}

TEST_P(SrqFree, LeavesOldCompletionsHarmless) {
  // SRQ-FREE-5
  Srq srq(server.ia, server.pz, 10);
  {
    const Connection connection = connect_pair(server, srq, client);
    buffers.post(srq, 0, 3);
    for (const DAT_UINT64 number : {1, 2}) {
      send_and_wait(connection.client, number);
    }
    expect_completed(srq, connection.server, 1);
  }
  ASSERT_THAT(srq.free(), Succeeds());
  std::vector<DAT_UINT64> cookies;
  while (const auto event = poll_event(server.recv.get())) {
    ASSERT_EQ(event->event_number, DAT_DTO_COMPLETION_EVENT);
    cookies.push_back(event->event_data.dto_completion_event_data.user_cookie.as_64);
  }
  // They may stay or vanish; what stays are the completions of the two messages, each at most once.
  EXPECT_LE(cookies.size(), 2u);
  EXPECT_TRUE(std::is_sorted(cookies.begin(), cookies.end()));
}

TEST_P(SrqFree, ReleasesItsZoneAndSilencesItsWatermark) {
  // SRQ-FREE-6
  Pz zone(server.ia);
  Srq srq(server.ia, zone, 10);
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 0), Succeeds());
  {
    const Buffers zone_buffers(server.ia, zone, 10, kBytes);
    zone_buffers.post(srq, 0, 10);
    ASSERT_THAT(dat_srq_set_lw(srq.get(), 10), Succeeds());
    ASSERT_THAT(srq.free(), Succeeds());
  }
  expect_no_event(server.ia.async_evd());
  EXPECT_THAT(zone.free(), Succeeds());
}

TEST_P(SrqFree, MakesTheHandleInvalid) {
  // SRQ-FREE-7, GEN-4, GEN-5
  Srq srq(server.ia, server.pz, 10);
  const DAT_SRQ_HANDLE stale = srq.get();
  ASSERT_THAT(srq.free(), Succeeds());
  std::vector<Srq> later;
  for (int i = 0; i < 8; ++i) {
    later.emplace_back(server.ia, server.pz, 1);
    ASSERT_NE(later.back().get(), stale) << "a freed handle value was issued again at once";
  }
  DAT_SRQ_PARAM param{};
  DAT_LMR_TRIPLET segment = buffers.triplet(0);
  for (const DAT_SRQ_HANDLE handle : {stale, static_cast<DAT_SRQ_HANDLE>(DAT_HANDLE_NULL)}) {
    EXPECT_THAT(dat_srq_free(handle), HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(dat_srq_query(handle, DAT_SRQ_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(dat_srq_resize(handle, 5), HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(dat_srq_set_lw(handle, 1), HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(dat_srq_post_recv(handle, 1, &segment, cookie(0)), HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(dat_srq_free(handle), HasSubtype(DAT_INVALID_HANDLE_SRQ));
  }
}

TEST_P(SrqFree, OnlyDestroyingTheEndpointDetachesIt) {
  // SRQ-FREE-8
  Srq srq(server.ia, server.pz, 10);
  Connection connection = connect_pair(server, srq, client);
  ASSERT_THAT(dat_ep_disconnect(connection.server.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_THAT(srq.free(), HasType(DAT_INVALID_STATE)) << "disconnected";
  ASSERT_THAT(dat_ep_reset(connection.server.get()), Succeeds());
  EXPECT_THAT(srq.free(), HasType(DAT_INVALID_STATE)) << "reset";
  DAT_EP_PARAM param = connection.server.query();
  param.srq_handle = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_ep_modify(connection.server.get(), DAT_EP_FIELD_SRQ_HANDLE, &param), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(srq.free(), HasType(DAT_INVALID_STATE)) << "after an attempt to modify the SRQ away";
  connection.server.reset();
  EXPECT_THAT(srq.free(), Succeeds());
}

ANYDAT_OVER_ALL_WIRES(SrqFree);

}  // namespace
}  // namespace anydat::test
