// SPDX-License-Identifier: BSD-3-Clause
// dat_ia_query and what the attributes promise: section 4.2 of part 1.
#include <netinet/in.h>

#include <cstring>
#include <functional>
#include <string>

#include "evd_fixture.h"
#include "support/properties.h"
#include "support/versions.h"

namespace anydat::test {
namespace {

class IaQuery : public testing::TestWithParam<Wire> {
 protected:
  DAT_IA_ATTR attributes(DAT_IA_ATTR_MASK mask) {
    DAT_IA_ATTR attr;
    std::memset(&attr, 0xA5, sizeof attr);
    EXPECT_THAT(dat_ia_query(ia.get(), nullptr, mask, &attr, 0, nullptr), Succeeds());
    return attr;
  }
  DAT_PROVIDER_ATTR provider(DAT_PROVIDER_ATTR_MASK mask) {
    DAT_PROVIDER_ATTR attr;
    std::memset(static_cast<void*>(&attr), 0xA5, sizeof attr);
    EXPECT_THAT(dat_ia_query(ia.get(), nullptr, 0, nullptr, mask, &attr), Succeeds());
    return attr;
  }

  Ia ia{GetParam()};
};

// A member of one of the two structures: its mask bit, place and size.
struct Member {
  const char* name;
  DAT_UINT64 bit;
  std::size_t offset;
  std::size_t size;
};

#define ANYDAT_IA_MEMBER(bit, member)                                                       \
  Member {                                                                                  \
#member, DAT_IA_FIELD_##bit, offsetof(DAT_IA_ATTR, member), sizeof(DAT_IA_ATTR::member) \
  }
const Member kIaMembers[] = {
    ANYDAT_IA_MEMBER(IA_ADAPTER_NAME, adapter_name),
    ANYDAT_IA_MEMBER(IA_VENDOR_NAME, vendor_name),
    ANYDAT_IA_MEMBER(IA_HARDWARE_MAJOR_VERSION, hardware_version_major),
    ANYDAT_IA_MEMBER(IA_HARDWARE_MINOR_VERSION, hardware_version_minor),
    ANYDAT_IA_MEMBER(IA_FIRMWARE_MAJOR_VERSION, firmware_version_major),
    ANYDAT_IA_MEMBER(IA_FIRMWARE_MINOR_VERSION, firmware_version_minor),
    ANYDAT_IA_MEMBER(IA_ADDRESS_PTR, ia_address_ptr),
    ANYDAT_IA_MEMBER(IA_MAX_EPS, max_eps),
    ANYDAT_IA_MEMBER(IA_MAX_DTO_PER_EP, max_dto_per_ep),
    ANYDAT_IA_MEMBER(IA_MAX_RDMA_READ_PER_EP_IN, max_rdma_read_per_ep_in),
    ANYDAT_IA_MEMBER(IA_MAX_RDMA_READ_PER_EP_OUT, max_rdma_read_per_ep_out),
    ANYDAT_IA_MEMBER(IA_MAX_EVDS, max_evds),
    ANYDAT_IA_MEMBER(IA_MAX_EVD_QLEN, max_evd_qlen),
    ANYDAT_IA_MEMBER(IA_MAX_IOV_SEGMENTS_PER_DTO, max_iov_segments_per_dto),
    ANYDAT_IA_MEMBER(IA_MAX_LMRS, max_lmrs),
    ANYDAT_IA_MEMBER(IA_MAX_LMR_BLOCK_SIZE, max_lmr_block_size),
    ANYDAT_IA_MEMBER(IA_MAX_LMR_VIRTUAL_ADDRESS, max_lmr_virtual_address),
    ANYDAT_IA_MEMBER(IA_MAX_PZS, max_pzs),
    ANYDAT_IA_MEMBER(IA_MAX_MESSAGE_SIZE, max_message_size),
    ANYDAT_IA_MEMBER(IA_MAX_RDMA_SIZE, max_rdma_size),
    ANYDAT_IA_MEMBER(IA_MAX_RMRS, max_rmrs),
    ANYDAT_IA_MEMBER(IA_MAX_RMR_TARGET_ADDRESS, max_rmr_target_address),
    ANYDAT_IA_MEMBER(IA_MAX_SRQS, max_srqs),
    ANYDAT_IA_MEMBER(IA_MAX_EP_PER_SRQ, max_ep_per_srq),
    ANYDAT_IA_MEMBER(IA_MAX_RECV_PER_SRQ, max_recv_per_srq),
    ANYDAT_IA_MEMBER(IA_MAX_IOV_SEGMENTS_PER_RDMA_READ, max_iov_segments_per_rdma_read),
    ANYDAT_IA_MEMBER(IA_MAX_IOV_SEGMENTS_PER_RDMA_WRITE, max_iov_segments_per_rdma_write),
    ANYDAT_IA_MEMBER(IA_MAX_RDMA_READ_IN, max_rdma_read_in),
    ANYDAT_IA_MEMBER(IA_MAX_RDMA_READ_OUT, max_rdma_read_out),
    ANYDAT_IA_MEMBER(IA_MAX_RDMA_READ_PER_EP_IN_GUARANTEED, max_rdma_read_per_ep_in_guaranteed),
    ANYDAT_IA_MEMBER(IA_MAX_RDMA_READ_PER_EP_OUT_GUARANTEED, max_rdma_read_per_ep_out_guaranteed),
#if DAT_VERSION_MAJOR >= 2
    ANYDAT_IA_MEMBER(IA_ZB_SUPPORTED, zb_supported),
    ANYDAT_IA_MEMBER(IA_EXTENSIONS_SUPPORTED, extension_supported),
    ANYDAT_IA_MEMBER(IA_EXTENSION_VERSION, extension_version),
#endif
    ANYDAT_IA_MEMBER(IA_NUM_TRANSPORT_ATTR, num_transport_attr),
    ANYDAT_IA_MEMBER(IA_TRANSPORT_ATTR, transport_attr),
    ANYDAT_IA_MEMBER(IA_NUM_VENDOR_ATTR, num_vendor_attr),
    ANYDAT_IA_MEMBER(IA_VENDOR_ATTR, vendor_attr),
};

#define ANYDAT_PROVIDER_MEMBER(bit, member)                                                                   \
  Member {                                                                                                    \
#member, DAT_PROVIDER_FIELD_##bit, offsetof(DAT_PROVIDER_ATTR, member), sizeof(DAT_PROVIDER_ATTR::member) \
  }
const Member kProviderMembers[] = {
    ANYDAT_PROVIDER_MEMBER(PROVIDER_NAME, provider_name),
    ANYDAT_PROVIDER_MEMBER(PROVIDER_VERSION_MAJOR, provider_version_major),
    ANYDAT_PROVIDER_MEMBER(PROVIDER_VERSION_MINOR, provider_version_minor),
    ANYDAT_PROVIDER_MEMBER(DAPL_VERSION_MAJOR, dapl_version_major),
    ANYDAT_PROVIDER_MEMBER(DAPL_VERSION_MINOR, dapl_version_minor),
    ANYDAT_PROVIDER_MEMBER(LMR_MEM_TYPE_SUPPORTED, lmr_mem_types_supported),
    ANYDAT_PROVIDER_MEMBER(IOV_OWNERSHIP, iov_ownership_on_return),
    ANYDAT_PROVIDER_MEMBER(DAT_QOS_SUPPORTED, dat_qos_supported),
    ANYDAT_PROVIDER_MEMBER(COMPLETION_FLAGS_SUPPORTED, completion_flags_supported),
    ANYDAT_PROVIDER_MEMBER(IS_THREAD_SAFE, is_thread_safe),
    ANYDAT_PROVIDER_MEMBER(MAX_PRIVATE_DATA_SIZE, max_private_data_size),
    ANYDAT_PROVIDER_MEMBER(SUPPORTS_MULTIPATH, supports_multipath),
    ANYDAT_PROVIDER_MEMBER(EP_CREATOR, ep_creator),
    ANYDAT_PROVIDER_MEMBER(PZ_SUPPORT, pz_support),
    ANYDAT_PROVIDER_MEMBER(OPTIMAL_BUFFER_ALIGNMENT, optimal_buffer_alignment),
    ANYDAT_PROVIDER_MEMBER(EVD_STREAM_MERGING_SUPPORTED, evd_stream_merging_supported),
    ANYDAT_PROVIDER_MEMBER(SRQ_SUPPORTED, srq_supported),
    ANYDAT_PROVIDER_MEMBER(SRQ_WATERMARKS_SUPPORTED, srq_watermarks_supported),
    ANYDAT_PROVIDER_MEMBER(SRQ_EP_PZ_DIFFERENCE_SUPPORTED, srq_ep_pz_difference_supported),
    ANYDAT_PROVIDER_MEMBER(SRQ_INFO_SUPPORTED, srq_info_supported),
    ANYDAT_PROVIDER_MEMBER(EP_RECV_INFO_SUPPORTED, ep_recv_info_supported),
    ANYDAT_PROVIDER_MEMBER(LMR_SYNC_REQ, lmr_sync_req),
    ANYDAT_PROVIDER_MEMBER(DTO_ASYNC_RETURN_GUARANTEED, dto_async_return_guaranteed),
    ANYDAT_PROVIDER_MEMBER(RDMA_WRITE_FOR_RDMA_READ_REQ, rdma_write_for_rdma_read_req),
#if DAT_VERSION_MAJOR >= 2
    ANYDAT_PROVIDER_MEMBER(RDMA_READ_LMR_RMR_CONTEXT_EXPOSURE, rdma_read_lmr_rmr_context_exposure),
    ANYDAT_PROVIDER_MEMBER(RMR_SCOPE_SUPPORTED, rmr_scope_supported),
    ANYDAT_PROVIDER_MEMBER(IS_SIGNAL_SAFE, is_signal_safe),
    ANYDAT_PROVIDER_MEMBER(HA_SUPPORTED, ha_supported),
    ANYDAT_PROVIDER_MEMBER(HA_LB, ha_loadbalancing),
#endif
    ANYDAT_PROVIDER_MEMBER(NUM_PROVIDER_SPECIFIC_ATTR, num_provider_specific_attr),
    ANYDAT_PROVIDER_MEMBER(PROVIDER_SPECIFIC_ATTR, provider_specific_attr),
};

// The two answers have the same bytes in that member, compared as text where it is a name.
template <typename Attr>
bool same(const Member& member, const Attr& a, const Attr& b) {
  const char* const first = reinterpret_cast<const char*>(&a) + member.offset;
  const char* const second = reinterpret_cast<const char*>(&b) + member.offset;
  if (member.size == DAT_NAME_MAX_LENGTH) return std::strncmp(first, second, DAT_NAME_MAX_LENGTH) == 0;
  return std::memcmp(first, second, member.size) == 0;
}

// Some byte of it differs from the pattern it had before.
template <typename Attr>
bool filled(const Member& member, const Attr& attr) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&attr) + member.offset;
  for (std::size_t i = 0; i < member.size; ++i) {
    if (bytes[i] != 0xA5) return true;
  }
  return false;
}

