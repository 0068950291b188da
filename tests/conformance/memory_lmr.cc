// SPDX-License-Identifier: BSD-3-Clause
// Registered memory of the process itself: sections 6.2 and 6.3 of the rules. The other types of memory are in
// memory_lmr_types.cc, sync calls in memory_lmr_sync.cc, what peers may do with it in rdma_protection.cc.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <set>
#include <thread>

#include "ep_fixture.h"

namespace anydat::test {
namespace {

class LmrTest : public EpTest {
 protected:
  struct Registered {
    DAT_LMR_HANDLE handle = DAT_HANDLE_NULL;
    DAT_LMR_CONTEXT lmr_context = 77;
    DAT_RMR_CONTEXT rmr_context = 77;
    DAT_VLEN size = 77;
    DAT_VADDR address = 77;
  };
  struct Arguments {
    DAT_IA_HANDLE ia;
    DAT_PZ_HANDLE pz;
    void* address;
    DAT_VLEN length;
    int privileges = DAT_MEM_PRIV_ALL_FLAG;
    int type = DAT_MEM_TYPE_VIRTUAL;
  };
  Arguments good() {
    return {.ia = server.ia.get(), .pz = server.pz.get(), .address = memory.data(), .length = memory.size()};
  }
  static DAT_RETURN create(const Arguments& args, Registered& out) {
    DAT_REGION_DESCRIPTION region{};
    region.for_va = args.address;
    return dat_lmr_create(args.ia, static_cast<DAT_MEM_TYPE>(args.type), region, args.length, args.pz,
                          static_cast<DAT_MEM_PRIV_FLAGS>(args.privileges), &out.handle, &out.lmr_context,
                          &out.rmr_context, &out.size, &out.address);
  }
  // Creates and, if that worked, frees again.
  static DAT_RETURN create(const Arguments& args) {
    Registered out;
    const DAT_RETURN rc = create(args, out);
    if (rc == DAT_SUCCESS) {
      EXPECT_THAT(dat_lmr_free(out.handle), Succeeds());
    }
    return rc;
  }

