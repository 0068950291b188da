// SPDX-License-Identifier: BSD-3-Clause
#include "face/convert.h"

#include "face/members.h"

namespace anydat::face {

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

}  // namespace anydat::face
