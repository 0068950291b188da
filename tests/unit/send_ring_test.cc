// SPDX-License-Identifier: BSD-3-Clause
// The ring of requests, compared with a plain queue under random use.
#include "nic/soft/send_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace anydat::nic::soft {
namespace {

struct Model {
  std::uint64_t cookie;
  std::vector<Segment> segments;
};

SendRequest request_of(const Model& model) {
  std::uint64_t length = 0;
  for (const Segment& segment : model.segments) length += segment.length;
  SendRequest request{.cookie = model.cookie, .segments = model.segments, .length = length, .flags = {}};
  request.kind = model.cookie % 2 == 0 ? WorkKind::send : WorkKind::rdma_write;
  request.remote = {model.cookie * 3, static_cast<std::uint32_t>(model.cookie)};
  request.regions_seen = model.cookie + 5;
  return request;
}

void expect(const SendRing::Entry& entry, const Model& model) {
  const SendRequest wanted = request_of(model), found = entry.request();
  EXPECT_EQ(found.cookie, wanted.cookie);
  EXPECT_EQ(found.length, wanted.length);
  EXPECT_EQ(found.kind, wanted.kind);
  EXPECT_EQ(found.regions_seen, wanted.regions_seen);
  EXPECT_EQ(found.remote.address, wanted.remote.address);
  EXPECT_EQ(found.remote.key, wanted.remote.key);
  ASSERT_EQ(found.segments.size(), wanted.segments.size());
  for (std::size_t i = 0; i < wanted.segments.size(); ++i) {
    EXPECT_EQ(found.segments[i].address, wanted.segments[i].address);
    EXPECT_EQ(found.segments[i].length, wanted.segments[i].length);
    EXPECT_EQ(found.segments[i].key, wanted.segments[i].key);
  }
}

TEST(SendRing, IsAQueueThatGrowsAndShrinksInUse) {
  for (std::uint64_t seed = 1; seed <= 20 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    SendRing ring;
    std::uint32_t depth = 1 + static_cast<std::uint32_t>(random() % 9), most = 3;
    ASSERT_TRUE(ring.reserve(depth, most));
    std::deque<Model> model;
    std::uint64_t first = 0, sent = 0, cookie = 0;
    for (int step = 0; step < 2'000; ++step) {
      ASSERT_EQ(ring.size(), model.size());
      ASSERT_EQ(ring.empty(), model.empty());
      ASSERT_EQ(ring.full(), model.size() >= depth);
      ASSERT_EQ(ring.first(), first);
      ASSERT_EQ(ring.unsent(), first + sent);
      ASSERT_EQ(ring.all_sent(), sent == model.size());
      switch (random() % 6) {
        case 0:
        case 1:
          if (!ring.full()) {
            model.push_back({cookie++, std::vector<Segment>(random() % (most + 1))});
            for (Segment& segment : model.back().segments)
              segment = {.key = static_cast<std::uint32_t>(random()),
                         .pad = 0,
                         .address = random(),
                         .length = random() % 1'000};
            ring.append(request_of(model.back()));
          }
          break;
        case 2:
          if (!ring.all_sent()) {
            ring.mark_sent();
            ++sent;
          }
          break;
        case 3:
          if (!model.empty()) {
            expect(ring.at(ring.first()), model.front());
            ring.drop_first();
            model.pop_front();
            ++first;
            if (sent > 0) --sent;
          }
          break;
        case 4:
          if (model.empty()) {
            ring.skip();
            ++first;
          }
          break;
        default:
          if (random() % 8 == 0) {
            depth = static_cast<std::uint32_t>(model.size() + random() % 9);
            if (random() % 2 == 0) ++most;
            ASSERT_TRUE(ring.reserve(depth, most));
            ASSERT_EQ(ring.depth(), depth);
          }
      }
      for (std::size_t i = 0; i < model.size(); ++i) {
        SendRing::Entry* const entry = ring.find(first + i);
        ASSERT_NE(entry, nullptr);
        expect(*entry, model[i]);
      }
      ASSERT_EQ(ring.find(first + model.size()), nullptr);
      if (first > 0) {
        ASSERT_EQ(ring.find(first - 1), nullptr);
      }
    }
  }
}

TEST(SendRing, OneWithoutDepthIsFull) {
  SendRing ring;
  ASSERT_TRUE(ring.reserve(0, 0));
  EXPECT_TRUE(ring.full());
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace anydat::nic::soft
