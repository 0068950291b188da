// SPDX-License-Identifier: BSD-3-Clause
// dat_srq_resize: chapter 1.8 of the rules.
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <limits>

#include "srq_traffic.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

class SrqResize : public SrqTest {};
class SrqResizeHolding : public SrqHoldingTest {};

TEST_P(SrqResize, GrownQueueAcceptsMoreBuffers) {
  // SRQ-RESIZE-1
  const Srq srq(server.ia, server.pz, 2);
  buffers.post(srq, 0, 2);
  EXPECT_THAT(buffers.try_post(srq, 2), HasType(DAT_INSUFFICIENT_RESOURCES));
  ASSERT_THAT(dat_srq_resize(srq.get(), 50), Succeeds());
  EXPECT_GE(srq.size(), 50);
  buffers.post(srq, 2, 48);
  EXPECT_EQ(counts(srq), (Counts{.available = 50, .outstanding = 50}));
}

TEST_P(SrqResize, KeepsPostedBuffersAndWaitingMessages) {
  // SRQ-RESIZE-2
  const Srq srq(server.ia, server.pz, 4);
  const Connection connection = connect_pair(server, srq, client);
  // Turn the queue, so that its oldest buffer is not at the beginning of whatever storage it has.
  for (int turn = 0; turn < 3; ++turn) {
    buffers.post(srq, 60, 1);
    pass_message(connection);
  }
  buffers.post(srq, 0, 4);
  ASSERT_THAT(dat_srq_resize(srq.get(), 9), Succeeds());
  buffers.post(srq, 4, 5);
  std::vector<DAT_UINT64> returned;
  for (DAT_UINT64 i = 0; i < 7; ++i) {
    const auto dto = pass_message(connection, i);
    returned.push_back(dto.user_cookie.as_64);
    EXPECT_TRUE(has_pattern(buffers[static_cast<int>(dto.user_cookie.as_64)].first(32), i));
  }
  ASSERT_THAT(dat_srq_resize(srq.get(), 2), Succeeds());
  for (DAT_UINT64 i = 7; i < 9; ++i) {
    returned.push_back(pass_message(connection, i).user_cookie.as_64);
  }
  EXPECT_THAT(returned, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // A message that already waits for a buffer.
  send(connection.client, 20);
  send(connection.client, 21);
  ASSERT_THAT(dat_srq_resize(srq.get(), 1), Succeeds());
  ASSERT_THAT(dat_srq_resize(srq.get(), 20), Succeeds());
  buffers.post(srq, 20, 2);
  std::vector<int> slots;
  for (const auto& dto : expect_completions(server.recv.get(), 2)) {
    slots.push_back(static_cast<int>(dto.user_cookie.as_64));
  }
  EXPECT_TRUE(has_pattern(buffers[slots[0]].first(32), 20));
  EXPECT_TRUE(has_pattern(buffers[slots[1]].first(32), 21));
}

TEST_P(SrqResize, BelowOutstandingIsRefused) {
  // SRQ-RESIZE-3
  const Srq srq(server.ia, server.pz, 10);
  buffers.post(srq, 0, 6);
  EXPECT_THAT(dat_srq_resize(srq.get(), 5), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(dat_srq_resize(srq.get(), 1), HasType(DAT_INVALID_STATE));
  EXPECT_EQ(srq.size(), 10);
  buffers.post(srq, 6, 4);
  EXPECT_EQ(counts(srq), (Counts{.available = 10, .outstanding = 10}));
}

TEST_P(SrqResizeHolding, OutstandingCountsBuffersOnTheQueueAtEndpointsAndUnreaped) {
  // SRQ-RESIZE-4
  const Srq srq(server.ia, server.pz, 10);
  const Ep ep(server, srq);
  const StoppedSender sender(server, ep, GetParam(), 2, 3);
  large.post(srq, 0, 6);  // two complete, three are held, one stays
  ASSERT_TRUE(eventually_held(ep, 3));
  ASSERT_EQ(counts(srq), (Counts{.available = 1, .outstanding = 6}));
  EXPECT_THAT(dat_srq_resize(srq.get(), 5), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(dat_srq_resize(srq.get(), 6), Succeeds());
  expect_completion(server.recv.get());
  EXPECT_THAT(dat_srq_resize(srq.get(), 5), Succeeds());
  EXPECT_THAT(dat_srq_resize(srq.get(), 4), HasType(DAT_INVALID_STATE));
  expect_completion(server.recv.get());
  EXPECT_THAT(dat_srq_resize(srq.get(), 4), Succeeds());
  EXPECT_THAT(dat_srq_resize(srq.get(), 3), HasType(DAT_INVALID_STATE));
}

TEST_P(SrqResize, BelowTheWatermarkIsRefusedArmedOrFired) {
  // SRQ-RESIZE-5
  const Srq srq(server.ia, server.pz, 10);
  buffers.post(srq, 0, 5);
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 5), Succeeds());
  ASSERT_THAT(dat_srq_resize(srq.get(), 5), Succeeds());
  ASSERT_THAT(dat_srq_resize(srq.get(), 10), Succeeds());
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 7), Succeeds());
  expect_low_watermark(server, srq);
  EXPECT_THAT(dat_srq_resize(srq.get(), 6), HasType(DAT_INVALID_STATE)) << "fired";
  EXPECT_EQ(srq.size(), 10);
  const Srq armed(server.ia, server.pz, 10);
  const Connection connection = connect_pair(server, armed, client);
  buffers.post(armed, 0, 8);
  ASSERT_THAT(dat_srq_set_lw(armed.get(), 8), Succeeds());
  EXPECT_THAT(dat_srq_resize(armed.get(), 7), HasType(DAT_INVALID_STATE));
  EXPECT_EQ(armed.size(), 10);
  EXPECT_EQ(armed.query().low_watermark, 8);
  pass_message(connection);
  expect_low_watermark(server, armed);
  EXPECT_THAT(dat_srq_resize(armed.get(), 7), HasType(DAT_INVALID_STATE)) << "seven outstanding, but watermark 8";
  ASSERT_THAT(dat_srq_set_lw(armed.get(), 0), Succeeds());
  EXPECT_THAT(dat_srq_resize(armed.get(), 7), Succeeds());
}

