// SPDX-License-Identifier: BSD-3-Clause
// dat_srq_post_recv: chapter 1.6 of the rules, what the call accepts and refuses. How posted buffers complete is in
// srq_post_completion.cc.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "srq_states.h"
#include "support/properties.h"
#include "support/versions.h"
#include "support/waiter.h"

namespace anydat::test {
namespace {

class SrqPost : public SrqTest {
 protected:
  DAT_RETURN post(const Srq& srq, std::vector<DAT_LMR_TRIPLET> iov) {
    return dat_srq_post_recv(srq.get(), static_cast<DAT_COUNT>(iov.size()), iov.data(), cookie(0));
  }
};

TEST_P(SrqPost, AnyConnectedEndpointMayUseTheBuffer) {
  // SRQ-POST-1
  const Srq srq(server.ia, server.pz, 4);
  const Connection first = connect_pair(server, srq, client);
  const Connection second = connect_pair(server, srq, client);
  for (const Connection* connection : {&first, &second, &first}) {
    buffers.post(srq, 0, 1);
    EXPECT_EQ(pass_message(*connection).ep_handle, connection->server.get());
  }
}

TEST_P(SrqPost, BufferIsAvailableWhenTheCallReturns) {
  // SRQ-POST-2
  const Srq srq(server.ia, server.pz, 10);
  for (int i = 0; i < 10; ++i) {
    buffers.post(srq, i, 1);
    EXPECT_EQ(srq.available(), i + 1);
  }
}

TEST_P(SrqPost, WorksBeforeAnyEndpointExistsAndInEveryEndpointState) {
  // SRQ-POST-3, SRQ-ST-3
  const Srq srq(server.ia, server.pz, 20);
  buffers.post(srq, 0, 1);
  DAT_COUNT posted = 1;
  for (const DAT_EP_STATE state : reachable_states(server.ia)) {
    const EpInState ep(server, client, srq, state);
    EXPECT_THAT(buffers.try_post(srq, posted), Succeeds()) << "endpoint state " << state;
    ++posted;
    EXPECT_EQ(srq.available(), posted);
  }
}

TEST_P(SrqPost, NoSegmentsMakeABufferForAnEmptyMessage) {
  // SRQ-POST-4, SRQ-POST-5
  const Srq srq(server.ia, server.pz, 4);
  const Connection connection = connect_pair(server, srq, client);
  ASSERT_THAT(dat_srq_post_recv(srq.get(), 0, nullptr, cookie(7)), Succeeds());
  auto* const nonsense = reinterpret_cast<DAT_LMR_TRIPLET*>(std::uintptr_t{8});
  ASSERT_THAT(dat_srq_post_recv(srq.get(), 0, nonsense, cookie(8)), Succeeds());
  for (const DAT_UINT64 expected : {7, 8}) {
    const auto dto = pass_message(connection, 1, 0);
    EXPECT_EQ(dto.user_cookie.as_64, expected);
    EXPECT_EQ(dto.transfered_length, 0u);
  }
}

TEST_P(SrqPost, BadSegmentCountsAreRefused) {
  // SRQ-POST-6
  const Srq srq(server.ia, server.pz, 4, 3);
  std::vector<DAT_LMR_TRIPLET> four(4, buffers.lmr().triplet(0, 8));
  EXPECT_THAT(dat_srq_post_recv(srq.get(), -1, four.data(), cookie(0)), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_srq_post_recv(srq.get(), std::numeric_limits<DAT_COUNT>::min(), four.data(), cookie(0)),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_srq_post_recv(srq.get(), 1, nullptr, cookie(0)), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(post(srq, four), HasType(DAT_INVALID_PARAMETER));
  four[3].segment_length = 0;
  EXPECT_THAT(post(srq, four), HasType(DAT_INVALID_PARAMETER)) << "an empty segment counts toward the limit";
  EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 0}));
  four.pop_back();
  EXPECT_THAT(post(srq, four), Succeeds());
}

