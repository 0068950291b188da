// SPDX-License-Identifier: BSD-3-Clause
// dat_ia_close: section 4.3 of part 1.
#include <sys/resource.h>

#include <climits>
#include <memory>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

// The instances of these tests are closed by hand.
class IaClose : public testing::TestWithParam<Wire> {
 protected:
  void SetUp() override {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    ASSERT_THAT(open_ia(GetParam(), 16, &evd, &ia), Succeeds());
    async_evd = evd;
  }
  void TearDown() override {
    if (ia != DAT_HANDLE_NULL) {
      EXPECT_THAT(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    }
  }

  DAT_RETURN close(DAT_CLOSE_FLAGS how) {
    const DAT_RETURN rc = dat_ia_close(ia, how);
    if (rc == DAT_SUCCESS) ia = DAT_HANDLE_NULL;
    return rc;
  }
  void expect_refused() {
    const DAT_RETURN rc = close(DAT_CLOSE_GRACEFUL_FLAG);
    EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_IA_IN_USE));
  }

  DAT_PZ_HANDLE make_pz() {
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
    require(dat_pz_create(ia, &pz), "dat_pz_create");
    return pz;
  }
  DAT_EVD_HANDLE make_evd(unsigned bits = 0x1F1, DAT_CNO_HANDLE cno = DAT_HANDLE_NULL) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    require(dat_evd_create(ia, 16, cno, flags(bits), &evd), "dat_evd_create");
    return evd;
  }
  DAT_CNO_HANDLE make_cno(DAT_OS_WAIT_PROXY_AGENT agent = no_agent()) {
    DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
    require(dat_cno_create(ia, agent, &cno), "dat_cno_create");
    return cno;
  }
  DAT_EP_HANDLE make_ep(DAT_PZ_HANDLE pz, DAT_EVD_HANDLE evd) {
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    const DAT_EP_ATTR attr = default_ep_attr();
    require(dat_ep_create(ia, pz, evd, evd, evd, &attr, &ep), "dat_ep_create");
    return ep;
  }
  DAT_SRQ_HANDLE make_srq(DAT_PZ_HANDLE pz) {
    DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
    DAT_SRQ_ATTR attr{.max_recv_dtos = 4, .max_recv_iov = 1, .low_watermark = 0};
    require(dat_srq_create(ia, pz, &attr, &srq), "dat_srq_create");
    return srq;
  }
  DAT_LMR_HANDLE make_lmr(DAT_PZ_HANDLE pz) {
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    DAT_REGION_DESCRIPTION region{};
    region.for_va = memory;
    require(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof memory, pz, DAT_MEM_PRIV_ALL_FLAG, &lmr,
                           &lmr_context, nullptr, nullptr, nullptr),
            "dat_lmr_create");
    return lmr;
  }
  DAT_PSP_HANDLE make_psp(DAT_EVD_HANDLE evd, DAT_PSP_FLAGS who = DAT_PSP_CONSUMER_FLAG) {
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    require(dat_psp_create_any(ia, &qualifier, evd, who, &psp), "dat_psp_create_any");
    return psp;
  }

  std::byte memory[256]{};
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT lmr_context = 0;
  DAT_CONN_QUAL qualifier = 0;
};