  std::vector<std::byte> memory = std::vector<std::byte>(1000);
};

TEST_P(LmrTest, RegistersWhatWasAsked) {
  // LMR-CREATE-1, LMR-CREATE-3, LMR-CREATE-4
  Registered lmr;
  ASSERT_THAT(create(good(), lmr), Succeeds());
  EXPECT_NE(lmr.lmr_context, 0u);
  EXPECT_EQ(lmr.size, memory.size());
  EXPECT_EQ(lmr.address, reinterpret_cast<DAT_VADDR>(memory.data()));
  const Ep ep(server);
  DAT_LMR_TRIPLET segment{};
  segment.lmr_context = lmr.lmr_context;
  segment.virtual_address = lmr.address;
  segment.segment_length = lmr.size;
  EXPECT_THAT(dat_ep_post_recv(ep.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_THAT(dat_lmr_free(lmr.handle), Succeeds());
}

TEST_P(LmrTest, ContextMeansNothingToAnotherAdapterInstance) {
  // LMR-CREATE-2, GEN-12
  const Lmr lmr(server.ia, server.pz, 64);
  const Ep ep(client);
  DAT_LMR_TRIPLET segment = lmr.triplet();
  const DAT_RETURN rc = dat_ep_post_recv(ep.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG);
  EXPECT_NE(rc, DAT_RETURN{DAT_SUCCESS}) << "the other instance has no such region";
}

TEST_P(LmrTest, MemoryNeedNotBePresent) {
  // LMR-CREATE-3: pages that no thread has touched are registered, received into and sent from.
  constexpr std::size_t kSize = 1 << 20;
  void* const pages = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  {
    const Lmr fresh(server.ia, server.pz, std::span(static_cast<std::byte*>(pages), kSize));
    const Pair pair = make_connected_pair();
    DAT_LMR_TRIPLET to = fresh.triplet(kSize / 2, kBytes);
    ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &to, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    post_send(pair.client, client_buffers, 1, 1, kBytes);
    expect_completion(pair.server_evds.recv.get());
    EXPECT_TRUE(has_pattern(fresh.bytes().subspan(kSize / 2, kBytes), 1));
  }
  ::munmap(pages, kSize);
}

TEST_P(LmrTest, MemoryBehindTheEndOfItsFileIsNone) {
  // LMR-CREATE-3: whatever it is for.
  constexpr std::size_t kPage = 4096;
  const int file = ::memfd_create("anydat-test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, kPage), 0);
  void* const pages = ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  ASSERT_NE(pages, MAP_FAILED);
  for (const int privileges : {DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_MEM_PRIV_LOCAL_WRITE_FLAG}) {
    Arguments args = good();
    args.address = pages;
    args.privileges = privileges;
    args.length = kPage;
    EXPECT_THAT(create(args), Succeeds());
    args.length = 2 * kPage;
    EXPECT_THAT(create(args), HasType(DAT_INVALID_PARAMETER));
  }
  ::munmap(pages, 2 * kPage);
}

TEST_P(LmrTest, RemoteContextIsGivenForRemoteRights) {
  // LMR-CREATE-6, LMR-CREATE-8, LMR-CREATE-9, LMR-CREATE-10
  std::vector<Registered> all;
  for (int bits = 0; bits <= DAT_MEM_PRIV_ALL_FLAG; ++bits) {
    if ((bits & ~DAT_MEM_PRIV_ALL_FLAG) != 0) {
      continue;
    }
    Arguments args = good();
    args.privileges = bits;
    Registered lmr;
    ASSERT_THAT(create(args, lmr), Succeeds()) << std::hex << bits;
    EXPECT_NE(lmr.lmr_context, 0u) << std::hex << bits;
    const bool remote = (bits & (DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)) != 0;
    EXPECT_EQ(lmr.rmr_context != 0, remote) << std::hex << bits;
    all.push_back(lmr);
  }
  EXPECT_EQ(all.size(), 16u);
  std::set<DAT_LMR_CONTEXT> contexts;
  std::set<DAT_RMR_CONTEXT> remote_contexts;
  int remote_count = 0;
  for (const Registered& lmr : all) {
    contexts.insert(lmr.lmr_context);
    if (lmr.rmr_context != 0) {
      remote_contexts.insert(lmr.rmr_context);
      ++remote_count;
    }
    EXPECT_THAT(dat_lmr_free(lmr.handle), Succeeds());
  }
  EXPECT_EQ(contexts.size(), 16u);
  EXPECT_EQ(remote_contexts.size(), static_cast<std::size_t>(remote_count));
}

TEST_P(LmrTest, UndefinedPrivilegesAreRefused) {
  // LMR-CREATE-9
  for (const int bad : {0x04, 0x08, 0x40, 0x80, 0x200, 0x1000}) {
    Arguments args = good();
    args.privileges = DAT_MEM_PRIV_ALL_FLAG | bad;
    EXPECT_THAT(create(args), HasType(DAT_INVALID_PARAMETER)) << std::hex << bad;
  }
  static_assert(DAT_MEM_PRIV_NONE_FLAG == 0 && DAT_MEM_PRIV_ALL_FLAG == 0x33 && DAT_MEM_PRIV_READ_FLAG == 0x03 &&
                DAT_MEM_PRIV_WRITE_FLAG == 0x30);
}

TEST_P(LmrTest, TypesThatDoNotExistAreRefused) {
  // LMR-CREATE-16
  for (const int bad : {4, 5, 0x10, -1}) {
    Arguments args = good();
    args.type = bad;
    EXPECT_THAT(create(args), HasType(DAT_INVALID_PARAMETER)) << bad;
  }
}

TEST_P(LmrTest, LengthsAndAddressesAreChecked) {
  // LMR-CREATE-17, LMR-CREATE-18
  Arguments args = good();
  args.length = 0;
  EXPECT_THAT(create(args), HasType(DAT_LENGTH_ERROR));
  args = good();
  args.address = nullptr;
  EXPECT_THAT(create(args), HasType(DAT_INVALID_PARAMETER));
  args = good();
  args.length = ~DAT_VLEN{0};  // wraps
  EXPECT_THAT(create(args), HasType(DAT_INVALID_PARAMETER));
  args.address = reinterpret_cast<void*>(~std::uintptr_t{0} - 10);
  args.length = 100;
  EXPECT_THAT(create(args), HasType(DAT_INVALID_PARAMETER));
  const DAT_IA_ATTR limits = server.ia.attributes();
  args = good();
  if (limits.max_lmr_block_size < std::numeric_limits<DAT_VLEN>::max()) {
    args.length = limits.max_lmr_block_size + 1;
    EXPECT_THAT(create(args), HasType(DAT_INVALID_PARAMETER));
  }
  if (limits.max_lmr_virtual_address < std::numeric_limits<DAT_VADDR>::max() - 100) {
    args.address = reinterpret_cast<void*>(limits.max_lmr_virtual_address - 9);
    args.length = 11;
    EXPECT_THAT(create(args), HasType(DAT_INVALID_PARAMETER));
  }
}

TEST_P(LmrTest, AllResultsButTheHandleAreOptional) {
  // LMR-CREATE-19
  DAT_REGION_DESCRIPTION region{};
  region.for_va = memory.data();
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_lmr_create(server.ia.get(), DAT_MEM_TYPE_VIRTUAL, region, memory.size(), server.pz.get(),
                             DAT_MEM_PRIV_ALL_FLAG, &lmr, nullptr, nullptr, nullptr, nullptr),
              Succeeds());
  EXPECT_THAT(dat_lmr_free(lmr), Succeeds());
  DAT_LMR_CONTEXT context = 0;
  EXPECT_THAT(dat_lmr_create(server.ia.get(), DAT_MEM_TYPE_VIRTUAL, region, memory.size(), server.pz.get(),
                             DAT_MEM_PRIV_ALL_FLAG, nullptr, &context, nullptr, nullptr, nullptr),
              HasType(DAT_INVALID_PARAMETER));
}

TEST_P(LmrTest, HandlesAreChecked) {
  // LMR-CREATE-20, GEN-2, GEN-12
  Pz freed(server.ia);
  const DAT_PZ_HANDLE stale = freed.get();
  freed.reset();
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.pz.get()}) {
    Arguments args = good();
    args.ia = bad;
    const DAT_RETURN rc = create(args);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_IA));
  }
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, server.recv.get(), client.pz.get()}) {
    Arguments args = good();
    args.pz = bad;
    const DAT_RETURN rc = create(args);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_PZ));
  }
}

