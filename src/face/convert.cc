// SPDX-License-Identifier: BSD-3-Clause
#include "face/convert.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "version.h"

namespace anydat::face {

namespace {

// A size that has fewer bits in this version: the largest there is stands for all above it (D2-TYPE-4).
template <typename Size>
void put(Size& to, std::uint64_t from) {
  to = static_cast<Size>(std::min<std::uint64_t>(from, std::numeric_limits<Size>::max()));
}

void put_name(char (&to)[DAT_NAME_MAX_LENGTH], const std::string& from) {
  std::memset(to, 0, sizeof to);
  std::memcpy(to, from.data(), std::min(from.size(), sizeof to - 1));
}

DAT_IA_ADDRESS_PTR address(const sockaddr* from) {
  return const_cast<DAT_IA_ADDRESS_PTR>(from);
}

// The arrays of named attributes are shown as they are.
static_assert(sizeof(DAT_NAMED_ATTR) == sizeof(dapl::NamedAttribute));
static_assert(offsetof(DAT_NAMED_ATTR, value) == offsetof(dapl::NamedAttribute, value));

}  // namespace

dapl::EpAttributes from_dat(const DAT_EP_ATTR& from) {
  dapl::EpAttributes to;
  to.service_type = from.service_type;
  to.max_message_size = from.max_message_size;
  to.max_rdma_size = from.max_rdma_size;
  to.qos = from.qos;
  to.recv_completion_flags = from.recv_completion_flags;
  to.request_completion_flags = from.request_completion_flags;
  to.max_recv_dtos = from.max_recv_dtos;
  to.max_request_dtos = from.max_request_dtos;
  to.max_recv_iov = from.max_recv_iov;
  to.max_request_iov = from.max_request_iov;
  to.max_rdma_read_in = from.max_rdma_read_in;
  to.max_rdma_read_out = from.max_rdma_read_out;
  to.srq_soft_hw = from.srq_soft_hw;
  to.max_rdma_read_iov = from.max_rdma_read_iov;
  to.max_rdma_write_iov = from.max_rdma_write_iov;
  to.ep_transport_specific_count = from.ep_transport_specific_count;
  to.ep_provider_specific_count = from.ep_provider_specific_count;
  return to;
}

void fill(const dapl::EpAttributes& from, DAT_EP_ATTR& to) {
  to.service_type = static_cast<DAT_SERVICE_TYPE>(from.service_type);
  put(to.max_message_size, from.max_message_size);
  put(to.max_rdma_size, from.max_rdma_size);
  to.qos = static_cast<DAT_QOS>(from.qos);
  to.recv_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(from.recv_completion_flags);
  to.request_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(from.request_completion_flags);
  to.max_recv_dtos = from.max_recv_dtos;
  to.max_request_dtos = from.max_request_dtos;
  to.max_recv_iov = from.max_recv_iov;
  to.max_request_iov = from.max_request_iov;
  to.max_rdma_read_in = from.max_rdma_read_in;
  to.max_rdma_read_out = from.max_rdma_read_out;
  to.srq_soft_hw = from.srq_soft_hw;
  to.max_rdma_read_iov = from.max_rdma_read_iov;
  to.max_rdma_write_iov = from.max_rdma_write_iov;
  to.ep_transport_specific_count = from.ep_transport_specific_count;
  to.ep_transport_specific = nullptr;
  to.ep_provider_specific_count = from.ep_provider_specific_count;
  to.ep_provider_specific = nullptr;
}

dapl::EpParameters from_dat(const DAT_EP_PARAM& from) {
  dapl::EpParameters to;  // what cannot be changed stays empty
  to.pz_handle = from.pz_handle;
  to.recv_evd_handle = from.recv_evd_handle;
  to.request_evd_handle = from.request_evd_handle;
  to.connect_evd_handle = from.connect_evd_handle;
  to.ep_attr = from_dat(from.ep_attr);
  return to;
}

void fill(const dapl::EpParameters& from, DAT_EP_PARAM& to) {
  to.ia_handle = from.ia_handle;
  to.ep_state = static_cast<DAT_EP_STATE>(from.ep_state);
  to.local_ia_address_ptr = address(from.local_ia_address_ptr);
  to.local_port_qual = from.local_port_qual;
  to.remote_ia_address_ptr = address(from.remote_ia_address_ptr);
  to.remote_port_qual = from.remote_port_qual;
  to.pz_handle = from.pz_handle;
  to.recv_evd_handle = from.recv_evd_handle;
  to.request_evd_handle = from.request_evd_handle;
  to.connect_evd_handle = from.connect_evd_handle;
  to.srq_handle = from.srq_handle;
  fill(from.ep_attr, to.ep_attr);
  tell_more(from, to);
}

void fill(const dapl::EvdParameters& from, DAT_EVD_PARAM& to) {
  to.ia_handle = from.ia_handle;
  to.evd_qlen = from.evd_qlen;
  to.evd_state = static_cast<DAT_EVD_STATE>(from.evd_state);
  to.cno_handle = from.cno_handle;
  to.evd_flags = static_cast<DAT_EVD_FLAGS>(from.evd_flags);
}

void fill(const dapl::CnoParameters& from, DAT_CNO_PARAM& to) {
  to_dat(from, to);
}

void fill(const dapl::CrParameters& from, DAT_CR_PARAM& to) {
  to.remote_ia_address_ptr = address(from.remote_ia_address_ptr);
  to.remote_port_qual = from.remote_port_qual;
  to.private_data_size = from.private_data_size;
  to.private_data = const_cast<void*>(from.private_data);
  to.local_ep_handle = from.local_ep_handle;
}

void fill(const dapl::PspParameters& from, DAT_PSP_PARAM& to) {
  to.ia_handle = from.ia_handle;
  to.conn_qual = from.conn_qual;
  to.evd_handle = from.evd_handle;
  to.psp_flags = static_cast<DAT_PSP_FLAGS>(from.psp_flags);
}

void fill(const dapl::RspParameters& from, DAT_RSP_PARAM& to) {
  to.ia_handle = from.ia_handle;
  to.conn_qual = from.conn_qual;
  to.evd_handle = from.evd_handle;
  to.ep_handle = from.ep_handle;
}

dapl::MemoryDescription from_dat(dapl::MemoryType type, const DAT_REGION_DESCRIPTION& from) {
  switch (type) {
    case dapl::MemoryType::lmr:
      return {nullptr, from.for_lmr_handle, nullptr};
    case dapl::MemoryType::shared_virtual:
      return {from.for_shared_memory.virtual_address, nullptr,
              reinterpret_cast<const char*>(from.for_shared_memory.shared_memory_id)};
    default:
      return {from.for_va, nullptr, nullptr};
  }
}

void fill(const dapl::LmrParameters& from, DAT_LMR_PARAM& to) {
  to.ia_handle = from.ia_handle;
  to.mem_type = static_cast<DAT_MEM_TYPE>(from.mem_type);
  switch (from.mem_type) {
    case dapl::MemoryType::lmr:
      to.region_desc.for_lmr_handle = from.region_desc.lmr;
      break;
    case dapl::MemoryType::shared_virtual:
      to.region_desc.for_shared_memory = {
          from.region_desc.address,
          reinterpret_cast<DAT_LMR_COOKIE>(const_cast<char*>(from.region_desc.shared_memory_id))};
      break;
    default:
      to.region_desc.for_va = from.region_desc.address;
  }
  to.length = from.length;
  to.pz_handle = from.pz_handle;
  to.mem_priv = static_cast<DAT_MEM_PRIV_FLAGS>(from.mem_priv);
  to.lmr_context = from.lmr_context;
  to.rmr_context = from.rmr_context;
  to.registered_size = from.registered_size;
  to.registered_address = from.registered_address;
  tell_more(from, to);
}

void fill(const dapl::RmrParameters& from, DAT_RMR_PARAM& to) {
  to.ia_handle = from.ia_handle;
  to.pz_handle = from.pz_handle;
  to.lmr_triplet = to_triplet(from.lmr_triplet);
  to.mem_priv = static_cast<DAT_MEM_PRIV_FLAGS>(from.mem_priv);
  to.rmr_context = from.rmr_context;
  tell_more(from, to);
}

void fill(const dapl::SrqParameters& from, DAT_SRQ_PARAM& to) {
  to.ia_handle = from.ia_handle;
  to.srq_state = DAT_SRQ_STATE_OPERATIONAL;
  to.pz_handle = from.pz_handle;
  to.max_recv_dtos = from.max_recv_dtos;
  to.max_recv_iov = from.max_recv_iov;
  to.low_watermark = from.low_watermark;
  to.available_dto_count = from.available_dto_count;
  to.outstanding_dto_count = from.outstanding_dto_count;
}

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
  to.srq_supported = DAT_TRUE;
  // Ruling A35 says what the digits mean.
  to.srq_watermarks_supported = from.high_watermarks ? 0x111 : 0x001;
  to.srq_ep_pz_difference_supported = to_dat(from.srq_of_any_zone);
  to.srq_info_supported = 0x11;
  to.ep_recv_info_supported = from.counts_taken_receives ? 0x11 : 0x00;
  to.lmr_sync_req = DAT_FALSE;
  to.dto_async_return_guaranteed = DAT_FALSE;
  to.rdma_write_for_rdma_read_req = DAT_FALSE;
  to.num_provider_specific_attr = from.num_provider_specific_attr;
  to.provider_specific_attr =
      reinterpret_cast<DAT_NAMED_ATTR*>(const_cast<dapl::NamedAttribute*>(from.provider_specific_attr));
  tell_more(from, to);
}

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