TEST_P(SrqResize, DownToOutstandingOrToTheWatermarkIsAllowed) {
  // SRQ-RESIZE-6
  const Srq srq(server.ia, server.pz, 10);
  buffers.post(srq, 0, 6);
  EXPECT_THAT(dat_srq_resize(srq.get(), 6), Succeeds());
  const Srq empty(server.ia, server.pz, 10, 1, 4);
  expect_low_watermark(server, empty);
  EXPECT_THAT(dat_srq_resize(empty.get(), 4), Succeeds());
}

TEST_P(SrqResize, ShrinksExactly) {
  // SRQ-RESIZE-7, SRQ-RESIZE-8: exactly is what we recommend; the rule itself allows anything up to the old size.
  const Srq srq(server.ia, server.pz, 50);
  buffers.post(srq, 0, 3);
  for (const DAT_COUNT size : {49, 20, 4, 3}) {
    const DAT_COUNT before = srq.size();
    ASSERT_THAT(dat_srq_resize(srq.get(), size), Succeeds());
    EXPECT_GE(srq.size(), size);
    EXPECT_LE(srq.size(), before);
    EXPECT_EQ(srq.size(), size);
  }
  EXPECT_THAT(buffers.try_post(srq, 3), HasType(DAT_INSUFFICIENT_RESOURCES));
}

TEST_P(SrqResize, ToTheCurrentSizeChangesNothing) {
  // SRQ-RESIZE-9
  const Srq srq(server.ia, server.pz, 10);
  const Connection connection = connect_pair(server, srq, client);
  // What is posted begins near the end of the queue's memory and goes on at its start.
  buffers.post(srq, 0, 8);
  for (DAT_UINT64 number = 0; number < 8; ++number) pass_message(connection, number);
  buffers.post(srq, 8, 5);
  EXPECT_THAT(dat_srq_resize(srq.get(), 10), Succeeds());
  EXPECT_EQ(srq.size(), 10);
  EXPECT_EQ(counts(srq), (Counts{.available = 5, .outstanding = 5}));
  buffers.post(srq, 13, 5);
  EXPECT_THAT(buffers.try_post(srq, 18), HasType(DAT_INSUFFICIENT_RESOURCES));
  for (DAT_UINT64 number = 8; number < 18; ++number) {
    EXPECT_EQ(pass_message(connection, number).user_cookie.as_64, number);
    EXPECT_TRUE(has_pattern(buffers[static_cast<int>(number)].first(32), number)) << number;
  }
}

TEST_P(SrqResize, SizeMustBePositiveAndWithinTheAdapterLimit) {
  // SRQ-RESIZE-10
  const Srq srq(server.ia, server.pz, 10, 1);
  const DAT_COUNT most = server.ia.attributes().max_recv_per_srq;
  for (const DAT_COUNT bad :
       {0, -1, -2, std::numeric_limits<DAT_COUNT>::min(), most + 1, std::numeric_limits<DAT_COUNT>::max()}) {
    EXPECT_THAT(dat_srq_resize(srq.get(), bad), HasType(DAT_INVALID_PARAMETER)) << bad;
    EXPECT_EQ(srq.size(), 10);
  }
  EXPECT_THAT(dat_srq_resize(srq.get(), most), Succeeds());
  EXPECT_EQ(srq.size(), most);
}

