// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_recv_query: chapter 1.11 of the rules.
#include <atomic>

#include "srq_states.h"
#include "srq_traffic.h"

namespace anydat::test {
namespace {

class SrqRecvQuery : public SrqTest {};
class SrqRecvQueryHolding : public SrqHoldingTest {};

TEST_P(SrqRecvQueryHolding, CountsBuffersTakenAndNotCompleted) {
  // EP-RQ-1, EP-RQ-3
  const Srq srq(server.ia, server.pz, 10);
  const Ep ep(server, srq);
  const StoppedSender sender(server, ep, GetParam(), 2, 4);
  EXPECT_EQ(held(ep).buffers, 0) << "nothing to take yet";
  large.post(srq, 0, 2);  // for the two small messages
  expect_completed(srq, ep, 0);
  EXPECT_EQ(held(ep).buffers, 0) << "completed but unreaped";
  for (DAT_COUNT taken = 1; taken <= 4; ++taken) {
    large.post(srq, 1 + taken, 1);
    EXPECT_TRUE(eventually_held(ep, taken)) << held(ep);
  }
}

TEST_P(SrqRecvQuery, PlainEndpointHoldsWhatIsPostedToIt) {
  // EP-RQ-2, EP-RQ-11, EP-RQ-17
  const Connection connection = connect_pair(server, client);
  for (DAT_COUNT posted = 1; posted <= 3; ++posted) {
    buffers.post(connection.server, posted, 1);
    EXPECT_EQ(held(connection.server), (Held{.buffers = posted, .span = posted}));
  }
  send_and_wait(connection.client, 1);
  EXPECT_TRUE(eventually([&] { return held(connection.server) == Held{.buffers = 2, .span = 2}; }));
  expect_completion(server.recv.get());
  EXPECT_EQ(held(connection.server), (Held{.buffers = 2, .span = 2}));
}

TEST_P(SrqRecvQueryHolding, EveryAllocatedBufferCompletes) {
  // EP-RQ-4, EP-RQ-5
  const Srq srq(server.ia, server.pz, 10);
  const Ep ep(server, srq);
  StoppedSender sender(server, ep, GetParam(), 0, 4);
  large.post(srq, 0, 4);
  ASSERT_TRUE(eventually_held(ep, 4));
  EXPECT_EQ(held(ep).span, 4);
  expect_no_event(server.recv.get());
  sender.resume();
  expect_completions(server.recv.get(), 4);  // as many as the span said, all with success
  EXPECT_EQ(held(ep), (Held{.buffers = 0, .span = 0}));
  expect_no_event(server.recv.get());
}

TEST_P(SrqRecvQueryHolding, SpanIsCountedInMessageSequenceNumbers) {
  // EP-RQ-6, EP-RQ-7, EP-RQ-8, EP-RQ-9, EP-RQ-11
  const Srq srq(server.ia, server.pz, 12);
  const Ep ep(server, srq);
  // Messages 1 to 5 complete; 6 to 9 are on their way.
  const StoppedSender sender(server, ep, GetParam(), 5, 4);
  large.post(srq, 0, 8);
  ASSERT_TRUE(eventually_held(ep, 3)) << held(ep);
  // A provider may allocate for gaps too; without gaps both values are the number of buffers.
  EXPECT_EQ(held(ep).span, 3) << "allocated 6, 7 and 8, completed through 5";
  large.post(srq, 8, 1);
  ASSERT_TRUE(eventually_held(ep, 4));
  EXPECT_EQ(held(ep).span, 4) << "allocated 6 to 9, completed through 5";
}

TEST_P(SrqRecvQuery, SpanIsNeverBelowTheCountUnderLoadFromManyEndpoints) {
  // EP-RQ-9, EP-RQ-10, EP-RQ-11, MT-3
  const Srq srq(server.ia, server.pz, 64);
  SrqTraffic traffic(server, client, srq, {.connections = 64, .buffers = 48, .max_bytes = 16384});
  std::atomic<int> wrong = 0;
  std::atomic<int> seen = 0;
  traffic.run(20, [&] {
    for (const Connection& connection : traffic.connections()) {
      const Held now = held(connection.server);
      wrong += 0 <= now.buffers && now.buffers <= now.span ? 0 : 1;
      wrong += now.buffers == now.span ? 0 : 1;  // this provider works in order
      seen += now.buffers > 0 ? 1 : 0;
    }
  });
  EXPECT_EQ(wrong, 0) << "snapshots that are none";
  RecordProperty("snapshots_with_buffers", seen.load());
}

TEST_P(SrqRecvQuery, EitherPointerMayBeNull) {
  // EP-RQ-12
  const Connection connection = connect_pair(server, client);
  buffers.post(connection.server, 0, 2);
  DAT_COUNT count = -7;
  EXPECT_THAT(dat_ep_recv_query(connection.server.get(), &count, nullptr), Succeeds());
  EXPECT_EQ(count, 2);
  DAT_COUNT span = -7;
  EXPECT_THAT(dat_ep_recv_query(connection.server.get(), nullptr, &span), Succeeds());
  EXPECT_EQ(span, 2);
  EXPECT_THAT(dat_ep_recv_query(connection.server.get(), nullptr, nullptr), Succeeds());
}

TEST_P(SrqRecvQuery, ValuesAreRealAsTheAttributeSays) {
  // EP-RQ-13, EP-RQ-14
  ASSERT_EQ(server.ia.provider().ep_recv_info_supported, 0x11);
  const Srq srq(server.ia, server.pz, 4);
  const Ep with_srq(server, srq);
  const Ep plain(server);
  for (const Ep* ep : {&with_srq, &plain}) {
    EXPECT_NE(held(*ep).buffers, DAT_VALUE_UNKNOWN);
    EXPECT_NE(held(*ep).span, DAT_VALUE_UNKNOWN);
  }
}

TEST_P(SrqRecvQuery, BadHandlesAreRefused) {
  // EP-RQ-15, GEN-2
  const Srq srq(server.ia, server.pz, 4);
  Ep freed(server, srq);
  const DAT_EP_HANDLE stale = freed.get();
  freed.reset();
  DAT_COUNT count = 0;
  DAT_COUNT span = 0;
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, srq.get(), server.ia.get()}) {
    const DAT_RETURN rc = dat_ep_recv_query(bad, &count, &span);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
  }
}

