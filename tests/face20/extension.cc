// SPDX-License-Identifier: BSD-3-Clause
// The operations of the InfiniBand extension: Writes with immediate data, atomic operations, and their events.
#include <dat2/dat_ib_extensions.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "face20/fixture.h"

namespace anydat::test {
namespace {

constexpr auto kDefault = DAT_COMPLETION_DEFAULT_FLAG;
constexpr auto kAtomicRights =
    static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_ALL_FLAG | int{DAT_IB_MEM_PRIV_REMOTE_ATOMIC});

DAT_DTO_COOKIE numbered(DAT_UINT64 number) {
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = number;
  return cookie;
}

// What an event of the extension says, apart from its DTO.
DAT_IB_EXTENSION_EVENT_DATA extension_of(const DAT_EVENT& event) {
  DAT_IB_EXTENSION_EVENT_DATA data;
  std::memcpy(static_cast<void*>(&data), event.event_extension_data, sizeof data);
  return data;
}

class Dat2Extension : public Dat2 {
 protected:
  void SetUp() override {
    if (client.ia.attributes().extension_supported != DAT_EXTENSION_IB) GTEST_SKIP() << "the adapter has it not";
    connection.emplace(connect_pair(server, client));
    target.emplace(server.ia, server.pz, 4096, kAtomicRights);
    local.emplace(client.ia, client.pz, 4096);
  }
  std::uint64_t* word(std::size_t at = 0) const {
    return reinterpret_cast<std::uint64_t*>(target->bytes().data()) + at;
  }
  std::uint64_t old_value() const {
    std::uint64_t value = 0;
    std::memcpy(&value, local->bytes().data(), sizeof value);
    return value;
  }
  DAT_RETURN fetch_and_add(DAT_UINT64 add, DAT_RMR_TRIPLET remote, std::size_t local_bytes = 8,
                           DAT_COMPLETION_FLAGS flags = kDefault) const {
    DAT_LMR_TRIPLET segment = local->triplet(0, local_bytes);
    return dat_ib_post_fetch_and_add(connection->client.get(), add, &segment, numbered(7), &remote, flags);
  }
  DAT_RETURN compare_and_swap(DAT_UINT64 compare, DAT_UINT64 swap, DAT_RMR_TRIPLET remote) const {
    DAT_LMR_TRIPLET segment = local->triplet(0, 8);
    return dat_ib_post_cmp_and_swap(connection->client.get(), compare, swap, &segment, numbered(8), &remote, kDefault);
  }
  DAT_RETURN write_immediate(std::size_t bytes, DAT_UINT32 value, DAT_COMPLETION_FLAGS flags = kDefault) const {
    DAT_LMR_TRIPLET segment = local->triplet(0, bytes);
    DAT_RMR_TRIPLET remote = target->remote(0, bytes);
    return dat_ib_post_rdma_write_immed(connection->client.get(), bytes > 0 ? 1 : 0, bytes > 0 ? &segment : nullptr,
                                        numbered(9), &remote, value, flags);
  }
  void post_receive(DAT_UINT64 number) const {
    DAT_LMR_TRIPLET segment = target->triplet(2048, 64);
    require(dat_ep_post_recv(connection->server.get(), 1, &segment, numbered(number), kDefault), "recv");
  }
  // D2-EXT-6, D2-EXT-7.
  static DAT_DTO_COMPLETION_EVENT_DATA expect_extension(const Evd& evd, int operation, DAT_IB_EXT_TYPE type,
                                                        DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS) {
    const DAT_EVENT event = expect_event(evd.get(), static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT));
    const DAT_DTO_COMPLETION_EVENT_DATA& dto = event.event_data.dto_completion_event_data;
    EXPECT_EQ(static_cast<int>(dto.operation), operation);
    EXPECT_EQ(dto.status, status);
    EXPECT_EQ(extension_of(event).type, type);
    EXPECT_EQ(extension_of(event).status, status == DAT_DTO_SUCCESS ? DAT_OP_SUCCESS : DAT_IB_OP_ERR);
    return dto;
  }

  std::optional<Connection> connection;
  std::optional<Lmr> target;
  std::optional<Lmr> local;
};
INSTANTIATE_TEST_SUITE_P(Wires, Dat2Extension, testing::ValuesIn(all_wires()), wire_name);

// D2-ATOM-1, D2-ATOM-6.
TEST_P(Dat2Extension, FetchAndAddTellsTheOldValue) {
  *word() = ~std::uint64_t{0} - 1;
  for (const std::uint64_t before : {~std::uint64_t{0} - 1, std::uint64_t{1}, std::uint64_t{4}}) {
    ASSERT_THAT(fetch_and_add(3, target->remote(0, 8)), Succeeds());
    const auto dto = expect_extension(client.request, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD);
    EXPECT_EQ(dto.transfered_length, 8u);
    EXPECT_EQ(dto.user_cookie.as_64, 7u);
    EXPECT_EQ(old_value(), before) << "modulo 2^64";
  }
  EXPECT_EQ(*word(), 7u);
}

