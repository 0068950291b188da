// SPDX-License-Identifier: BSD-3-Clause
// The counts of an SRQ: chapter 1.2 of the rules.
#include "srq_fixture.h"
#include "support/counter.h"
#include "support/properties.h"
#include "support/waiter.h"

namespace anydat::test {
namespace {

class SrqAccounting : public SrqTest {};
class SrqAccountingHolding : public SrqHoldingTest {};

TEST_P(SrqAccounting, AvailableIsWhatEndpointsCouldTakeNow) {
  // SRQ-ACC-2
  const Srq srq(server.ia, server.pz, 10);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 4);
  for (DAT_COUNT left = 4; left > 0; --left) {
    EXPECT_EQ(srq.available(), left);
    pass_message(connection);
  }
  EXPECT_EQ(srq.available(), 0);
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  send(connection.client, 1);  // nothing to take: the message waits
  expect_no_event(server.recv.get());
  EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 0}));
  buffers.post(srq, 0, 1);
  expect_completion(server.recv.get());
}

TEST_P(SrqAccountingHolding, OutstandingIsTheSumOfItsThreeParts) {
  // SRQ-ACC-3, SRQ-ACC-5, SRQ-ACC-7, SRQ-ACC-8
  const Srq srq(server.ia, server.pz, 10);
  const Ep ep(server, srq);
  const Connection other = connect_pair(server, srq, client);
  StoppedSender sender(server, ep, GetParam(), 2, 3);
  large.post(srq, 0, 8);
  ASSERT_TRUE(eventually_held(ep, 3));
  EXPECT_EQ(counts(srq), (Counts{.available = 3, .outstanding = 8})) << "3 on the SRQ, 3 held, 2 unreaped";
  send(other.client, 1);
  expect_completed(srq, other.server, 2);
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 8})) << "2 on the SRQ, 3 held, 3 unreaped";
  expect_completion(server.recv.get());
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 7}));
  sender.resume();
  ASSERT_TRUE(eventually_held(ep, 0));
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 7})) << "2 on the SRQ, 5 unreaped";
  expect_completions(server.recv.get(), 5);
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 2}));
}

TEST_P(SrqAccounting, CountersTellWhatHasHappened) {
  // The tables of docs/counters.md, with traffic whose every number is known.
  const Srq srq(server.ia, server.pz, 10);
  const Connection connection = connect_pair(server, srq, client);
  EXPECT_EQ(counter(srq.get(), "lowest_available"), 10u);
  buffers.post(srq, 0, 3);
  for (DAT_UINT64 i = 0; i < 2; ++i) pass_message(connection, i);
  EXPECT_EQ(counter(srq.get(), "times_empty"), 0u);
  EXPECT_EQ(counter(srq.get(), "empty_ns"), 0u);
  EXPECT_EQ(counter(srq.get(), "lowest_available"), 1u);
  pass_message(connection, 2);
  EXPECT_EQ(counter(srq.get(), "times_empty"), 1u);
  EXPECT_EQ(counter(srq.get(), "empty_ns"), 0u) << "the spell is not over";
  buffers.post(srq, 0, 1);
  EXPECT_GT(counter(srq.get(), "empty_ns"), 0u);
  pass_message(connection, 3);
  EXPECT_EQ(counter(srq.get(), "times_empty"), 2u) << "also one that ends at once";
  EXPECT_EQ(counter(srq.get(), "lowest_available"), 0u);
  EXPECT_EQ(counter(srq.get(), "posted"), 4u);
  EXPECT_EQ(counter(srq.get(), "taken"), 4u);
  EXPECT_EQ(counter(srq.get(), "reaped"), 4u);
  EXPECT_EQ(counter(srq.get(), "low_watermark_events"), 0u);
  buffers.post(srq, 0, 2);
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 2), Succeeds());
  send(connection.client, 4);
  expect_low_watermark(server, srq);
  EXPECT_EQ(counter(srq.get(), "low_watermark_events"), 1u);
  // One that is not reaped yet.
  EXPECT_EQ(counter(srq.get(), "taken"), 5u);
  EXPECT_EQ(counter(srq.get(), "reaped"), 4u);
  expect_completion(server.recv.get());
  EXPECT_EQ(counter(srq.get(), "reaped"), 5u);
  // The endpoints and a dispatcher have counted the same messages, of 32 bytes each.
  EXPECT_EQ(counter(connection.server.get(), "receives"), 5u);
  EXPECT_EQ(counter(connection.server.get(), "receive_bytes"), 5u * 32);
  EXPECT_EQ(counter(connection.server.get(), "buffer_waits"), 0u);
  EXPECT_EQ(counter(connection.client.get(), "sends"), 5u);
  EXPECT_EQ(counter(connection.client.get(), "send_bytes"), 5u * 32);
  EXPECT_EQ(counter(server.recv.get(), "events"), 5u);
  EXPECT_EQ(counter(server.recv.get(), "most_queued"), 1u);
  EXPECT_EQ(counter(server.recv.get(), "overflows"), 0u);
}

