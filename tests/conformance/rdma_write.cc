// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_post_rdma_write: section 4.5 of the rules. What the target refuses is in rdma_protection.cc.
#include <atomic>
#include <thread>

#include "rdma_fixture.h"

namespace anydat::test {
namespace {

class RdmaWrite : public RdmaTest {};

TEST_P(RdmaWrite, FillsTheRemoteSegment) {
  // RDW-1, RDW-3, DTO-1, DTO-3, DTO-43
  const Pair pair = make_connected_pair();
  for (const std::size_t length : {std::size_t{1}, std::size_t{64}, std::size_t{4097}, kSize}) {
    fill_pattern(local.bytes(), length);
    std::fill(target.bytes().begin(), target.bytes().end(), std::byte{0});
    ASSERT_THAT(rdma_write(pair.client, local.triplet(0, length), target.remote(0, length), length), Succeeds());
    const auto dto = expect_completion(pair.client_evds.request.get());
    EXPECT_EQ(dto.ep_handle, pair.client.get());
    EXPECT_EQ(dto.user_cookie.as_64, length);
    EXPECT_EQ(dto.transfered_length, length);
    pass_message(pair);
    EXPECT_TRUE(has_pattern(target.bytes().first(length), length)) << length;
  }
}

TEST_P(RdmaWrite, GathersInVectorOrder) {
  // RDW-1, DTO-15
  const Pair pair = make_connected_pair();
  fill_pattern(local.bytes(), 5);
  DAT_LMR_TRIPLET from[3] = {local.triplet(5000, 300), local.triplet(0, 0), local.triplet(100, 7)};
  DAT_RMR_TRIPLET to = target.remote(50, 307);
  ASSERT_THAT(dat_ep_post_rdma_write(pair.client.get(), 3, from, cookie(0), &to, DAT_COMPLETION_DEFAULT_FLAG),
              Succeeds());
  EXPECT_EQ(expect_completion(pair.client_evds.request.get()).transfered_length, 307u);
  pass_message(pair);
  EXPECT_TRUE(std::equal(target.bytes().begin() + 50, target.bytes().begin() + 350, local.bytes().begin() + 5000));
  EXPECT_TRUE(std::equal(target.bytes().begin() + 350, target.bytes().begin() + 357, local.bytes().begin() + 100));
}

TEST_P(RdmaWrite, NeedsRoomAtTheTarget) {
  // RDW-2, DTO-2
  const Pair pair = make_connected_pair();
  EXPECT_THAT(rdma_write(pair.client, local.triplet(0, 101), target.remote(0, 100), 0), HasType(DAT_LENGTH_ERROR));
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
  std::fill(target.bytes().begin(), target.bytes().end(), std::byte{0x42});
  fill_pattern(local.bytes(), 1);
  ASSERT_THAT(rdma_write(pair.client, local.triplet(0, 99), target.remote(0, 100), 0), Succeeds());
  EXPECT_EQ(expect_completion(pair.client_evds.request.get()).transfered_length, 99u);
  pass_message(pair);
  EXPECT_TRUE(has_pattern(target.bytes().first(99), 1));
  EXPECT_EQ(target.bytes()[99], std::byte{0x42});
  EXPECT_EQ(target.bytes()[100], std::byte{0x42});
}

TEST_P(RdmaWrite, NeedsARemoteSegment) {
  // RDW-4
  const Pair pair = make_connected_pair();
  DAT_LMR_TRIPLET segment = local.triplet();
  EXPECT_THAT(dat_ep_post_rdma_write(pair.client.get(), 1, &segment, cookie(0), nullptr, DAT_COMPLETION_DEFAULT_FLAG),
              HasType(DAT_INVALID_PARAMETER));
  expect_working(pair);
}

TEST_P(RdmaWrite, OfNothingSucceedsWithoutAnyCheckOfTheTarget) {
  // RDW-5, DTO-4
  const Pair pair = make_connected_pair();
  for (const std::size_t remote_length : {0, 100}) {
    DAT_RMR_TRIPLET anywhere =
        remote_triplet(0xDEADBEEF, reinterpret_cast<const void*>(std::uintptr_t{4711}), remote_length);
    ASSERT_THAT(rdma_write(pair.client, local.triplet(0, 0), anywhere, 1), Succeeds());
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).transfered_length, 0u);
    ASSERT_THAT(
        dat_ep_post_rdma_write(pair.client.get(), 0, nullptr, cookie(2), &anywhere, DAT_COMPLETION_DEFAULT_FLAG),
        Succeeds());
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).transfered_length, 0u);
  }
  expect_working(pair);
}