class LmrLimit : public LmrTest {};

TEST_P(LmrLimit, NumberIsLimitedByTheAdapter) {
  // LMR-CREATE-21, GEN-9
  const DAT_COUNT most = server.ia.attributes().max_lmrs;
  std::vector<DAT_LMR_HANDLE> all;
  Registered lmr;
  DAT_RETURN rc = DAT_SUCCESS;
  while ((rc = create(good(), lmr)) == DAT_SUCCESS && all.size() <= static_cast<std::size_t>(most)) {
    all.push_back(lmr.handle);
  }
  EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_GT(all.size(), static_cast<std::size_t>(most) - 10) << "but for those that the fixture has made";
  ASSERT_THAT(dat_lmr_free(all.back()), Succeeds());
  ASSERT_THAT(create(good(), lmr), Succeeds()) << "room for one is room for one";
  all.back() = lmr.handle;
  for (const DAT_LMR_HANDLE handle : all) {
    EXPECT_THAT(dat_lmr_free(handle), Succeeds());
  }
}

TEST_P(LmrTest, OverlappingRegionsKeepTheirOwnRights) {
  // LMR-CREATE-22, LMR-CREATE-10
  const Lmr readable(server.ia, server.pz, std::span(memory), DAT_MEM_PRIV_LOCAL_READ_FLAG);
  const Lmr writable(server.ia, server.pz, std::span(memory).subspan(100, 200), DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  const Pair pair = make_connected_pair();
  DAT_LMR_TRIPLET segment = readable.triplet(100, 50);
  EXPECT_THAT(dat_ep_post_recv(pair.server.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG),
              HasType(DAT_PRIVILEGES_VIOLATION));
  EXPECT_THAT(dat_ep_post_send(pair.server.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  segment = writable.triplet(0, 50);
  EXPECT_THAT(dat_ep_post_recv(pair.server.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_THAT(dat_ep_post_send(pair.server.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG),
              HasType(DAT_PRIVILEGES_VIOLATION));
}

TEST_P(LmrTest, SolarisNamesMeanVirtual) {
  // LMR-CREATE-23
  Arguments args = good();
  args.type = DAT_MEM_TYPE_SO_VIRTUAL;
  EXPECT_THAT(create(args), Succeeds());
  args = good();
  args.privileges = DAT_MEM_PRIV_ALL_FLAG | DAT_MEM_PRIV_RO_DISABLE_FLAG;
  EXPECT_THAT(create(args), Succeeds());
}

// ---- query

TEST_P(LmrTest, QueryShowsWhatCreationWasGivenAndReturned) {
  // LMR-QUERY-1, GEN-7
  static_assert(DAT_LMR_FIELD_IA_HANDLE == 0x1 && DAT_LMR_FIELD_MEM_TYPE == 0x2 && DAT_LMR_FIELD_REGION_DESC == 0x4 &&
                DAT_LMR_FIELD_LENGTH == 0x8 && DAT_LMR_FIELD_PZ_HANDLE == 0x10 && DAT_LMR_FIELD_MEM_PRIV == 0x20 &&
                DAT_LMR_FIELD_LMR_CONTEXT == 0x40 && DAT_LMR_FIELD_RMR_CONTEXT == 0x80 &&
                DAT_LMR_FIELD_REGISTERED_SIZE == 0x100 && DAT_LMR_FIELD_REGISTERED_ADDRESS == 0x200 &&
                DAT_LMR_FIELD_ALL == 0x3FF);
  Arguments args = good();
  args.privileges = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
  Registered lmr;
  ASSERT_THAT(create(args, lmr), Succeeds());
  DAT_LMR_PARAM param{};
  ASSERT_THAT(dat_lmr_query(lmr.handle, DAT_LMR_FIELD_ALL, &param), Succeeds());
  EXPECT_EQ(param.ia_handle, server.ia.get());
  EXPECT_EQ(param.mem_type, DAT_MEM_TYPE_VIRTUAL);
  EXPECT_EQ(param.region_desc.for_va, memory.data());
  EXPECT_EQ(param.length, memory.size());
  EXPECT_EQ(param.pz_handle, server.pz.get());
  EXPECT_EQ(static_cast<int>(param.mem_priv), args.privileges);
  EXPECT_EQ(param.lmr_context, lmr.lmr_context);
  EXPECT_EQ(param.rmr_context, lmr.rmr_context);
  EXPECT_EQ(param.registered_size, lmr.size);
  EXPECT_EQ(param.registered_address, lmr.address);
  for (int bit = 0; bit < 10; ++bit) {
    EXPECT_THAT(dat_lmr_query(lmr.handle, static_cast<DAT_LMR_PARAM_MASK>(1 << bit), &param), Succeeds()) << bit;
  }
  EXPECT_THAT(dat_lmr_query(lmr.handle, static_cast<DAT_LMR_PARAM_MASK>(0), &param), Succeeds());
  EXPECT_THAT(dat_lmr_free(lmr.handle), Succeeds());
}

TEST_P(LmrTest, QueryChecksItsArguments) {
  // LMR-QUERY-3, GEN-2, GEN-7
  const Lmr lmr(server.ia, server.pz, 64);
  DAT_LMR_PARAM param{};
  EXPECT_THAT(dat_lmr_query(lmr.get(), static_cast<DAT_LMR_PARAM_MASK>(0x400), &param), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_lmr_query(lmr.get(), DAT_LMR_FIELD_ALL, nullptr), HasType(DAT_INVALID_PARAMETER));
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.pz.get()}) {
    const DAT_RETURN rc = dat_lmr_query(bad, DAT_LMR_FIELD_ALL, &param);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_LMR));
  }
}

// ---- free

TEST_P(LmrTest, FreeLeavesTheMemoryAlone) {
  // LMR-FREE-2
  fill_pattern(memory, 1);
  { const Lmr lmr(server.ia, server.pz, std::span(memory)); }
  EXPECT_TRUE(has_pattern(memory, 1));
  fill_pattern(memory, 2);  // it is still writable
  const Lmr again(server.ia, server.pz, std::span(memory));
  EXPECT_TRUE(has_pattern(memory, 2));
}

TEST_P(LmrTest, AFreedContextIsRefusedAndNotReissuedAtOnce) {
  // LMR-FREE-3, LMR-FREE-9, DTO-11
  const Ep ep(server);
  std::set<DAT_LMR_CONTEXT> seen;
  for (int i = 0; i < 100; ++i) {
    Registered lmr;
    ASSERT_THAT(create(good(), lmr), Succeeds());
    EXPECT_TRUE(seen.insert(lmr.lmr_context).second) << "a context came back after " << i << " registrations";
    ASSERT_THAT(dat_lmr_free(lmr.handle), Succeeds());
    DAT_LMR_TRIPLET segment{};
    segment.lmr_context = lmr.lmr_context;
    segment.virtual_address = lmr.address;
    segment.segment_length = lmr.size;
    EXPECT_THAT(dat_ep_post_recv(ep.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG),
                HasType(DAT_PRIVILEGES_VIOLATION));
  }
}

TEST_P(LmrTest, NothingTouchesTheMemoryAfterTheFree) {
  // LMR-FREE-4, LMR-FREE-8, MT-3: freed at any moment of a transfer, its pages taken away at once.
  constexpr std::size_t kSize = 4 << 20;
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_message_size = kSize;
  for (int round = 0; round < 12; ++round) {
    void* const pages = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    const std::span<std::byte> taken(static_cast<std::byte*>(pages), kSize);
    const bool source_goes = round % 2 == 0;
    const Side& goes = source_goes ? client : server;
    const Side& stays = source_goes ? server : client;
    const Lmr other(stays.ia, stays.pz, kSize);
    const Pair pair = make_connected_pair(attr, attr);
    Lmr lmr(goes.ia, goes.pz, taken);
    DAT_LMR_TRIPLET from = source_goes ? lmr.triplet() : other.triplet();
    DAT_LMR_TRIPLET to = source_goes ? other.triplet() : lmr.triplet();
    ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &to, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &from, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    std::this_thread::sleep_for(std::chrono::microseconds(100 * (round / 2)));  // somewhere in the transfer
    ASSERT_THAT(lmr.free(), Succeeds());
    ASSERT_EQ(::munmap(pages, kSize), 0);
    const auto received =
        expect_event(pair.server_evds.recv.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
    const auto sent =
        expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
    const auto failing = source_goes ? sent.status : received.status;
    EXPECT_TRUE(failing == DAT_DTO_SUCCESS || failing == DAT_DTO_ERR_LOCAL_PROTECTION) << failing;
  }
}

TEST_P(LmrTest, FreeReleasesTheZone) {
  // LMR-FREE-10, PZ-FREE-1
  Pz pz(server.ia);
  Lmr lmr(server.ia, pz, 64);
  EXPECT_THAT(pz.free(), HasType(DAT_INVALID_STATE));
  ASSERT_THAT(lmr.free(), Succeeds());
  EXPECT_THAT(pz.free(), Succeeds());
}

TEST_P(LmrTest, FreeChecksItsHandle) {
  // LMR-FREE-10, GEN-2, GEN-5
  Lmr lmr(server.ia, server.pz, 64);
  const DAT_LMR_HANDLE stale = lmr.get();
  ASSERT_THAT(lmr.free(), Succeeds());
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, server.pz.get()}) {
    const DAT_RETURN rc = dat_lmr_free(bad);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_LMR));
  }
}