TEST_P(SrqAccounting, CountersTellOfWaitsAndLosses) {
  // The tables of docs/counters.md: what arrives with no buffer, and what finds no room.
  const Srq srq(server.ia, server.pz, 10);
  const Connection connection = connect_pair(server, srq, client);
  send(connection.client, 1);
  expect_completion(client.request.get());
  ASSERT_TRUE(eventually([&] {
    poll_event(server.recv.get());
    return counter(connection.server.get(), "buffer_waits") == 1;
  }));
  EXPECT_EQ(counter(connection.server.get(), "buffer_wait_ns"), 0u) << "the wait is not over";
  buffers.post(srq, 0, 2);
  expect_completion(server.recv.get());
  EXPECT_GT(counter(connection.server.get(), "buffer_wait_ns"), 0u);
  pass_message(connection, 2);
  EXPECT_EQ(counter(connection.server.get(), "buffer_waits"), 1u);
  EXPECT_EQ(counter(connection.server.get(), "receives"), 2u);

  const Evd narrow(server.ia, DAT_EVD_DTO_FLAG, 2);
  EpEvds evds = evds_of(server);
  evds.recv = narrow.get();
  const Ep ep(server.ia, server.pz, evds, srq, default_srq_ep_attr());
  const Ep peer(client);
  connect_pair(server, ep.get(), peer.get());
  const DAT_COUNT room = narrow.qlen();
  buffers.post(srq, 0, room + 1);
  const std::uint64_t before = counter(narrow.get(), "blocking_waits");
  EXPECT_FALSE(wait_event(narrow.get(), quiet_time()));
  EXPECT_EQ(counter(narrow.get(), "blocking_waits"), before + 1);
  for (DAT_COUNT i = 0; i <= room; ++i) send(peer, 3);
  expect_event(server.ia.async_evd(), DAT_ASYNC_ERROR_EVD_OVERFLOW);
  EXPECT_EQ(counter(narrow.get(), "overflows"), 1u);
  EXPECT_EQ(counter(narrow.get(), "most_queued"), static_cast<std::uint64_t>(room));
  EXPECT_EQ(counter(narrow.get(), "events"), static_cast<std::uint64_t>(room));
}

TEST_P(SrqAccounting, FailedPostChangesNeitherCount) {
  // SRQ-ACC-6
  const Srq srq(server.ia, server.pz, 2);
  const Pz other_zone(server.ia);
  const Lmr elsewhere(server.ia, other_zone, kBytes);
  buffers.post(srq, 0, 1);
  DAT_LMR_TRIPLET foreign = elsewhere.triplet();
  EXPECT_THAT(dat_srq_post_recv(srq.get(), 1, &foreign, cookie(1)), HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_THAT(dat_srq_post_recv(srq.get(), -1, &foreign, cookie(1)), HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(counts(srq), (Counts{.available = 1, .outstanding = 1}));
  buffers.post(srq, 1, 1);
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 2}));
  EXPECT_THAT(buffers.try_post(srq, 2), HasType(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 2}));
}

