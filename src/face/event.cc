// SPDX-License-Identifier: BSD-3-Clause
#include "face/event.h"

#include <array>

#include "dapl/cr.h"
#include "dapl/object.h"

namespace anydat::face {

namespace {

using dapl::EventKind;

constexpr std::array kNumbers{
    DAT_DTO_COMPLETION_EVENT,
    DAT_RMR_BIND_COMPLETION_EVENT,
    DAT_CONNECTION_REQUEST_EVENT,
    DAT_CONNECTION_EVENT_ESTABLISHED,
    DAT_CONNECTION_EVENT_PEER_REJECTED,
    DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
    DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR,
    DAT_CONNECTION_EVENT_DISCONNECTED,
    DAT_CONNECTION_EVENT_BROKEN,
    DAT_CONNECTION_EVENT_TIMED_OUT,
    DAT_CONNECTION_EVENT_UNREACHABLE,
    DAT_ASYNC_ERROR_EVD_OVERFLOW,
    DAT_ASYNC_ERROR_IA_CATASTROPHIC,
    DAT_ASYNC_ERROR_EP_BROKEN,
    DAT_ASYNC_ERROR_TIMED_OUT,
    DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
    DAT_SOFTWARE_EVENT,
};
static_assert(kNumbers.size() == static_cast<std::size_t>(EventKind::software) + 1);
static_assert(kNumbers[static_cast<std::size_t>(EventKind::unreachable)] == DAT_CONNECTION_EVENT_UNREACHABLE);
static_assert(kNumbers[static_cast<std::size_t>(EventKind::provider_internal_error)] ==
              DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);

// The seam numbers the outcomes of work as both versions do.
static_assert(static_cast<int>(nic::WorkStatus::flushed) == DAT_DTO_ERR_FLUSHED);
static_assert(static_cast<int>(nic::WorkStatus::remote_access) == DAT_DTO_ERR_REMOTE_ACCESS);
static_assert(static_cast<int>(nic::WorkStatus::receiver_not_ready) == DAT_DTO_ERR_RECEIVER_NOT_READY);
static_assert(static_cast<int>(nic::WorkStatus::bind_failed) == DAT_RMR_OPERATION_FAILED);

// And the objects the reasons of asynchronous events.
static_assert(dapl::async_reason::kIaOther == DAT_IA_OTHER_ERROR);
static_assert(dapl::async_reason::kEpSoftHighWatermark == DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
static_assert(dapl::async_reason::kEpTransferToError == DAT_EP_TRANSFER_TO_ERROR);
static_assert(dapl::async_reason::kEvdOverflow == DAT_EVD_OVERFLOW_ERROR);
static_assert(dapl::async_reason::kSrqLowWatermark == DAT_SRQ_LOW_WATERMARK_EVENT);
static_assert(dapl::async_reason::kSrqOther == DAT_SRQ_OTHER_ERROR);

void fill(const dapl::Event& from, DAT_CR_ARRIVAL_EVENT_DATA& to) {
  // The address is the request's. One that is dead already cannot be answered, and its handle says so.
  const dapl::Cr* const request = dapl::lookup<dapl::Cr>(from.object);
  to.sp_handle.psp_handle = from.service_point;
  to.local_ia_address_ptr = request ? const_cast<DAT_IA_ADDRESS_PTR>(request->local_address()) : nullptr;
  to.conn_qual = from.qualifier;
  to.cr_handle = from.object;
  tell_more(request && request->truncated(), to);
}

}  // namespace

void fill_other(const dapl::Event& from, DAT_EVENT& to) {
  to.event_number = kNumbers[static_cast<std::size_t>(from.kind)];
  switch (from.kind) {
    case EventKind::bind_completion: {
      DAT_RMR_BIND_COMPLETION_EVENT_DATA& data = to.event_data.rmr_completion_event_data;
      data.rmr_handle = from.object;
      data.user_cookie.as_64 = from.cookie;
      data.status = static_cast<DAT_RMR_BIND_COMPLETION_STATUS>(from.status);
      return;
    }
    case EventKind::connection_request:
      return fill(from, to.event_data.cr_arrival_event_data);
    case EventKind::software:
      to.event_data.software_event_data.pointer = const_cast<void*>(from.pointer);
      return;
    case EventKind::evd_overflow:
    case EventKind::ia_catastrophic:
    case EventKind::ep_broken:
    case EventKind::async_timed_out:
    case EventKind::provider_internal_error:
      to.event_data.asynch_error_event_data.dat_handle = from.object;
      to.event_data.asynch_error_event_data.reason = static_cast<DAT_COUNT>(from.detail);
      return;
    default: {  // connection events
      DAT_CONNECTION_EVENT_DATA& data = to.event_data.connect_event_data;
      data.ep_handle = from.object;
      const bool shown = shows_private_data(from.kind);
      data.private_data_size = shown ? static_cast<DAT_COUNT>(from.detail) : 0;
      data.private_data = shown ? const_cast<void*>(from.pointer) : nullptr;
      return;
    }
  }
}

}  // namespace anydat::face