TEST_P(SrqPost, EmptySegmentsAreNotChecked) {
  // SRQ-POST-9, TYPE-2
  const Srq srq(server.ia, server.pz, 4, 4);
  const Connection connection = connect_pair(server, srq, client);
  DAT_LMR_TRIPLET nowhere{};
  nowhere.lmr_context = 0xDEADBEEF;
  nowhere.virtual_address = ~DAT_VADDR{0};
  ASSERT_THAT(post(srq, {nowhere, buffers.lmr().triplet(0, 16), nowhere, buffers.lmr().triplet(100, 16)}), Succeeds());
  EXPECT_EQ(pass_message(connection, 3, 32).transfered_length, 32u);
  fill_pattern(buffers[1].first(32), 3);
  EXPECT_TRUE(std::ranges::equal(buffers.lmr().bytes().subspan(0, 16), buffers[1].first(16)));
  EXPECT_TRUE(std::ranges::equal(buffers.lmr().bytes().subspan(100, 16), buffers[1].subspan(16, 16)));
}

TEST_P(SrqPost, SizeHasNoLimitButSixtyFourBits) {
  // SRQ-POST-10, D2-TYPE-6
  const Srq srq(server.ia, server.pz, 4, 4);
  DAT_LMR_TRIPLET huge = buffers.lmr().triplet(0, 0);
  huge.segment_length = kSegmentLengthMax / 2 + 1;
  EXPECT_THAT(post(srq, {huge, huge}), HasType(DAT_INVALID_PARAMETER)) << "the sum of the lengths wraps to 0";
  // Larger than the largest message of the endpoint, which changes nothing.
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.max_message_size = 64;
  const Connection connection = connect_pair(server, srq, client, attr);
  ASSERT_THAT(post(srq, {buffers.lmr().triplet(0, 4096)}), Succeeds());
  EXPECT_EQ(pass_message(connection, 1, 32).transfered_length, 32u);
}

TEST_P(SrqPost, SegmentOutsideItsRegionIsRefused) {
  // SRQ-POST-13
  const Srq srq(server.ia, server.pz, 4);
  const std::size_t size = buffers.lmr().bytes().size();
  DAT_LMR_TRIPLET before = buffers.lmr().triplet(0, 16);
  before.virtual_address -= 1;
  DAT_LMR_TRIPLET wrapping = buffers.lmr().triplet(16, 0);
  wrapping.segment_length = kSegmentLengthMax;
  const DAT_LMR_TRIPLET good = buffers.lmr().triplet(0, 16);
  for (const DAT_LMR_TRIPLET& bad : {before, wrapping, buffers.lmr().triplet(size - 16, 17),
                                     buffers.lmr().triplet(size, 1), buffers.lmr().triplet(0, size + 1)}) {
    EXPECT_THAT(post(srq, {bad}), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(post(srq, {good, bad}), HasType(DAT_INVALID_PARAMETER));
  }
  EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 0}));
  EXPECT_THAT(post(srq, {buffers.lmr().triplet(0, size)}), Succeeds()) << "the whole region";
  EXPECT_THAT(post(srq, {buffers.lmr().triplet(size - 1, 1)}), Succeeds()) << "its last byte";
}

TEST_P(SrqPost, SegmentOfAnotherZoneIsRefusedWhateverTheZoneOfTheEndpoints) {
  // SRQ-POST-14
  const Pz other(server.ia);
  const Lmr memory(server.ia, other, kBytes);
  const Srq srq(server.ia, server.pz, 4);
  const Ep ep(server.ia, other, evds_of(server), srq, default_srq_ep_attr());
  EXPECT_THAT(post(srq, {memory.triplet()}), HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_THAT(post(srq, {buffers.triplet(0), memory.triplet()}), HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 0}));
}