// IA-QUERY-1, IA-QUERY-2, IA-QUERY-5
TEST_P(IaQuery, AsyncEvdIsReportedIfAskedFor) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_ia_query(ia.get(), &evd, DAT_IA_FIELD_NONE, nullptr, DAT_PROVIDER_FIELD_NONE, nullptr), Succeeds());
  EXPECT_EQ(evd, ia.async_evd());
  EXPECT_THAT(dat_ia_query(ia.get(), nullptr, DAT_IA_FIELD_NONE, nullptr, DAT_PROVIDER_FIELD_NONE, nullptr),
              Succeeds());
}

// IA-QUERY-3, ARG-4, IA-ATTR-7
TEST_P(IaQuery, EachMaskBitFillsItsMember) {
  DAT_UINT64 all = 0;
  const DAT_IA_ATTR everything = attributes(DAT_IA_FIELD_ALL);
  for (const Member& member : kIaMembers) {
    const DAT_IA_ATTR one = attributes(member.bit);
    EXPECT_TRUE(filled(member, one)) << member.name;
    EXPECT_TRUE(same(member, one, everything)) << member.name;
    EXPECT_EQ(all & member.bit, 0u) << member.name;
    all |= member.bit;
  }
  EXPECT_EQ(all, DAT_UINT64{DAT_IA_FIELD_ALL});
  all = 0;
  const DAT_PROVIDER_ATTR provider_everything = provider(DAT_PROVIDER_FIELD_ALL);
  for (const Member& member : kProviderMembers) {
    const DAT_PROVIDER_ATTR one = provider(member.bit);
    EXPECT_TRUE(filled(member, one)) << member.name;
    EXPECT_TRUE(same(member, one, provider_everything)) << member.name;
    EXPECT_EQ(all & member.bit, 0u) << member.name;
    all |= member.bit;
  }
  EXPECT_EQ(all, DAT_UINT64{DAT_PROVIDER_FIELD_ALL});
}

