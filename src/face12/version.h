// SPDX-License-Identifier: BSD-3-Clause
// What is particular to version 1.2 of the interface.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/event.h"
#include "dapl/ia_description.h"
#include "face/dat.h"

namespace anydat::dapl {
class Ia;
}

namespace anydat::face {

// DAT_COMPAT while it is unset.
inline constexpr const char* kDefaultCompat = "default";

// Whether the version has operations beyond those of 1.2, and events for them.
inline constexpr bool kExtended = false;

// The subtype for what is no argument: the objects number them as this version does.
constexpr DAT_RETURN subtype_of(dapl::Detail detail) {
  return static_cast<DAT_RETURN>(detail);
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

// The segments of a post. Triplets of this version are laid out as the NIC's segments, so they stay where they are.
inline const dapl::Segment* segments_of(const DAT_LMR_TRIPLET* given) {
  return reinterpret_cast<const dapl::Segment*>(given);
}
// A peer's memory.
inline const dapl::Segment* segments_of(const DAT_RMR_TRIPLET* given) {
  return reinterpret_cast<const dapl::Segment*>(given);
}
static_assert(sizeof(DAT_LMR_TRIPLET) == sizeof(dapl::Segment));
static_assert(offsetof(DAT_LMR_TRIPLET, lmr_context) == offsetof(dapl::Segment, key));
static_assert(offsetof(DAT_LMR_TRIPLET, virtual_address) == offsetof(dapl::Segment, address));
static_assert(offsetof(DAT_LMR_TRIPLET, segment_length) == offsetof(dapl::Segment, length));
static_assert(sizeof(DAT_RMR_TRIPLET) == sizeof(dapl::Segment));
static_assert(offsetof(DAT_RMR_TRIPLET, rmr_context) == offsetof(dapl::Segment, key));
static_assert(offsetof(DAT_RMR_TRIPLET, target_address) == offsetof(dapl::Segment, address));
static_assert(offsetof(DAT_RMR_TRIPLET, segment_length) == offsetof(dapl::Segment, length));

inline dapl::Segment from_triplet(const DAT_LMR_TRIPLET& triplet) {
  return {triplet.lmr_context, 0, triplet.virtual_address, triplet.segment_length};
}
inline DAT_LMR_TRIPLET to_triplet(const dapl::Segment& segment) {
  return {segment.key, 0, segment.address, segment.length};
}

// The number of a completed DTO's event, and what its data tell beyond both versions' members: nothing here.
inline DAT_EVENT_NUMBER completion_number(const dapl::Event&) {
  return DAT_DTO_COMPLETION_EVENT;
}
inline void tell_more(const dapl::Event&, DAT_EVENT&) {}
inline void tell_more(bool, DAT_CR_ARRIVAL_EVENT_DATA&) {}

// EVT-26: only an acceptance has any in this version.
constexpr bool shows_private_data(dapl::EventKind kind) {
  return kind == dapl::EventKind::established;
}

// What a face alone decides of the flags of dat_ep_connect and of an endpoint's type of service: nothing here.
inline dapl::Error check_connect_flags(DAT_CONNECT_FLAGS& flags) {
  (void)flags;
  return dapl::kSuccess;
}
inline dapl::Error check_service(const char*, DAT_SERVICE_TYPE) {
  return dapl::kSuccess;
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

inline void tell_more(const dapl::Description&, DAT_IA_ATTR&) {}
inline void tell_more(const dapl::ProviderAttributes&, DAT_PROVIDER_ATTR&) {}
inline void tell_more(const dapl::EpParameters&, DAT_EP_PARAM&) {}
inline void tell_more(const dapl::LmrParameters&, DAT_LMR_PARAM&) {}
inline void tell_more(const dapl::RmrParameters&, DAT_RMR_PARAM&) {}

inline constexpr std::uint64_t kCnoFields = DAT_CNO_FIELD_ALL;

inline void to_dat(const dapl::CnoParameters& from, DAT_CNO_PARAM& to) {
  to.ia_handle = from.ia_handle;
  to.agent = {from.agent.instance_data, from.agent.function};
}

}  // namespace anydat::face
