// SPDX-License-Identifier: BSD-3-Clause
// anydat_evd_dequeue_many: what dat_evd_dequeue would do, several times.
#include <array>
#include <cstring>

#include "ep_fixture.h"
#include "evd_fixture.h"
#include "many_fixture.h"
#include "support/waiter.h"

namespace anydat::test {
namespace {

class ManyEvents : public EpTest {
 protected:
  static std::vector<std::uintptr_t> values_of(const Taken& taken) {
    std::vector<std::uintptr_t> values;
    for (const DAT_EVENT& event : taken.events) values.push_back(value_of(event));
    return values;
  }
  static std::vector<std::uintptr_t> from_to(std::uintptr_t first, std::uintptr_t end) {
    std::vector<std::uintptr_t> values;
    while (first != end) values.push_back(first++);
    return values;
  }

  Evd software{server.ia, DAT_EVD_SOFTWARE_FLAG, 1024};
};

TEST_P(ManyEvents, ComeInOrderAndAreCounted) {
  // EVM-9, EVM-13
  post_range(software.get(), 1, 10);
  const Taken first = take_many(software.get(), 4);
  EXPECT_THAT(first.rc, Succeeds());
  EXPECT_EQ(values_of(first), from_to(1, 5));
  EXPECT_EQ(first.events.front().evd_handle, software.get());
  EXPECT_EQ(take(software.get()), 5u) << "one between them";
  const Taken rest = take_many(software.get(), 16);
  EXPECT_THAT(rest.rc, Succeeds());
  EXPECT_EQ(values_of(rest), from_to(6, 11));
  const Taken none = take_many(software.get(), 16);
  EXPECT_EQ(DAT_GET_TYPE(none.rc), static_cast<DAT_RETURN>(DAT_QUEUE_EMPTY));
  EXPECT_TRUE(none.events.empty());
  DAT_EVENT event;
  EXPECT_EQ(none.rc, dat_evd_dequeue(software.get(), &event));
}

TEST_P(ManyEvents, AreTakenByOneCallHoweverMany) {
  // EVM-9
  post_range(software.get(), 0, 1000);
  EXPECT_EQ(values_of(take_many(software.get(), 700)), from_to(0, 700));
  EXPECT_EQ(values_of(take_many(software.get(), 1000)), from_to(700, 1000));
}

TEST_P(ManyEvents, LeaveTheRestOfTheArrayAlone) {
  post_range(software.get(), 1, 2);
  std::array<DAT_EVENT, 4> events;
  std::memset(events.data(), 0x5a, sizeof events);
  const std::array<DAT_EVENT, 4> before = events;
  DAT_COUNT count = -1;
  ASSERT_THAT(anydat_evd_dequeue_many(software.get(), 4, events.data(), &count), Succeeds());
  ASSERT_EQ(count, 2);
  EXPECT_EQ(std::memcmp(&events[2], &before[2], 2 * sizeof events[2]), 0);
}

TEST_P(ManyEvents, AreLookedForWhenTheQueueIsEmpty) {
  // EVD-DEQ-1: as a program that polls needs no other thread.
  const Pair pair = make_connected_pair();
  post_recv(pair.server, server_buffers, 0, 20);
  post_send(pair.client, client_buffers, 0, 20);
  std::vector<DAT_EVENT> received;
  ASSERT_TRUE(eventually([&] {
    const Taken taken = take_many(pair.server_evds.recv.get(), 6);
    EXPECT_TRUE(taken.events.empty() ? DAT_GET_TYPE(taken.rc) == DAT_QUEUE_EMPTY : taken.rc == DAT_SUCCESS);
    received.insert(received.end(), taken.events.begin(), taken.events.end());
    return received.size() == 20;
  }));
  for (std::size_t i = 0; i < received.size(); ++i) {
    ASSERT_EQ(received[i].event_number, DAT_DTO_COMPLETION_EVENT);
    const DAT_DTO_COMPLETION_EVENT_DATA& dto = received[i].event_data.dto_completion_event_data;
    EXPECT_EQ(dto.user_cookie.as_64, i);
    EXPECT_EQ(dto.status, DAT_DTO_SUCCESS);
    EXPECT_EQ(dto.transfered_length, 32u);
    EXPECT_EQ(dto.ep_handle, pair.server.get());
    EXPECT_TRUE(has_pattern(server_buffers[static_cast<int>(i)].first(32), i));
  }
}

TEST_P(ManyEvents, OfEveryKindAreAsTheyAreOneByOne) {
  // EVD-DEQ-6: connection events among completions.
  const Evd all(client.ia, flags(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG), 64);
  const Ep ep(client.ia, client.pz, {all.get(), all.get(), all.get()}, default_ep_attr());
  const Ep peer(server);
  const DAT_CONN_QUAL qualifier = server.listen();
  ASSERT_THAT(try_connect(ep.get(), qualifier), Succeeds());
  const auto request = expect_request(server.requests.get());
  ASSERT_THAT(dat_cr_accept(request.cr_handle, peer.get(), 0, nullptr), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  ASSERT_TRUE(eventually([&] { return ep.state() == DAT_EP_STATE_CONNECTED; }));
  post_recv(peer, server_buffers, 0);
  post_send(ep, client_buffers, 0);
  expect_completion(server.recv.get());
  std::vector<DAT_EVENT> events;
  ASSERT_TRUE(eventually([&] {
    const Taken taken = take_many(all.get(), 8);
    events.insert(events.end(), taken.events.begin(), taken.events.end());
    return events.size() == 2;
  }));
  EXPECT_EQ(events[0].event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(events[0].event_data.connect_event_data.ep_handle, ep.get());
  EXPECT_EQ(events[1].event_number, DAT_DTO_COMPLETION_EVENT);
}

TEST_P(ManyEvents, AreRefusedWhileAnotherThreadWaits) {
  // EVD-DEQ-4
  Waiter waiter(software.get(), 2);
  EXPECT_THAT(take_many(software.get(), 4).rc, HasType(DAT_INVALID_STATE));
  post(software.get(), 1);
  DAT_EVENT event;
  const Taken taken = take_many(software.get(), 4);
  EXPECT_EQ(taken.rc, dat_evd_dequeue(software.get(), &event));
  EXPECT_THAT(taken.rc, HasSubtype(DAT_INVALID_STATE_EVD_WAITER));
  EXPECT_TRUE(taken.events.empty());
  post(software.get(), 2);
  EXPECT_THAT(waiter.result().rc, Succeeds());
  EXPECT_EQ(values_of(take_many(software.get(), 4)), from_to(2, 3));
}

TEST_P(ManyEvents, FreeTheirPlacesOfAnSrq) {
  // SRQ-ACC-9
  const Srq srq(server.ia, server.pz, 8);
  const Connection connection = connect_pair(server, srq, client);
  server_buffers.post(srq, 0, 8);
  post_send(connection.client, client_buffers, 0, 5);
  expect_completions(client.request.get(), 5);
  ASSERT_TRUE(eventually([&] { return srq.available() == 3 && holds_none(held(connection.server)); }));
  EXPECT_EQ(counts(srq), (Counts{.available = 3, .outstanding = 8}));
  DAT_COUNT taken = 0;
  ASSERT_TRUE(eventually([&] {
    taken += static_cast<DAT_COUNT>(take_many(server.recv.get(), 2).events.size());
    return taken == 5;
  }));
  EXPECT_EQ(counts(srq), (Counts{.available = 3, .outstanding = 3}));
}

TEST_P(ManyEvents, WrongArgumentsAreRefused) {
  // EVD-DEQ-8
  post(software.get(), 1);
  std::array<DAT_EVENT, 2> events;
  DAT_COUNT count = -1;
  const auto refused = [](DAT_RETURN_SUBTYPE argument) {
    return testing::AllOf(HasType(DAT_INVALID_PARAMETER), HasSubtype(argument));
  };
  for (const DAT_COUNT max : {0, -1}) {
    count = -1;
    EXPECT_THAT(anydat_evd_dequeue_many(software.get(), max, events.data(), &count), refused(DAT_INVALID_ARG2));
    EXPECT_EQ(count, 0);
  }
  EXPECT_THAT(anydat_evd_dequeue_many(software.get(), 2, nullptr, &count), refused(DAT_INVALID_ARG3));
  EXPECT_THAT(anydat_evd_dequeue_many(software.get(), 2, events.data(), nullptr), refused(DAT_INVALID_ARG4));
  DAT_EVD_HANDLE stale = DAT_HANDLE_NULL;
  {
    const Evd gone(server.ia, DAT_EVD_SOFTWARE_FLAG, 4);
    stale = gone.get();
  }
  for (const DAT_HANDLE wrong :
       {DAT_HANDLE{DAT_HANDLE_NULL}, DAT_HANDLE{stale}, DAT_HANDLE{server.ia.get()}, DAT_HANDLE{server.pz.get()}}) {
    count = -1;
    const DAT_RETURN rc = anydat_evd_dequeue_many(wrong, 2, events.data(), &count);
    EXPECT_EQ(rc, dat_evd_dequeue(wrong, events.data()));
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_EQ(count, 0);
  }
  EXPECT_EQ(take(software.get()), 1u) << "it is still there";
}

ANYDAT_OVER_ALL_WIRES(ManyEvents);

}  // namespace
}  // namespace anydat::test
