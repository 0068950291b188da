// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_free: section 3.8 of the rules. Which state allows it is in ep_state_table.cc.
#include <sys/mman.h>

#include "ep_states.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

class EpFree : public EpStateTest {};

TEST_P(EpFree, ServicePointOrRequestGoFirst) {
  // EP-FREE-1, EP-FREE-2
  {
    HeldEp ep(server, client, GetParam(), DAT_EP_STATE_RESERVED);
    EXPECT_THAT(dat_ep_free(ep.get()), HasType(DAT_INVALID_STATE));
    ASSERT_THAT(ep.free_rsp(), Succeeds());
    EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
    EXPECT_THAT(dat_ep_free(ep.get()), Succeeds());
  }
  {
    const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
    EXPECT_THAT(dat_ep_free(ep.get()), HasType(DAT_INVALID_STATE));
    ASSERT_THAT(dat_cr_reject(ep.request()), Succeeds());
    EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
    EXPECT_THAT(dat_ep_free(ep.get()), Succeeds());
  }
  const HeldEp ep(server, client, GetParam(), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
  EXPECT_THAT(dat_ep_free(ep.get()), HasType(DAT_INVALID_STATE));
  ASSERT_THAT(dat_cr_reject(ep.request()), Succeeds());
  EXPECT_THAT(dat_ep_free(ep.get()), HasType(DAT_INVALID_HANDLE));
}

TEST_P(EpFree, EndsTheConnectionAtThePeer) {
  // EP-FREE-3, EP-SM-18
  Pair pair = make_connected_pair();
  post_recv(pair.server, server_buffers, 0, 2);
  ASSERT_THAT(pair.client.free(), Succeeds());
  expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.server.get());
  EXPECT_EQ(pair.server.state(), DAT_EP_STATE_DISCONNECTED);
  expect_completions(pair.server_evds.recv.get(), 2, DAT_DTO_ERR_FLUSHED);
}

TEST_P(EpFree, AbortsAnActiveAttempt) {
  ANYDAT_NEEDS_CONFIRMED_ACCEPTS(server.ia)
  // EP-FREE-3, EP-DISC-15, CR-ACC-5
  Ep active(client);
  const Ep passive(server);
  ASSERT_THAT(try_connect(active.get(), server.listen()), Succeeds());
  const DAT_CR_HANDLE request = expect_request(server.requests.get()).cr_handle;
  ASSERT_THAT(active.free(), Succeeds());
  ASSERT_THAT(dat_cr_accept(request, passive.get(), 0, nullptr), Succeeds());
  expect_connection_event(server.connect.get(), DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, passive.get());
}

TEST_P(EpFree, AbortsAnAccept) {
  // EP-FREE-3, EP-DISC-15
  HeldEp ep(server, client, GetParam(), DAT_EP_STATE_COMPLETION_PENDING);
  ASSERT_THAT(dat_ep_free(ep.get()), Succeeds());
  ep.remote().resume();
  const DAT_EVENT_NUMBER first = ep.remote().next_event();
  if (first == DAT_CONNECTION_EVENT_ESTABLISHED) {
    EXPECT_EQ(ep.remote().next_event(), DAT_CONNECTION_EVENT_DISCONNECTED);
  } else {
    EXPECT_EQ(first, DAT_CONNECTION_EVENT_NON_PEER_REJECTED) << event_name(first);
  }
}

TEST_P(EpFree, CompletionsOfADeadEndpointAreHarmless) {
  // EP-FREE-4: they may be there or not; reaping works either way.
  Pair pair = make_connected_pair();
  post_recv(pair.server, server_buffers, 0, 3);
  post_send(pair.client, client_buffers, 0, 2);
  expect_completions(pair.client_evds.request.get(), 2);
  ASSERT_TRUE(eventually([&] {
    DAT_COUNT held = -1;
    require(dat_ep_recv_query(pair.server.get(), &held, nullptr), "dat_ep_recv_query");
    return held == 1;
  }));
  const DAT_EP_HANDLE dead = pair.server.get();
  ASSERT_THAT(pair.server.free(), Succeeds());
  int seen = 0;
  while (const auto event = poll_event(pair.server_evds.recv.get())) {
    ASSERT_EQ(event->event_number, DAT_DTO_COMPLETION_EVENT);
    EXPECT_EQ(event->event_data.dto_completion_event_data.ep_handle, dead);
    ++seen;
  }
  EXPECT_LE(seen, 3);
  EXPECT_THAT(dat_ep_free(dead), HasType(DAT_INVALID_HANDLE));
}