TEST_P(Dat2Extension, CompareAndSwapChangesTheWordIfItIsAsExpected) {
  *word(3) = 5;
  ASSERT_THAT(compare_and_swap(4, 9, target->remote(24, 8)), Succeeds());
  expect_extension(client.request, DAT_IB_DTO_CMP_SWAP, DAT_IB_CMP_AND_SWAP);
  EXPECT_EQ(old_value(), 5u);
  EXPECT_EQ(*word(3), 5u);
  ASSERT_THAT(compare_and_swap(5, 9, target->remote(24, 8)), Succeeds());
  expect_extension(client.request, DAT_IB_DTO_CMP_SWAP, DAT_IB_CMP_AND_SWAP);
  EXPECT_EQ(old_value(), 5u);
  EXPECT_EQ(*word(3), 9u);
}

// D2-ATOM-2.
TEST_P(Dat2Extension, AtomicOperationsAreOfOneWord) {
  EXPECT_THAT(fetch_and_add(1, target->remote(0, 8), 4), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(fetch_and_add(1, target->remote(0, 8), 16), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(fetch_and_add(1, target->remote(4, 8)), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(fetch_and_add(1, target->remote(0, 7)), HasType(DAT_INVALID_PARAMETER));
  EXPECT_FALSE(poll_event(client.request.get()));
  // Programs name more than the word (dtestx: its whole buffer).
  EXPECT_THAT(fetch_and_add(1, target->remote(8, 256)), Succeeds());
  expect_extension(client.request, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD);
}

// D2-ATOM-3, D2-EXT-7.
TEST_P(Dat2Extension, AnAtomicOperationNeedsTheRight) {
  const Lmr plain(server.ia, server.pz, 64);
  ASSERT_THAT(fetch_and_add(1, plain.remote(0, 8)), Succeeds());
  expect_extension(client.request, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD, DAT_DTO_ERR_REMOTE_ACCESS);
  (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

// D2-LMR-7, D2-ATOM-8.
TEST_P(Dat2Extension, AWindowAllowsThemIfItsRegionDoes) {
  DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
  require(dat_rmr_create(server.pz.get(), &rmr), "rmr_create");
  const auto rights =
      static_cast<DAT_MEM_PRIV_FLAGS>(int{DAT_IB_MEM_PRIV_REMOTE_ATOMIC} | DAT_MEM_PRIV_REMOTE_READ_FLAG);
  DAT_LMR_TRIPLET part = target->triplet(0, 64);
  DAT_RMR_CONTEXT context = 0;
  require(
      dat_rmr_bind(rmr, target->get(), &part, rights, DAT_VA_TYPE_VA, connection->server.get(), {}, kDefault, &context),
      "rmr_bind");
  (void)expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  *word() = 1;
  DAT_RMR_TRIPLET remote = target->remote(0, 8);
  remote.rmr_context = context;
  ASSERT_THAT(fetch_and_add(1, remote), Succeeds());
  expect_extension(client.request, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD);
  EXPECT_EQ(*word(), 2u);
  EXPECT_THAT(dat_rmr_free(rmr), Succeeds());
}

// D2-ATOM-10: what is zero-based and open to atomic operations begins with a word. Then an offset is a word's if its
// address is, and the caller and the target do not judge apart: what the caller lets through, the target carries out.
TEST_P(Dat2Extension, AWordOfAZeroBasedRegionIsOneAtBothEnds) {
  if (server.ia.attributes().zb_supported != DAT_TRUE) GTEST_SKIP() << "no zero-based regions";
  alignas(8) static std::byte memory[256];
  const auto create = [&](std::size_t from, DAT_MEM_PRIV_FLAGS rights, DAT_VA_TYPE type, DAT_LMR_HANDLE* lmr,
                          DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context) {
    DAT_REGION_DESCRIPTION description{};
    description.for_va = memory + from;
    return dat_lmr_create(server.ia.get(), DAT_MEM_TYPE_VIRTUAL, description, sizeof memory - from, server.pz.get(),
                          rights, type, lmr, lmr_context, rmr_context, nullptr, nullptr);
  };
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT named = 0;
  DAT_RMR_CONTEXT context = 0;
  const DAT_RETURN rc = create(4, kAtomicRights, DAT_VA_TYPE_ZB, &lmr, &named, &context);
  EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG6));
  // Without the right, or by addresses, it may begin anywhere.
  for (const bool addresses : {false, true}) {
    ASSERT_THAT(create(4, addresses ? kAtomicRights : DAT_MEM_PRIV_ALL_FLAG,
                       addresses ? DAT_VA_TYPE_VA : DAT_VA_TYPE_ZB, &lmr, &named, &context),
                Succeeds());
    if (addresses) {  // but a zero-based copy of it may not have the right
      DAT_REGION_DESCRIPTION original{};
      original.for_lmr_handle = lmr;
      DAT_LMR_HANDLE copy = DAT_HANDLE_NULL;
      EXPECT_THAT(dat_lmr_create(server.ia.get(), DAT_MEM_TYPE_LMR, original, 0, server.pz.get(), kAtomicRights,
                                 DAT_VA_TYPE_ZB, &copy, nullptr, nullptr, nullptr, nullptr),
                  HasSubtype(DAT_INVALID_ARG6));
    }
    EXPECT_THAT(dat_lmr_free(lmr), Succeeds());
  }
  ASSERT_THAT(create(8, kAtomicRights, DAT_VA_TYPE_ZB, &lmr, &named, &context), Succeeds());
  DAT_RMR_TRIPLET word{};
  word.rmr_context = context;
  word.virtual_address = 16;
  word.segment_length = 8;
  std::uint64_t value = 5;
  std::memcpy(memory + 24, &value, sizeof value);
  ASSERT_THAT(fetch_and_add(3, word), Succeeds());
  expect_extension(client.request, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD);
  EXPECT_EQ(old_value(), 5u);
  std::memcpy(&value, memory + 24, sizeof value);
  EXPECT_EQ(value, 8u);
  word.virtual_address = 20;
  EXPECT_THAT(fetch_and_add(3, word), HasType(DAT_INVALID_PARAMETER));

  // The same of a window.
  DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
  require(dat_rmr_create(server.pz.get(), &rmr), "rmr_create");
  const auto bind = [&](DAT_VADDR at, int rights, DAT_VA_TYPE type) {
    DAT_LMR_TRIPLET part{};
    part.lmr_context = named;
    part.virtual_address = at;
    part.segment_length = 64;
    return dat_rmr_bind(rmr, lmr, &part, static_cast<DAT_MEM_PRIV_FLAGS>(rights), type, connection->server.get(), {},
                        kDefault, &word.rmr_context);
  };
  const int atomic = DAT_IB_MEM_PRIV_REMOTE_ATOMIC;
  const DAT_RETURN refused = bind(4, atomic, DAT_VA_TYPE_ZB);
  EXPECT_THAT(refused, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(refused, HasSubtype(DAT_INVALID_ARG3));
  ASSERT_THAT(bind(4, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_ZB), Succeeds());
  (void)expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  ASSERT_THAT(bind(8, atomic, DAT_VA_TYPE_ZB), Succeeds());
  (void)expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  word.virtual_address = 8;  // the word of before
  ASSERT_THAT(fetch_and_add(1, word), Succeeds());
  expect_extension(client.request, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD);
  EXPECT_EQ(old_value(), 8u);
  ASSERT_THAT(bind(4, atomic, DAT_VA_TYPE_VA), Succeeds());
  (void)expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  word.virtual_address = reinterpret_cast<DAT_VADDR>(memory + 24);
  ASSERT_THAT(fetch_and_add(1, word), Succeeds());
  expect_extension(client.request, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD);
  EXPECT_EQ(old_value(), 9u);
  EXPECT_THAT(dat_rmr_free(rmr), Succeeds());
  EXPECT_THAT(dat_lmr_free(lmr), Succeeds());
}

// D2-IMM-1 to D2-IMM-5.
TEST_P(Dat2Extension, AWriteWithImmediateDataTakesAReceive) {
  std::memset(local->bytes().data(), 0x5a, 4096);
  const std::size_t sizes[] = {0, 1, 64, 2048};
  for (DAT_UINT64 i = 0; i < std::size(sizes); ++i) post_receive(100 + i);
  for (DAT_UINT64 i = 0; i < std::size(sizes); ++i) {
    const auto value = static_cast<DAT_UINT32>(0x80000001u + i);
    ASSERT_THAT(write_immediate(sizes[i], value), Succeeds());
    const DAT_EVENT event = expect_event(server.recv.get(), static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT));
    const DAT_DTO_COMPLETION_EVENT_DATA& dto = event.event_data.dto_completion_event_data;
    EXPECT_EQ(static_cast<int>(dto.operation), DAT_IB_DTO_RECV_IMMED);
    EXPECT_EQ(dto.user_cookie.as_64, 100 + i);
    EXPECT_EQ(dto.transfered_length, sizes[i]);
    EXPECT_EQ(extension_of(event).type, DAT_IB_RDMA_WRITE_IMMED_DATA);
    EXPECT_EQ(extension_of(event).val.immed.data, value);
    for (std::size_t k = 0; k < sizes[i]; ++k) ASSERT_EQ(target->bytes()[k], std::byte{0x5a}) << k;
    const auto sent = expect_extension(client.request, DAT_IB_DTO_RDMA_WRITE_IMMED, DAT_IB_RDMA_WRITE_IMMED);
    EXPECT_EQ(sent.transfered_length, sizes[i]);
    std::memset(target->bytes().data(), 0, 2048);
  }
}

// D2-IMM-6.
TEST_P(Dat2Extension, ImmediateDataKeepsItsPlaceAmongSends) {
  DAT_LMR_TRIPLET message = local->triplet(0, 16);
  require(dat_ep_post_send(connection->client.get(), 1, &message, numbered(1), kDefault), "send");
  ASSERT_THAT(write_immediate(32, 77), Succeeds());
  require(dat_ep_post_send(connection->client.get(), 1, &message, numbered(2), kDefault), "send");
  for (DAT_UINT64 i = 1; i <= 3; ++i) post_receive(i);
  EXPECT_EQ(expect_completion(server.recv.get()).user_cookie.as_64, 1u);
  const DAT_EVENT event = expect_event(server.recv.get(), static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT));
  EXPECT_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, 2u);
  EXPECT_EQ(expect_completion(server.recv.get()).user_cookie.as_64, 3u);
}

// D2-EXT-1, D2-IA-6: programs find by name what works, and nothing else.
TEST_P(Dat2Extension, NamedAttributesSayWhatWorks) {
  DAT_PROVIDER_ATTR attr{};
  require(dat_ia_query(server.ia.get(), nullptr, 0, nullptr, DAT_PROVIDER_FIELD_ALL, &attr), "dat_ia_query");
  const auto value_of = [&](std::string_view name) {
    for (int i = 0; i < attr.num_provider_specific_attr; ++i) {
      if (name == attr.provider_specific_attr[i].name) return std::string_view(attr.provider_specific_attr[i].value);
    }
    return std::string_view();
  };
  for (const char* name :
       {"DAT_EXTENSION_INTERFACE", "DAT_IB_IMMED_DATA", "DAT_IB_FETCH_AND_ADD", "DAT_IB_CMP_AND_SWAP"}) {
    EXPECT_EQ(value_of(name), "TRUE") << name;
  }
  EXPECT_EQ(value_of("DAT_IB_UD"), "");
  EXPECT_EQ(value_of(DAT_IB_ATTR_COUNTERS), "TRUE");
  DAT_UINT64 values[DCNT_IA_ALL_COUNTERS] = {};
  EXPECT_THAT(dat_ib_query_counters(server.ia.get(), DCNT_IA_ALL_COUNTERS, values, 0), Succeeds());
}

// D2-EXT-5: the rules of every request hold.
TEST_P(Dat2Extension, PostsAreCheckedAsOthers) {
  DAT_LMR_TRIPLET segment = local->triplet(0, 8);
  DAT_RMR_TRIPLET remote = target->remote(0, 8);
  const Ep idle(client);
  EXPECT_THAT(dat_ib_post_fetch_and_add(idle.get(), 1, &segment, numbered(1), &remote, kDefault),
              HasType(DAT_INVALID_STATE));
  EXPECT_THAT(dat_ib_post_fetch_and_add(client.pz.get(), 1, &segment, numbered(1), &remote, kDefault),
              HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_ib_post_fetch_and_add(connection->client.get(), 1, &segment, numbered(1), nullptr, kDefault),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ib_post_cmp_and_swap(connection->client.get(), 1, 2, nullptr, numbered(1), &remote, kDefault),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(fetch_and_add(1, remote, 8, static_cast<DAT_COMPLETION_FLAGS>(0x4000)), HasType(DAT_INVALID_PARAMETER));
  segment.lmr_context ^= 0x55;
  EXPECT_THAT(dat_ib_post_fetch_and_add(connection->client.get(), 1, &segment, numbered(1), &remote, kDefault),
              HasType(DAT_PRIVILEGES_VIOLATION));
  segment = local->triplet(0, 64);
  remote = target->remote(0, 63);
  EXPECT_FALSE(poll_event(client.request.get()));
  // D2-EXT-7: after the end of the connection they are flushed.
  require(dat_ep_disconnect(connection->client.get(), DAT_CLOSE_ABRUPT_FLAG), "disconnect");
  (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  ASSERT_THAT(fetch_and_add(1, target->remote(0, 8)), Succeeds());
  expect_extension(client.request, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD, DAT_DTO_ERR_FLUSHED);
  ASSERT_THAT(write_immediate(8, 1), Succeeds());
  expect_extension(client.request, DAT_IB_DTO_RDMA_WRITE_IMMED, DAT_IB_RDMA_WRITE_IMMED, DAT_DTO_ERR_FLUSHED);
}

}  // namespace
}  // namespace anydat::test