TEST_P(RdmaWrite, NeedsTheRightToReadLocally) {
  // RDW-6, DTO-11
  const Pair pair = make_connected_pair();
  const Lmr write_only(client.ia, client.pz, 64,
                       static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_ALL_FLAG & ~DAT_MEM_PRIV_LOCAL_READ_FLAG));
  EXPECT_THAT(rdma_write(pair.client, write_only.triplet(), target.remote(0, 64), 0),
              HasType(DAT_PRIVILEGES_VIOLATION));
  const Lmr read_only(client.ia, client.pz, 64, DAT_MEM_PRIV_LOCAL_READ_FLAG);
  ASSERT_THAT(rdma_write(pair.client, read_only.triplet(), target.remote(0, 64), 0), Succeeds());
  expect_completion(pair.client_evds.request.get());
}

TEST_P(RdmaWrite, TheTargetGetsNoEvent) {
  // RDW-7
  const Pair pair = make_connected_pair();
  post_recv(pair.server, server_buffers, 0);
  for (DAT_UINT64 i = 0; i < 5; ++i) {
    ASSERT_THAT(rdma_write(pair.client, local.triplet(), target.remote(0, kSize), i), Succeeds());
  }
  expect_completions(pair.client_evds.request.get(), 5);
  expect_no_event(pair.server_evds.recv.get());
  EXPECT_FALSE(poll_event(pair.server_evds.request.get()));
  EXPECT_FALSE(poll_event(pair.server_evds.connect.get()));
}

#if defined(__SANITIZE_THREAD__)
#define ANYDAT_UNWATCHED __attribute__((no_sanitize_thread, noinline))
#else
#define ANYDAT_UNWATCHED __attribute__((noinline))
#endif

// As programs poll that know nothing of events: until the last byte is there, and then they take the rest. That is a
// race by the book, and the one that RDW-11 speaks of.
ANYDAT_UNWATCHED bool tail_arrived(const std::byte* memory, std::size_t length, std::byte value) {
  return static_cast<const volatile std::byte&>(memory[length - 1]) == value;
}
ANYDAT_UNWATCHED std::size_t bytes_missing(const std::byte* memory, std::size_t length, std::byte value) {
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  std::size_t missing = 0;
  for (std::size_t i = 0; i < length; ++i) {
    missing += static_cast<const volatile std::byte&>(memory[i]) == value ? 0 : 1;
  }
  return missing;
}

TEST_P(RdmaWrite, TheLastByteComesLast) {
  // RDW-11
  const Pair pair = make_connected_pair();
  int value = 0;
  for (const std::size_t length : {std::size_t{2}, std::size_t{100}, std::size_t{5000}, kSize}) {
    for (int round = 0; round < 50; ++round) {
      const auto now = static_cast<std::byte>(++value % 255 + 1);
      std::fill(local.bytes().begin(), local.bytes().end(), now);
      std::atomic<bool> watching = false;
      std::size_t missing = 0;
      bool arrived = false;
      std::thread poller([&] {
        watching = true;
        const auto deadline = std::chrono::steady_clock::now() + patience();
        while (!(arrived = tail_arrived(target.bytes().data(), length, now)) &&
               std::chrono::steady_clock::now() < deadline) {
        }
        missing = bytes_missing(target.bytes().data(), length, now);
      });
      while (!watching) {
        std::this_thread::yield();
      }
      const DAT_RETURN rc = rdma_write(pair.client, local.triplet(0, length), target.remote(0, length), 0);
      poller.join();
      ASSERT_THAT(rc, Succeeds());
      expect_completion(pair.client_evds.request.get());
      ASSERT_TRUE(arrived) << length;
      ASSERT_EQ(missing, 0u) << "of " << length << " bytes, when the last was there";
    }
  }
}

TEST_P(RdmaWrite, WhoeverSeesOneArriveMayAnswerBeforeLookingForEvents) {
  // RDW-11, RDW-9, EP-SM-16: it could not have come before there was a connection
  const Lmr answers(client.ia, client.pz, kSize);
  const Lmr answer(server.ia, server.pz, 8);
  for (int round = 0; round < 20; ++round) {
    const auto now = static_cast<std::byte>(round + 1);
    const Pair pair = make_pair();
    require(try_connect(pair.client.get(), server.listen()), "dat_ep_connect");
    const DAT_CR_HANDLE cr = expect_request(server.requests.get()).cr_handle;
    require(dat_cr_accept(cr, pair.server.get(), 0, nullptr), "dat_cr_accept");
    expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, pair.client.get());
    std::fill(local.bytes().begin(), local.bytes().end(), now);
    ASSERT_THAT(rdma_write(pair.client, local.triplet(0, 8), target.remote(0, 8), 0), Succeeds());
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (!tail_arrived(target.bytes().data(), 8, now)) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    }
    ASSERT_THAT(rdma_write(pair.server, answer.triplet(), answers.remote(0, 8), 0), Succeeds()) << round;
    expect_completion(pair.server_evds.request.get());
    expect_completion(pair.client_evds.request.get());
    expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, pair.server.get());
  }
}

ANYDAT_OVER_ALL_WIRES(RdmaWrite);

}  // namespace
}  // namespace anydat::test
