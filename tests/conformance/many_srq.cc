// SPDX-License-Identifier: BSD-3-Clause
// anydat_srq_post_recvs: what dat_srq_post_recv would do, several times; and all calls for many from several threads.
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "ep_fixture.h"
#include "many_fixture.h"
#include "support/properties.h"
#include "support/threads.h"

namespace anydat::test {
namespace {

class ManySrq : public SrqTest {
 protected:
  Posts plain(int first, int count) const {
    Posts posts(static_cast<DAT_UINT64>(first));
    for (int i = first; i < first + count; ++i) posts.add({buffers.triplet(i)});
    return posts;
  }
};

TEST_P(ManySrq, ReceivesAreThereAndCounted) {
  // SRQ-POST-2, SRQ-POST-3, SRQ-ACC-1
  const Srq srq(server.ia, server.pz, 40);
  ASSERT_EQ(supply_many(srq.get(), plain(0, 20)), (Outcome{DAT_SUCCESS, 20}));
  EXPECT_EQ(counts(srq), (Counts{.available = 20, .outstanding = 20}));
  ASSERT_EQ(supply_many(srq.get(), plain(20, 20)), (Outcome{DAT_SUCCESS, 20}));
  EXPECT_EQ(counts(srq), (Counts{.available = 40, .outstanding = 40}));
  const Connection connection = connect_pair(server, srq, client);
  std::array<bool, 40> used{};
  for (DAT_UINT64 i = 0; i < 40; ++i) {
    const auto dto = pass_message(connection, i);
    ASSERT_LT(dto.user_cookie.as_64, 40u);
    EXPECT_FALSE(std::exchange(used[dto.user_cookie.as_64], true));
    EXPECT_TRUE(has_pattern(buffers[static_cast<int>(dto.user_cookie.as_64)].first(32), i));
  }
  EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 0}));
}

TEST_P(ManySrq, AFullQueueTakesWhatItHasRoomFor) {
  // SRQ-POST-16
  for (const int before : {0, 3, 17}) {
    const Srq one(server.ia, server.pz, 20), many(server.ia, server.pz, 20);
    buffers.post(one, 0, before);
    buffers.post(many, 0, before);
    const Outcome expected = supply_singly(one.get(), plain(before, 40));
    EXPECT_THAT(expected.rc, HasType(DAT_INSUFFICIENT_RESOURCES));
    EXPECT_EQ(expected.done, one.size() - before);
    EXPECT_EQ(supply_many(many.get(), plain(before, 40)), expected);
    EXPECT_EQ(counts(many), counts(one));
    EXPECT_EQ(supply_many(many.get(), plain(0, 2)), (Outcome{expected.rc, 0})) << "and nothing more";
  }
}

TEST_P(ManySrq, ReceivesAreJudgedAsOneByOne) {
  // SRQ-POST-4 to SRQ-POST-15
  const DAT_LMR_TRIPLET good = buffers.triplet(0);
  DAT_LMR_TRIPLET outside = good, empty = good, dead = good;
  outside.segment_length = static_cast<SegmentLength>(kBuffers * kBytes + 1);
  empty.segment_length = 0;
  empty.lmr_context = 0xDEADBEEF;
  {
    const Lmr gone(server.ia, server.pz, 64);
    dead = gone.triplet();
  }
  const Pz other_zone(server.ia);
  const Lmr foreign(server.ia, other_zone, 64);
  const Lmr readable(server.ia, server.pz, 64, DAT_MEM_PRIV_LOCAL_READ_FLAG);
  const std::vector<OddPost> all{
      {"no segments", [](Posts& posts) { posts.add_raw(0, nullptr); }},
      {"several segments",
       [=](Posts& posts) {
         posts.add({good, empty, good});
       }},
      {"a segment of no bytes", [=](Posts& posts) { posts.add({empty}); }},
      {"too many segments", [=](Posts& posts) { posts.add(std::vector(5, good)); }},
      {"a negative number of segments", [](Posts& posts) { posts.add_raw(-1, nullptr); }},
      {"no vector", [](Posts& posts) { posts.add_raw(1, nullptr); }},
      {"a segment outside its region", [=](Posts& posts) { posts.add({outside}); }},
      {"a region that is gone", [=](Posts& posts) { posts.add({dead}); }},
      {"a region of another zone", [&](Posts& posts) { posts.add({foreign.triplet()}); }},
      {"a region that cannot be written", [&](Posts& posts) { posts.add({readable.triplet()}); }},
  };
  for (const OddPost& odd : all) {
    for (const int before : {0, 3, 20}) {
      SCOPED_TRACE(odd.name + " behind " + std::to_string(before));
      Posts posts;
      for (int i = 0; i < before; ++i) posts.add({good});
      odd.add(posts);
      for (int i = 0; i < 4; ++i) posts.add({good});
      const Srq one(server.ia, server.pz, 40), many(server.ia, server.pz, 40);
      EXPECT_EQ(supply_many(many.get(), posts), supply_singly(one.get(), posts));
      EXPECT_EQ(counts(many), counts(one));
    }
  }
}

