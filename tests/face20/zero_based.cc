// SPDX-License-Identifier: BSD-3-Clause
// Regions and windows of 2.0 whose bytes are named by their offset, over each wire: local segments, a peer's RDMA,
// binds.
#include <algorithm>
#include <cstring>
#include <vector>

#include "face20/fixture.h"

namespace anydat::test {
namespace {

constexpr std::size_t kRegionBytes = 64 << 10;

// A region of memory of its own.
class Region {
 public:
  Region(const Side& side, DAT_VA_TYPE type, unsigned rights = DAT_MEM_PRIV_ALL_FLAG, std::size_t bytes = kRegionBytes)
      : memory_(bytes) {
    DAT_REGION_DESCRIPTION description{};
    description.for_va = memory_.data();
    require(
        dat_lmr_create(side.ia.get(), DAT_MEM_TYPE_VIRTUAL, description, bytes, side.pz.get(),
                       static_cast<DAT_MEM_PRIV_FLAGS>(rights), type, &handle_, &local_, &remote_, &size_, &address_),
        "dat_lmr_create");
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { EXPECT_THAT(dat_lmr_free(handle_), Succeeds()); }

  DAT_LMR_HANDLE get() const { return handle_; }
  std::byte* data() { return memory_.data(); }
  DAT_VADDR first_byte() const { return reinterpret_cast<DAT_VADDR>(memory_.data()); }
  DAT_VADDR registered_address() const { return address_; }
  DAT_VLEN registered_size() const { return size_; }
  DAT_RMR_CONTEXT remote_context() const { return remote_; }
  // As the program names bytes: whatever `at` is.
  DAT_LMR_TRIPLET segment(DAT_VADDR at, std::size_t length) const {
    DAT_LMR_TRIPLET triplet{};
    triplet.virtual_address = at;
    triplet.segment_length = static_cast<DAT_SEG_LENGTH>(length);
    triplet.lmr_context = local_;
    return triplet;
  }

 private:
  std::vector<std::byte> memory_;
  DAT_LMR_HANDLE handle_ = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT local_ = 0;
  DAT_RMR_CONTEXT remote_ = 0;
  DAT_VLEN size_ = 0;
  DAT_VADDR address_ = 77;
};

DAT_RMR_TRIPLET remote(DAT_RMR_CONTEXT context, DAT_VADDR at, std::size_t length) {
  DAT_RMR_TRIPLET triplet{};
  triplet.virtual_address = at;
  triplet.segment_length = static_cast<DAT_SEG_LENGTH>(length);
  triplet.rmr_context = context;
  return triplet;
}

void fill(std::byte* to, std::size_t count, int seed) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(seed));
}

class Dat2ZeroBased : public Dat2 {
 protected:
  void SetUp() override {
    if (server.ia.attributes().zb_supported != DAT_TRUE) GTEST_SKIP() << "the adapter has none";
  }
  // The client's, and what it comes to.
  static DAT_DTO_COMPLETION_STATUS outcome(const Side& side, DAT_RETURN posted) {
    EXPECT_THAT(posted, Succeeds());
    const DAT_EVENT event = expect_event(side.request.get(), DAT_DTO_COMPLETION_EVENT);
    return event.event_data.dto_completion_event_data.status;
  }
  DAT_DTO_COMPLETION_STATUS write(const Ep& ep, DAT_LMR_TRIPLET from, DAT_RMR_TRIPLET to) const {
    return outcome(client, dat_ep_post_rdma_write(ep.get(), 1, &from, {}, &to, DAT_COMPLETION_DEFAULT_FLAG));
  }
  DAT_DTO_COMPLETION_STATUS read(const Ep& ep, DAT_LMR_TRIPLET to, DAT_RMR_TRIPLET from) const {
    return outcome(client, dat_ep_post_rdma_read(ep.get(), 1, &to, {}, &from, DAT_COMPLETION_DEFAULT_FLAG));
  }
};
INSTANTIATE_TEST_SUITE_P(Wires, Dat2ZeroBased, testing::ValuesIn(all_wires()), wire_name);

// D2-LMR-3, D2-LMR-8, D2-LMR-5: what a region's own va_type shows, and its copy's.
TEST_P(Dat2ZeroBased, AQueryTellsTheTypeOfTheAddresses) {
  Region region(server, DAT_VA_TYPE_ZB);
  EXPECT_EQ(region.registered_address(), 0u);
  EXPECT_EQ(region.registered_size(), kRegionBytes);
  DAT_LMR_PARAM param{};
  require(dat_lmr_query(region.get(), DAT_LMR_FIELD_ALL, &param), "dat_lmr_query");
  EXPECT_EQ(param.va_type, DAT_VA_TYPE_ZB);
  EXPECT_EQ(param.registered_address, 0u);
  EXPECT_EQ(param.registered_size, kRegionBytes);
  EXPECT_EQ(param.region_desc.for_va, region.data());
  EXPECT_EQ(param.mem_priv, DAT_MEM_PRIV_ALL_FLAG);
  DAT_REGION_DESCRIPTION description{};
  description.for_lmr_handle = region.get();
  DAT_LMR_HANDLE copy = DAT_HANDLE_NULL;
  DAT_VADDR address = 0;
  for (const DAT_VA_TYPE type : {DAT_VA_TYPE_VA, DAT_VA_TYPE_ZB}) {
    require(dat_lmr_create(server.ia.get(), DAT_MEM_TYPE_LMR, description, 0, server.pz.get(), DAT_MEM_PRIV_ALL_FLAG,
                           type, &copy, nullptr, nullptr, nullptr, &address),
            "dat_lmr_create");
    require(dat_lmr_query(copy, DAT_LMR_FIELD_ALL, &param), "dat_lmr_query");
    EXPECT_EQ(param.va_type, type);
    EXPECT_EQ(address, type == DAT_VA_TYPE_ZB ? 0 : region.first_byte());
    EXPECT_THAT(dat_lmr_free(copy), Succeeds());
  }
}

// D2-LMR-2, D2-LMR-6: local segments and the peer's, short and long, for each kind of transfer; the ends of the
// connection know nothing of each other's kind.
TEST_P(Dat2ZeroBased, TripletsHoldOffsets) {
  const Connection connection = connect_pair(server, client);
  Region there(server, DAT_VA_TYPE_ZB);
  Region here(client, DAT_VA_TYPE_ZB);
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{3000}, std::size_t{40000}}) {
    const std::size_t at = 24;
    fill(here.data() + 16, bytes, 1);
    EXPECT_EQ(write(connection.client, here.segment(16, bytes), remote(there.remote_context(), at, bytes)),
              DAT_DTO_SUCCESS);
    std::memset(here.data(), 0, kRegionBytes);
    EXPECT_EQ(read(connection.client, here.segment(64, bytes), remote(there.remote_context(), at, bytes)),
              DAT_DTO_SUCCESS);
    EXPECT_EQ(std::memcmp(here.data() + 64, there.data() + at, bytes), 0);
    EXPECT_EQ(here.data()[64 + 2], static_cast<std::byte>(2 * 7 + 1));
    // A message, of two segments and into two.
    std::memset(there.data(), 0, kRegionBytes);
    DAT_LMR_TRIPLET into[] = {there.segment(100, 4), there.segment(0, bytes)};
    require(dat_ep_post_recv(connection.server.get(), 2, into, {}, DAT_COMPLETION_DEFAULT_FLAG), "recv");
    DAT_LMR_TRIPLET from[] = {here.segment(64, bytes - 4), here.segment(64 + bytes - 4, 4)};
    EXPECT_EQ(outcome(client, dat_ep_post_send(connection.client.get(), 2, from, {}, DAT_COMPLETION_DEFAULT_FLAG)),
              DAT_DTO_SUCCESS);
    EXPECT_EQ(expect_completion(server.recv.get()).transfered_length, bytes);
    EXPECT_EQ(std::memcmp(there.data(), here.data() + 68, std::min<std::size_t>(bytes - 4, 100)), 0);
  }
  DAT_LMR_TRIPLET part = there.segment(kRegionBytes - 8, 8);
  EXPECT_THAT(dat_lmr_sync_rdma_read(server.ia.get(), &part, 1), Succeeds());
  part = there.segment(kRegionBytes - 7, 8);
  EXPECT_THAT(dat_lmr_sync_rdma_read(server.ia.get(), &part, 1), HasType(DAT_INVALID_PARAMETER));
}