// Grows an SRQ to the largest size the adapter has, with next to no memory left to the process.
void play_resize_without_memory(RoleContext& context) {
  Side side(context.wire);
  const DAT_IA_ATTR limits = side.ia.attributes();
  const Srq srq(side.ia, side.pz, 10, limits.max_iov_segments_per_dto);
  const Buffers memory(side.ia, side.pz, 11, 64);
  memory.post(srq, 0, 4);
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  ::getrlimit(RLIMIT_AS, &before);
  const rlimit tight{.rlim_cur = pages * 4096 + (1 << 20), .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_AS, &tight);
  const DAT_RETURN rc = dat_srq_resize(srq.get(), limits.max_recv_per_srq);
  ::setrlimit(RLIMIT_AS, &before);
  EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_EQ(srq.size(), 10);
  EXPECT_EQ(counts(srq), (Counts{.available = 4, .outstanding = 4}));
  memory.post(srq, 4, 6);
  EXPECT_THAT(memory.try_post(srq, 10), HasType(DAT_INSUFFICIENT_RESOURCES));
}

const Role kResizeWithoutMemory("resize_without_memory", play_resize_without_memory);

TEST_P(SrqResize, WithoutMemoryLeavesTheQueueAsItWas) {
  // SRQ-RESIZE-11, SRQ-CREATE-14
  if (built_with_sanitizer()) {
    GTEST_SKIP() << "sanitizers need the address space that this test takes away";
  }
  PeerProcess process("resize_without_memory", GetParam());
  EXPECT_EQ(process.wait_exit(), 0);
}

TEST_P(SrqResize, BadHandlesAreRefused) {
  // SRQ-RESIZE-12, GEN-2
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.ia.get(), server.pz.get()}) {
    const DAT_RETURN rc = dat_srq_resize(bad, 10);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_SRQ));
  }
}

TEST_P(SrqResize, TouchesNothingButTheSize) {
  // SRQ-RESIZE-13, SRQ-LW-9
  const Srq srq(server.ia, server.pz, 10, 3);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 5);
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 5), Succeeds());
  const DAT_SRQ_PARAM before = srq.query();
  for (const DAT_COUNT size : {20, 5, 10}) {
    ASSERT_THAT(dat_srq_resize(srq.get(), size), Succeeds());
    const DAT_SRQ_PARAM after = srq.query();
    EXPECT_EQ(after.ia_handle, before.ia_handle);
    EXPECT_EQ(after.srq_state, before.srq_state);
    EXPECT_EQ(after.pz_handle, before.pz_handle);
    EXPECT_EQ(after.max_recv_iov, before.max_recv_iov);
    EXPECT_EQ(after.low_watermark, before.low_watermark);
    EXPECT_EQ(after.available_dto_count, before.available_dto_count);
    EXPECT_EQ(after.outstanding_dto_count, before.outstanding_dto_count);
  }
  expect_no_event(server.ia.async_evd());
  pass_message(connection);
  expect_low_watermark(server, srq);  // it was still armed
  ASSERT_THAT(dat_srq_resize(srq.get(), 20), Succeeds());
  pass_message(connection);
  expect_no_event(server.ia.async_evd());  // it was not armed again
}

TEST_P(SrqResize, IsCorrectBesideTraffic) {
  // SRQ-RESIZE-14, SRQ-RESIZE-2, MT-3
  constexpr DAT_COUNT kPosted = 16;
  const Srq srq(server.ia, server.pz, 64);
  SrqTraffic traffic(server, client, srq, {.connections = 8, .buffers = kPosted});
  std::atomic<int> wrong = 0;
  unsigned step = 0;
  traffic.run(300, [&] {
    // One entry at most is free: that of the buffer between its reap and its next post.
    const DAT_COUNT small = 1 + static_cast<DAT_COUNT>(step % (kPosted - 2));
    const DAT_COUNT enough = kPosted + static_cast<DAT_COUNT>(step * 7 % 49);
    ++step;
    wrong += is_type(dat_srq_resize(srq.get(), small), DAT_INVALID_STATE) ? 0 : 1;
    wrong += dat_srq_resize(srq.get(), enough) == DAT_SUCCESS ? 0 : 1;
    const DAT_SRQ_PARAM param = srq.query();
    wrong += param.max_recv_dtos == enough && param.outstanding_dto_count >= kPosted - 1 ? 0 : 1;
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(SrqResize, ExampleOfTheStandard) {
  // SRQ-RESIZE-15
  const Srq srq(server.ia, server.pz, 10);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 5);
  send(connection.client, 1);
  send(connection.client, 2);
  expect_completed(srq, connection.server, 3);
  ASSERT_EQ(counts(srq), (Counts{.available = 3, .outstanding = 5}));
  EXPECT_THAT(dat_srq_resize(srq.get(), 4), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(dat_srq_resize(srq.get(), 5), Succeeds());
  expect_completions(server.recv.get(), 2);
  EXPECT_THAT(dat_srq_resize(srq.get(), 3), Succeeds());
  EXPECT_EQ(counts(srq), (Counts{.available = 3, .outstanding = 3}));
}

ANYDAT_OVER_ALL_WIRES(SrqResize);
ANYDAT_OVER_ALL_WIRES(SrqResizeHolding);

}  // namespace
}  // namespace anydat::test