// IA-CLOSE-1, IA-CLOSE-5, IA-CLOSE-7, IA-CLOSE-8
TEST_P(IaClose, GracefulSucceedsWhenNothingButTheAsyncEvdIsLeft) {
  const DAT_IA_HANDLE stale = ia;
  ASSERT_THAT(dat_pz_free(make_pz()), Succeeds());
  ASSERT_THAT(dat_evd_free(make_evd()), Succeeds());
  ASSERT_THAT(close(DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  EXPECT_THAT(wait_evd(async_evd, 0).rc, HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_ia_query(stale, nullptr, 0, nullptr, 0, nullptr), HasType(DAT_INVALID_HANDLE));
}

// IA-CLOSE-2, RC-6, ruling A38: each kind of object alone, and all of them usable afterwards.
TEST_P(IaClose, GracefulIsRefusedWhileAnObjectOfTheConsumersIsLeft) {
  const DAT_PZ_HANDLE pz = make_pz();
  expect_refused();
  const DAT_LMR_HANDLE lmr = make_lmr(pz);
  const DAT_SRQ_HANDLE srq = make_srq(pz);
  const DAT_CNO_HANDLE cno = make_cno();
  const DAT_EVD_HANDLE evd = make_evd(0x1F1, cno);
  const DAT_EP_HANDLE ep = make_ep(pz, evd);
  const DAT_PSP_HANDLE psp = make_psp(evd);
  const DAT_EP_HANDLE reserved = make_ep(pz, evd);
  const DAT_CONN_QUAL of_psp = qualifier;
  require(dat_psp_free(make_psp(evd)), "dat_psp_free");
  DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_rsp_create(ia, qualifier, reserved, evd, &rsp), Succeeds());
  expect_refused();

  DAT_PSP_PARAM psp_param{};
  ASSERT_THAT(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &psp_param), Succeeds());
  EXPECT_EQ(psp_param.conn_qual, of_psp);
  EXPECT_EQ(state_of(reserved), DAT_EP_STATE_RESERVED);
  post(evd, 3);
  EXPECT_EQ(wait_cno(cno, 0).evd, evd);
  EXPECT_EQ(take(evd), 3u);

  // From here one after the other goes, and whatever is left still hinders the close.
  ASSERT_THAT(dat_rsp_free(rsp), Succeeds());
  expect_refused();
  ASSERT_THAT(dat_psp_free(psp), Succeeds());
  ASSERT_THAT(dat_ep_free(reserved), Succeeds());
  expect_refused();
  ASSERT_THAT(dat_ep_free(ep), Succeeds());
  ASSERT_THAT(dat_evd_free(evd), Succeeds());
  expect_refused();
  ASSERT_THAT(dat_lmr_free(lmr), Succeeds());
  expect_refused();
  ASSERT_THAT(dat_srq_free(srq), Succeeds());
  ASSERT_THAT(dat_pz_free(pz), Succeeds());
  expect_refused();
  ASSERT_THAT(dat_cno_free(cno), Succeeds());
  EXPECT_THAT(close(DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
}

// IA-CLOSE-2: a kind at a time, with nothing else beside it.
TEST_P(IaClose, EachKindOfObjectAloneHindersAGracefulClose) {
  const DAT_CNO_HANDLE cno = make_cno();
  expect_refused();
  ASSERT_THAT(dat_cno_free(cno), Succeeds());
  const DAT_EVD_HANDLE evd = make_evd();
  expect_refused();
  ASSERT_THAT(dat_evd_free(evd), Succeeds());
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_ep_create(ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, nullptr, &ep),
              Succeeds());
  expect_refused();
  ASSERT_THAT(dat_ep_free(ep), Succeeds());
  EXPECT_THAT(close(DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
}

// IA-CLOSE-3, IA-CLOSE-4, IA-CLOSE-8, IA-CLOSE-12, HND-2: with everything there can be, in every state, and work in
// progress.
TEST_P(IaClose, AbruptDestroysEverythingWhateverItsState) {
  Side client(GetParam());
  const DAT_PZ_HANDLE pz = make_pz();
  const DAT_LMR_HANDLE lmr = make_lmr(pz);
  const DAT_CNO_HANDLE cno = make_cno();
  const DAT_EVD_HANDLE evd = make_evd(0x1F1, cno);
  const DAT_SRQ_HANDLE srq = make_srq(pz);
  const DAT_PSP_HANDLE psp = make_psp(evd);
  const DAT_EP_HANDLE connected = make_ep(pz, evd);
  const DAT_EP_HANDLE idle = make_ep(pz, evd);
  DAT_LMR_TRIPLET segment{};
  segment.lmr_context = lmr_context;
  segment.virtual_address = reinterpret_cast<DAT_VADDR>(memory);
  segment.segment_length = sizeof memory;
  ASSERT_THAT(dat_ep_post_recv(connected, 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_THAT(dat_srq_post_recv(srq, 1, &segment, {}), Succeeds());

  const Ep peer(client);
  const Ep waiting(client);
  connect(peer.get(), qualifier);
  const DAT_EVENT request = expect_event(evd, DAT_CONNECTION_REQUEST_EVENT);
  ASSERT_THAT(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, connected, 0, nullptr), Succeeds());
  expect_event(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  connect(waiting.get(), qualifier);
  const DAT_EVENT pending = expect_event(evd, DAT_CONNECTION_REQUEST_EVENT);
  const DAT_CR_HANDLE cr = pending.event_data.cr_arrival_event_data.cr_handle;
  // A Send that the peer does not receive, and an event that the program does not dequeue.
  ASSERT_THAT(dat_ep_post_send(connected, 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  post(evd, 1);

  const DAT_IA_HANDLE stale = ia;
  ASSERT_THAT(close(DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  DAT_CONTEXT context{};
  for (const DAT_HANDLE gone : {DAT_HANDLE{stale}, pz, lmr, cno, evd, srq, psp, connected, idle, cr, async_evd}) {
    EXPECT_THAT(dat_get_consumer_context(gone, &context), HasType(DAT_INVALID_HANDLE));
  }
  // IA-CLOSE-13: the peer learns of it.
  const auto ended = wait_event(client.connect.get());
  const auto refused = wait_event(client.connect.get());
  ASSERT_TRUE(ended && refused);
  for (const DAT_EVENT& event : {*ended, *refused}) {
    if (event.event_data.connect_event_data.ep_handle == peer.get()) {
      EXPECT_TRUE(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
                  event.event_number == DAT_CONNECTION_EVENT_BROKEN)
          << event_name(event.event_number);
    } else {
      EXPECT_TRUE(event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED ||
                  event.event_number == DAT_CONNECTION_EVENT_UNREACHABLE)
          << event_name(event.event_number);
    }
  }
  EXPECT_EQ(peer.state(), DAT_EP_STATE_DISCONNECTED);
}

// IA-CLOSE-6, EVT-36
TEST_P(IaClose, SuppliedAsyncEvdStaysUsable) {
  for (const DAT_CLOSE_FLAGS how : {DAT_CLOSE_GRACEFUL_FLAG, DAT_CLOSE_ABRUPT_FLAG}) {
    const DAT_EVD_HANDLE own = make_evd(DAT_EVD_ASYNC_FLAG | DAT_EVD_SOFTWARE_FLAG);
    for (const DAT_EVD_HANDLE supplied : {own, async_evd}) {
      DAT_EVD_HANDLE shared = supplied;
      DAT_IA_HANDLE second = DAT_HANDLE_NULL;
      ASSERT_THAT(open_ia(GetParam(), 0, &shared, &second), Succeeds());
      ASSERT_THAT(dat_ia_close(second, how), Succeeds());
      EXPECT_EQ(query_evd(supplied).ia_handle, ia);
    }
    post(own, 5);
    EXPECT_EQ(take(own), 5u);
    EXPECT_THAT(dat_evd_free(own), Succeeds()) << "nothing feeds it any more";
  }
}

// IA-CLOSE-4, ruling A40 (IA-CLOSE-5, IA-CLOSE-6): an instance whose async EVD another one shares, its own or one that
// the program has made there.
TEST_P(IaClose, OwnerOfASharedAsyncEvdClosesAbruptlyOnly) {
  for (const bool made : {false, true}) {
    if (ia == DAT_HANDLE_NULL) SetUp();
    const DAT_EVD_HANDLE of_ia = made ? make_evd(DAT_EVD_ASYNC_FLAG | DAT_EVD_SOFTWARE_FLAG) : async_evd;
    DAT_EVD_HANDLE shared = of_ia;
    DAT_IA_HANDLE second = DAT_HANDLE_NULL;
    ASSERT_THAT(open_ia(GetParam(), 0, &shared, &second), Succeeds());
    expect_refused();
    ASSERT_THAT(close(DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    EXPECT_THAT(wait_evd(of_ia, 0).rc, HasType(DAT_INVALID_HANDLE));
    DAT_EVD_HANDLE reported = DAT_HANDLE_NULL;
    ASSERT_THAT(dat_ia_query(second, &reported, 0, nullptr, 0, nullptr), Succeeds());
    EXPECT_EQ(reported, DAT_HANDLE{DAT_EVD_OUT_OF_SCOPE});
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
    DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
    DAT_SRQ_ATTR attr{.max_recv_dtos = 1, .max_recv_iov = 1, .low_watermark = 1};
    ASSERT_THAT(dat_pz_create(second, &pz), Succeeds());
    ASSERT_THAT(dat_srq_create(second, pz, &attr, &srq), Succeeds()) << "its async event is lost";
    EXPECT_THAT(dat_ia_close(second, DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  }
}

// Ruling A39 (IA-CLOSE-2): what the provider made does not hinder the close.
TEST_P(IaClose, PendingRequestsAreRejectedByAGracefulClose) {
  Side client(GetParam());
  const DAT_EVD_HANDLE evd = make_evd();
  std::vector<Ep> askers;
  for (const DAT_PSP_FLAGS who : {DAT_PSP_CONSUMER_FLAG, DAT_PSP_PROVIDER_FLAG}) {
    const DAT_PSP_HANDLE psp = make_psp(evd, who);
    askers.emplace_back(client);
    connect(askers.back().get(), qualifier);
    expect_event(evd, DAT_CONNECTION_REQUEST_EVENT);
    ASSERT_THAT(dat_psp_free(psp), Succeeds());
  }
  ASSERT_THAT(dat_evd_free(evd), Succeeds());
  EXPECT_THAT(close(DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  for (int i = 0; i < 2; ++i) {
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  }
}

// IA-CLOSE-9, CNO-WAIT-7, CNO-AGT-6
TEST_P(IaClose, CnoWaitersAreReleasedAndAgentsCalledOnceWithoutAnEvd) {
  CountingAgent agents[2];
  const DAT_CNO_HANDLE with_evd = make_cno(agents[0].agent());
  const DAT_CNO_HANDLE without_evd = make_cno(agents[1].agent());
  make_evd(DAT_EVD_SOFTWARE_FLAG, with_evd);
  make_evd(DAT_EVD_SOFTWARE_FLAG, with_evd);
  BlockedCnoWait first(with_evd);
  BlockedCnoWait second(with_evd);
  BlockedCnoWait third(without_evd, DAT_TIMEOUT_INFINITE);
  ASSERT_THAT(close(DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  // IA-CLOSE-14
  EXPECT_EQ(agents[0].calls(), 1);
  EXPECT_EQ(agents[1].calls(), 1);
  for (BlockedCnoWait* waiter : {&first, &second, &third}) {
    const CnoResult result = waiter->result();
    EXPECT_THAT(result.rc, Succeeds());
    EXPECT_EQ(result.evd, DAT_HANDLE_NULL);
  }
  for (const CountingAgent& agent : agents) {
    EXPECT_EQ(agent.calls(), 1);
    EXPECT_EQ(agent.last_evd(), DAT_HANDLE_NULL);
  }
}

// IA-CLOSE-10, EVD-WAIT-17
TEST_P(IaClose, EvdWaitersAreAborted) {
  BlockedWait first(make_evd());
  BlockedWait second(make_evd(DAT_EVD_SOFTWARE_FLAG), 3, DAT_TIMEOUT_INFINITE);
  BlockedWait on_async(async_evd);
  ASSERT_THAT(close(DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  for (BlockedWait* waiter : {&first, &second, &on_async}) {
    EXPECT_THAT(waiter->result().rc, HasType(DAT_ABORT));
  }
}

// IA-CLOSE-10: the waiter of the async EVD does not hinder a graceful close.
TEST_P(IaClose, GracefulAbortsTheWaiterOfTheAsyncEvd) {
  BlockedWait waiter(async_evd, 1, DAT_TIMEOUT_INFINITE);
  ASSERT_THAT(close(DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  EXPECT_THAT(waiter.result().rc, HasType(DAT_ABORT));
}

// IA-CLOSE-11, IA-CLOSE-21: threads that come back from the wait and try again meet a dead handle.
TEST_P(IaClose, ReleasedThreadsThatWaitAgainAreRefused) {
  for (int round = 0; round < 10; ++round) {
    DAT_EVD_HANDLE mine = DAT_HANDLE_NULL;
    DAT_IA_HANDLE own = DAT_HANDLE_NULL;
    ASSERT_THAT(open_ia(GetParam(), 4, &mine, &own), Succeeds());
    DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    ASSERT_THAT(dat_cno_create(own, no_agent(), &cno), Succeeds());
    ASSERT_THAT(dat_evd_create(own, 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd), Succeeds());
    using Codes = std::pair<DAT_RETURN, DAT_RETURN>;
    BlockedCall<Codes> waiter([=] {
      const DAT_RETURN first = wait_evd(evd, long_timeout()).rc;
      return Codes(first, wait_evd(evd, long_timeout()).rc);
    });
    BlockedCall<Codes> cno_waiter([=] {
      const DAT_RETURN first = wait_cno(cno, long_timeout()).rc;
      return Codes(first, wait_cno(cno, long_timeout()).rc);
    });
    ASSERT_THAT(dat_ia_close(own, DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    EXPECT_THAT(waiter.result().first, HasType(DAT_ABORT));
    EXPECT_THAT(waiter.result().second, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(cno_waiter.result().first, Succeeds());
    EXPECT_THAT(cno_waiter.result().second, HasType(DAT_INVALID_HANDLE));
  }
}

// IA-CLOSE-14: not even one that was about to be called.
TEST_P(IaClose, NoAgentRunsAfterTheClose) {
  struct Watch {
    std::atomic<bool> closed = false;
    std::atomic<int> late = 0;
  } watch;
  const auto note = [](DAT_PVOID data, DAT_EVD_HANDLE) {
    auto* own = static_cast<Watch*>(data);
    if (own->closed) ++own->late;
  };
  for (int round = 0; round < 20; ++round) {
    watch.closed = false;
    DAT_EVD_HANDLE mine = DAT_HANDLE_NULL;
    DAT_IA_HANDLE own = DAT_HANDLE_NULL;
    ASSERT_THAT(open_ia(GetParam(), 4, &mine, &own), Succeeds());
    std::vector<DAT_EVD_HANDLE> evds(4);
    for (DAT_EVD_HANDLE& evd : evds) {
      DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
      ASSERT_THAT(dat_cno_create(own, {&watch, note}, &cno), Succeeds());
      ASSERT_THAT(dat_evd_create(own, 4, cno, DAT_EVD_SOFTWARE_FLAG, &evd), Succeeds());
    }
    for (const DAT_EVD_HANDLE evd : evds) {
      post(evd);
    }
    ASSERT_THAT(dat_ia_close(own, DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    watch.closed = true;
  }
  std::this_thread::sleep_for(quiet_time());  // nothing must come, and nothing tells when it has not
  EXPECT_EQ(watch.late, 0);
}

// IA-CLOSE-15
TEST_P(IaClose, OtherInstancesOfTheAdapterAreUnaffected) {
  Side server(GetParam());
  Side client(GetParam());
  const Connection pair = connect_pair(server, client);
  make_ep(make_pz(), make_evd());
  make_psp(make_evd());
  BlockedWait waiter(server.recv.get());
  ASSERT_THAT(close(DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  EXPECT_TRUE(waiter.stays_blocked());
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 0, nullptr, {}, DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_THAT(dat_ep_post_send(pair.client.get(), 0, nullptr, {}, DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_THAT(waiter.result().rc, Succeeds());
}

// IA-CLOSE-16, HND-2
TEST_P(IaClose, BadHandleIsRefused) {
  const DAT_IA_HANDLE stale = ia;
  for (const DAT_CLOSE_FLAGS how : {DAT_CLOSE_ABRUPT_FLAG, DAT_CLOSE_GRACEFUL_FLAG}) {
    for (const DAT_HANDLE bad : {DAT_HANDLE_NULL, async_evd}) {
      EXPECT_THAT(dat_ia_close(bad, how), HasType(DAT_INVALID_HANDLE));
    }
  }
  ASSERT_THAT(close(DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  EXPECT_THAT(dat_ia_close(stale, DAT_CLOSE_GRACEFUL_FLAG), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_ia_close(stale, DAT_CLOSE_ABRUPT_FLAG), HasType(DAT_INVALID_HANDLE));
}

// IA-CLOSE-17, ARG-3
TEST_P(IaClose, OtherFlagsAreRefusedAndCloseNothing) {
  const DAT_PZ_HANDLE pz = make_pz();
  for (const unsigned how : {2u, 3u, 4u, 0x80u, 0x40000000u}) {
    EXPECT_THAT(dat_ia_close(ia, static_cast<DAT_CLOSE_FLAGS>(how)), HasType(DAT_INVALID_PARAMETER)) << how;
  }
  EXPECT_THAT(dat_pz_free(pz), Succeeds());
}

// IA-CLOSE-18, IA-CLOSE-4: without a descriptor left to be had.
TEST_P(IaClose, AbruptCloseNeedsNoDescriptors) {
  Side client(GetParam());
  const DAT_EVD_HANDLE evd = make_evd();
  const DAT_EP_HANDLE ep = make_ep(make_pz(), evd);
  make_psp(evd);
  const Ep peer(client);
  connect(peer.get(), qualifier);
  const DAT_EVENT request = expect_event(evd, DAT_CONNECTION_REQUEST_EVENT);
  ASSERT_THAT(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep, 0, nullptr), Succeeds());
  expect_event(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit none = limit;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const DAT_RETURN rc = close(DAT_CLOSE_ABRUPT_FLAG);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_THAT(rc, Succeeds());
}

// IA-CLOSE-19: a closed adapter can be opened again, any number of times.
TEST_P(IaClose, ClosedAdapterOpensAgain) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_THAT(close(i % 2 == 0 ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
    async_evd = DAT_HANDLE_NULL;
    ASSERT_THAT(open_ia(GetParam(), 16, &async_evd, &ia), Succeeds());
    EXPECT_THAT(dat_pz_free(make_pz()), Succeeds());
  }
}

ANYDAT_OVER_ALL_WIRES(IaClose);

}  // namespace
}  // namespace anydat::test