// A shared queue's receives are checked in the same way.
TEST_P(Dat2ZeroBased, ReceivesOfASharedQueueHoldOffsets) {
  const Srq srq(server.ia, server.pz, 4);
  Region there(server, DAT_VA_TYPE_ZB);
  DAT_LMR_TRIPLET part = there.segment(kRegionBytes - 64, 64);
  EXPECT_THAT(dat_srq_post_recv(srq.get(), 1, &part, {}), Succeeds());
  part = there.segment(there.first_byte(), 64);
  EXPECT_THAT(dat_srq_post_recv(srq.get(), 1, &part, {}), HasType(DAT_INVALID_PARAMETER));
}

// D2-LMR-4.
TEST_P(Dat2ZeroBased, BoundsAreExact) {
  Region there(server, DAT_VA_TYPE_ZB);
  Region here(client, DAT_VA_TYPE_ZB);
  {
    const Connection connection = connect_pair(server, client);
    const DAT_RMR_TRIPLET to = remote(there.remote_context(), 0, 8);
    for (const DAT_VADDR at : {DAT_VADDR{kRegionBytes - 7}, here.first_byte(), ~DAT_VADDR{0} - 3}) {
      DAT_LMR_TRIPLET from = here.segment(at, 8);
      EXPECT_THAT(dat_ep_post_rdma_write(connection.client.get(), 1, &from, {}, &to, DAT_COMPLETION_DEFAULT_FLAG),
                  HasType(DAT_INVALID_PARAMETER));
    }
    EXPECT_EQ(write(connection.client, here.segment(kRegionBytes - 8, 8),
                    remote(there.remote_context(), kRegionBytes - 8, 8)),
              DAT_DTO_SUCCESS);
  }
  for (const DAT_VADDR at : {DAT_VADDR{kRegionBytes - 7}, there.first_byte(), ~DAT_VADDR{0} - 3}) {
    const Connection connection = connect_pair(server, client);
    EXPECT_EQ(read(connection.client, here.segment(0, 8), remote(there.remote_context(), at, 8)),
              DAT_DTO_ERR_REMOTE_ACCESS);
    (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  }
}

// D2-RMR-7, D2-RMR-8: a window's type is its own; the triplet names the bytes as its region has them named.
TEST_P(Dat2ZeroBased, AWindowHasATypeOfItsOwn) {
  const Connection connection = connect_pair(server, client);
  Region here(client, DAT_VA_TYPE_VA);
  constexpr std::size_t kStart = 4096;
  constexpr std::size_t kLength = 256;
  for (const DAT_VA_TYPE region_type : {DAT_VA_TYPE_VA, DAT_VA_TYPE_ZB}) {
    Region there(server, region_type, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
    DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
    require(dat_rmr_create(server.pz.get(), &rmr), "dat_rmr_create");
    const DAT_LMR_TRIPLET part =
        there.segment(region_type == DAT_VA_TYPE_ZB ? kStart : there.first_byte() + kStart, kLength);
    for (const DAT_VA_TYPE type : {DAT_VA_TYPE_VA, DAT_VA_TYPE_ZB}) {
      DAT_RMR_CONTEXT context = 0;
      const auto rights =
          static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
      require(dat_rmr_bind(rmr, there.get(), &part, rights, type, connection.server.get(), {},
                           DAT_COMPLETION_DEFAULT_FLAG, &context),
              "dat_rmr_bind");
      (void)expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
      DAT_RMR_PARAM param{};
      require(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param), "dat_rmr_query");
      EXPECT_EQ(param.va_type, type);
      EXPECT_EQ(param.mem_priv, rights);
      EXPECT_EQ(param.lmr_triplet.virtual_address, part.virtual_address);
      const DAT_VADDR first = type == DAT_VA_TYPE_ZB ? 0 : there.first_byte() + kStart;
      fill(here.data(), 100, static_cast<int>(type) + 5);
      EXPECT_EQ(
          write(connection.client, here.segment(here.first_byte(), 100), remote(context, first + kLength - 100, 100)),
          DAT_DTO_SUCCESS);
      EXPECT_EQ(read(connection.client, here.segment(here.first_byte() + 200, 100),
                     remote(context, first + kLength - 100, 100)),
                DAT_DTO_SUCCESS);
      EXPECT_EQ(std::memcmp(here.data() + 200, here.data(), 100), 0);
      EXPECT_EQ(std::memcmp(there.data() + kStart + kLength - 100, here.data(), 100), 0);
      // A window is no region of the program's own.
      DAT_LMR_TRIPLET wrong = part;
      wrong.lmr_context = context;
      wrong.virtual_address = first;
      EXPECT_THAT(dat_ep_post_recv(connection.server.get(), 1, &wrong, {}, DAT_COMPLETION_DEFAULT_FLAG),
                  HasType(DAT_PRIVILEGES_VIOLATION));
    }
    EXPECT_THAT(dat_rmr_free(rmr), Succeeds());
  }
}

// D2-RMR-7: no byte beside a zero-based window is reached through it.
TEST_P(Dat2ZeroBased, AWindowEndsWhereItsPartDoes) {
  Region here(client, DAT_VA_TYPE_VA);
  Region there(server, DAT_VA_TYPE_VA);
  for (const DAT_VADDR at : {DAT_VADDR{249}, there.first_byte() + 512, ~DAT_VADDR{0} - 7}) {
    const Connection connection = connect_pair(server, client);
    DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
    require(dat_rmr_create(server.pz.get(), &rmr), "dat_rmr_create");
    const DAT_LMR_TRIPLET part = there.segment(there.first_byte() + 512, 256);
    DAT_RMR_CONTEXT context = 0;
    require(dat_rmr_bind(rmr, there.get(), &part, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_ZB,
                         connection.server.get(), {}, DAT_COMPLETION_DEFAULT_FLAG, &context),
            "dat_rmr_bind");
    (void)expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
    EXPECT_EQ(read(connection.client, here.segment(here.first_byte(), 8), remote(context, at, 8)),
              DAT_DTO_ERR_REMOTE_ACCESS);
    (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    EXPECT_THAT(dat_rmr_free(rmr), Succeeds());
  }
}

}  // namespace
}  // namespace anydat::test