TEST_P(SrqPost, MemoryThatMayNotBeWrittenOrIsUnknownIsRefused) {
  // SRQ-POST-15
  const Srq srq(server.ia, server.pz, 4);
  Lmr freed(server.ia, server.pz, kBytes);
  const DAT_LMR_TRIPLET stale = freed.triplet();
  freed.reset();
  const Lmr read_only(server.ia, server.pz, kBytes, DAT_MEM_PRIV_LOCAL_READ_FLAG);
  const Lmr remote_only(server.ia, server.pz, kBytes, DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
  DAT_LMR_TRIPLET unknown = buffers.triplet(0);
  unknown.lmr_context ^= 0x5A5A5A5A;
  DAT_LMR_TRIPLET none = buffers.triplet(0);
  none.lmr_context = 0;
  for (const DAT_LMR_TRIPLET& bad : {stale, read_only.triplet(), remote_only.triplet(), unknown, none}) {
    EXPECT_THAT(post(srq, {bad}), HasType(DAT_PRIVILEGES_VIOLATION));
    EXPECT_THAT(post(srq, {buffers.triplet(1), bad}), HasType(DAT_PRIVILEGES_VIOLATION));
  }
  EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 0}));
  const Lmr write_only(server.ia, server.pz, kBytes, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  EXPECT_THAT(post(srq, {write_only.triplet()}), Succeeds()) << "local write is all a receive needs";
}

TEST_P(SrqPost, FullQueueRefusesAndKeepsWhatItHas) {
  // SRQ-POST-16, SRQ-ACC-6, GEN-9
  const Srq srq(server.ia, server.pz, 3);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 3);
  EXPECT_THAT(buffers.try_post(srq, 3), HasType(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_EQ(counts(srq), (Counts{.available = 3, .outstanding = 3}));
  std::vector<DAT_UINT64> cookies;
  for (int i = 0; i < 3; ++i) {
    cookies.push_back(pass_message(connection).user_cookie.as_64);
  }
  EXPECT_THAT(cookies, testing::UnorderedElementsAre(0, 1, 2)) << "a refused buffer was used or a posted one was lost";
}

TEST_P(SrqPost, BadHandlesAreRefused) {
  // SRQ-POST-17, GEN-2
  const Ep plain(server);
  DAT_LMR_TRIPLET segment = buffers.triplet(0);
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.ia.get(), server.recv.get(),
                               buffers.lmr().get(), plain.get()}) {
    const DAT_RETURN rc = dat_srq_post_recv(bad, 1, &segment, cookie(0));
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_SRQ));
  }
}

TEST_P(SrqPost, TripletsAreCopiedAndNeverWritten) {
  // SRQ-POST-26, SRQ-POST-27, SRQ-POST-28
  ASSERT_EQ(server.ia.provider().iov_ownership_on_return, DAT_IOV_CONSUMER);
  const Srq srq(server.ia, server.pz, 4);
  const Connection connection = connect_pair(server, srq, client);
  std::vector<DAT_LMR_TRIPLET> iov{buffers.lmr().triplet(0, 8), buffers.lmr().triplet(64, 100)};
  set_padding(iov[0], 0x12345678);
  const auto before = iov;
  ASSERT_THAT(dat_srq_post_recv(srq.get(), 2, iov.data(), cookie(0)), Succeeds());
  for (std::size_t i = 0; i < iov.size(); ++i) {
    EXPECT_EQ(std::memcmp(&iov[i], &before[i], sizeof iov[i]), 0) << i;
  }
  // From here on the array is the Consumer's; the memory is not, but writing to it must do no harm either.
  DAT_LMR_TRIPLET nonsense{};
  nonsense.lmr_context = 1;
  set_padding(nonsense, 2);
  nonsense.virtual_address = 3;
  nonsense.segment_length = 4;
  std::ranges::fill(iov, nonsense);
  fill_pattern(buffers.lmr().bytes(), 77);
  EXPECT_EQ(pass_message(connection, 3, 32).transfered_length, 32u);
  fill_pattern(buffers[2].first(32), 3);
  EXPECT_TRUE(std::ranges::equal(buffers.lmr().bytes().subspan(0, 8), buffers[2].first(8)));
  EXPECT_TRUE(std::ranges::equal(buffers.lmr().bytes().subspan(64, 24), buffers[2].subspan(8, 24)));
  EXPECT_EQ(iov[0].virtual_address, nonsense.virtual_address);
  EXPECT_EQ(iov[1].segment_length, nonsense.segment_length);
}