TEST_P(ManySrq, PostingIsNoEventAndTheNextTakeIs) {
  // SRQ-POST-30, SRQ-LW-2, SRQ-LW-5
  const Srq srq(server.ia, server.pz, 40);
  const Connection connection = connect_pair(server, srq, client);
  ASSERT_EQ(supply_many(srq.get(), plain(0, 20)), (Outcome{DAT_SUCCESS, 20}));
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 18), Succeeds());
  pass_message(connection, 0);
  pass_message(connection, 1);
  expect_no_event(server.ia.async_evd());
  ASSERT_EQ(supply_many(srq.get(), plain(0, 2)), (Outcome{DAT_SUCCESS, 2}));
  expect_no_event(server.ia.async_evd());
  for (DAT_UINT64 i = 0; i < 3; ++i) pass_message(connection, i);
  expect_low_watermark(server, srq);
  ASSERT_EQ(supply_many(srq.get(), plain(0, 3)), (Outcome{DAT_SUCCESS, 3}));
  pass_message(connection);
  expect_no_event(server.ia.async_evd());
}

TEST_P(ManySrq, ReceivesServeMessagesThatWait) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // SRQ-ARR-3, SRQ-ORD-1
  const Srq srq(server.ia, server.pz, 40);
  const Connection first = connect_pair(server, srq, client);
  const Connection second = connect_pair(server, srq, client);
  for (DAT_UINT64 i = 0; i < 10; ++i) {
    send(first.client, i);
    send(second.client, 100 + i);
  }
  expect_no_event(server.recv.get());
  ASSERT_EQ(supply_many(srq.get(), plain(0, 20)), (Outcome{DAT_SUCCESS, 20}));
  std::map<DAT_EP_HANDLE, DAT_UINT64> next{{first.server.get(), 0}, {second.server.get(), 100}};
  for (const auto& dto : expect_completions(server.recv.get(), 20)) {
    EXPECT_TRUE(has_pattern(buffers[static_cast<int>(dto.user_cookie.as_64)].first(32), next.at(dto.ep_handle)++));
  }
  expect_completions(client.request.get(), 20);
}

TEST_P(ManySrq, WrongArgumentsAreRefused) {
  // SRQ-POST-17
  const Srq srq(server.ia, server.pz, 8);
  const std::vector<ANYDAT_SRQ_POST> posts = plain(0, 2).for_srq();
  const auto refused = [](DAT_RETURN_SUBTYPE argument) {
    return testing::AllOf(HasType(DAT_INVALID_PARAMETER), HasSubtype(argument));
  };
  DAT_COUNT posted = -1;
  EXPECT_THAT(anydat_srq_post_recvs(srq.get(), -1, posts.data(), &posted), refused(DAT_INVALID_ARG2));
  EXPECT_EQ(posted, 0);
  EXPECT_THAT(anydat_srq_post_recvs(srq.get(), 2, nullptr, &posted), refused(DAT_INVALID_ARG3));
  EXPECT_THAT(anydat_srq_post_recvs(srq.get(), 2, posts.data(), nullptr), refused(DAT_INVALID_ARG4));
  for (const DAT_HANDLE wrong : {DAT_HANDLE{DAT_HANDLE_NULL}, DAT_HANDLE{server.ia.get()}}) {
    posted = -1;
    EXPECT_THAT(anydat_srq_post_recvs(wrong, 2, posts.data(), &posted),
                testing::AllOf(HasType(DAT_INVALID_HANDLE), HasSubtype(DAT_INVALID_HANDLE_SRQ)));
    EXPECT_EQ(posted, 0);
  }
  posted = -1;
  EXPECT_THAT(anydat_srq_post_recvs(srq.get(), 0, nullptr, &posted), Succeeds());
  EXPECT_EQ(posted, 0);
  EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 0}));
}

