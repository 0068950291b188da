// SPDX-License-Identifier: BSD-3-Clause
// What the objects are made of and what they answer to a query, as values of their own. Members have the names that the
// C structures of both versions give them, so that a face copies them by name.
#pragma once

#include <cstdint>

#include "dapl/types.h"

namespace anydat::dapl {

struct NamedAttribute {
  const char* name;
  const char* value;
};

struct EpAttributes {
  std::uint32_t service_type = 0;  // 0: reliable connections
  std::uint64_t max_message_size = 0;
  std::uint64_t max_rdma_size = 0;
  Qos qos = kBestEffort;
  CompletionFlags recv_completion_flags = 0;
  CompletionFlags request_completion_flags = 0;
  Count max_recv_dtos = 0;
  Count max_request_dtos = 0;
  Count max_recv_iov = 0;
  Count max_request_iov = 0;
  Count max_rdma_read_in = 0;
  Count max_rdma_read_out = 0;
  Count srq_soft_hw = 0;
  Count max_rdma_read_iov = 0;
  Count max_rdma_write_iov = 0;
  Count ep_transport_specific_count = 0;
  Count ep_provider_specific_count = 0;
};

// What both ends of a common service point agree on: the arguments of socket(2). All zero where there is none.
struct Comm {
  int domain = 0;
  int type = 0;
  int protocol = 0;
};

// The addresses are the endpoint's and last as long as it.
struct EpParameters {
  Handle ia_handle = nullptr;
  EpState ep_state = EpState::unconnected;
  const sockaddr* local_ia_address_ptr = nullptr;
  std::uint64_t local_port_qual = 0;
  const sockaddr* remote_ia_address_ptr = nullptr;
  std::uint64_t remote_port_qual = 0;
  Handle pz_handle = nullptr;
  Handle recv_evd_handle = nullptr;
  Handle request_evd_handle = nullptr;
  Handle connect_evd_handle = nullptr;
  Handle srq_handle = nullptr;
  EpAttributes ep_attr;
  Comm comm;
};

// Members of EpParameters that a change names. Bits of our own up to kParts; those of the attributes are the ones of
// both versions of the interface.
using EpFields = std::uint64_t;
namespace ep_field {
inline constexpr EpFields kPz = 0x001;
inline constexpr EpFields kRecvEvd = 0x002;
inline constexpr EpFields kRequestEvd = 0x004;
inline constexpr EpFields kConnectEvd = 0x008;
inline constexpr EpFields kParts = 0x00f;
inline constexpr EpFields kUnchangeable = 0x010;  // any of those that no state lets change
inline constexpr EpFields kServiceType = 0x1000;
inline constexpr EpFields kMaxMessageSize = 0x2000;
inline constexpr EpFields kMaxRdmaSize = 0x4000;
inline constexpr EpFields kQos = 0x8000;
inline constexpr EpFields kRecvCompletionFlags = 0x10000;
inline constexpr EpFields kRequestCompletionFlags = 0x20000;
inline constexpr EpFields kMaxRecvDtos = 0x40000;
inline constexpr EpFields kMaxRequestDtos = 0x80000;
inline constexpr EpFields kMaxRecvIov = 0x100000;
inline constexpr EpFields kMaxRequestIov = 0x200000;
inline constexpr EpFields kMaxRdmaReadIn = 0x400000;
inline constexpr EpFields kMaxRdmaReadOut = 0x800000;
inline constexpr EpFields kSrqSoftHw = 0x1000000;
inline constexpr EpFields kMaxRdmaReadIov = 0x2000000;
inline constexpr EpFields kMaxRdmaWriteIov = 0x4000000;
inline constexpr EpFields kTransportAttributeCount = 0x8000000;
inline constexpr EpFields kTransportAttributes = 0x10000000;
inline constexpr EpFields kProviderAttributeCount = 0x20000000;
inline constexpr EpFields kProviderAttributes = 0x40000000;
inline constexpr EpFields kAttributes = 0x7ffff000;
}  // namespace ep_field

struct EvdParameters {
  Handle ia_handle;
  Count evd_qlen;
  EvdState evd_state;
  Handle cno_handle;
  EvdFlags evd_flags;
};

struct CnoParameters {
  Handle ia_handle;
  Agent agent;
  int fd;  // -1: it has no descriptor
};

// Address and private data are the request's and last as long as it.
struct CrParameters {
  const sockaddr* remote_ia_address_ptr;
  std::uint64_t remote_port_qual;
  Count private_data_size;
  const void* private_data;
  Handle local_ep_handle;
};

struct PspParameters {
  Handle ia_handle;
  nic::ConnQual conn_qual;
  Handle evd_handle;
  PspFlags psp_flags;
};

// The address is the service point's and lasts as long as it.
struct CspParameters {
  Handle ia_handle;
  const Comm* comm;
  const sockaddr* address;
  Handle evd_handle;
};

struct RspParameters {
  Handle ia_handle;
  nic::ConnQual conn_qual;
  Handle evd_handle;
  Handle ep_handle;
};

// What a region is made from. Which member counts, the type says; shared memory has an address and a name of 40 bytes.
struct MemoryDescription {
  void* address = nullptr;
  Handle lmr = nullptr;
  const char* shared_memory_id = nullptr;
};
inline constexpr std::size_t kSharedMemoryIdBytes = 40;

struct LmrParameters {
  Handle ia_handle;
  MemoryType mem_type;
  MemoryDescription region_desc;
  std::uint64_t length;
  Handle pz_handle;
  Privileges mem_priv;
  std::uint32_t lmr_context;
  std::uint32_t rmr_context;
  std::uint64_t registered_size;
  std::uint64_t registered_address;
  bool zero_based;  // D2-LMR-8
};

struct RmrParameters {
  Handle ia_handle;
  Handle pz_handle;
  Segment lmr_triplet;
  Privileges mem_priv;
  std::uint32_t rmr_context;
  bool zero_based;   // D2-RMR-8, like of_endpoint
  bool of_endpoint;  // its context works on the connection alone whose endpoint has bound it
};

struct SrqAttributes {
  Count max_recv_dtos;
  Count max_recv_iov;
  Count low_watermark;
};

// The state is not part of it: a queue works until it is freed (SRQ-ST-5).
struct SrqParameters {
  Handle ia_handle;
  Handle pz_handle;
  Count max_recv_dtos;
  Count max_recv_iov;
  Count low_watermark;
  Count available_dto_count;
  Count outstanding_dto_count;
};

// What the Provider can do beside what every Provider of ours can.
struct ProviderAttributes {
  Qos dat_qos_supported;
  CompletionFlags completion_flags_supported;
  bool is_thread_safe;
  std::uint32_t dapl_version_minor;
  Count max_private_data_size;
  bool shared_queues;          // SRQs, at all
  bool high_watermarks;        // of endpoints
  bool srq_of_any_zone;        // an endpoint may use the SRQ of another zone
  bool counts_taken_receives;  // both answers of dat_ep_recv_query
  bool endpoint_windows;       // beside those of a zone
  Count num_provider_specific_attr;
  const NamedAttribute* provider_specific_attr;  // the instance's, as long as it is open
};

}  // namespace anydat::dapl