TEST_P(SrqPost, PostingNeverBlocksAndWorksWhileAnotherThreadWaits) {
  // GEN-11
  const Srq srq(server.ia, server.pz, 8);
  const Ep ep(server, srq);
  const Evd busy(server.ia, DAT_EVD_SOFTWARE_FLAG);
  Waiter waiter(busy.get());
  const auto start = std::chrono::steady_clock::now();
  buffers.post(srq, 0, 8);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_THAT(buffers.try_post(srq, 8), HasType(DAT_INSUFFICIENT_RESOURCES));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, patience());
  DAT_EVENT event{};
  event.event_number = DAT_SOFTWARE_EVENT;
  require(dat_evd_post_se(busy.get(), &event), "dat_evd_post_se");
  EXPECT_THAT(waiter.result().rc, Succeeds());
}

TEST_P(SrqPost, WorksFromANotificationUpcall) {
  // GEN-11
  struct Upcall {
    const Buffers& memory;
    const Srq& srq;
    std::atomic<DAT_RETURN> result{DAT_INTERNAL_ERROR};
  };
  const Srq srq(server.ia, server.pz, 8);
  Upcall upcall{.memory = buffers, .srq = srq};
  DAT_OS_WAIT_PROXY_AGENT agent{};
  agent.instance_data = &upcall;
  agent.proxy_agent_func = [](DAT_PVOID data, DAT_EVD_HANDLE) {
    auto& self = *static_cast<Upcall*>(data);
    self.result = self.memory.try_post(self.srq, 0);
  };
  DAT_CNO_HANDLE handle = DAT_HANDLE_NULL;
  require(dat_cno_create(server.ia.get(), agent, &handle), "dat_cno_create");
  const Owner<dat_cno_free> cno(handle);
  {
    const Evd evd(server.ia, DAT_EVD_SOFTWARE_FLAG, 8, cno.get());
    DAT_EVENT event{};
    event.event_number = DAT_SOFTWARE_EVENT;
    require(dat_evd_post_se(evd.get(), &event), "dat_evd_post_se");
    EXPECT_TRUE(eventually([&] { return upcall.result == DAT_SUCCESS; }));
  }
  EXPECT_EQ(srq.available(), 1);
}

TEST_P(SrqPost, ArrivesInTheMiddleOfTraffic) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // SRQ-POST-31
  const Srq srq(server.ia, server.pz, 4);
  const Connection connection = connect_pair(server, srq, client);
  send(connection.client, 5);
  expect_no_event(server.recv.get());
  buffers.post(srq, 2, 1);
  const auto dto = expect_completion(server.recv.get());
  EXPECT_EQ(dto.user_cookie.as_64, 2u);
  EXPECT_TRUE(has_pattern(buffers[2].first(32), 5));
  EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 0}));
}

TEST_P(SrqPost, PostingNeitherFiresNorDisarmsTheWatermark) {
  // SRQ-POST-30, SRQ-LW-9
  const Srq srq(server.ia, server.pz, 10);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 3);
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 3), Succeeds());
  buffers.post(srq, 3, 2);
  expect_no_event(server.ia.async_evd());
  pass_message(connection);
  pass_message(connection);
  expect_no_event(server.ia.async_evd());
  pass_message(connection);
  expect_low_watermark(server, srq);
  buffers.post(srq, 0, 3);
  expect_no_event(server.ia.async_evd());
}

ANYDAT_OVER_ALL_WIRES(SrqPost);

}  // namespace
}  // namespace anydat::test
