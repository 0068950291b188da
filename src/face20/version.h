// SPDX-License-Identifier: BSD-3-Clause
// What is particular to version 2.0 of the interface (docs/spec/3-udapl2.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/event.h"
#include "dapl/ia_description.h"
#include "face/dat.h"

namespace anydat::face {

// DAT_COMPAT while it is unset.
inline constexpr const char* kDefaultCompat = "openfabrics";

// Whether the version has operations beyond those of 1.2, and events for them.
inline constexpr bool kExtended = true;

// The subtype for what is no argument: the objects number them as version 1.2 does, and this one has put two in between
// (D2-RC-3).
constexpr DAT_RETURN subtype_of(dapl::Detail detail) {
  constexpr DAT_RETURN kFirstShifted = 0x1a;       // DAT_INVALID_HANDLE_CSP stands there
  constexpr DAT_RETURN kFirstShiftedTwice = 0x57;  // DAT_INVALID_STATE_SRQ_SHUTDOWN came before it
  if (detail == dapl::Detail::handle_csp) return DAT_INVALID_HANDLE_CSP;
  const auto number = static_cast<DAT_RETURN>(detail);
  return number < kFirstShifted ? number : number < kFirstShiftedTwice ? number + 1 : number + 2;
}
static_assert(subtype_of(dapl::Detail::srq) == DAT_RESOURCE_SRQ);
static_assert(subtype_of(dapl::Detail::handle_srq) == DAT_INVALID_HANDLE_SRQ);
static_assert(subtype_of(dapl::Detail::ep_unconnected) == DAT_INVALID_STATE_EP_UNCONNECTED);
static_assert(subtype_of(dapl::Detail::ep_not_ready) == DAT_INVALID_STATE_EP_NOTREADY);
static_assert(subtype_of(dapl::Detail::cno_in_use) == DAT_INVALID_STATE_CNO_IN_USE);
static_assert(subtype_of(dapl::Detail::evd_waiter) == DAT_INVALID_STATE_EVD_WAITER);
static_assert(subtype_of(dapl::Detail::pz_in_use) == DAT_INVALID_STATE_PZ_IN_USE);
static_assert(subtype_of(dapl::Detail::srq_in_use) == DAT_INVALID_STATE_SRQ_IN_USE);
static_assert(subtype_of(dapl::Detail::privileges_write) == DAT_PRIVILEGES_WRITE);
static_assert(subtype_of(dapl::Detail::address_malformed) == DAT_INVALID_ADDRESS_MALFORMED);
static_assert(subtype_of(dapl::Detail::name_not_registered) == DAT_NAME_NOT_REGISTERED);

inline dapl::Segment from_triplet(const DAT_LMR_TRIPLET& triplet) {
  return {triplet.lmr_context, 0, triplet.virtual_address, triplet.segment_length};
}

// The segments of a post stay where they are: the objects read this version's layout, too.
inline const dapl::PackedSegment* segments_of(const DAT_LMR_TRIPLET* given) {
  return reinterpret_cast<const dapl::PackedSegment*>(given);
}
// A peer's memory.
inline const dapl::PackedSegment* segments_of(const DAT_RMR_TRIPLET* given) {
  return reinterpret_cast<const dapl::PackedSegment*>(given);
}
static_assert(sizeof(DAT_LMR_TRIPLET) == sizeof(dapl::PackedSegment));
static_assert(offsetof(DAT_LMR_TRIPLET, lmr_context) == offsetof(dapl::PackedSegment, key));
static_assert(offsetof(DAT_LMR_TRIPLET, virtual_address) == offsetof(dapl::PackedSegment, address));
static_assert(offsetof(DAT_LMR_TRIPLET, segment_length) == offsetof(dapl::PackedSegment, length));
static_assert(sizeof(DAT_RMR_TRIPLET) == sizeof(dapl::PackedSegment));
static_assert(offsetof(DAT_RMR_TRIPLET, rmr_context) == offsetof(dapl::PackedSegment, key));
static_assert(offsetof(DAT_RMR_TRIPLET, virtual_address) == offsetof(dapl::PackedSegment, address));
static_assert(offsetof(DAT_RMR_TRIPLET, segment_length) == offsetof(dapl::PackedSegment, length));

inline DAT_LMR_TRIPLET to_triplet(const dapl::Segment& segment) {
  return {segment.address, static_cast<DAT_SEG_LENGTH>(segment.length), segment.key};
}

// The number of a completed DTO's event.
inline DAT_EVENT_NUMBER completion_number(const dapl::Event&) {
  return DAT_DTO_COMPLETION_EVENT;
}

// D2-EVT-5, by the seam's kinds of work.
constexpr DAT_DTOS extension_operation(int after_base) {
  return static_cast<DAT_DTOS>(DAT_DTO_EXTENSION_BASE + after_base);
}
inline constexpr std::array<DAT_DTOS, 16> kOperations{
    DAT_DTO_RECEIVE,   extension_operation(1), DAT_DTO_RECEIVE_WITH_INVALIDATE, DAT_DTO_SEND,
    DAT_DTO_SEND,      DAT_DTO_RDMA_WRITE,     extension_operation(0),          DAT_DTO_BIND_MW,
    DAT_DTO_RDMA_READ, extension_operation(2), extension_operation(3)};
static_assert(kOperations[static_cast<std::size_t>(nic::WorkKind::recv)] == DAT_DTO_RECEIVE);
static_assert(kOperations[static_cast<std::size_t>(nic::WorkKind::send)] == DAT_DTO_SEND);
static_assert(kOperations[static_cast<std::size_t>(nic::WorkKind::rdma_read)] == DAT_DTO_RDMA_READ);
static_assert(kOperations[static_cast<std::size_t>(nic::WorkKind::rdma_write)] == DAT_DTO_RDMA_WRITE);
static_assert(kOperations[static_cast<std::size_t>(nic::WorkKind::bind)] == DAT_DTO_BIND_MW);
static_assert(kOperations[static_cast<std::size_t>(nic::WorkKind::recv_invalidate)] == DAT_DTO_RECEIVE_WITH_INVALIDATE);

// D2-EXT-6, D2-IMM-2. Of an operation of the extension.
void tell_extension(const dapl::Event& from, DAT_EVENT& to);

// What this version's events tell beyond both versions' members.
inline void tell_more(const dapl::Event& from, DAT_EVENT& to) {
  DAT_DTO_COMPLETION_EVENT_DATA& data = to.event_data.dto_completion_event_data;
  data.operation = kOperations[static_cast<std::size_t>(from.operation)];
  data.rmr_context = from.operation == nic::WorkKind::recv_invalidate ? from.detail : 0;
  if (data.operation >= DAT_DTO_EXTENSION_BASE) [[unlikely]]
    tell_extension(from, to);
}
inline void tell_more(bool truncated, DAT_CR_ARRIVAL_EVENT_DATA& to) {
  to.truncate_flag = truncated ? DAT_TRUE : DAT_FALSE;
}

// D2-CR-2, D2-CR-5.
constexpr bool shows_private_data(dapl::EventKind kind) {
  return kind == dapl::EventKind::established || kind == dapl::EventKind::peer_rejected;
}

// D2-CONN-2: several paths that are only wished for are served by one.
inline dapl::Error check_connect_flags(DAT_CONNECT_FLAGS& flags) {
  if (flags == DAT_CONNECT_MULTIPATH_REQUESTED_FLAG) flags = DAT_CONNECT_DEFAULT_FLAG;
  if (flags != DAT_CONNECT_MULTIPATH_REQUIRED_FLAG) return dapl::kSuccess;
  return dapl::fail(dapl::Code::model_not_supported, dapl::Detail::none,
                    "dat_ep_connect: several paths are required, and supports_multipath is FALSE");
}
// D2-EXT-3: datagrams.
inline dapl::Error check_service(const char* call, DAT_SERVICE_TYPE type) {
  if (type != DAT_SERVICE_TYPE_EXTENSION_BASE) return dapl::kSuccess;
  return dapl::fail(dapl::Code::model_not_supported, dapl::Detail::none,
                    "{}: service_type is that of datagrams, and this adapter has connections only", call);
}

// The mask of dat_ep_modify: the parts stand next to each other.
constexpr dapl::EpFields fields_of(DAT_EP_PARAM_MASK mask) {
  constexpr DAT_EP_PARAM_MASK kParts = DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
                                       DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE;
  constexpr DAT_EP_PARAM_MASK kFixed = ~kParts & ~DAT_EP_FIELD_EP_ATTR_ALL;
  return (mask & kParts) / DAT_EP_FIELD_PZ_HANDLE | (mask & DAT_EP_FIELD_EP_ATTR_ALL) |
         ((mask & kFixed) != 0 ? dapl::ep_field::kUnchangeable : 0);
}
static_assert(fields_of(DAT_EP_FIELD_RECV_EVD_HANDLE) == dapl::ep_field::kRecvEvd);
static_assert(fields_of(DAT_EP_FIELD_CONNECT_EVD_HANDLE) == dapl::ep_field::kConnectEvd);
static_assert(fields_of(DAT_EP_FIELD_COMM) == dapl::ep_field::kUnchangeable);  // D2-CONN-5

// D2-IA: what is shown as supported works.
void tell_more(const dapl::Description& adapter, DAT_IA_ATTR& attr);
inline void tell_more(const dapl::ProviderAttributes& from, DAT_PROVIDER_ATTR& attr) {
  attr.rdma_read_lmr_rmr_context_exposure = DAT_FALSE;
  attr.rmr_scope_supported = from.endpoint_windows ? DAT_RMR_SCOPE_ANY : DAT_RMR_SCOPE_PZ;
  attr.is_signal_safe = DAT_FALSE;
  attr.ha_supported = DAT_FALSE;
  attr.ha_loadbalancing = DAT_HA_LB_NONE;
}
inline void tell_more(const dapl::EpParameters& from, DAT_EP_PARAM& param) {
  param.comm = {from.comm.domain, from.comm.type, from.comm.protocol};  // D2-CONN-4
}
inline void tell_more(const dapl::LmrParameters& from, DAT_LMR_PARAM& param) {
  param.va_type = from.zero_based ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA;
}
inline void tell_more(const dapl::RmrParameters& from, DAT_RMR_PARAM& param) {
  param.rmr_scope = from.of_endpoint ? DAT_RMR_SCOPE_EP : DAT_RMR_SCOPE_PZ;
  param.va_type = from.zero_based ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA;
}

// D2-CNO-12: the names of the fields are no bits.
inline constexpr std::uint64_t kCnoFields = 7;

// D2-CNO-11.
inline void to_dat(const dapl::CnoParameters& from, DAT_CNO_PARAM& to) {
  to.ia_handle = from.ia_handle;
  to.proxy = {};
  if (from.fd >= 0) {
    to.proxy_type = DAT_PROXY_TYPE_FD;
    to.proxy.fd = from.fd;
  } else if (from.agent.function) {
    to.proxy_type = DAT_PROXY_TYPE_AGENT;
    to.proxy.agent = {from.agent.instance_data, from.agent.function};
  } else {
    to.proxy_type = DAT_PROXY_TYPE_NONE;
    to.proxy.none = nullptr;
  }
}

}  // namespace anydat::face