TEST_P(EpFree, MemoryIsTheConsumersWhenTheCallReturns) {
  // EP-FREE-5: the pages of the buffers are taken away at once; a library that touched them would crash.
  constexpr std::size_t kSize = 1 << 20;
  void* const pages = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  {
    const Lmr memory(server.ia, server.pz, std::span(static_cast<std::byte*>(pages), kSize));
    const Lmr large(client.ia, client.pz, kLarge);
    Pair pair = make_connected_pair();
    for (std::size_t i = 0; i < 4; ++i) {
      DAT_LMR_TRIPLET segment = memory.triplet(i * kLarge, kLarge);
      ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &segment, cookie(i), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    }
    for (DAT_UINT64 i = 0; i < 4; ++i) {
      post_large_send(pair.client, large, i);
    }
    const DAT_EP_HANDLE dead = pair.server.get();
    ASSERT_THAT(pair.server.free(), Succeeds());
    ASSERT_EQ(::mprotect(pages, kSize, PROT_NONE), 0);
    expect_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    // No new event about it: what is there was there when the call returned.
    drain(pair.server_evds.recv.get());
    expect_no_event(pair.server_evds.recv.get());
    expect_no_event(pair.server_evds.connect.get());
    EXPECT_THAT(dat_ep_get_status(dead, nullptr, nullptr, nullptr), HasType(DAT_INVALID_HANDLE));
    ASSERT_EQ(::mprotect(pages, kSize, PROT_READ | PROT_WRITE), 0);
  }
  ::munmap(pages, kSize);
}

TEST_P(EpFree, ReleasesZoneEvdsAndQueue) {
  // EP-FREE-6
  Pz pz(server.ia);
  OwnEvds evds(server);
  Srq srq(server.ia, pz, 4);
  Ep ep(server.ia, pz, evds, srq, default_srq_ep_attr());
  const Ep peer(client);
  connect_pair(client, peer.get(), ep.get());
  EXPECT_THAT(srq.free(), HasType(DAT_INVALID_STATE));
  ASSERT_THAT(ep.free(), Succeeds());
  EXPECT_THAT(srq.free(), Succeeds());
  EXPECT_THAT(pz.free(), Succeeds());
  EXPECT_THAT(evds.recv.free(), Succeeds());
  EXPECT_THAT(evds.request.free(), Succeeds());
  EXPECT_THAT(evds.connect.free(), Succeeds());
}

TEST_P(EpFree, PostedReceivesDoNotPreventIt) {
  // EP-FREE-7, EP-FREE-4
  const OwnEvds evds(server);
  Ep ep(server.ia, server.pz, evds, default_ep_attr());
  post_recv(ep, server_buffers, 0, 10);
  ASSERT_THAT(ep.free(), Succeeds());
  EXPECT_LE(drain(evds.recv.get()), 10);
  expect_no_event(evds.recv.get());
}

TEST_P(EpFree, ChecksItsHandle) {
  // EP-FREE-8, GEN-2, GEN-4, GEN-5
  Ep ep(server);
  const DAT_EP_HANDLE stale = ep.get();
  ASSERT_THAT(ep.free(), Succeeds());
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, server.pz.get(), server.ia.get()}) {
    const DAT_RETURN rc = dat_ep_free(bad);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
  }
  const Ep next(server);
  EXPECT_NE(next.get(), stale) << "the value freed just before";
}

ANYDAT_OVER_ALL_WIRES(EpFree);

}  // namespace
}  // namespace anydat::test
