// SPDX-License-Identifier: BSD-3-Clause
// Order of Sends and Receives: section 4.1 of the rules. Order with RDMA and binds is in rdma_order.cc.
#include <random>
#include <thread>

#include "ep_fixture.h"
#include "support/counter.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

class DtoOrder : public EpTest {
 protected:
  static void expect_in_order(DAT_EVD_HANDLE evd, int first, int count, Caller caller = Caller::here()) {
    for (int i = first; i < first + count; ++i) {
      const auto dto = expect_completion(evd, DAT_DTO_SUCCESS, caller);
      if (dto.user_cookie.as_64 != static_cast<DAT_UINT64>(i)) {
        ADD_FAILURE_AT(caller.file, caller.line) << "expected " << i << ", got " << dto.user_cookie.as_64;
        return;
      }
    }
  }
};

TEST_P(DtoOrder, SegmentsAreReadAndFilledInVectorOrder) {
  // DTO-15, SEND-1, RECV-5
  const Lmr source(client.ia, client.pz, 100);
  const Lmr sink(server.ia, server.pz, 400);
  const Pair pair = make_connected_pair();
  fill_pattern(source.bytes(), 1);
  // Three pieces of the source, the last one first.
  DAT_LMR_TRIPLET from[3] = {source.triplet(70, 30), source.triplet(0, 20), source.triplet(20, 50)};
  DAT_LMR_TRIPLET to[4] = {sink.triplet(300, 35), sink.triplet(0, 50), sink.triplet(100, 60), sink.triplet(200, 40)};
  std::fill(sink.bytes().begin(), sink.bytes().end(), std::byte{0x77});
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 4, to, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_THAT(dat_ep_post_send(pair.client.get(), 3, from, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).transfered_length, 100u);

  std::vector<std::byte> message;
  for (const auto& [offset, length] : {std::pair{70, 30}, std::pair{0, 20}, std::pair{20, 50}}) {
    const auto piece = source.bytes().subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
    message.insert(message.end(), piece.begin(), piece.end());
  }
  const auto received = [&](std::size_t offset, std::size_t length) {
    return std::vector<std::byte>(sink.bytes().begin() + static_cast<std::ptrdiff_t>(offset),
                                  sink.bytes().begin() + static_cast<std::ptrdiff_t>(offset + length));
  };
  const auto part = [&](std::size_t offset, std::size_t length) {
    return std::vector<std::byte>(message.begin() + static_cast<std::ptrdiff_t>(offset),
                                  message.begin() + static_cast<std::ptrdiff_t>(offset + length));
  };
  EXPECT_EQ(received(300, 35), part(0, 35));
  EXPECT_EQ(received(0, 50), part(35, 50));
  EXPECT_EQ(received(100, 15), part(85, 15));                                 // partly filled
  EXPECT_EQ(received(115, 45), std::vector<std::byte>(45, std::byte{0x77}));  // the rest untouched
  EXPECT_EQ(received(200, 40), std::vector<std::byte>(40, std::byte{0x77}));
}

