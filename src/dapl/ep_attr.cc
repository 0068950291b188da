// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/ep_attr.h"

#include <algorithm>

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

Error bad_count(const AttributeContext& context, const char* what, Count value, Count least, Count most) {
  return fail(context.argument, "{}: {} {} is not between {} and {}", context.call, what, value, least, most);
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
  const unsigned recv_flags = attr.recv_completion_flags;
  if ((recv_flags & ~kRecvFlags) != 0 || (recv_flags & (recv_flags - 1)) != 0) {
    return fail(context.argument,
                "{}: recv_completion_flags {:#x} are not one of DEFAULT, UNSIGNALLED, SOLICITED_WAIT, EVD_THRESHOLD",
                context.call, recv_flags);
  }
  const unsigned request_flags = attr.request_completion_flags;
  const unsigned both = completion::kUnsignalled | completion::kEvdThreshold;
  if ((request_flags & ~kRequestFlags) != 0 || (request_flags & both) == both) {
    return fail(context.argument, "{}: request_completion_flags {:#x} have undefined or contradicting bits",
                context.call, request_flags);
  }

  if (context.shared) {
    // EP-CSRQ-16, EP-CSRQ-17: the two are watermarks here.
    const bool positive_or_default = attr.max_recv_dtos > 0 || attr.max_recv_dtos == kNoWatermark;
    if (!positive_or_default && !context.any_max_recv_dtos) {
      return fail(context.argument, "{}: max_recv_dtos {} is no hard high watermark: positive, or DAT_HW_DEFAULT{}",
                  context.call, attr.max_recv_dtos, context.any_max_recv_dtos.hint);
    }
    if (attr.srq_soft_hw < 0 && attr.srq_soft_hw != kNoWatermark) {
      return fail(context.argument, "{}: srq_soft_hw {} is no soft high watermark: not negative, or DAT_HW_DEFAULT",
                  context.call, attr.srq_soft_hw);
    }
  } else {
    if (attr.max_recv_dtos < 0 || attr.max_recv_dtos > limits.max_dto_per_ep) {
      return bad_count(context, "max_recv_dtos", attr.max_recv_dtos, 0, limits.max_dto_per_ep);
    }
    if (context.has_recv_evd != (attr.max_recv_dtos > 0)) {
      return fail(context.argument, "{}: max_recv_dtos is {}, and the recv EVD is {}", context.call, attr.max_recv_dtos,
                  context.has_recv_evd ? "given" : "NULL");
    }
    const Count least = context.has_recv_evd ? 1 : 0;
    if (attr.max_recv_iov < least || attr.max_recv_iov > limits.max_iov) {
      return bad_count(context, "max_recv_iov", attr.max_recv_iov, least, limits.max_iov);
    }
  }
  if (attr.max_request_dtos < 0 || attr.max_request_dtos > limits.max_dto_per_ep) {
    return bad_count(context, "max_request_dtos", attr.max_request_dtos, 0, limits.max_dto_per_ep);
  }
  if (context.has_request_evd != (attr.max_request_dtos > 0)) {
    return fail(context.argument, "{}: max_request_dtos is {}, and the request EVD is {}", context.call,
                attr.max_request_dtos, context.has_request_evd ? "given" : "NULL");
  }
  if (attr.max_request_iov < 1 || attr.max_request_iov > limits.max_iov) {
    return bad_count(context, "max_request_iov", attr.max_request_iov, 1, limits.max_iov);
  }
  if (attr.max_rdma_read_iov < 0 || attr.max_rdma_read_iov > limits.max_iov) {
    return bad_count(context, "max_rdma_read_iov", attr.max_rdma_read_iov, 0, limits.max_iov);
  }
  if (attr.max_rdma_write_iov < 0 || attr.max_rdma_write_iov > limits.max_iov) {
    return bad_count(context, "max_rdma_write_iov", attr.max_rdma_write_iov, 0, limits.max_iov);
  }
  if (attr.max_rdma_read_in < 0 || attr.max_rdma_read_in > limits.max_rdma_reads_per_ep) {
    return bad_count(context, "max_rdma_read_in", attr.max_rdma_read_in, 0, limits.max_rdma_reads_per_ep);
  }
  if (attr.max_rdma_read_out < 0 || attr.max_rdma_read_out > limits.max_rdma_reads_per_ep) {
    return bad_count(context, "max_rdma_read_out", attr.max_rdma_read_out, 0, limits.max_rdma_reads_per_ep);
  }
  // EP-CREATE-27: no named attribute is defined, so any that is given is unknown.
  if (attr.ep_transport_specific_count != 0) {
    return bad_count(context, "ep_transport_specific_count", attr.ep_transport_specific_count, 0, 0);
  }
  if (attr.ep_provider_specific_count != 0) {
    return bad_count(context, "ep_provider_specific_count", attr.ep_provider_specific_count, 0, 0);
  }
  return kSuccess;
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