// IA-QUERY-4: what the pointers lead to stays as it is, whatever else is asked and done meanwhile.
TEST_P(IaQuery, WhatPointersLeadToStaysUntilTheClose) {
  const DAT_IA_ATTR before = attributes(DAT_IA_FIELD_ALL);
  const DAT_PROVIDER_ATTR provider_before = provider(DAT_PROVIDER_FIELD_ALL);
  sockaddr_storage address{};
  std::memcpy(&address, before.ia_address_ptr, sizeof(sockaddr_in));
  std::vector<std::pair<std::string, std::string>> named;
  for (DAT_COUNT i = 0; i < provider_before.num_provider_specific_attr; ++i) {
    named.emplace_back(provider_before.provider_specific_attr[i].name, provider_before.provider_specific_attr[i].value);
  }
  for (int i = 0; i < 20; ++i) {
    const Ia another(GetParam());
    attributes(DAT_IA_FIELD_ALL);
    provider(DAT_PROVIDER_FIELD_ALL);
    const Evd evd(ia, DAT_EVD_SOFTWARE_FLAG, 4);
  }
  EXPECT_EQ(std::memcmp(&address, before.ia_address_ptr, sizeof(sockaddr_in)), 0);
  for (std::size_t i = 0; i < named.size(); ++i) {
    EXPECT_EQ(named[i].first, provider_before.provider_specific_attr[i].name);
    EXPECT_EQ(named[i].second, provider_before.provider_specific_attr[i].value);
  }
}

