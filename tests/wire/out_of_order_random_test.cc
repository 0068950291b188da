// SPDX-License-Identifier: BSD-3-Clause
// Messages whose segments overtake each other, by chance: each arrives once and in order, and cuts lose no buffer.
//
// ANYDAT_TEST_SEED: repeats one run.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "wire/out_of_order.h"

namespace anydat::test {
namespace {

std::uint64_t first_seed() {
  const char* text = std::getenv("ANYDAT_TEST_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 0;
}

// As many, or fewer where all takes longer, or the one that was asked for.
int runs_of(int count) {
  if (first_seed() != 0) return 1;
  return built_with_sanitizer() ? count / 10 : count;
}

// The seed of a run, from 1. Where there are fewer runs, the tenth, the twentieth and so on are done: the first ones
// cut messages into the smallest segments, and take longest by far.
std::uint64_t seed_of(int run) {
  if (first_seed() != 0) return first_seed();
  return static_cast<std::uint64_t>(built_with_sanitizer() ? run * 10 : run);
}

// Three clients send messages of all lengths to one shared queue that is too short for what is under way. Whatever
// overtakes whatever, each message arrives once, whole, behind those of its client that were sent before it.
//
// A message takes its buffer when its first segment comes, and is delivered behind those before it: messages that have
// overtaken all others may hold every buffer of the queue and wait for those that have none (SRQ-ARR-1). Then the
// program has to post another, as any program that lets so much be under way.
TEST_F(OutOfOrder, EachMessageArrivesOnceAndInOrder) {
  constexpr int kClients = 3;
  constexpr int kMessages = 40;
  constexpr int kBuffers = 12;
  constexpr int kReserve = kClients * kMessages;
  const int runs = runs_of(40);
  make_buffers(kBuffers + kReserve);
  for (int run = 1; run <= runs && !HasFailure(); ++run) {
    const std::uint64_t seed = seed_of(run);
    SCOPED_TRACE("ANYDAT_TEST_SEED=" + std::to_string(seed));
    begin(seed, 1 + seed % 200);
    std::mt19937_64 random(seed);
    const Srq srq(server.ia, server.pz, kBuffers + kReserve);
    std::vector<int> unposted(kBuffers);
    for (int i = 0; i < kBuffers; ++i) unposted[static_cast<std::size_t>(i)] = i;
    int buffers = kBuffers;
    std::vector<Connection> pairs;
    for (int i = 0; i < kClients; ++i) pairs.push_back(connect(srq));
    std::vector<std::vector<std::size_t>> lengths(kClients);
    std::vector<std::size_t> received(kClients, 0);
    std::size_t total = 0;
    while (total < kClients * kMessages && !HasFailure()) {
      const std::size_t who = random() % kClients;
      switch (random() % 8) {
        case 0:
          if (lengths[who].size() == kMessages) break;
          lengths[who].push_back(random() % 4 == 0 ? random() % 8 : random() % (kBytes + 1));
          send(pairs[who], static_cast<int>(who), static_cast<int>(lengths[who].size()), lengths[who].back());
          break;
        case 1:
          if (unposted.empty()) break;
          post_to_srq(srq, unposted.back());
          unposted.pop_back();
          break;
        case 2:
          if (const auto event = poll_event(server.recv.get())) {
            const DAT_DTO_COMPLETION_EVENT_DATA& dto = event->event_data.dto_completion_event_data;
            ASSERT_EQ(dto.status, DAT_DTO_SUCCESS);
            const auto from =
                std::ranges::find_if(pairs, [&](const Connection& pair) { return pair.server.get() == dto.ep_handle; });
            ASSERT_NE(from, pairs.end());
            const auto index = static_cast<std::size_t>(from - pairs.begin());
            ASSERT_LT(received[index], lengths[index].size());
            ASSERT_EQ(dto.transfered_length, lengths[index][received[index]]);
            ++received[index];
            ASSERT_TRUE(holds(dto.user_cookie, static_cast<int>(index), static_cast<int>(received[index]),
                              dto.transfered_length));
            unposted.push_back(static_cast<int>(dto.user_cookie.as_64));
            ++total;
          }
          break;
        default:
          network->step();
      }
      const RecvInfo info = recv_query(pairs[who].server);
      ASSERT_GE(info.span, info.allocated);  // EP-RQ-9
      ASSERT_LE(info.allocated, buffers);
      const bool all_are_held = network->in_flight() == 0 && unposted.empty() && srq.outstanding() == held_by(pairs);
      if (all_are_held && buffers < kBuffers + kReserve) unposted.push_back(buffers++);
    }
    EXPECT_EQ(network->in_flight(), 0u);
    for (const Connection& pair : pairs) {
      EXPECT_EQ(recv_query(pair.server), (RecvInfo{0, 0}));
      disconnect(pair);
    }
    EXPECT_FALSE(poll_event(server.recv.get()));
  }
}

// The same with connections that are cut at any moment: what was posted comes back once, whole and in order or flushed.
TEST_F(OutOfOrder, CutsAtAnyMomentLoseNoBuffer) {
  constexpr int kBuffers = 12;
  const int runs = runs_of(60);
  make_buffers(kBuffers);
  for (int run = 1; run <= runs && !HasFailure(); ++run) {
    const std::uint64_t seed = seed_of(run);
    SCOPED_TRACE("ANYDAT_TEST_SEED=" + std::to_string(seed));
    begin(seed, 1 + seed % 60);
    std::mt19937_64 random(seed);
    const Srq srq(server.ia, server.pz, kBuffers);
    for (int i = 0; i < kBuffers; ++i) post_to_srq(srq, i);
    {
      const Connection pair = connect(srq);
      for (int number = 1; number <= 10; ++number) send(pair, 0, number, random() % 200);
      for (std::uint64_t steps = random() % network->in_flight(); steps > 0; --steps) network->step();
      network->cut(queue_pair_of(pair.server));
      expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
      expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
      EXPECT_EQ(recv_query(pair.server), (RecvInfo{0, 0}));
    }
    std::set<DAT_UINT64> back;
    bool flushed = false;
    while (const auto event = poll_event(server.recv.get())) {
      const DAT_DTO_COMPLETION_EVENT_DATA& dto = event->event_data.dto_completion_event_data;
      EXPECT_TRUE(back.insert(dto.user_cookie.as_64).second);
      EXPECT_TRUE(dto.status == DAT_DTO_ERR_FLUSHED || (dto.status == DAT_DTO_SUCCESS && !flushed));
      flushed |= dto.status == DAT_DTO_ERR_FLUSHED;
    }
    EXPECT_EQ(srq.available(), kBuffers - static_cast<DAT_COUNT>(back.size()));
    EXPECT_EQ(srq.outstanding(), srq.available());
  }
}

}  // namespace
}  // namespace anydat::test
