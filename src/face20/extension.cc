// SPDX-License-Identifier: BSD-3-Clause
// The extension of InfiniBand (chapter 13 of the rules): its calls, its events, and what the attributes say of it.
#include <algorithm>
#include <array>
#include <cstdarg>

#include "dapl/ep_extended_posts.h"
#include "dapl/ia.h"
#include "face/calls.h"
#include "face/event.h"
#include "face/objects.h"
#include "face20/extension.h"

#include <dat2/dat_ib_extensions.h>

namespace anydat::face {

namespace {

// Of DAT_IB_OP, by its number up to the last that follows the one before it.
constexpr std::array kOperationNames{
    "DAT_IB_FETCH_AND_ADD_OP",
    "DAT_IB_CMP_AND_SWAP_OP",
    "DAT_IB_RDMA_WRITE_IMMED_OP",
    "DAT_IB_UD_SEND_OP",
    "DAT_IB_QUERY_COUNTERS_OP",
    "DAT_IB_PRINT_COUNTERS_OP",
    "DAT_IB_COLLECTIVE_CREATE_MEMBER_OP",
    "DAT_IB_COLLECTIVE_FREE_MEMBER_OP",
    "DAT_IB_COLLECTIVE_CREATE_GROUP_OP",
    "DAT_IB_COLLECTIVE_FREE_GROUP_OP",
    "DAT_IB_COLLECTIVE_SET_CLOCK_OP",
    "DAT_IB_COLLECTIVE_READ_CLOCK_OP",
    "DAT_IB_COLLECTIVE_SCATTER_OP",
    "DAT_IB_COLLECTIVE_SCATTERV_OP",
    "DAT_IB_COLLECTIVE_GATHER_OP",
    "DAT_IB_COLLECTIVE_GATHERV_OP",
    "DAT_IB_COLLECTIVE_ALLGATHER_OP",
    "DAT_IB_COLLECTIVE_ALLGATHERV_OP",
    "DAT_IB_COLLECTIVE_ALLTOALL_OP",
    "DAT_IB_COLLECTIVE_ALLTOALLV_OP",
    "DAT_IB_COLLECTIVE_REDUCE_OP",
    "DAT_IB_COLLECTIVE_ALLREDUCE_OP",
    "DAT_IB_COLLECTIVE_REDUCE_SCATTER_OP",
    "DAT_IB_COLLECTIVE_SCAN_OP",
    "DAT_IB_COLLECTIVE_BROADCAST_OP",
    "DAT_IB_COLLECTIVE_BARRIER_OP",
    "DAT_IB_START_COUNTERS_OP",
    "DAT_IB_STOP_COUNTERS_OP",
    "DAT_IB_UD_CM_FREE_OP",
    "DAT_IB_UD_AH_FREE_OP",
};
static_assert(kOperationNames.size() == DAT_IB_UD_AH_FREE_OP + 1);

const char* name_of_operation(DAT_EXTENDED_OP operation) {
  const bool named = operation >= 0 && static_cast<std::size_t>(operation) < kOperationNames.size();
  return named ? kOperationNames[static_cast<std::size_t>(operation)] : "an unknown operation";
}

bool is_datagram(DAT_EXTENDED_OP operation) {
  return operation == DAT_IB_UD_SEND_OP || operation == DAT_IB_UD_CM_FREE_OP || operation == DAT_IB_UD_AH_FREE_OP;
}

// D2-EXT-4: the arguments of each operation, in the order in which its macro gives them.
dapl::Error atomic(dapl::Ep& ep, DAT_EXTENDED_OP operation, va_list arguments) {
  dapl::EpExtendedPosts::Atomic what{nic::WorkKind::fetch_add, 0, 0};
  if (operation == DAT_IB_CMP_AND_SWAP_OP) {
    what.kind = nic::WorkKind::compare_swap;
    what.compare = va_arg(arguments, DAT_UINT64);
  }
  what.operand = va_arg(arguments, DAT_UINT64);
  const auto* const local = va_arg(arguments, const DAT_LMR_TRIPLET*);
  const DAT_DTO_COOKIE cookie = va_arg(arguments, DAT_DTO_COOKIE);
  const auto* const remote = va_arg(arguments, const DAT_RMR_TRIPLET*);
  const auto flags = static_cast<dapl::CompletionFlags>(va_arg(arguments, int));
  return dapl::EpExtendedPosts(ep).post_atomic(what, segments_of(local), cookie.as_64, segments_of(remote), flags);
}

dapl::Error write_immediate(dapl::Ep& ep, va_list arguments) {
  const DAT_COUNT count = va_arg(arguments, DAT_COUNT);
  const auto* const local = va_arg(arguments, const DAT_LMR_TRIPLET*);
  const DAT_DTO_COOKIE cookie = va_arg(arguments, DAT_DTO_COOKIE);
  const auto* const remote = va_arg(arguments, const DAT_RMR_TRIPLET*);
  const DAT_UINT32 value = va_arg(arguments, DAT_UINT32);
  const auto flags = static_cast<dapl::CompletionFlags>(va_arg(arguments, int));
  return dapl::EpExtendedPosts(ep).post_write_immediate(count, segments_of(local), cookie.as_64, segments_of(remote),
                                                        value, flags);
}

DAT_IB_EXT_TYPE type_of(nic::WorkKind kind) {
  switch (kind) {
    case nic::WorkKind::fetch_add:
      return DAT_IB_FETCH_AND_ADD;
    case nic::WorkKind::compare_swap:
      return DAT_IB_CMP_AND_SWAP;
    case nic::WorkKind::recv_immediate:
      return DAT_IB_RDMA_WRITE_IMMED_DATA;
    default:
      return DAT_IB_RDMA_WRITE_IMMED;
  }
}

}  // namespace

dapl::Error handle_extendedop(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list arguments) {
  const char* call = "dat_extension_op";
  switch (operation) {
    case DAT_IB_FETCH_AND_ADD_OP:
    case DAT_IB_CMP_AND_SWAP_OP: {
      ANYDAT_OBJECT(Ep, ep, handle, call, handle_ep);
      return atomic(*ep, operation, arguments);
    }
    case DAT_IB_RDMA_WRITE_IMMED_OP: {
      ANYDAT_OBJECT(Ep, ep, handle, call, handle_ep);
      return write_immediate(*ep, arguments);
    }
    case DAT_IB_QUERY_COUNTERS_OP:
      return query_counters(handle, arguments);
    case DAT_IB_PRINT_COUNTERS_OP:
      return print_counters(handle, arguments);
    case DAT_IB_START_COUNTERS_OP:
    case DAT_IB_STOP_COUNTERS_OP:
      return switch_counters(handle, arguments);
    case DAT_IB_OPEN_QUERY_OP:
      return open_query(arguments);
    case DAT_IB_CLOSE_QUERY_OP:
      return close_query(handle);
    default:
      break;
  }
  if (!dapl::HandleTable::find(handle)) {
    return bad_handle(call, "handle", handle, dapl::Detail::none);
  }
  return dapl::fail(dapl::Code::model_not_supported, dapl::Detail::none,
                    "{}: {} ({:#x}) is not supported by this adapter{}", call, name_of_operation(operation), operation,
                    is_datagram(operation) ? ": it has connections only" : "");
}

void tell_extension(const dapl::Event& from, DAT_EVENT& to) {
  to.event_number = static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT);
  auto& data = reinterpret_cast<DAT_IB_EXTENSION_EVENT_DATA&>(to.event_extension_data);
  static_assert(sizeof data <= sizeof to.event_extension_data);
  data.type = type_of(from.operation);
  data.status = from.status == nic::WorkStatus::success ? DAT_OP_SUCCESS : DAT_IB_OP_ERR;
  data.val.immed.data = from.operation == nic::WorkKind::recv_immediate ? from.detail : 0;
}

void tell_more(const dapl::Description& adapter, DAT_IA_ATTR& attr) {
  constexpr std::uint32_t kExtension = nic::ability::kImmediate | nic::ability::kAtomics;
  const bool extension = (adapter.abilities() & kExtension) == kExtension;
  attr.zb_supported = adapter.zero_based() ? DAT_TRUE : DAT_FALSE;
  attr.extension_supported = extension ? DAT_EXTENSION_IB : DAT_EXTENSION_NONE;
  attr.extension_version = extension ? DAT_IB_EXTENSION_VERSION : 0;
}

}  // namespace anydat::face