TEST_P(DtoOrder, LongMessagesFillSegmentsOfAnySize) {
  // DTO-15, RECV-5, SEND-1: more than comes at once, so that what comes next begins and ends amid segments
  constexpr std::size_t kBytes = 400'000;
  const Lmr source(client.ia, client.pz, kBytes);
  const Lmr sink(server.ia, server.pz, kBytes);
  const Pair pair = make_connected_pair();
  fill_pattern(source.bytes(), 3);
  for (const std::size_t first : {1UL, 4095UL, 70'001UL, 262'145UL}) {
    DAT_LMR_TRIPLET from[3] = {source.triplet(0, first + 7), source.triplet(first + 7, 11),
                               source.triplet(first + 18, kBytes - first - 18)};
    DAT_LMR_TRIPLET to[4] = {sink.triplet(0, first), sink.triplet(first, 3), sink.triplet(first + 3, 100'000),
                             sink.triplet(first + 100'003, kBytes - first - 100'003)};
    std::fill(sink.bytes().begin(), sink.bytes().end(), std::byte{0x77});
    ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 4, to, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    ASSERT_THAT(dat_ep_post_send(pair.client.get(), 3, from, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).transfered_length, kBytes);
    expect_completion(pair.client_evds.request.get());
    EXPECT_TRUE(std::equal(sink.bytes().begin(), sink.bytes().end(), source.bytes().begin())) << first;
  }
}

TEST_P(DtoOrder, ReceivesOfSeveralSegmentsAreCountedAndFreeTheirPlaces) {
  // DTO-14, DTO-15; docs/counters.md
  constexpr int kDepth = 4, kMessages = 3 * kDepth;
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_recv_dtos = kDepth;
  const Pair pair = make_connected_pair(attr);
  const Lmr source(client.ia, client.pz, 10);
  const Lmr sink(server.ia, server.pz, 20);
  for (int i = 0; i < kMessages; ++i) {
    fill_pattern(source.bytes(), static_cast<unsigned>(i));
    DAT_LMR_TRIPLET from = source.triplet();
    DAT_LMR_TRIPLET to[2] = {sink.triplet(10, 4), sink.triplet(0, 10)};
    ASSERT_THAT(
        dat_ep_post_recv(pair.server.get(), 2, to, cookie(static_cast<DAT_UINT64>(i)), DAT_COMPLETION_DEFAULT_FLAG),
        Succeeds())
        << "message " << i;
    ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &from, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    expect_in_order(pair.server_evds.recv.get(), i, 1);
    expect_in_order(pair.client_evds.request.get(), 0, 1);
    EXPECT_TRUE(std::equal(sink.bytes().begin() + 10, sink.bytes().begin() + 14, source.bytes().begin()));
    EXPECT_TRUE(std::equal(sink.bytes().begin(), sink.bytes().begin() + 6, source.bytes().begin() + 4));
  }
  EXPECT_EQ(counter(pair.server.get(), "receives"), static_cast<std::uint64_t>(kMessages));
  EXPECT_EQ(counter(pair.server.get(), "receive_bytes"), 10u * kMessages);
}

TEST_P(DtoOrder, CompletionsComeInPostingOrder) {
  // DTO-40, DTO-41, DTO-42
  const Pair pair = make_connected_pair();
  const Lmr large(client.ia, client.pz, kLarge);
  const Lmr sink(server.ia, server.pz, kLarge);
  // Small and large ones in turn: a small one may not overtake.
  constexpr int kCount = 40;
  for (int i = 0; i < kCount; ++i) {
    DAT_LMR_TRIPLET to = sink.triplet();
    ASSERT_THAT(
        dat_ep_post_recv(pair.server.get(), 1, &to, cookie(static_cast<DAT_UINT64>(i)), DAT_COMPLETION_DEFAULT_FLAG),
        Succeeds());
  }
  for (int i = 0; i < kCount; ++i) {
    if (i % 3 == 0) {
      post_large_send(pair.client, large, static_cast<DAT_UINT64>(i));
    } else {
      post_send(pair.client, client_buffers, i, 1, static_cast<std::size_t>(i));
    }
  }
  expect_in_order(pair.client_evds.request.get(), 0, kCount);
  for (int i = 0; i < kCount; ++i) {
    const auto dto = expect_completion(pair.server_evds.recv.get());
    EXPECT_EQ(dto.user_cookie.as_64, static_cast<DAT_UINT64>(i));
    EXPECT_EQ(dto.transfered_length, i % 3 == 0 ? kLarge : static_cast<DAT_VLEN>(i));
  }
}

TEST_P(DtoOrder, SuppressedCompletionsAreLeftOut) {
  // DTO-40, DTO-30
  const Pair pair = make_connected_pair();
  post_recv(pair.server, server_buffers, 0, 20);
  for (int i = 0; i < 20; ++i) {
    post_send(pair.client, client_buffers, i, 1, 32,
              i % 4 == 3 ? DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG);
  }
  for (DAT_UINT64 i = 3; i < 20; i += 4) {
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, i);
  }
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
}

TEST_P(DtoOrder, EachMessageArrivesOnceWholeAndInOrder) {
  // DTO-42, INV-2, INV-3, INV-5: whatever the sizes are, and with receives posted late.
  const Pair pair = make_connected_pair();
  constexpr std::size_t kMost = 40000;
  const Lmr source(client.ia, client.pz, kMost);
  const Lmr sink(server.ia, server.pz, kMost);
  std::mt19937 random(20240817);
  for (int i = 0; i < 300; ++i) {
    // Around the sizes at which a wire may change its way of sending.
    const std::size_t near[] = {0, 1, 48, 64, 4096, 8192, 16384, 32768};
    const std::size_t length = std::min(kMost, near[random() % std::size(near)] + random() % 5);
    fill_pattern(source.bytes().first(length), static_cast<DAT_UINT64>(i));
    DAT_LMR_TRIPLET from = source.triplet(0, length);
    DAT_LMR_TRIPLET to = sink.triplet();
    const bool late = random() % 2 == 0 && messages_wait(server.ia);
    const auto receive = [&] {
      ASSERT_THAT(
          dat_ep_post_recv(pair.server.get(), 1, &to, cookie(static_cast<DAT_UINT64>(i)), DAT_COMPLETION_DEFAULT_FLAG),
          Succeeds());
    };
    if (!late) {
      receive();
    }
    ASSERT_THAT(
        dat_ep_post_send(pair.client.get(), 1, &from, cookie(static_cast<DAT_UINT64>(i)), DAT_COMPLETION_DEFAULT_FLAG),
        Succeeds());
    if (late) {
      receive();
    }
    const auto dto = expect_completion(pair.server_evds.recv.get());
    ASSERT_EQ(dto.user_cookie.as_64, static_cast<DAT_UINT64>(i));
    ASSERT_EQ(dto.transfered_length, length);
    ASSERT_TRUE(has_pattern(sink.bytes().first(length), static_cast<DAT_UINT64>(i))) << "message " << i;
    ASSERT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, static_cast<DAT_UINT64>(i));
  }
}