// IA-QUERY-6, ARG-2
TEST_P(IaQuery, MaskWithoutAPlaceIsRefused) {
  DAT_RETURN rc = dat_ia_query(ia.get(), nullptr, DAT_IA_FIELD_IA_MAX_EPS, nullptr, 0, nullptr);
  EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG4));
  rc = dat_ia_query(ia.get(), nullptr, 0, nullptr, DAT_PROVIDER_FIELD_PROVIDER_NAME, nullptr);
  EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG6));
}

// IA-QUERY-7, ARG-3
TEST_P(IaQuery, UndefinedMaskBitsAreRefused) {
  constexpr int kIaBits = kIsVersion1 ? 35 : 38;
  constexpr int kProviderBits = kIsVersion1 ? 26 : 31;
  EXPECT_EQ(DAT_UINT64{DAT_IA_FIELD_ALL}, (DAT_UINT64{1} << kIaBits) - 1);
  EXPECT_EQ(DAT_UINT64{DAT_PROVIDER_FIELD_ALL}, (DAT_UINT64{1} << kProviderBits) - 1);
  DAT_IA_ATTR attr{};
  DAT_PROVIDER_ATTR provider_attr{};
  for (int bit = kIaBits; bit < 64; ++bit) {
    EXPECT_THAT(dat_ia_query(ia.get(), nullptr, DAT_UINT64{1} << bit, &attr, 0, nullptr),
                HasType(DAT_INVALID_PARAMETER))
        << bit;
  }
  for (int bit = kProviderBits; bit < 64; ++bit) {
    EXPECT_THAT(dat_ia_query(ia.get(), nullptr, 0, nullptr, DAT_UINT64{1} << bit, &provider_attr),
                HasType(DAT_INVALID_PARAMETER))
        << bit;
  }
}