TEST_P(SrqAccounting, ReapingFreesTheEntryByWhicheverCallAndStatus) {
  // SRQ-ACC-9
  const Srq srq(server.ia, server.pz, 10);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 2);
  DAT_LMR_TRIPLET tiny = buffers.lmr().triplet(1024, 4);
  ASSERT_THAT(dat_srq_post_recv(srq.get(), 1, &tiny, cookie(9)), Succeeds());
  for (const DAT_UINT64 number : {1, 2}) {
    send(connection.client, number, 4);
  }
  expect_completed(srq, connection.server, 1);
  send(connection.client, 3);  // does not fit into whatever is left if that is the tiny one
  expect_completed(srq, connection.server, 0);
  ASSERT_EQ(srq.outstanding(), 3);
  EXPECT_TRUE(eventually([&] { return poll_event(server.recv.get()).has_value(); }));
  EXPECT_EQ(srq.outstanding(), 2) << "dat_evd_dequeue";
  EXPECT_TRUE(wait_event(server.recv.get()));
  EXPECT_EQ(srq.outstanding(), 1) << "dat_evd_wait";
  EXPECT_TRUE(wait_event(server.recv.get()));
  EXPECT_EQ(srq.outstanding(), 0) << "any status";
}

TEST_P(SrqAccounting, ThresholdWaitFreesOneEntry) {
  // SRQ-ACC-10
  const Srq srq(server.ia, server.pz, 10);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 4);
  Waiter waiter(server.recv.get(), 3);
  for (DAT_UINT64 i = 0; i < 3; ++i) {
    send(connection.client, i);
  }
  ASSERT_THAT(waiter.result().rc, Succeeds());
  EXPECT_EQ(counts(srq), (Counts{.available = 1, .outstanding = 3}));
  expect_completions(server.recv.get(), 2);
  EXPECT_EQ(counts(srq), (Counts{.available = 1, .outstanding = 1}));
}

TEST_P(SrqAccounting, OverflowedCompletionFreesItsEntry) {
  // SRQ-ACC-11
  const Evd tiny(server.ia, DAT_EVD_DTO_FLAG, 1);
  const DAT_COUNT room = tiny.qlen();
  ASSERT_LT(room, kBuffers) << "the EVD is longer than this test can fill";
  const Srq srq(server.ia, server.pz, kBuffers);
  Connection connection{
      .server = Ep(server.ia, server.pz,
                   {.recv = tiny.get(), .request = server.request.get(), .connect = server.connect.get()}, srq,
                   default_srq_ep_attr()),
      .client = Ep(client)};
  connect_pair(server, connection.server.get(), connection.client.get());
  buffers.post(srq, 0, room + 1);
  for (DAT_COUNT i = 0; i <= room; ++i) {
    send(connection.client, static_cast<DAT_UINT64>(i));
  }
  expect_event(server.ia.async_evd(), DAT_ASYNC_ERROR_EVD_OVERFLOW);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(srq.available(), 0);
  EXPECT_TRUE(eventually([&] { return srq.outstanding() == room; })) << counts(srq) << ", EVD length " << room;
  EXPECT_EQ(drain(tiny.get()), room);
  EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 0}));
}

TEST_P(SrqAccounting, DestroyedEvdFreesTheEntriesOnIt) {
  // SRQ-ACC-11
  const Srq srq(server.ia, server.pz, 10);
  {
    const Evd recv(server.ia, DAT_EVD_DTO_FLAG);
    Connection connection{
        .server = Ep(server.ia, server.pz,
                     {.recv = recv.get(), .request = server.request.get(), .connect = server.connect.get()}, srq,
                     default_srq_ep_attr()),
        .client = Ep(client)};
    connect_pair(server, connection.server.get(), connection.client.get());
    buffers.post(srq, 0, 5);
    send_and_wait(connection.client, 1);
    send_and_wait(connection.client, 2);
    expect_completed(srq, connection.server, 3);
    ASSERT_EQ(srq.outstanding(), 5);
  }
  EXPECT_EQ(counts(srq), (Counts{.available = 3, .outstanding = 3}));
}