// MT-1, SRQ-ORD-1, SRQ-POST-21, INV-5: two threads send rows on one endpoint, two others take completions and post the
// buffers again in rows. What one thread has sent comes in its order, all of it, once.
TEST_P(ManySrq, SeveralThreadsAtOnce) {
  constexpr int kMessages = 1500;  // of each sender
  constexpr int kRow = 12;
  constexpr DAT_COUNT kDepth = 48;
  struct Message {
    std::uint32_t sender;
    std::uint32_t number;
  };
  const Srq srq(server.ia, server.pz, kBuffers);
  const Connection connection = connect_pair(server, srq, client);
  ASSERT_EQ(supply_many(srq.get(), plain(0, kBuffers)), (Outcome{DAT_SUCCESS, kBuffers}));
  const Lmr sources(client.ia, client.pz, 2 * kDepth * kBytes);
  std::array<std::atomic<int>, 2> sent{}, completed{};
  std::atomic<int> received = 0;
  std::atomic<bool> failed = false;
  const bool messages_wait = test::messages_wait(server.ia);

  const auto send_rows = [&](std::size_t sender) {
    std::minstd_rand random(static_cast<unsigned>(sender) + 1);
    while (sent[sender] < kMessages && !failed) {
      const int room = static_cast<int>(kDepth / 2) - (sent[sender] - completed[sender]);
      const int count = std::min({room, kMessages - sent[sender], 1 + static_cast<int>(random() % kRow)});
      const bool may_wait = messages_wait || sent[0] + sent[1] - received < kBuffers - 2 * kRow;
      if (count <= 0 || !may_wait) {
        std::this_thread::yield();
        continue;
      }
      Posts posts(sender * 1'000'000 + static_cast<unsigned>(sent[sender].load()));
      for (int i = 0; i < count; ++i) {
        const Message message{static_cast<std::uint32_t>(sender), static_cast<std::uint32_t>(sent[sender] + i)};
        const std::size_t place = (sender * kDepth + message.number % (kDepth / 2)) * kBytes;
        std::memcpy(sources.bytes().data() + place, &message, sizeof message);
        posts.add({sources.triplet(place, sizeof message)});
      }
      Outcome outcome = send_many(connection.client.get(), posts);
      sent[sender] += outcome.done;
      if (outcome.rc != DAT_SUCCESS && !is_type(outcome.rc, DAT_INSUFFICIENT_RESOURCES)) {
        ADD_FAILURE() << outcome;
        failed = true;
      }
    }
  };
  const auto take_completions = [&] {
    std::array<DAT_UINT64, 2> next{0, 1'000'000};
    while (completed[0] + completed[1] < 2 * kMessages && !failed) {
      for (const DAT_EVENT& event : take_many(client.request.get(), 16).events) {
        const auto& dto = event.event_data.dto_completion_event_data;
        const std::size_t sender = dto.user_cookie.as_64 / 1'000'000;
        EXPECT_EQ(dto.status, DAT_DTO_SUCCESS);
        EXPECT_EQ(dto.user_cookie.as_64, next.at(sender)++);
        ++completed[sender];
      }
      if (HasFailure()) failed = true;
    }
  };
  const auto receive = [&] {
    std::array<std::uint32_t, 2> next{};
    while (received < 2 * kMessages && !failed) {
      const Taken taken = take_many(server.recv.get(), 16);
      if (taken.events.empty()) continue;
      std::vector<ANYDAT_SRQ_POST> again;
      std::deque<DAT_LMR_TRIPLET> triplets;
      for (const DAT_EVENT& event : taken.events) {
        const auto& dto = event.event_data.dto_completion_event_data;
        EXPECT_EQ(dto.status, DAT_DTO_SUCCESS);
        Message message{};
        const auto buffer = static_cast<int>(dto.user_cookie.as_64);
        std::memcpy(&message, buffers[buffer].data(), sizeof message);
        EXPECT_EQ(message.number, next.at(message.sender)++);
        again.push_back({1, &triplets.emplace_back(buffers.triplet(buffer)), dto.user_cookie});
      }
      DAT_COUNT posted = 0;
      EXPECT_THAT(anydat_srq_post_recvs(srq.get(), static_cast<DAT_COUNT>(again.size()), again.data(), &posted),
                  Succeeds());
      received += static_cast<int>(taken.events.size());
      if (HasFailure()) failed = true;
    }
  };
  std::atomic<int> running = 4;
  in_threads(5, [&](int thread) {
    if (thread < 2) send_rows(static_cast<std::size_t>(thread));
    if (thread == 2) take_completions();
    if (thread == 3) receive();
    if (thread < 4) {
      --running;
      return;
    }
    // The counts hold at every moment (SRQ-ACC-13), and all of it ends.
    const auto over = [&] {
      const Counts now = counts(srq);
      EXPECT_LE(now.available, now.outstanding);
      EXPECT_LE(now.outstanding, kBuffers);
      return running == 0 || failed;
    };
    if (!eventually(over, 4 * patience())) {
      ADD_FAILURE() << "it does not end: " << received << " received";
      failed = true;
    }
  });
  EXPECT_EQ(counts(srq), (Counts{.available = kBuffers, .outstanding = kBuffers}));
}

ANYDAT_OVER_ALL_WIRES(ManySrq);

}  // namespace
}  // namespace anydat::test
