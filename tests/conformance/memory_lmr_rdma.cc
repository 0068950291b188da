// SPDX-License-Identifier: BSD-3-Clause
// What a peer's RDMA sees of regions of each type, and of memory around the two sync calls: sections 0.4, 6.2 and 6.4
// of the rules.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "rdma_fixture.h"
#include "support/versions.h"

namespace anydat::test {
namespace {

class LmrRdma : public RdmaTest {
 protected:
  // The client reads `length` bytes from the start of the target into the start of its own memory.
  void read(const Pair& pair, std::size_t length) {
    require(rdma_read(pair.client, local.triplet(0, length), target.remote(0, length), 1), "dat_ep_post_rdma_read");
    expect_completion(pair.client_evds.request.get());
  }
  void sync(decltype(&dat_lmr_sync_rdma_read) call, std::size_t length) {
    DAT_LMR_TRIPLET segment = target.triplet(0, length);
    ASSERT_THAT(call(server.ia.get(), &segment, 1), Succeeds());
  }
};

TEST_P(LmrRdma, ReadsSeeWhatWasWrittenBeforeTheSync) {
  // LMR-SYNC-2
  const Pair pair = make_connected_pair();
  for (DAT_UINT64 round = 1; round <= 20; ++round) {
    fill_pattern(target.bytes().first(5000), round);
    sync(&dat_lmr_sync_rdma_read, 5000);
    read(pair, 5000);
    EXPECT_TRUE(has_pattern(local.bytes().first(5000), round)) << "round " << round;
  }
}

TEST_P(LmrRdma, WrittenDataAreThereAfterTheSync) {
  // LMR-SYNC-3
  const Pair pair = make_connected_pair();
  for (DAT_UINT64 round = 1; round <= 20; ++round) {
    fill_pattern(local.bytes().first(5000), round);
    ASSERT_THAT(rdma_write(pair.client, local.triplet(0, 5000), target.remote(0, 5000), round), Succeeds());
    pass_message(pair);  // the Write has ended: its originator says so
    sync(&dat_lmr_sync_rdma_write, 5000);
    EXPECT_TRUE(has_pattern(target.bytes().first(5000), round)) << "round " << round;
    expect_completion(pair.client_evds.request.get());
  }
}

TEST_P(LmrRdma, OwnAndPeersWritesTakeTurnsAroundTheSync) {
  // LMR-SYNC-4: neither side's bytes are lost where the other wrote its own.
  const Pair pair = make_connected_pair();
  const auto bytes = target.bytes();
  for (DAT_UINT64 round = 1; round <= 20; ++round) {
    fill_pattern(bytes.first(300), 1000 + round);
    sync(&dat_lmr_sync_rdma_write, 300);
    fill_pattern(local.bytes().first(100), round);
    ASSERT_THAT(rdma_write(pair.client, local.triplet(0, 100), target.remote(100, 100), round), Succeeds());
    pass_message(pair);
    sync(&dat_lmr_sync_rdma_write, 300);
    EXPECT_TRUE(has_pattern(bytes.subspan(100, 100), round));
    std::vector<std::byte> own(300);
    fill_pattern(own, 1000 + round);
    EXPECT_TRUE(std::ranges::equal(bytes.first(100), std::span(own).first(100)));
    EXPECT_TRUE(std::ranges::equal(bytes.subspan(200, 100), std::span(own).subspan(200, 100)));
    expect_completion(pair.client_evds.request.get());
  }
}

TEST_P(LmrRdma, ATripletIsUsedAsItWasGiven) {
  // TYPE-3, TYPE-1, LMR-CREATE-7: the consumers pass it on as bytes in the order of their host; whatever the wire needs
  // is the Provider's business.
  const Pair pair = make_connected_pair();
  const DAT_RMR_TRIPLET exported = target.remote(12'345, 777);
  Lmr letter(server.ia, server.pz, sizeof exported);
  std::memcpy(letter.bytes().data(), &exported, sizeof exported);
  post_recv(pair.client, client_buffers, 0);
  DAT_LMR_TRIPLET segment = letter.triplet();
  ASSERT_THAT(dat_ep_post_send(pair.server.get(), 1, &segment, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  expect_completion(pair.client_evds.recv.get());
  DAT_RMR_TRIPLET received{};
  std::memcpy(&received, client_buffers[0].data(), sizeof received);
  set_padding(received, 0xFFFFFFFF);  // TYPE-1: ignored
  fill_pattern(target.bytes().subspan(12'345, 777), 5);
  ASSERT_THAT(rdma_read(pair.client, local.triplet(0, 777), received, 2), Succeeds());
  EXPECT_EQ(expect_completion(pair.client_evds.request.get()).transfered_length, 777u);
  EXPECT_TRUE(has_pattern(local.bytes().first(777), 5));
}

TEST_P(LmrRdma, ARegionOverARegionIsReachedByItsOwnRights) {
  // LMR-CREATE-11, LMR-CREATE-12
  std::vector<std::byte> memory(256);
  DAT_LMR_HANDLE copy = DAT_HANDLE_NULL;
  DAT_RMR_CONTEXT context = 0;
  {
    const Lmr original(server.ia, server.pz, std::span(memory), DAT_MEM_PRIV_NONE_FLAG);
    DAT_REGION_DESCRIPTION region{};
    region.for_lmr_handle = original.get();
    ASSERT_THAT(dat_lmr_create(server.ia.get(), DAT_MEM_TYPE_LMR, region, 0, server.pz.get(),
                               DAT_MEM_PRIV_REMOTE_READ_FLAG, &copy, nullptr, &context, nullptr, nullptr),
                Succeeds());
  }
  const Pair pair = make_connected_pair();
  fill_pattern(memory, 4);
  ASSERT_THAT(rdma_read(pair.client, local.triplet(0, 256), remote_triplet(context, memory.data(), 256), 1),
              Succeeds());
  expect_completion(pair.client_evds.request.get());
  EXPECT_TRUE(has_pattern(local.bytes().first(256), 4));
  const DAT_RETURN rc = rdma_write(pair.client, local.triplet(0, 256), remote_triplet(context, memory.data(), 256), 2);
  expect_remote_refusal(pair, Rdma::kWrite, rc);
  EXPECT_THAT(dat_lmr_free(copy), Succeeds());
}

TEST_P(LmrRdma, SharedMemoryIsReachedLikeAnyOther) {
  // LMR-CREATE-13
  constexpr std::size_t kShared = 8192;
  void* const shared = ::mmap(nullptr, kShared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  const std::span<std::byte> bytes(static_cast<std::byte*>(shared), kShared);
  std::array<char, DAT_LMR_COOKIE_SIZE> id{};
  DAT_REGION_DESCRIPTION region{};
  region.for_shared_memory.virtual_address = shared;
  region.for_shared_memory.shared_memory_id = reinterpret_cast<DAT_LMR_COOKIE>(id.data());
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  DAT_RMR_CONTEXT context = 0;
  ASSERT_THAT(dat_lmr_create(server.ia.get(), DAT_MEM_TYPE_SHARED_VIRTUAL, region, kShared, server.pz.get(),
                             DAT_MEM_PRIV_ALL_FLAG, &lmr, nullptr, &context, nullptr, nullptr),
              Succeeds());
  const Pair pair = make_connected_pair();
  fill_pattern(bytes, 6);
  ASSERT_THAT(rdma_read(pair.client, local.triplet(0, kShared), remote_triplet(context, shared, kShared), 1),
              Succeeds());
  expect_completion(pair.client_evds.request.get());
  EXPECT_TRUE(has_pattern(local.bytes().first(kShared), 6));
  fill_pattern(local.bytes().first(kShared), 7);
  ASSERT_THAT(rdma_write(pair.client, local.triplet(0, kShared), remote_triplet(context, shared, kShared), 2),
              Succeeds());
  expect_completion(pair.client_evds.request.get());
  pass_message(pair);
  EXPECT_TRUE(has_pattern(bytes, 7));
  EXPECT_THAT(dat_lmr_free(lmr), Succeeds());
  ::munmap(shared, kShared);
}

ANYDAT_OVER_ALL_WIRES(LmrRdma);

}  // namespace
}  // namespace anydat::test