TEST_P(SrqRecvQuery, WorksInEveryStateAndIgnoresTheBuffersOnTheQueue) {
  // EP-RQ-16, EP-RQ-17
  const Srq srq(server.ia, server.pz, 10);
  buffers.post(srq, 0, 10);
  for (const DAT_EP_STATE state : reachable_states(server.ia)) {
    const EpInState ep(server, client, srq, state);
    EXPECT_EQ(held(ep.get()), (Held{.buffers = 0, .span = 0})) << "endpoint state " << state;
  }
}

TEST_P(SrqRecvQueryHolding, NothingIsHeldAfterTheFlush) {
  // EP-RQ-16
  const Srq srq(server.ia, server.pz, 10);
  const Ep ep(server, srq);
  StoppedSender sender(server, ep, GetParam(), 0, 3);
  large.post(srq, 0, 3);
  ASSERT_TRUE(eventually_held(ep, 3));
  sender.kill();
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(held(ep), (Held{.buffers = 0, .span = 0}));
}

TEST_P(SrqRecvQuery, NothingIsHeldByAPlainEndpointAfterTheFlush) {
  // EP-RQ-16
  const Connection connection = connect_pair(server, client);
  buffers.post(connection.server, 0, 3);
  ASSERT_THAT(dat_ep_disconnect(connection.server.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_EQ(held(connection.server), (Held{.buffers = 0, .span = 0}));
}

ANYDAT_OVER_ALL_WIRES(SrqRecvQuery);
ANYDAT_OVER_ALL_WIRES(SrqRecvQueryHolding);

}  // namespace
}  // namespace anydat::test