// IA-QUERY-8, IA-QUERY-12
TEST_P(IaQuery, BadHandleIsRefused) {
  DAT_IA_ATTR attr{};
  Ia closed(GetParam());
  const DAT_IA_HANDLE stale = closed.get();
  ASSERT_THAT(closed.close(DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  for (const DAT_HANDLE bad : {DAT_HANDLE_NULL, ia.async_evd(), stale}) {
    EXPECT_THAT(dat_ia_query(bad, nullptr, DAT_IA_FIELD_ALL, &attr, 0, nullptr), HasType(DAT_INVALID_HANDLE));
  }
}

// IA-QUERY-9, IA-QUERY-10
TEST_P(IaQuery, AttributesAreEqualForAllInstancesAndAtAllTimes) {
  const DAT_IA_ATTR before = attributes(DAT_IA_FIELD_ALL);
  const Ia other(GetParam());
  const DAT_IA_ATTR others = other.attributes();
  const Evd evd(ia, DAT_EVD_SOFTWARE_FLAG, 4);
  const Pz pz(ia);
  const DAT_IA_ATTR after = attributes(DAT_IA_FIELD_ALL);
  const DAT_PROVIDER_ATTR provider_before = provider(DAT_PROVIDER_FIELD_ALL);
  const DAT_PROVIDER_ATTR provider_after = provider(DAT_PROVIDER_FIELD_ALL);
  for (const Member& member : kIaMembers) {
    EXPECT_TRUE(same(member, before, after)) << member.name;
    if (member.bit == DAT_IA_FIELD_IA_ADDRESS_PTR || member.bit == DAT_IA_FIELD_IA_TRANSPORT_ATTR ||
        member.bit == DAT_IA_FIELD_IA_VENDOR_ATTR) {
      continue;  // each instance has its own memory for these
    }
    EXPECT_TRUE(same(member, before, others)) << member.name;
  }
  EXPECT_EQ(std::memcmp(before.ia_address_ptr, others.ia_address_ptr, sizeof(sockaddr_in)), 0);
  for (const Member& member : kProviderMembers) {
    if (member.bit == DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR) continue;
    EXPECT_TRUE(same(member, provider_before, provider_after)) << member.name;
  }
}

// IA-QUERY-11, THR-1
TEST_P(IaQuery, ManyThreadsQueryAtOnceAndWhileOthersWait) {
  const Evd evd(ia, DAT_EVD_SOFTWARE_FLAG, 4);
  BlockedWait waiter(evd.get());
  in_threads(4, [&](int) {
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(ia.attributes().adapter_name, GetParam().ia_name);
      EXPECT_EQ(ia.provider().dapl_version_major, DAT_UINT32{DAT_VERSION_MAJOR});
    }
  });
  EXPECT_FALSE(waiter.returned_within(std::chrono::milliseconds(0)));
  post(evd.get());
  EXPECT_THAT(waiter.result().rc, Succeeds());
}

// IA-ATTR-1
TEST_P(IaQuery, AdapterNameIsTheNameItWasOpenedBy) {
  EXPECT_EQ(attributes(DAT_IA_FIELD_ALL).adapter_name, GetParam().ia_name);
}

// IA-ATTR-3, IA-ATTR-4
TEST_P(IaQuery, LimitsAreNotNegativeAndTheBasicOnesPositive) {
  const DAT_IA_ATTR attr = ia.attributes();
  for (const DAT_COUNT basic : {attr.max_eps, attr.max_dto_per_ep, attr.max_evds, attr.max_evd_qlen,
                                attr.max_iov_segments_per_dto, attr.max_lmrs, attr.max_pzs}) {
    EXPECT_GE(basic, 1);
  }
  for (const DAT_COUNT limit :
       {attr.max_rdma_read_per_ep_in, attr.max_rdma_read_per_ep_out, attr.max_rmrs, attr.max_srqs, attr.max_ep_per_srq,
        attr.max_recv_per_srq, attr.max_iov_segments_per_rdma_read, attr.max_iov_segments_per_rdma_write,
        attr.max_rdma_read_in, attr.max_rdma_read_out, attr.num_transport_attr, attr.num_vendor_attr}) {
    EXPECT_GE(limit, 0);
  }
  for (const DAT_BOOLEAN guaranteed :
       {attr.max_rdma_read_per_ep_in_guaranteed, attr.max_rdma_read_per_ep_out_guaranteed}) {
    EXPECT_TRUE(guaranteed == DAT_TRUE || guaranteed == DAT_FALSE);
  }
}

// IA-ATTR-5: and a peer can connect to it.
TEST_P(IaQuery, AddressCanBeConnectedTo) {
  Side server(GetParam());
  Side client(GetParam());
  const DAT_IA_ADDRESS_PTR address = server.ia.attributes().ia_address_ptr;
  ASSERT_NE(address, nullptr);
  EXPECT_TRUE(address->sa_family == AF_INET || address->sa_family == AF_INET6);
  const Ep ep(client);
  ASSERT_THAT(dat_ep_connect(ep.get(), address, server.listen(), DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                             DAT_CONNECT_DEFAULT_FLAG),
              Succeeds());
  const DAT_EVENT request = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  ASSERT_THAT(dat_cr_reject(request.event_data.cr_arrival_event_data.cr_handle), Succeeds());
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
}

// IA-ATTR-6
TEST_P(IaQuery, NamedAttributesAreThereExactlyIfCounted) {
  const auto check = [](DAT_COUNT count, const DAT_NAMED_ATTR* array) {
    EXPECT_EQ(count == 0, array == nullptr);
    for (DAT_COUNT i = 0; i < count; ++i) {
      EXPECT_STRNE(array[i].name, "");
      EXPECT_NE(array[i].value, nullptr);
    }
  };
  const DAT_IA_ATTR attr = ia.attributes();
  const DAT_PROVIDER_ATTR provider_attr = ia.provider();
  check(attr.num_transport_attr, attr.transport_attr);
  check(attr.num_vendor_attr, attr.vendor_attr);
  check(provider_attr.num_provider_specific_attr, provider_attr.provider_specific_attr);
}

// IA-ATTR-2: each limit on one object is where requests begin to fail.
TEST_P(IaQuery, LimitsOnOneObjectAreReal) {
  const Side side(GetParam());
  const DAT_IA_ATTR limit = side.ia.attributes();
  const auto expect_limited = [&](const char* what, const std::function<void(DAT_EP_ATTR&)>& at_most,
                                  const std::function<void(DAT_EP_ATTR&)>& above) {
    DAT_EP_ATTR attr = default_ep_attr();
    at_most(attr);
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    const EpEvds evds = evds_of(side);
    EXPECT_THAT(dat_ep_create(side.ia.get(), side.pz.get(), evds.recv, evds.request, evds.connect, &attr, &ep),
                Succeeds())
        << what;
    EXPECT_THAT(dat_ep_free(ep), Succeeds());
    attr = default_ep_attr();
    above(attr);
    EXPECT_THAT(dat_ep_create(side.ia.get(), side.pz.get(), evds.recv, evds.request, evds.connect, &attr, &ep),
                HasType(DAT_INVALID_PARAMETER))
        << what;
  };
#define ANYDAT_EXPECT_LIMITED(member, most)                          \
  expect_limited(                                                    \
      #member, [&](DAT_EP_ATTR& attr) { attr.member = limit.most; }, \
      [&](DAT_EP_ATTR& attr) { attr.member = limit.most + 1; })
  ANYDAT_EXPECT_LIMITED(max_message_size, max_message_size);
  ANYDAT_EXPECT_LIMITED(max_rdma_size, max_rdma_size);
  ANYDAT_EXPECT_LIMITED(max_recv_dtos, max_dto_per_ep);
  ANYDAT_EXPECT_LIMITED(max_request_dtos, max_dto_per_ep);
  ANYDAT_EXPECT_LIMITED(max_recv_iov, max_iov_segments_per_dto);
  ANYDAT_EXPECT_LIMITED(max_request_iov, max_iov_segments_per_dto);
  ANYDAT_EXPECT_LIMITED(max_rdma_read_in, max_rdma_read_per_ep_in);
  ANYDAT_EXPECT_LIMITED(max_rdma_read_out, max_rdma_read_per_ep_out);
  ANYDAT_EXPECT_LIMITED(max_rdma_read_iov, max_iov_segments_per_rdma_read);
  ANYDAT_EXPECT_LIMITED(max_rdma_write_iov, max_iov_segments_per_rdma_write);
#undef ANYDAT_EXPECT_LIMITED

  const auto create_srq = [&](DAT_COUNT dtos, DAT_COUNT iov) {
    DAT_SRQ_ATTR attr{.max_recv_dtos = dtos, .max_recv_iov = iov, .low_watermark = 0};
    DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
    const DAT_RETURN rc = dat_srq_create(side.ia.get(), side.pz.get(), &attr, &srq);
    if (rc == DAT_SUCCESS) {
      EXPECT_THAT(dat_srq_free(srq), Succeeds());
    }
    return rc;
  };
  EXPECT_THAT(create_srq(4, limit.max_iov_segments_per_dto), Succeeds());
  EXPECT_THAT(create_srq(4, limit.max_iov_segments_per_dto + 1), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(create_srq(limit.max_recv_per_srq + 1, 1), HasType(DAT_INVALID_PARAMETER));

  std::byte memory{};
  DAT_REGION_DESCRIPTION region{};
  region.for_va = &memory;
  // D2-TYPE-5: where the attribute is cut off at 32 bits the limit is the engine's, and memory ends before it.
  const DAT_VLEN too_long =
      limit.max_lmr_block_size < kSegmentLengthMax ? limit.max_lmr_block_size + DAT_VLEN{1} : ~DAT_VLEN{0};
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_lmr_create(side.ia.get(), DAT_MEM_TYPE_VIRTUAL, region, too_long, side.pz.get(),
                             DAT_MEM_PRIV_ALL_FLAG, &lmr, nullptr, nullptr, nullptr, nullptr),
              HasType(DAT_INVALID_PARAMETER));
}

// PRV-ATTR-1, PRV-ATTR-2, PRV-ATTR-3
TEST_P(IaQuery, ProviderIsAFullOne) {
  const DAT_PROVIDER_ATTR attr = ia.provider();
  EXPECT_GE(attr.max_private_data_size, 64);
  EXPECT_EQ(attr.lmr_mem_types_supported & 0x3, 0x3);
  EXPECT_GE(attr.optimal_buffer_alignment, 1u);
  EXPECT_LE(attr.optimal_buffer_alignment, 256u);
  EXPECT_EQ(DAT_OPTIMAL_ALIGNMENT % attr.optimal_buffer_alignment, 0u);
  EXPECT_EQ(attr.completion_flags_supported, 0x1F);
  EXPECT_STRNE(attr.provider_name, "");
}

// PRV-ATTR-5, PRV-ATTR-6, THR-6, ruling A36: version and thread safety are those by which the instance was opened.
TEST_P(IaQuery, VersionAndThreadSafetyAreTheRegistrations) {
  for (const DAT_BOOLEAN thread_safe : {DAT_FALSE, DAT_TRUE}) {
    std::string name = GetParam().ia_name;
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE opened = DAT_HANDLE_NULL;
    ASSERT_THAT(dat_ia_openv(name.data(), 8, &evd, &opened, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, thread_safe),
                Succeeds());
    DAT_PROVIDER_ATTR attr{};
    ASSERT_THAT(dat_ia_query(opened, nullptr, 0, nullptr, DAT_PROVIDER_FIELD_ALL, &attr), Succeeds());
    EXPECT_EQ(attr.dapl_version_major, DAT_UINT32{DAT_VERSION_MAJOR});
    EXPECT_EQ(attr.dapl_version_minor, DAT_UINT32{DAT_VERSION_MINOR});
    EXPECT_EQ(attr.is_thread_safe, thread_safe);
    EXPECT_THAT(dat_ia_close(opened, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  }
}

ANYDAT_OVER_ALL_WIRES(IaQuery);

}  // namespace
}  // namespace anydat::test
