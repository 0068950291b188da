// SPDX-License-Identifier: BSD-3-Clause
// The habit of programs that give an endpoint an EVD of another open instance of its adapter (src/face/habits.cc).
#include <anydat/anydat.h>
#include <gmock/gmock.h>

#include <string>
#include <thread>

#include "evd_fixture.h"
#include "rdma_fixture.h"

namespace anydat::test {
namespace {

using testing::HasSubstr;

constexpr std::size_t kChunk = 4096;

class HabitsInstances : public testing::TestWithParam<Wire> {
 protected:
  static Wire under(const char* compat) {
    Wire wire = GetParam();
    wire.env["DAT_COMPAT"] = compat;
    return wire;
  }
  // Closes the side's instance, and with it all that was made through it.
  static void close_abruptly(Side& side) {
    require(side.ia.close(DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
    for (auto* evd : {&side.recv, &side.request, &side.connect, &side.requests}) evd->release();
    side.pz.release();
    if (side.psp) side.psp->release();
  }
};

// An endpoint of `server` whose events all come to EVDs of `lender`, connected to one of `client`.
struct Borrowing {
  explicit Borrowing(const Wire& wire) : lender(wire), server(wire), client(wire) {}
  void connect() {
    to = Ep(server.ia, server.pz, evds_of(lender), default_ep_attr());
    connect_pair(server, to.get(), from.get());
  }
  void send(DAT_UINT64 number) const {
    DAT_LMR_TRIPLET segment = source.triplet();
    fill_pattern(source.bytes(), number);
    require(dat_ep_post_send(from.get(), 1, &segment, cookie(number), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  }
  void receive(DAT_UINT64 number) const {
    DAT_LMR_TRIPLET segment = sink.triplet();
    require(dat_ep_post_recv(to.get(), 1, &segment, cookie(number), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  }

  Side lender;
  Side server;
  Side client;
  Lmr sink{server.ia, server.pz, kChunk};
  Lmr source{client.ia, client.pz, kChunk};
  Ep from{client};
  Ep to;
};

TEST_P(HabitsInstances, AnEvdServesEndpointsOfAnotherInstance) {
  Borrowing pair(under("openfabrics"));
  pair.connect();
  EXPECT_EQ(pair.to.query().recv_evd_handle, pair.lender.recv.get());
  for (const DAT_UINT64 number : {1, 2, 3}) {
    pair.receive(number);
    pair.send(number);
    const DAT_DTO_COMPLETION_EVENT_DATA received = expect_completion(pair.lender.recv.get());
    EXPECT_EQ(received.ep_handle, pair.to.get());
    EXPECT_EQ(received.user_cookie.as_64, number);
    EXPECT_TRUE(has_pattern(pair.sink.bytes(), number));
    expect_completion(pair.client.request.get());
    // The other way, and found by polling alone.
    DAT_LMR_TRIPLET back = pair.sink.triplet(0, 8);
    DAT_LMR_TRIPLET there = pair.source.triplet(0, 8);
    ASSERT_THAT(dat_ep_post_recv(pair.from.get(), 1, &there, cookie(number), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    ASSERT_THAT(dat_ep_post_send(pair.to.get(), 1, &back, cookie(number), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    EXPECT_TRUE(eventually([&] { return poll_event(pair.lender.request.get()).has_value(); }));
    EXPECT_TRUE(eventually([&] { return poll_event(pair.client.recv.get()).has_value(); }));
  }
  ASSERT_THAT(dat_ep_disconnect(pair.from.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  const DAT_EVENT end = expect_event(pair.lender.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_EQ(end.event_data.connect_event_data.ep_handle, pair.to.get());
}

TEST_P(HabitsInstances, AWaiterOfTheEvdIsWoken) {
  Borrowing pair(under("openfabrics"));
  pair.connect();
  pair.receive(1);
  std::thread waiter([&] { expect_completion(pair.lender.recv.get()); });
  pair.send(1);
  waiter.join();
}

TEST_P(HabitsInstances, AnSrqIsToldWhenItsBufferIsReapedThere) {  // SRQ-ACC-9, SRQ-FREE-5
  const Wire wire = under("openfabrics");
  Side lender(wire), server(wire), client(wire);
  const Lmr sink(server.ia, server.pz, kChunk), source(client.ia, client.pz, kChunk);
  Srq srq(server.ia, server.pz, 8);
  DAT_LMR_TRIPLET buffer = sink.triplet(), message = source.triplet();
  for (int i = 0; i < 4; ++i) ASSERT_THAT(dat_srq_post_recv(srq.get(), 1, &buffer, cookie(1)), Succeeds());
  {
    const Ep to(server.ia, server.pz, evds_of(lender), srq, default_srq_ep_attr());
    const Ep from(client);
    connect_pair(server, to.get(), from.get());
    for (int i = 0; i < 2; ++i) {
      ASSERT_THAT(dat_ep_post_send(from.get(), 1, &message, cookie(2), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
      expect_completion(client.request.get());
    }
    ASSERT_TRUE(eventually([&] {
      poll_event(lender.request.get());
      return srq.available() == 2;
    }));
    EXPECT_EQ(srq.outstanding(), 4);
    expect_completion(lender.recv.get());
    EXPECT_EQ(srq.outstanding(), 3);
  }
  // The completion that is left outlives the SRQ that its buffer came from.
  ASSERT_THAT(dat_srq_free(srq.release()), Succeeds());
  expect_completion(lender.recv.get());
}

TEST_P(HabitsInstances, AnEndpointIsModifiedToHaveSuchEvds) {
  const Wire wire = under("openfabrics");
  Side lender(wire), side(wire);
  const Ep ep(side);
  DAT_EP_PARAM param = ep.query();
  param.recv_evd_handle = lender.recv.get();
  ASSERT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_RECV_EVD_HANDLE, &param), Succeeds());
  EXPECT_EQ(ep.query().recv_evd_handle, lender.recv.get());
  EXPECT_THAT(dat_evd_free(lender.recv.get()), HasType(DAT_INVALID_STATE)) << "the endpoint feeds it";
}

TEST_P(HabitsInstances, TheOwnerIsNotClosedInOrderWhileItsEvdServes) {
  Borrowing pair(under("openfabrics"));
  pair.connect();
  EXPECT_THAT(pair.lender.ia.close(DAT_CLOSE_GRACEFUL_FLAG), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(dat_evd_free(pair.lender.recv.get()), HasType(DAT_INVALID_STATE));
  pair.receive(1);
  pair.send(1);
  expect_completion(pair.lender.recv.get());
}

TEST_P(HabitsInstances, AnAbruptCloseOfTheOwnerLeavesTheEndpointWithoutIt) {
  Borrowing pair(under("openfabrics"));
  pair.connect();
  pair.receive(1);
  pair.receive(2);
  close_abruptly(pair.lender);
  EXPECT_EQ(pair.to.query().recv_evd_handle, DAT_HANDLE_NULL);
  EXPECT_EQ(pair.to.query().connect_evd_handle, DAT_HANDLE_NULL);
  EXPECT_EQ(pair.to.state(), DAT_EP_STATE_CONNECTED);
  pair.send(1);  // it arrives, and there is no queue to say so
  expect_completion(pair.client.request.get());
  ASSERT_THAT(dat_ep_disconnect(pair.from.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  expect_event(pair.client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_THAT(dat_ep_free(pair.to.release()), Succeeds());
}

TEST_P(HabitsInstances, TheBorrowerMayCloseFirst) {
  const Wire wire = under("openfabrics");
  Side lender(wire);
  {
    Side server(wire), client(wire);
    Lmr sink(server.ia, server.pz, kChunk);
    const Lmr source(client.ia, client.pz, kChunk);
    Srq srq(server.ia, server.pz, 8);
    DAT_LMR_TRIPLET buffer = sink.triplet(), message = source.triplet();
    ASSERT_THAT(dat_srq_post_recv(srq.get(), 1, &buffer, cookie(1)), Succeeds());
    Ep to(server.ia, server.pz, evds_of(lender), srq, default_srq_ep_attr());
    const Ep from(client);
    connect_pair(server, to.get(), from.get());
    ASSERT_THAT(dat_ep_post_send(from.get(), 1, &message, cookie(2), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    ASSERT_TRUE(eventually([&] {
      poll_event(lender.request.get());
      return srq.available() == 0;
    }));
    close_abruptly(server);
    to.release();
    srq.release();
    sink.release();
  }
  // Its completion is still to be reaped, and the EVD may go.
  expect_completion(lender.recv.get());
  EXPECT_THAT(dat_evd_free(lender.recv.release()), Succeeds());
}

TEST_P(HabitsInstances, WithoutTheHabitAnotherInstancesEvdIsNoHandle) {  // GEN-12
  for (const char* compat : {"strict", "default"}) {
    const Wire wire = under(compat);
    const Side lender(wire), side(wire);
    const DAT_EP_ATTR attr = default_ep_attr();
    DAT_EP_HANDLE handle = DAT_HANDLE_NULL;
    EXPECT_THAT(dat_ep_create(side.ia.get(), side.pz.get(), lender.recv.get(), side.request.get(), side.connect.get(),
                              &attr, &handle),
                HasType(DAT_INVALID_HANDLE))
        << compat;
    EXPECT_THAT(anydat_last_error(), HasSubstr("DAT_COMPAT=openfabrics allows it"));
    const Ep ep(side);
    DAT_EP_PARAM param = ep.query();
    param.request_evd_handle = lender.request.get();
    EXPECT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param), HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(anydat_last_error(), HasSubstr("DAT_COMPAT=openfabrics allows it"));
  }
}

ANYDAT_OVER_ALL_WIRES(HabitsInstances);

}  // namespace
}  // namespace anydat::test
