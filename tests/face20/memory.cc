// SPDX-License-Identifier: BSD-3-Clause
// Memory of 2.0: what has been added to regions and windows, and what is not there.
#include <sys/mman.h>

#include "face20/fixture.h"

namespace anydat::test {
namespace {

using Dat2Memory = Dat2;
INSTANTIATE_TEST_SUITE_P(Wires, Dat2Memory, testing::ValuesIn(all_wires()), wire_name);

DAT_RETURN create(const Side& side, std::span<std::byte> memory, DAT_MEM_TYPE type, unsigned rights,
                  DAT_VA_TYPE va_type, DAT_LMR_HANDLE* lmr) {
  DAT_REGION_DESCRIPTION description{};
  description.for_va = memory.data();
  return dat_lmr_create(side.ia.get(), type, description, memory.size(), side.pz.get(),
                        static_cast<DAT_MEM_PRIV_FLAGS>(rights), va_type, lmr, nullptr, nullptr, nullptr, nullptr);
}

// D2-LMR-1, D2-LMR-2, D2-LMR-7, D2-IA-5: zero-based regions work where the attribute says so.
TEST_P(Dat2Memory, ARegionsAddressesAreWhatItsTypeSays) {
  std::vector<std::byte> memory(64);
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  const auto type = DAT_MEM_TYPE_VIRTUAL;
  EXPECT_THAT(create(server, memory, type, DAT_MEM_PRIV_ALL_FLAG, static_cast<DAT_VA_TYPE>(2), &lmr),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(create(server, memory, static_cast<DAT_MEM_TYPE>(3), DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr),
              HasType(DAT_INVALID_PARAMETER));
  if (server.ia.attributes().extension_supported == DAT_EXTENSION_NONE) {
    EXPECT_THAT(create(server, memory, type, DAT_MEM_PRIV_ALL_FLAG | 0x40U, DAT_VA_TYPE_VA, &lmr),
                HasType(DAT_INVALID_PARAMETER));
  }
  for (const unsigned bit : {0x04U, 0x80U, 0x100U, 0x1000U}) {  // 0x100 is known to programs of 1.2 alone
    EXPECT_THAT(create(server, memory, type, DAT_MEM_PRIV_ALL_FLAG | bit, DAT_VA_TYPE_VA, &lmr),
                HasType(DAT_INVALID_PARAMETER))
        << std::hex << bit;
  }
  const DAT_RETURN zero_based = create(server, memory, type, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, &lmr);
  if (server.ia.attributes().zb_supported == DAT_FALSE) {
    EXPECT_THAT(zero_based, HasType(DAT_MODEL_NOT_SUPPORTED));
  } else {
    ASSERT_THAT(zero_based, Succeeds());
    EXPECT_THAT(dat_lmr_free(lmr), Succeeds());
  }
  ASSERT_THAT(create(server, memory, type, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr), Succeeds());
  DAT_LMR_PARAM param;
  std::memset(static_cast<void*>(&param), 0xff, sizeof param);
  ASSERT_THAT(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param), Succeeds());  // D2-LMR-8
  EXPECT_EQ(param.va_type, DAT_VA_TYPE_VA);
  EXPECT_EQ(param.registered_size, 64U);
  EXPECT_THAT(dat_lmr_free(lmr), Succeeds());
}

// D2-RMR-1, D2-RMR-5, D2-RMR-6, D2-RMR-8.
TEST_P(Dat2Memory, ABindNamesItsRegionTwice) {
  const Connection connection = connect_pair(server, client);
  const Lmr one(server.ia, server.pz, 64);
  const Lmr other(server.ia, server.pz, 64);
  DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
  require(dat_rmr_create(server.pz.get(), &rmr), "dat_rmr_create");
  const DAT_LMR_TRIPLET triplet = one.triplet();
  DAT_RMR_CONTEXT context = 0;
  const auto bind = [&](DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET& part) {
    return dat_rmr_bind(rmr, lmr, &part, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA, connection.server.get(), {},
                        DAT_COMPLETION_DEFAULT_FLAG, &context);
  };
  EXPECT_THAT(bind(other.get(), triplet), HasType(DAT_INVALID_PARAMETER));
  const DAT_RETURN rc = bind(rmr, triplet);
  EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_LMR));
  ASSERT_THAT(bind(one.get(), triplet), Succeeds());
  (void)expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);  // D2-EVT-7
  EXPECT_NE(context, 0U);
  DAT_RMR_PARAM param;
  std::memset(static_cast<void*>(&param), 0xff, sizeof param);
  ASSERT_THAT(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param), Succeeds());
  EXPECT_EQ(param.rmr_scope, DAT_RMR_SCOPE_PZ);
  EXPECT_EQ(param.va_type, DAT_VA_TYPE_VA);
  EXPECT_EQ(param.lmr_triplet.virtual_address, triplet.virtual_address);
  EXPECT_EQ(param.lmr_triplet.segment_length, 64U);
  EXPECT_EQ(param.lmr_triplet.lmr_context, one.context());
  ASSERT_THAT(bind(DAT_HANDLE_NULL, DAT_LMR_TRIPLET{}), Succeeds()) << "an unbind needs no region";
  (void)expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  EXPECT_THAT(dat_rmr_free(rmr), Succeeds());
}