TEST_P(DtoOrder, DirectionsAndEndpointsDoNotWaitForEachOther) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // DTO-45: a Send that waits for a buffer holds up neither the other direction nor another endpoint.
  const Pair stuck = make_connected_pair();
  const Pair free = make_connected_pair();
  const Lmr large(client.ia, client.pz, kLarge);
  const Lmr sink(server.ia, server.pz, kLarge);
  post_large_send(stuck.client, large, 1);
  post_send(stuck.client, client_buffers, 2, 5);
  post_recv(stuck.client, client_buffers, 20, 2);
  post_send(stuck.server, server_buffers, 20, 2);
  expect_completions(stuck.client_evds.recv.get(), 2);
  for (int i = 0; i < 10; ++i) {
    expect_working(free);
  }
  EXPECT_FALSE(poll_event(stuck.client_evds.request.get()));
  DAT_LMR_TRIPLET to = sink.triplet();
  ASSERT_THAT(dat_ep_post_recv(stuck.server.get(), 1, &to, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  post_recv(stuck.server, server_buffers, 1, 5);
  expect_completions(stuck.server_evds.recv.get(), 6);
  expect_in_order(stuck.client_evds.request.get(), 1, 6);
}

TEST_P(DtoOrder, BothDirectionsAtOnceKeepTheirOrder) {
  // DTO-41, DTO-42, DTO-45, MT-2, MT-3
  const Pair pair = make_connected_pair();
  constexpr int kMessages = 500;
  const auto stream = [&](const Ep& from, const OwnEvds& from_evds, const Buffers& source, const Ep& to,
                          const OwnEvds& to_evds, const Buffers& sink) {
    constexpr int kWindow = 16;
    for (int i = 0; i < kWindow; ++i) {
      post_recv(to, sink, i);
    }
    int sent = 0;
    for (int received = 0; received < kMessages; ++received) {
      while (sent < kMessages && sent < received + kWindow / 2) {
        post_send(from, source, 20 + sent % kWindow);
        expect_completion(from_evds.request.get());
        ++sent;
      }
      const auto dto = expect_completion(to_evds.recv.get());
      const int index = received % kWindow;
      ASSERT_EQ(dto.user_cookie.as_64, static_cast<DAT_UINT64>(index));
      ASSERT_TRUE(has_pattern(sink[index].first(32), static_cast<DAT_UINT64>(20 + index))) << received;
      post_recv(to, sink, index);
    }
  };
  const Buffers other_server_buffers(server.ia, server.pz, kBuffers, kBytes);
  const Buffers other_client_buffers(client.ia, client.pz, kBuffers, kBytes);
  std::thread back(
      [&] { stream(pair.server, pair.server_evds, server_buffers, pair.client, pair.client_evds, client_buffers); });
  stream(pair.client, pair.client_evds, other_client_buffers, pair.server, pair.server_evds, other_server_buffers);
  back.join();
}

TEST_P(DtoOrder, AfterAFailureNothingSucceeds) {
  // DTO-46, STAT-16
  const Pair pair = make_connected_pair();
  DAT_LMR_TRIPLET small = server_buffers.triplet(1);
  small.segment_length = 4;
  post_recv(pair.server, server_buffers, 0);
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &small, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  post_recv(pair.server, server_buffers, 2, 10);
  post_send(pair.client, client_buffers, 0, 12);
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).user_cookie.as_64, 0u);
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get(), DAT_DTO_ERR_LOCAL_LENGTH).user_cookie.as_64, 1u);
  for (DAT_UINT64 i = 2; i < 12; ++i) {
    EXPECT_EQ(expect_completion(pair.server_evds.recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, i);
  }
  bool failed = false;
  for (DAT_UINT64 i = 0; i < 12; ++i) {
    const auto dto =
        expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
    EXPECT_EQ(dto.user_cookie.as_64, i);
    EXPECT_FALSE(failed && dto.status == DAT_DTO_SUCCESS) << i;
    failed = failed || dto.status != DAT_DTO_SUCCESS;
  }
}

ANYDAT_OVER_ALL_WIRES(DtoOrder);

}  // namespace
}  // namespace anydat::test
