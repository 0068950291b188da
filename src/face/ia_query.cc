// SPDX-License-Identifier: BSD-3-Clause
#include "face/ia_query.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "face/convert.h"
#include "face/members.h"
#include "version.h"

namespace anydat::face {

namespace {

void put_name(char (&to)[DAT_NAME_MAX_LENGTH], const std::string& from) {
  std::memset(to, 0, sizeof to);
  std::memcpy(to, from.data(), std::min(from.size(), sizeof to - 1));
}

// The arrays of named attributes are shown as they are.
static_assert(sizeof(DAT_NAMED_ATTR) == sizeof(dapl::NamedAttribute));
static_assert(offsetof(DAT_NAMED_ATTR, value) == offsetof(dapl::NamedAttribute, value));

void fill(const dapl::Description& from, DAT_IA_ATTR& to) {
  const dapl::Limits& limits = from.limits();
  to = {};
  put_name(to.adapter_name, from.name());
  put_name(to.vendor_name, "anydat");
  to.hardware_version_major = kVersionMajor;
  to.hardware_version_minor = kVersionMinor;
  to.firmware_version_major = kVersionMajor;
  to.firmware_version_minor = kVersionMinor;
  to.ia_address_ptr = address(&from.address().generic);
  to.max_eps = limits.max_eps;
  to.max_dto_per_ep = limits.max_dto_per_ep;
  to.max_rdma_read_per_ep_in = limits.max_rdma_reads_per_ep;
  to.max_rdma_read_per_ep_out = limits.max_rdma_reads_per_ep;
  to.max_evds = limits.max_evds;
  to.max_evd_qlen = limits.max_evd_qlen;
  to.max_iov_segments_per_dto = limits.max_iov;
  to.max_lmrs = limits.max_lmrs;
  put(to.max_lmr_block_size, limits.max_lmr_block_size);
  to.max_lmr_virtual_address = limits.max_virtual_address;
  to.max_pzs = limits.max_pzs;
  put(to.max_message_size, limits.max_message_size);
  put(to.max_rdma_size, limits.max_rdma_size);
  to.max_rmrs = limits.max_rmrs;
  to.max_rmr_target_address = limits.max_virtual_address;
  to.max_srqs = limits.max_srqs;
  to.max_ep_per_srq = limits.max_ep_per_srq;
  to.max_recv_per_srq = limits.max_recv_per_srq;
  to.max_iov_segments_per_rdma_read = limits.max_iov;
  to.max_iov_segments_per_rdma_write = limits.max_iov;
  to.max_rdma_read_in = limits.max_rdma_reads;
  to.max_rdma_read_out = limits.max_rdma_reads;
  to.max_rdma_read_per_ep_in_guaranteed = DAT_TRUE;
  to.max_rdma_read_per_ep_out_guaranteed = DAT_TRUE;
  tell_more(from, to);
}

void fill(const dapl::ProviderAttributes& from, DAT_PROVIDER_ATTR& to) {
  std::memset(static_cast<void*>(&to), 0, sizeof to);
  put_name(to.provider_name, "anydat");
  to.provider_version_major = kVersionMajor;
  to.provider_version_minor = kVersionMinor;
  to.dapl_version_major = DAT_VERSION_MAJOR;
  to.dapl_version_minor = from.dapl_version_minor;
  to.lmr_mem_types_supported = static_cast<DAT_MEM_TYPE>(DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL);
  to.iov_ownership_on_return = DAT_IOV_CONSUMER;
  to.dat_qos_supported = static_cast<DAT_QOS>(from.dat_qos_supported);
  to.completion_flags_supported = static_cast<DAT_COMPLETION_FLAGS>(from.completion_flags_supported);
  to.is_thread_safe = to_dat(from.is_thread_safe);
  to.max_private_data_size = from.max_private_data_size;
  to.supports_multipath = DAT_FALSE;
  to.ep_creator = DAT_PSP_CREATES_EP_IFASKED;
  to.pz_support = DAT_PZ_UNIQUE;
  to.optimal_buffer_alignment = 64;
  for (auto& row : to.evd_stream_merging_supported) {
    std::fill(std::begin(row), std::end(row), DAT_TRUE);  // ruling A43
  }
  to.srq_supported = to_dat(from.shared_queues);
  // Ruling A35 says what the digits mean.
  if (from.shared_queues) {
    to.srq_watermarks_supported = from.high_watermarks ? 0x111 : 0x001;
    to.srq_ep_pz_difference_supported = to_dat(from.srq_of_any_zone);
    to.srq_info_supported = 0x11;
  }
  to.ep_recv_info_supported = from.counts_taken_receives ? 0x11 : 0x00;
  to.lmr_sync_req = DAT_FALSE;
  to.dto_async_return_guaranteed = DAT_FALSE;
  to.rdma_write_for_rdma_read_req = DAT_FALSE;
  to.num_provider_specific_attr = from.num_provider_specific_attr;
  to.provider_specific_attr =
      reinterpret_cast<DAT_NAMED_ATTR*>(const_cast<dapl::NamedAttribute*>(from.provider_specific_attr));
  tell_more(from, to);
}

}  // namespace

dapl::Error IaQuery::check(const char* call, const dapl::Habit& unknown_bits) const {
  if (attr_mask != 0) {
    if (const dapl::Error error = check_query(call, attr_mask, DAT_IA_FIELD_ALL, attr, unknown_bits, place))
      return error;
  }
  if (provider_mask == 0) return dapl::kSuccess;
  return check_query(call, provider_mask, DAT_PROVIDER_FIELD_ALL, provider, unknown_bits, place + 2);
}

void IaQuery::answer(const dapl::Description& from) const {
  if (attr_mask != 0) fill(from, *attr);
  if (provider_mask != 0) fill(from.provider_attributes(), *provider);
}

}  // namespace anydat::face
