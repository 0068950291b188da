// SPDX-License-Identifier: BSD-3-Clause
// Regions over other regions and over shared memory: section 6.2 of the rules.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "ep_fixture.h"

namespace anydat::test {
namespace {

using Identifier = std::array<char, DAT_LMR_COOKIE_SIZE>;

struct Registered {
  DAT_LMR_HANDLE handle = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT context = 0;
  DAT_RMR_CONTEXT rmr_context = 0;
  DAT_VLEN size = 0;
  DAT_VADDR address = 0;

  DAT_LMR_TRIPLET triplet(std::size_t length) const {
    DAT_LMR_TRIPLET result{};
    result.lmr_context = context;
    result.virtual_address = address;
    result.segment_length = length;
    return result;
  }
};

DAT_RETURN create(const Side& side, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length, const Pz& pz,
                  DAT_MEM_PRIV_FLAGS privileges, Registered& out) {
  return dat_lmr_create(side.ia.get(), type, region, length, pz.get(), privileges, &out.handle, &out.context,
                        &out.rmr_context, &out.size, &out.address);
}

DAT_RETURN create_from(const Side& side, DAT_LMR_HANDLE original, const Pz& pz, DAT_MEM_PRIV_FLAGS privileges,
                       Registered& out) {
  DAT_REGION_DESCRIPTION region{};
  region.for_lmr_handle = original;
  return create(side, DAT_MEM_TYPE_LMR, region, 12345, pz, privileges, out);  // the length is ignored
}

DAT_RETURN create_shared(const Side& side, void* address, DAT_VLEN length, Identifier& id, Registered& out) {
  DAT_REGION_DESCRIPTION region{};
  region.for_shared_memory.virtual_address = address;
  region.for_shared_memory.shared_memory_id = reinterpret_cast<DAT_LMR_COOKIE>(id.data());
  return create(side, DAT_MEM_TYPE_SHARED_VIRTUAL, region, length, side.pz, DAT_MEM_PRIV_ALL_FLAG, out);
}

// Anonymous memory of the given kind of mapping.
class Mapping {
 public:
  Mapping(std::size_t size, int kind) : size_(size) {
    address_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    if (address_ == MAP_FAILED) {
      throw std::runtime_error("mmap failed");
    }
  }
  ~Mapping() { ::munmap(address_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(address_), size_}; }