TEST_P(SrqAccounting, ResetAndFreeOfTheEndpointLeakNoEntry) {
  // SRQ-ACC-11
  const Srq srq(server.ia, server.pz, 10);
  for (const bool reset : {true, false}) {
    Connection connection = connect_pair(server, srq, client);
    buffers.post(srq, 0, 3);
    send_and_wait(connection.client, 1);
    send_and_wait(connection.client, 2);
    expect_completed(srq, connection.server, 1);
    ASSERT_THAT(dat_ep_disconnect(connection.server.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    if (reset) {
      ASSERT_THAT(dat_ep_reset(connection.server.get()), Succeeds());
    } else {
      connection.server.reset();
    }
    drain(server.recv.get());  // the completions may have stayed or vanished
    EXPECT_EQ(counts(srq), (Counts{.available = 1, .outstanding = 1})) << (reset ? "reset" : "free");
    const Connection next = connect_pair(server, srq, client);
    pass_message(next);
  }
}

TEST_P(SrqAccounting, EndpointWithoutRecvEvdFreesTheEntryWhenReceptionIsComplete) {
  // SRQ-ACC-12
  const Srq srq(server.ia, server.pz, 2);
  Connection connection{
      .server = Ep(server.ia, server.pz,
                   {.recv = DAT_HANDLE_NULL, .request = server.request.get(), .connect = server.connect.get()}, srq,
                   default_srq_ep_attr()),
      .client = Ep(client)};
  connect_pair(server, connection.server.get(), connection.client.get());
  for (DAT_UINT64 i = 0; i < 5; ++i) {
    buffers.post(srq, 0, 1);
    send_and_wait(connection.client, i);
    ASSERT_TRUE(eventually([&] { return counts(srq) == Counts{.available = 0, .outstanding = 0}; })) << counts(srq);
    EXPECT_TRUE(has_pattern(buffers[0].first(32), i)) << "the message is received all the same";
  }
  expect_no_event(server.recv.get());
}

TEST_P(SrqAccounting, ExampleOfTheStandard) {
  // SRQ-ACC-14
  const Srq srq(server.ia, server.pz, 10);
  const Connection connection = connect_pair(server, srq, client);
  const auto row = [&](DAT_COUNT available, DAT_COUNT outstanding) {
    EXPECT_EQ(srq.size(), 10);
    EXPECT_EQ(counts(srq), (Counts{.available = available, .outstanding = outstanding}));
    EXPECT_TRUE(holds_none(held(connection.server)));
  };
  row(0, 0);
  buffers.post(srq, 0, 3);
  row(3, 3);
  send(connection.client, 1);
  expect_completed(srq, connection.server, 2);
  row(2, 3);
  expect_completion(server.recv.get());
  row(2, 2);
}

TEST_P(SrqAccounting, CapacityExampleOfTheStandard) {
  // SRQ-ACC-15, SRQ-ACC-1
  const Srq srq(server.ia, server.pz, 2);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 2);
  send(connection.client, 1);
  expect_completed(srq, connection.server, 1);
  EXPECT_EQ(counts(srq), (Counts{.available = 1, .outstanding = 2}));
  EXPECT_THAT(buffers.try_post(srq, 2), HasType(DAT_INSUFFICIENT_RESOURCES));
  expect_completion(server.recv.get());
  EXPECT_THAT(buffers.try_post(srq, 2), Succeeds());
}

ANYDAT_OVER_ALL_WIRES(SrqAccounting);
ANYDAT_OVER_ALL_WIRES(SrqAccountingHolding);

}  // namespace
}  // namespace anydat::test
