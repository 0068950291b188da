// SPDX-License-Identifier: BSD-3-Clause
// Endpoints: posting work. From any thread, without the engine.
#include "dapl/ep.h"
#include "dapl/error.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/segments.h"

namespace anydat::dapl {

namespace {

constexpr unsigned kSendFlags = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
                                DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;
constexpr unsigned kRecvFlags = DAT_COMPLETION_UNSIGNALLED_FLAG;

nic::WorkFlags to_nic(DAT_COMPLETION_FLAGS flags) {
  return {(flags & DAT_COMPLETION_SUPPRESS_FLAG) != 0, (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) != 0,
          (flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0, (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) != 0};
}

}  // namespace

// DTO-32, DTO-34, DTO-35
DAT_RETURN Ep::check_post_flags(const char* call, DAT_COMPLETION_FLAGS flags, unsigned allowed,
                                std::uint32_t model) const {
  if ((flags & ~allowed) != 0) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5, "{}: completion flags {:#x} are not within {:#x}", call,
                static_cast<unsigned>(flags), allowed);
  }
  if ((flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0 && model != StreamCounts::kUnsignalled) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
                "{}: UNSIGNALLED needs an endpoint whose completion flags for that direction are UNSIGNALLED", call);
  }
  return DAT_SUCCESS;
}

DAT_RETURN Ep::post_send(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                         DAT_COMPLETION_FLAGS flags) {
  const char* call = "dat_ep_post_send";
  if (flags != DAT_COMPLETION_DEFAULT_FLAG) {
    const DAT_RETURN rc = check_post_flags(call, flags, kSendFlags, request_model_.load(std::memory_order_relaxed));
    if (rc != DAT_SUCCESS) return rc;
  }
  const DAT_EP_STATE now = state();
  if (now != DAT_EP_STATE_CONNECTED && now != DAT_EP_STATE_DISCONNECTED) [[unlikely]]
    return wrong_state(call);
  CheckedSegments segments;
  const SegmentRules rules{call, max_request_iov_.load(std::memory_order_relaxed), "the endpoint's",
                           zone_.load(std::memory_order_relaxed), nic::access::kLocalRead};
  if (const DAT_RETURN rc = segments.check(ia().nic().regions(), rules, num_segments, iov)) return rc;
  if (segments.length() > max_message_size_.load(std::memory_order_relaxed)) [[unlikely]] {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "{}: {} bytes exceed the endpoint's max_message_size {}", call,
                segments.length(), static_cast<std::uint64_t>(max_message_size_.load()));
  }
  switch (queue_pair_->post_send({cookie.as_64, segments.span(), segments.length(), to_nic(flags)})) {
    [[likely]] case nic::Status::ok : return DAT_SUCCESS;
    case nic::Status::queue_full:
      return fail(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE,
                  "{}: as many requests as max_request_dtos allows have not completed", call);
    default:
      return wrong_state(call);
  }
}

DAT_RETURN Ep::post_recv(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                         DAT_COMPLETION_FLAGS flags) {
  const char* call = "dat_ep_post_recv";
  if (srq_) {
    return fail(DAT_INVALID_STATE, subtype_of(state()), "{}: the endpoint takes its buffers from an SRQ", call);
  }
  if (flags != DAT_COMPLETION_DEFAULT_FLAG) {
    const DAT_RETURN rc = check_post_flags(call, flags, kRecvFlags, recv_model_.load(std::memory_order_relaxed));
    if (rc != DAT_SUCCESS) return rc;
  }
  CheckedSegments segments;
  const SegmentRules rules{call, max_recv_iov_.load(std::memory_order_relaxed), "the endpoint's",
                           zone_.load(std::memory_order_relaxed), nic::access::kLocalWrite};
  if (const DAT_RETURN rc = segments.check(ia().nic().regions(), rules, num_segments, iov)) return rc;
  const bool unsignalled = (flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0;
  if (queue_pair_->post_recv({cookie.as_64, segments.span(), unsignalled}) == nic::Status::ok) [[likely]] {
    return DAT_SUCCESS;
  }
  return fail(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE,
              "{}: as many receives as max_recv_dtos allows have not completed", call);
}

}  // namespace anydat::dapl
