// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/ep_attr.h"

#include <algorithm>

#include "dapl/error.h"
#include "dapl/ia.h"

namespace anydat::dapl {

namespace {

constexpr unsigned kRecvFlags =
    DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_EVD_THRESHOLD_FLAG;
constexpr unsigned kRequestFlags = 0x1f;

DAT_RETURN bad(const AttributeContext& context, const char* what, std::uint64_t value, std::uint64_t limit) {
  return fail(DAT_INVALID_PARAMETER, context.shared ? DAT_INVALID_ARG7 : DAT_INVALID_ARG6,
              "{}: {} {} is not between 0 and the adapter's {}", context.call, what, value, limit);
}

DAT_RETURN bad_count(const AttributeContext& context, const char* what, DAT_COUNT value, DAT_COUNT least,
                     DAT_COUNT most) {
  return fail(DAT_INVALID_PARAMETER, context.shared ? DAT_INVALID_ARG7 : DAT_INVALID_ARG6,
              "{}: {} {} is not between {} and {}", context.call, what, value, least, most);
}

}  // namespace

DAT_EP_ATTR default_attributes(const Limits& limits, bool recv, bool request) {
  DAT_EP_ATTR attr{};
  attr.service_type = DAT_SERVICE_TYPE_RC;
  attr.max_message_size = std::min<DAT_VLEN>(0x80000000u, limits.max_message_size);
  attr.max_rdma_size = std::min<DAT_VLEN>(0x80000000u, limits.max_rdma_size);
  attr.qos = DAT_QOS_BEST_EFFORT;
  attr.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
  attr.request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
  attr.max_recv_dtos = recv ? 16 : 0;
  attr.max_request_dtos = request ? 16 : 0;
  attr.max_recv_iov = 4;
  attr.max_request_iov = 4;
  attr.max_rdma_read_in = 8;
  attr.max_rdma_read_out = 8;
  attr.max_rdma_read_iov = 4;
  attr.max_rdma_write_iov = 4;
  attr.srq_soft_hw = DAT_HW_DEFAULT;
  return attr;
}

StreamCounts::Model recv_model(DAT_COMPLETION_FLAGS flags) {
  if ((flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0) return StreamCounts::kUnsignalled;
  if ((flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) != 0) return StreamCounts::kSolicited;
  return StreamCounts::kThreshold;
}

// SUPPRESS, SOLICITED_WAIT and BARRIER_FENCE are always available on requests and say nothing here (EP-CREATE-18).
StreamCounts::Model request_model(DAT_COMPLETION_FLAGS flags) {
  return (flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0 ? StreamCounts::kUnsignalled : StreamCounts::kThreshold;
}

DAT_RETURN check_attributes(const AttributeContext& context, const DAT_EP_ATTR& attr) {
  const Limits& limits = context.limits;
  const DAT_RETURN subtype = context.shared ? DAT_INVALID_ARG7 : DAT_INVALID_ARG6;
  if (attr.service_type != DAT_SERVICE_TYPE_RC) {
    return fail(DAT_INVALID_PARAMETER, subtype, "{}: service_type {} is not DAT_SERVICE_TYPE_RC", context.call,
                static_cast<unsigned>(attr.service_type));
  }
  if (attr.max_message_size > limits.max_message_size) {
    return bad(context, "max_message_size", attr.max_message_size, limits.max_message_size);
  }
  if (attr.max_rdma_size > limits.max_rdma_size) {
    return bad(context, "max_rdma_size", attr.max_rdma_size, limits.max_rdma_size);
  }
  if ((static_cast<unsigned>(attr.qos) & ~context.qos_supported) != 0) {
    return fail(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE, "{}: QoS {:#x} is not within the supported {:#x}",
                context.call, static_cast<unsigned>(attr.qos), context.qos_supported);
  }
  const unsigned recv_flags = attr.recv_completion_flags;
  if ((recv_flags & ~kRecvFlags) != 0 || (recv_flags & (recv_flags - 1)) != 0) {
    return fail(DAT_INVALID_PARAMETER, subtype,
                "{}: recv_completion_flags {:#x} are not one of DEFAULT, UNSIGNALLED, SOLICITED_WAIT, EVD_THRESHOLD",
                context.call, recv_flags);
  }
  const unsigned request_flags = attr.request_completion_flags;
  const unsigned both = DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_EVD_THRESHOLD_FLAG;
  if ((request_flags & ~kRequestFlags) != 0 || (request_flags & both) == both) {
    return fail(DAT_INVALID_PARAMETER, subtype,
                "{}: request_completion_flags {:#x} have undefined or contradicting bits", context.call, request_flags);
  }

  if (context.shared) {
    // EP-CSRQ-16, EP-CSRQ-17: the two are watermarks here.
    const bool positive_or_default = attr.max_recv_dtos > 0 || attr.max_recv_dtos == DAT_HW_DEFAULT;
    if (!positive_or_default && !context.any_max_recv_dtos) {
      return fail(DAT_INVALID_PARAMETER, subtype,
                  "{}: max_recv_dtos {} is no hard high watermark: positive, or DAT_HW_DEFAULT{}", context.call,
                  attr.max_recv_dtos, context.any_max_recv_dtos.hint);
    }
    if (attr.srq_soft_hw < 0 && attr.srq_soft_hw != DAT_HW_DEFAULT) {
      return fail(DAT_INVALID_PARAMETER, subtype,
                  "{}: srq_soft_hw {} is no soft high watermark: not negative, or DAT_HW_DEFAULT", context.call,
                  attr.srq_soft_hw);
    }
  } else {
    if (attr.max_recv_dtos < 0 || attr.max_recv_dtos > limits.max_dto_per_ep) {
      return bad_count(context, "max_recv_dtos", attr.max_recv_dtos, 0, limits.max_dto_per_ep);
    }
    if (context.has_recv_evd != (attr.max_recv_dtos > 0)) {
      return fail(DAT_INVALID_PARAMETER, subtype, "{}: max_recv_dtos is {}, and the recv EVD is {}", context.call,
                  attr.max_recv_dtos, context.has_recv_evd ? "given" : "NULL");
    }
    const DAT_COUNT least = context.has_recv_evd ? 1 : 0;
    if (attr.max_recv_iov < least || attr.max_recv_iov > limits.max_iov) {
      return bad_count(context, "max_recv_iov", attr.max_recv_iov, least, limits.max_iov);
    }
  }
  if (attr.max_request_dtos < 0 || attr.max_request_dtos > limits.max_dto_per_ep) {
    return bad_count(context, "max_request_dtos", attr.max_request_dtos, 0, limits.max_dto_per_ep);
  }
  if (context.has_request_evd != (attr.max_request_dtos > 0)) {
    return fail(DAT_INVALID_PARAMETER, subtype, "{}: max_request_dtos is {}, and the request EVD is {}", context.call,
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
  if (attr.max_rdma_read_in < 0 || attr.max_rdma_read_in > limits.max_rdma_read_per_ep) {
    return bad_count(context, "max_rdma_read_in", attr.max_rdma_read_in, 0, limits.max_rdma_read_per_ep);
  }
  if (attr.max_rdma_read_out < 0 || attr.max_rdma_read_out > limits.max_rdma_read_per_ep) {
    return bad_count(context, "max_rdma_read_out", attr.max_rdma_read_out, 0, limits.max_rdma_read_per_ep);
  }
  // EP-CREATE-27: no named attribute is defined, so any that is given is unknown.
  if (attr.ep_transport_specific_count != 0) {
    return bad_count(context, "ep_transport_specific_count", attr.ep_transport_specific_count, 0, 0);
  }
  if (attr.ep_provider_specific_count != 0) {
    return bad_count(context, "ep_provider_specific_count", attr.ep_provider_specific_count, 0, 0);
  }
  return DAT_SUCCESS;
}

nic::QueuePairLimits queue_pair_limits(const DAT_EP_ATTR& attr, bool shared) {
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