TEST_P(LmrTest, OfThreadsThatFreeOneAtTheSameTimeOneSucceeds) {
  // MT-4, GEN-5
  for (int round = 0; round < 200; ++round) {
    Pz zone(server.ia);
    Lmr lmr(server.ia, zone, 64);
    const DAT_LMR_HANDLE handle = lmr.get();
    std::atomic<int> freed = 0, refused = 0, ready = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        ++ready;
        while (ready < 3) std::this_thread::yield();
        const DAT_RETURN rc = dat_lmr_free(handle);
        if (rc == DAT_SUCCESS) ++freed;
        if (DAT_GET_TYPE(rc) == DAT_INVALID_HANDLE) ++refused;
      });
    }
    for (std::thread& thread : threads) thread.join();
    lmr.release();
    ASSERT_EQ(freed, 1);
    ASSERT_EQ(refused, 2);
    ASSERT_THAT(zone.free(), Succeeds()) << "it is not in use any more, once";
  }
}

TEST_P(LmrTest, CreatingIsSafeFromManyThreads) {
  // MT-1
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        failures += create(good()) == DAT_SUCCESS ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failures, 0);
}

ANYDAT_OVER_ALL_WIRES(LmrTest);
ANYDAT_OVER_ONE_WIRE(LmrLimit);

}  // namespace
}  // namespace anydat::test
