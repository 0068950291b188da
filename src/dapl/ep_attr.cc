// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/ep_attr.h"

#include <algorithm>
#include <span>

#include "dapl/error.h"
#include "dapl/ia.h"

namespace anydat::dapl {

namespace {

constexpr unsigned kRecvFlags = completion::kUnsignalled | completion::kSolicitedWait | completion::kEvdThreshold;
constexpr unsigned kRequestFlags = completion::kAll;
constexpr std::uint32_t kReliableConnection = 0;  // the only service type

Error bad(const AttributeContext& context, const char* what, std::uint64_t value, std::uint64_t limit) {
  return fail(context.argument, "{}: {} {} is not between 0 and the adapter's {}", context.call, what, value, limit);
}

struct Bounded {
  const char* what;
  Count value, least, most;
};

Error check_counts(const AttributeContext& context, std::span<const Bounded> counts) {
  for (const Bounded& count : counts) {
    if (count.value >= count.least && count.value <= count.most) continue;
    return fail(context.argument, "{}: {} {} is not between {} and {}", context.call, count.what, count.value,
                count.least, count.most);
  }
  return kSuccess;
}

// A direction without an EVD has no depth, and one with an EVD has some.
Error check_depth(const AttributeContext& context, const char* what, Count depth, const char* direction, bool has_evd) {
  const Bounded within{what, depth, 0, context.limits.max_dto_per_ep};
  if (const Error error = check_counts(context, {&within, 1})) return error;
  if (has_evd == (depth > 0)) return kSuccess;
  return fail(context.argument, "{}: {} is {}, and the {} EVD is {}", context.call, what, depth, direction,
              has_evd ? "given" : "NULL");
}

Error check_flags(const AttributeContext& context, const EpAttributes& attr) {
  const unsigned recv = attr.recv_completion_flags;
  if ((recv & ~kRecvFlags) != 0 || (recv & (recv - 1)) != 0) {
    return fail(context.argument,
                "{}: recv_completion_flags {:#x} are not one of DEFAULT, UNSIGNALLED, SOLICITED_WAIT, EVD_THRESHOLD",
                context.call, recv);
  }
  const unsigned request = attr.request_completion_flags;
  const unsigned both = completion::kUnsignalled | completion::kEvdThreshold;
  if ((request & ~kRequestFlags) == 0 && (request & both) != both) return kSuccess;
  return fail(context.argument, "{}: request_completion_flags {:#x} have undefined or contradicting bits", context.call,
              request);
}

// EP-CSRQ-16, EP-CSRQ-17: of an endpoint with an SRQ the two are watermarks.
Error check_watermarks(const AttributeContext& context, const EpAttributes& attr) {
  const bool positive_or_default = attr.max_recv_dtos > 0 || attr.max_recv_dtos == kNoWatermark;
  if (!positive_or_default && !context.any_max_recv_dtos) {
    return fail(context.argument, "{}: max_recv_dtos {} is no hard high watermark: positive, or DAT_HW_DEFAULT{}",
                context.call, attr.max_recv_dtos, context.any_max_recv_dtos.hint);
  }
  if (attr.srq_soft_hw >= 0 || attr.srq_soft_hw == kNoWatermark) return kSuccess;
  return fail(context.argument, "{}: srq_soft_hw {} is no soft high watermark: not negative, or DAT_HW_DEFAULT",
              context.call, attr.srq_soft_hw);
}

Error check_receives(const AttributeContext& context, const EpAttributes& attr) {
  if (const Error error = check_depth(context, "max_recv_dtos", attr.max_recv_dtos, "recv", context.has_recv_evd)) {
    return error;
  }
  const Bounded segments{"max_recv_iov", attr.max_recv_iov, context.has_recv_evd ? 1 : 0, context.limits.max_iov};
  return check_counts(context, {&segments, 1});
}

Error check_requests(const AttributeContext& context, const EpAttributes& attr) {
  if (const Error error =
          check_depth(context, "max_request_dtos", attr.max_request_dtos, "request", context.has_request_evd)) {
    return error;
  }
  const Limits& limits = context.limits;
  const Bounded counts[] = {
      {"max_request_iov", attr.max_request_iov, 1, limits.max_iov},
      {"max_rdma_read_iov", attr.max_rdma_read_iov, 0, limits.max_iov},
      {"max_rdma_write_iov", attr.max_rdma_write_iov, 0, limits.max_iov},
      {"max_rdma_read_in", attr.max_rdma_read_in, 0, limits.max_rdma_reads_per_ep},
      {"max_rdma_read_out", attr.max_rdma_read_out, 0, limits.max_rdma_reads_per_ep},
  };
  return check_counts(context, counts);
}

}  // namespace

EpAttributes default_attributes(const Limits& limits, bool recv, bool request) {
  EpAttributes attr{};
  attr.service_type = kReliableConnection;
  attr.max_message_size = std::min<std::uint64_t>(0x80000000u, limits.max_message_size);
  attr.max_rdma_size = std::min<std::uint64_t>(0x80000000u, limits.max_rdma_size);
  attr.qos = kBestEffort;
  attr.recv_completion_flags = completion::kEvdThreshold;
  attr.request_completion_flags = completion::kEvdThreshold;
  attr.max_recv_dtos = recv ? 16 : 0;
  attr.max_request_dtos = request ? 16 : 0;
  attr.max_recv_iov = 4;
  attr.max_request_iov = 4;
  attr.max_rdma_read_in = 8;
  attr.max_rdma_read_out = 8;
  attr.max_rdma_read_iov = 4;
  attr.max_rdma_write_iov = 4;
  attr.srq_soft_hw = kNoWatermark;
  return attr;
}

StreamCounts::Model recv_model(CompletionFlags flags) {
  if ((flags & completion::kUnsignalled) != 0) return StreamCounts::kUnsignalled;
  if ((flags & completion::kSolicitedWait) != 0) return StreamCounts::kSolicited;
  return StreamCounts::kThreshold;
}

// SUPPRESS, SOLICITED_WAIT and BARRIER_FENCE are always available on requests and say nothing here (EP-CREATE-18).
StreamCounts::Model request_model(CompletionFlags flags) {
  return (flags & completion::kUnsignalled) != 0 ? StreamCounts::kUnsignalled : StreamCounts::kThreshold;
}

Error check_attributes(const AttributeContext& context, const EpAttributes& attr) {
  const Limits& limits = context.limits;
  if (attr.service_type != kReliableConnection) {
    return fail(context.argument, "{}: service_type {} is not DAT_SERVICE_TYPE_RC", context.call, attr.service_type);
  }
  if (attr.max_message_size > limits.max_message_size) {
    return bad(context, "max_message_size", attr.max_message_size, limits.max_message_size);
  }
  if (attr.max_rdma_size > limits.max_rdma_size) {
    return bad(context, "max_rdma_size", attr.max_rdma_size, limits.max_rdma_size);
  }
  if ((attr.qos & ~context.qos_supported) != 0) {
    return fail(Code::model_not_supported, Detail::none, "{}: QoS {:#x} is not within the supported {:#x}",
                context.call, attr.qos, context.qos_supported);
  }
  if (const Error error = check_flags(context, attr)) return error;
  if (const Error error = context.shared ? check_watermarks(context, attr) : check_receives(context, attr))
    return error;
  if (const Error error = check_requests(context, attr)) return error;
  // EP-CREATE-27: no named attribute is defined, so any that is given is unknown.
  const Bounded named[] = {
      {"ep_transport_specific_count", attr.ep_transport_specific_count, 0, 0},
      {"ep_provider_specific_count", attr.ep_provider_specific_count, 0, 0},
  };
  return check_counts(context, named);
}

nic::QueuePairLimits queue_pair_limits(const EpAttributes& attr, bool shared) {
  nic::QueuePairLimits limits{};
  limits.recv_depth = shared ? 0 : static_cast<std::uint32_t>(attr.max_recv_dtos);
  limits.recv_segments = shared ? 0 : static_cast<std::uint32_t>(attr.max_recv_iov);
  limits.send_depth = static_cast<std::uint32_t>(attr.max_request_dtos);
  limits.send_segments =
      static_cast<std::uint32_t>(std::max({attr.max_request_iov, attr.max_rdma_read_iov, attr.max_rdma_write_iov}));
  limits.reads_in = static_cast<std::uint32_t>(attr.max_rdma_read_in);
  limits.reads_out = static_cast<std::uint32_t>(attr.max_rdma_read_out);
  return limits;
}

}  // namespace anydat::dapl