// D2-SENDINV-1, D2-SENDINV-2, D2-SENDINV-5.
TEST_P(Dat2Memory, ASendThatInvalidatesNothingIsASend) {
  const Connection connection = connect_pair(server, client);
  const Lmr to(server.ia, server.pz, 64);
  const Lmr from(client.ia, client.pz, 64);
  DAT_LMR_TRIPLET segment = to.triplet();
  require(dat_ep_post_recv(connection.server.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "recv");
  segment = from.triplet();
  const DAT_EP_HANDLE ep = connection.client.get();
  EXPECT_THAT(dat_ep_post_send_with_invalidate(ep, 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE, 0),
              HasType(DAT_INVALID_PARAMETER));
  ASSERT_THAT(dat_ep_post_send_with_invalidate(ep, 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG, DAT_FALSE, 77),
              Succeeds());
  EXPECT_EQ(expect_completion(client.request.get()).operation, DAT_DTO_SEND);
  EXPECT_EQ(expect_completion(server.recv.get()).operation, DAT_DTO_RECEIVE);
}

// The habit of dtest (src/face/habits.cc), which 2.0 allows unless DAT_COMPAT says otherwise: what an endpoint was
// created with is told, and does not bound what it moves.
TEST_P(Dat2Memory, ATransferMayBeLongerThanTheSizesOfItsEndpoint) {
  constexpr std::size_t kLength = 8192;
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_rdma_size = attr.max_message_size = kLength / 2;
  const Ep to(server);
  const Ep from(client.ia, client.pz, evds_of(client), attr);
  connect_pair(server, to.get(), from.get());
  EXPECT_EQ(from.query().ep_attr.max_rdma_size, kLength / 2);
  const Lmr target(server.ia, server.pz, kLength);
  const Lmr source(client.ia, client.pz, kLength);
  const DAT_LMR_TRIPLET segment = source.triplet();
  const DAT_RMR_TRIPLET remote = target.remote(0, kLength);
  ASSERT_THAT(dat_ep_post_rdma_write(from.get(), 1, const_cast<DAT_LMR_TRIPLET*>(&segment), {}, &remote,
                                     DAT_COMPLETION_DEFAULT_FLAG),
              Succeeds());
  EXPECT_EQ(expect_completion(client.request.get()).transfered_length, kLength);
}

// One segment, and behind it memory that cannot be read.
class LoneSegment {
 public:
  LoneSegment() {
    segment_ = reinterpret_cast<DAT_LMR_TRIPLET*>(pages_ + kPage) - 1;
    EXPECT_EQ(::mprotect(pages_ + kPage, kPage, PROT_NONE), 0);
  }
  LoneSegment(const LoneSegment&) = delete;
  LoneSegment& operator=(const LoneSegment&) = delete;
  ~LoneSegment() { ::munmap(pages_, 2 * kPage); }
  DAT_LMR_TRIPLET* get() const { return segment_; }

 private:
  static constexpr std::size_t kPage = 4096;
  std::byte* const pages_ =
      static_cast<std::byte*>(::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  DAT_LMR_TRIPLET* segment_;
};

// DTO-5, SRQ-POST-6: a post with too many segments is refused by their number, and they are not read.
TEST_P(Dat2Memory, SegmentsOfATooLargeCountAreNotRead) {
  const Connection connection = connect_pair(server, client);
  const Srq srq(client.ia, client.pz, 16);
  const LoneSegment lone;
  DAT_RMR_TRIPLET remote{};
  const DAT_EP_HANDLE ep = connection.client.get();
  const auto flags = DAT_COMPLETION_DEFAULT_FLAG;
  for (const DAT_COUNT count : {1000000, 65, 64, 33, -1}) {
    EXPECT_THAT(dat_ep_post_recv(ep, count, lone.get(), {}, flags), HasType(DAT_INVALID_PARAMETER)) << count;
    EXPECT_THAT(dat_ep_post_send(ep, count, lone.get(), {}, flags), HasType(DAT_INVALID_PARAMETER)) << count;
    EXPECT_THAT(dat_ep_post_rdma_read(ep, count, lone.get(), {}, &remote, flags), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(dat_ep_post_rdma_write(ep, count, lone.get(), {}, &remote, flags), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(dat_srq_post_recv(srq.get(), count, lone.get(), {}), HasType(DAT_INVALID_PARAMETER)) << count;
  }
}

}  // namespace
}  // namespace anydat::test