 private:
  void* address_;
  std::size_t size_;
};

class LmrTypes : public EpTest {};

TEST_P(LmrTypes, AllThreeAreSupported) {
  // LMR-CREATE-16, ATTR-1
  const int supported = server.ia.provider().lmr_mem_types_supported;
  EXPECT_NE(supported & DAT_MEM_TYPE_LMR, 0);
  EXPECT_NE(supported & DAT_MEM_TYPE_SHARED_VIRTUAL, 0);
}

TEST_P(LmrTypes, ARegionOverARegionHasItsOwnRights) {
  // LMR-CREATE-11, LMR-CREATE-8, LMR-QUERY-1, LMR-QUERY-2
  const Pz other(server.ia);
  const Lmr original(server.ia, server.pz, 500, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  Registered copy;
  ASSERT_THAT(create_from(server, original.get(), other, DAT_MEM_PRIV_ALL_FLAG, copy), Succeeds());
  EXPECT_EQ(copy.size, 500u);
  EXPECT_EQ(copy.address, reinterpret_cast<DAT_VADDR>(original.bytes().data()));
  EXPECT_NE(copy.context, original.context());
  EXPECT_NE(copy.rmr_context, 0u);
  DAT_LMR_PARAM param{};
  ASSERT_THAT(dat_lmr_query(copy.handle, DAT_LMR_FIELD_ALL, &param), Succeeds());
  EXPECT_EQ(param.mem_type, DAT_MEM_TYPE_LMR);
  EXPECT_EQ(param.region_desc.for_lmr_handle, original.get());
  EXPECT_EQ(param.length, 500u);
  EXPECT_EQ(param.pz_handle, other.get());
  EXPECT_EQ(param.mem_priv, DAT_MEM_PRIV_ALL_FLAG);
  const Ep ep(server.ia, other, evds_of(server), default_ep_attr());
  DAT_LMR_TRIPLET segment = copy.triplet(500);
  EXPECT_THAT(dat_ep_post_recv(ep.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  segment = original.triplet();
  EXPECT_THAT(dat_ep_post_recv(ep.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG),
              HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_THAT(dat_lmr_free(copy.handle), Succeeds());
}

TEST_P(LmrTypes, ARegionOverARegionOutlivesIt) {
  // LMR-CREATE-12
  std::vector<std::byte> memory(256);
  Registered copy;
  {
    const Lmr original(server.ia, server.pz, std::span(memory));
    ASSERT_THAT(create_from(server, original.get(), server.pz, DAT_MEM_PRIV_ALL_FLAG, copy), Succeeds());
  }
  const Pair pair = make_connected_pair();
  DAT_LMR_TRIPLET segment = copy.triplet(256);
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  post_send(pair.client, client_buffers, 3, 1, 256);
  expect_completion(pair.server_evds.recv.get());
  EXPECT_TRUE(has_pattern(memory, 3));
  EXPECT_THAT(dat_lmr_free(copy.handle), Succeeds());
}

TEST_P(LmrTypes, ARegionOverARegionNeedsOne) {
  // LMR-CREATE-20, GEN-2, GEN-12
  Lmr freed(server.ia, server.pz, 64);
  const DAT_LMR_HANDLE stale = freed.get();
  freed.reset();
  const Lmr of_another_instance(client.ia, client.pz, 64);
  Registered copy;
  for (const DAT_HANDLE bad :
       {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, server.pz.get(), of_another_instance.get()}) {
    const DAT_RETURN rc = create_from(server, bad, server.pz, DAT_MEM_PRIV_ALL_FLAG, copy);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_LMR));
  }
}

TEST_P(LmrTypes, SharedMemoryIsUsedLikeAnyOther) {
  // LMR-CREATE-13, LMR-QUERY-1
  const Mapping mapping(8192, MAP_SHARED);
  Identifier id{};
  std::strcpy(id.data(), "a segment");
  const Identifier given = id;
  Registered lmr;
  ASSERT_THAT(create_shared(server, mapping.bytes().data(), 8192, id, lmr), Succeeds());
  EXPECT_EQ(lmr.size, 8192u);
  EXPECT_EQ(lmr.address, reinterpret_cast<DAT_VADDR>(mapping.bytes().data()));
  id.fill('x');  // LMR-CREATE-14: it was read during the call
  DAT_LMR_PARAM param{};
  ASSERT_THAT(dat_lmr_query(lmr.handle, DAT_LMR_FIELD_ALL, &param), Succeeds());
  EXPECT_EQ(param.mem_type, DAT_MEM_TYPE_SHARED_VIRTUAL);
  EXPECT_EQ(param.length, 8192u);
  EXPECT_EQ(param.region_desc.for_shared_memory.virtual_address, mapping.bytes().data());
  const DAT_LMR_COOKIE kept = param.region_desc.for_shared_memory.shared_memory_id;
  ASSERT_NE(kept, nullptr);
  EXPECT_NE(static_cast<void*>(kept), static_cast<void*>(id.data())) << "it shows the Provider's copy";
  EXPECT_EQ(std::memcmp(kept, given.data(), given.size()), 0);

  const Pair pair = make_connected_pair();
  DAT_LMR_TRIPLET segment = lmr.triplet(256);
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  post_send(pair.client, client_buffers, 5, 1, 256);
  expect_completion(pair.server_evds.recv.get());
  EXPECT_TRUE(has_pattern(mapping.bytes().first(256), 5));
  EXPECT_THAT(dat_lmr_free(lmr.handle), Succeeds());
}

TEST_P(LmrTypes, IdentifiersDifferInAnyByte) {
  // LMR-CREATE-14: other memory under an identifier that a string function would take for the same.
  const Mapping one(4096, MAP_SHARED);
  const Mapping two(4096, MAP_SHARED);
  Identifier first{};
  Identifier second{};
  second.back() = 1;
  Registered one_lmr;
  Registered two_lmr;
  ASSERT_THAT(create_shared(server, one.bytes().data(), 4096, first, one_lmr), Succeeds());
  ASSERT_THAT(create_shared(server, two.bytes().data(), 4096, second, two_lmr), Succeeds());
  DAT_LMR_PARAM param{};
  ASSERT_THAT(dat_lmr_query(two_lmr.handle, DAT_LMR_FIELD_ALL, &param), Succeeds());
  EXPECT_EQ(std::memcmp(param.region_desc.for_shared_memory.shared_memory_id, second.data(), second.size()), 0);
  ASSERT_THAT(dat_lmr_query(one_lmr.handle, DAT_LMR_FIELD_ALL, &param), Succeeds());
  EXPECT_EQ(std::memcmp(param.region_desc.for_shared_memory.shared_memory_id, first.data(), first.size()), 0);
  EXPECT_THAT(dat_lmr_free(one_lmr.handle), Succeeds());
  EXPECT_THAT(dat_lmr_free(two_lmr.handle), Succeeds());
}

TEST_P(LmrTypes, TheSameMemoryMayBeSharedBySeveral) {
  // LMR-CREATE-13: as two processes do it, each with its own adapter and mapping.
  const int file = ::memfd_create("anydat-test", 0);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::ftruncate(file, 4096), 0);
  void* const here = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* const there = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(here, MAP_FAILED);
  ASSERT_NE(there, MAP_FAILED);
  ::close(file);
  Identifier id{};
  std::strcpy(id.data(), "seen twice");
  Registered one;
  Registered two;
  ASSERT_THAT(create_shared(server, here, 4096, id, one), Succeeds());
  ASSERT_THAT(create_shared(client, there, 4096, id, two), Succeeds());
  const Pair pair = make_connected_pair();
  DAT_LMR_TRIPLET segment = one.triplet(256);
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  post_send(pair.client, client_buffers, 7, 1, 256);
  expect_completion(pair.server_evds.recv.get());
  EXPECT_TRUE(has_pattern(std::span(static_cast<const std::byte*>(there), 256), 7));
  EXPECT_THAT(dat_lmr_free(one.handle), Succeeds());
  EXPECT_THAT(dat_lmr_free(two.handle), Succeeds());
  ::munmap(here, 4096);
  ::munmap(there, 4096);
}

TEST_P(LmrTypes, MemoryThatIsNotSharedIsRefused) {
  // LMR-CREATE-15
  const Mapping own(4096, MAP_PRIVATE);
  Identifier id{};
  Registered lmr;
  EXPECT_THAT(create_shared(server, own.bytes().data(), 4096, id, lmr), HasType(DAT_INVALID_STATE));
  std::vector<std::byte> heap(4096);
  EXPECT_THAT(create_shared(server, heap.data(), 4096, id, lmr), HasType(DAT_INVALID_STATE));
}

TEST_P(LmrTypes, SharedMemoryIsCheckedLikeAnyOther) {
  // LMR-CREATE-17, LMR-CREATE-18
  const Mapping mapping(4096, MAP_SHARED);
  Identifier id{};
  Registered lmr;
  EXPECT_THAT(create_shared(server, mapping.bytes().data(), 0, id, lmr), HasType(DAT_LENGTH_ERROR));
  EXPECT_THAT(create_shared(server, nullptr, 4096, id, lmr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(create_shared(server, mapping.bytes().data(), ~DAT_VLEN{0}, id, lmr), HasType(DAT_INVALID_PARAMETER));
}

ANYDAT_OVER_ALL_WIRES(LmrTypes);

}  // namespace
}  // namespace anydat::test
