// SPDX-License-Identifier: BSD-3-Clause
// Endpoints: posting work. From any thread, without the engine.
#include "dapl/ep.h"
#include "dapl/error.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/segments.h"

namespace anydat::dapl {

namespace {

constexpr unsigned kRequestFlags = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
                                   DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;
constexpr unsigned kRecvFlags = DAT_COMPLETION_UNSIGNALLED_FLAG;

constexpr unsigned kUnusualFlags = ~(kRequestFlags & ~unsigned{DAT_COMPLETION_UNSIGNALLED_FLAG});

constexpr int kLooksForTheWord = 1000;

static_assert(unsigned{nic::WorkFlags::kSuppress} == DAT_COMPLETION_SUPPRESS_FLAG &&
              unsigned{nic::WorkFlags::kSolicited} == DAT_COMPLETION_SOLICITED_WAIT_FLAG &&
              unsigned{nic::WorkFlags::kUnsignalled} == DAT_COMPLETION_UNSIGNALLED_FLAG &&
              unsigned{nic::WorkFlags::kFence} == DAT_COMPLETION_BARRIER_FENCE_FLAG);

nic::WorkFlags to_nic(DAT_COMPLETION_FLAGS flags) {
  return nic::WorkFlags(static_cast<std::uint8_t>(flags));
}

}  // namespace

// DTO-32, DTO-34, DTO-35
DAT_RETURN Ep::check_unusual_flags(const char* call, DAT_COMPLETION_FLAGS flags, FlagRules rules) const {
  if ((flags & ~rules.allowed) != 0) {
    return fail(DAT_INVALID_PARAMETER, rules.subtype, "{}: completion flags {:#x} are not within {:#x}", call,
                static_cast<unsigned>(flags), rules.allowed);
  }
  if ((flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0 && rules.model != StreamCounts::kUnsignalled) {
    return fail(DAT_INVALID_PARAMETER, rules.subtype,
                "{}: UNSIGNALLED needs an endpoint whose completion flags for that direction are UNSIGNALLED", call);
  }
  return DAT_SUCCESS;
}

// RDW-9 and its like. A peer that writes by RDMA does not wait for us to take note that the connection stands, and a
// program that polls its memory (RDW-11) may answer before anybody has. The word came first, so looking finds it.
bool Ep::takes_requests_after_all() {
  // One look takes so much from each peer; others may have sent more before.
  for (int i = 0; i < kLooksForTheWord && state() == DAT_EP_STATE_COMPLETION_PENDING && ia().engine().look(); ++i) {
  }
  return open_to_requests(state());
}

DAT_RETURN Ep::post_outcome(const char* call, nic::Status status) const {
  switch (status) {
    case nic::Status::ok:
      return DAT_SUCCESS;
    case nic::Status::queue_full:
      return fail(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE,
                  "{}: as many requests as max_request_dtos allows have not completed", call);
    case nic::Status::no_memory:
      return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION, "{}: no memory region is left", call);
    default:
      return wrong_state(call);
  }
}

// And nothing about the endpoint either that needs a closer look.
inline bool Ep::is_plain(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_COMPLETION_FLAGS flags,
                         std::uint32_t rights) const {
  return (flags & kUnusualFlags) == 0 && open_to_requests(state()) &&
         dapl::is_plain(regions_, num_segments, iov, zone_.load(std::memory_order_relaxed), rights);
}

// Of what is plain.
inline DAT_RETURN Ep::post_plain(const char* call, nic::WorkKind kind, const DAT_LMR_TRIPLET& local,
                                 std::uint64_t length, DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
                                 const nic::RemoteSegment& remote, std::uint64_t regions_seen) {
  const nic::Segment segment = to_nic(local);
  const nic::Status status =
      queue_pair_->post_send({cookie.as_64, {&segment, 1}, length, to_nic(flags), kind, remote, regions_seen});
  if (status == nic::Status::ok) [[likely]]
    return DAT_SUCCESS;
  return post_outcome(call, status);
}

DAT_RETURN Ep::post_send(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                         DAT_COMPLETION_FLAGS flags) {
  const std::uint64_t regions_seen = regions_.removals();
  if (is_plain(num_segments, iov, flags, nic::access::kLocalRead) &&
      max_request_iov_.load(std::memory_order_relaxed) >= 1 &&
      iov->segment_length <= max_message_size_.load(std::memory_order_relaxed)) [[likely]] {
    return post_plain("dat_ep_post_send", nic::WorkKind::send, *iov, iov->segment_length, cookie, flags, {},
                      regions_seen);
  }
  return post_any_send(num_segments, iov, cookie, flags);
}

DAT_RETURN Ep::post_any_send(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                             DAT_COMPLETION_FLAGS flags) {
  const char* call = "dat_ep_post_send";
  if (flags != DAT_COMPLETION_DEFAULT_FLAG) {
    const FlagRules rules{kRequestFlags, request_model_.load(std::memory_order_relaxed), DAT_INVALID_ARG5};
    if (const DAT_RETURN rc = check_post_flags(call, flags, rules)) return rc;
  }
  if (!takes_requests()) [[unlikely]]
    return wrong_state(call);
  CheckedSegments segments;
  const SegmentRules rules{call,
                           max_request_iov_.load(std::memory_order_relaxed),
                           "the endpoint's",
                           zone_.load(std::memory_order_relaxed),
                           nic::access::kLocalRead,
                           ia().habits().sends_without_local_read.hint};
  if (const DAT_RETURN rc = segments.check(regions_, rules, num_segments, iov)) return rc;
  if (segments.length() > max_message_size_.load(std::memory_order_relaxed)) [[unlikely]] {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "{}: {} bytes exceed the endpoint's max_message_size {}", call,
                segments.length(), static_cast<std::uint64_t>(max_message_size_.load()));
  }
  const nic::Status status = queue_pair_->post_send({cookie.as_64,
                                                     segments.span(),
                                                     segments.length(),
                                                     to_nic(flags),
                                                     nic::WorkKind::send,
                                                     {},
                                                     segments.regions_seen()});
  if (status == nic::Status::ok) [[likely]]
    return DAT_SUCCESS;
  return post_outcome(call, status);
}

DAT_RETURN Ep::post_recv(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                         DAT_COMPLETION_FLAGS flags) {
  const std::uint64_t regions_seen = regions_.removals();
  const nic::ZoneId zone = zone_.load(std::memory_order_relaxed);
  if (!srq_ && flags == DAT_COMPLETION_DEFAULT_FLAG && max_recv_iov_.load(std::memory_order_relaxed) >= 1 &&
      dapl::is_plain(regions_, num_segments, iov, zone, nic::access::kLocalWrite)) [[likely]] {
    const nic::Segment segment = to_nic(*iov);
    if (queue_pair_->post_recv({cookie.as_64, {&segment, 1}, false, zone, regions_seen}) == nic::Status::ok) [[likely]]
      return DAT_SUCCESS;
    return receives_full();
  }
  return post_any_recv(num_segments, iov, cookie, flags);
}

DAT_RETURN Ep::post_any_recv(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                             DAT_COMPLETION_FLAGS flags) {
  const char* call = "dat_ep_post_recv";
  if (srq_) {
    return fail(DAT_INVALID_STATE, subtype_of(state()), "{}: the endpoint takes its buffers from an SRQ", call);
  }
  if (flags != DAT_COMPLETION_DEFAULT_FLAG) {
    const FlagRules rules{kRecvFlags, recv_model_.load(std::memory_order_relaxed), DAT_INVALID_ARG5};
    if (const DAT_RETURN rc = check_post_flags(call, flags, rules)) return rc;
  }
  CheckedSegments segments;
  const SegmentRules rules{call, max_recv_iov_.load(std::memory_order_relaxed), "the endpoint's",
                           zone_.load(std::memory_order_relaxed), nic::access::kLocalWrite};
  if (const DAT_RETURN rc = segments.check(regions_, rules, num_segments, iov)) return rc;
  const bool unsignalled = (flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0;
  const nic::RecvRequest request{cookie.as_64, segments.span(), unsignalled, rules.zone, segments.regions_seen()};
  return queue_pair_->post_recv(request) == nic::Status::ok ? DAT_SUCCESS : receives_full();
}

DAT_RETURN Ep::receives_full() const {
  return fail(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE,
              "dat_ep_post_recv: as many receives as max_recv_dtos allows have not completed");
}

template <nic::WorkKind kind>
DAT_RETURN Ep::post_any_rdma(DAT_COUNT max_segments, DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov,
                             DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  constexpr bool reads = kind == nic::WorkKind::rdma_read;
  const char* call = reads ? "dat_ep_post_rdma_read" : "dat_ep_post_rdma_write";
  if (!remote) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5, "{}: remote_buffer is NULL", call);
  if (flags != DAT_COMPLETION_DEFAULT_FLAG) {
    const FlagRules rules{kRequestFlags, request_model_.load(std::memory_order_relaxed), DAT_INVALID_ARG6};
    if (const DAT_RETURN rc = check_post_flags(call, flags, rules)) return rc;
  }
  if (!takes_requests()) [[unlikely]]
    return wrong_state(call);
  CheckedSegments segments;
  const SegmentRules rules{call,
                           max_segments,
                           "the endpoint's",
                           zone_.load(std::memory_order_relaxed),
                           reads ? nic::access::kLocalWrite : nic::access::kLocalRead,
                           ia().habits().sends_without_local_read.hint};
  if (const DAT_RETURN rc = segments.check(regions_, rules, num_segments, iov)) return rc;
  DAT_VLEN remote_length = remote->segment_length;
  if (local_length_counts_ && remote_length < segments.length()) remote_length = segments.length();
  // What moves fills the remote segment for a Read, and is the local data for a Write (RDR-2, RDW-2).
  const DAT_VLEN from = reads ? remote_length : segments.length();
  const DAT_VLEN to = reads ? segments.length() : remote_length;
  if (from > to) [[unlikely]] {
    return fail(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE, "{}: {} bytes do not fit into the {} bytes of the {} buffer{}", call,
                from, to, reads ? "local" : "remote", reads ? "" : ia().habits().short_remote_segment.hint);
  }
  if (from > max_rdma_size_.load(std::memory_order_relaxed)) [[unlikely]] {
    return fail(DAT_INVALID_PARAMETER, reads ? DAT_INVALID_ARG5 : DAT_INVALID_ARG3,
                "{}: {} bytes exceed the endpoint's max_rdma_size {}", call, from,
                static_cast<std::uint64_t>(max_rdma_size_.load()));
  }
  const nic::Status status = queue_pair_->post_send({cookie.as_64,
                                                     segments.span(),
                                                     from,
                                                     to_nic(flags),
                                                     kind,
                                                     {remote->target_address, remote->rmr_context},
                                                     segments.regions_seen()});
  if (status == nic::Status::ok) [[likely]]
    return DAT_SUCCESS;
  return post_outcome(call, status);
}

// Whether the lengths go together and say what is to move, without a closer look.
template <nic::WorkKind kind>
inline bool Ep::fits(DAT_VLEN from, DAT_VLEN to) const {
  if constexpr (kind == nic::WorkKind::rdma_read) return from == to || (from < to && !local_length_counts_);
  return from <= to;
}

// Apart, so that what it needs is not in the way of those that are like the ones before them.
template <nic::WorkKind kind>
DAT_RETURN Ep::post_new_rdma(DAT_COUNT max_segments, DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov,
                             DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  constexpr bool reads = kind == nic::WorkKind::rdma_read;
  const std::uint64_t regions_seen = regions_.removals();
  if (remote && max_segments >= 1 &&
      is_plain(num_segments, iov, flags, reads ? nic::access::kLocalWrite : nic::access::kLocalRead)) [[likely]] {
    const DAT_VLEN from = reads ? remote->segment_length : iov->segment_length;
    const DAT_VLEN to = reads ? iov->segment_length : remote->segment_length;
    if (fits<kind>(from, to) && from <= max_rdma_size_.load(std::memory_order_relaxed)) [[likely]] {
      return post_plain(reads ? "dat_ep_post_rdma_read" : "dat_ep_post_rdma_write", kind, *iov, from, cookie, flags,
                        {remote->target_address, remote->rmr_context}, regions_seen);
    }
  }
  return post_any_rdma<kind>(max_segments, num_segments, iov, cookie, remote, flags);
}

template <nic::WorkKind kind>
inline DAT_RETURN Ep::post_rdma(DAT_COUNT max_segments, DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov,
                                DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  constexpr bool reads = kind == nic::WorkKind::rdma_read;
  if (iov && remote && num_segments == 1 && max_segments >= 1 && (flags & kUnusualFlags) == 0) [[likely]] {
    const DAT_VLEN from = reads ? remote->segment_length : iov->segment_length;
    const DAT_VLEN to = reads ? iov->segment_length : remote->segment_length;
    if (from != 0 && fits<kind>(from, to) && from <= max_rdma_size_.load(std::memory_order_relaxed) &&
        open_to_requests(state())) [[likely]] {
      const nic::SingleRdma request{
          cookie.as_64, to_nic(*iov), from, to_nic(flags), {remote->target_address, remote->rmr_context}};
      if (reads ? queue_pair_->read_again(request) : queue_pair_->write_again(request)) [[likely]]
        return DAT_SUCCESS;
    }
  }
  return post_new_rdma<kind>(max_segments, num_segments, iov, cookie, remote, flags);
}

DAT_RETURN Ep::post_rdma_read(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                              const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  return post_rdma<nic::WorkKind::rdma_read>(max_rdma_read_iov_.load(std::memory_order_relaxed), num_segments, iov,
                                             cookie, remote, flags);
}

DAT_RETURN Ep::post_rdma_write(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                               const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  return post_rdma<nic::WorkKind::rdma_write>(max_rdma_write_iov_.load(std::memory_order_relaxed), num_segments, iov,
                                              cookie, remote, flags);
}

DAT_RETURN Ep::post_bind(nic::BindRequest request, DAT_COMPLETION_FLAGS flags, const Pz& pz, std::uint32_t& key) {
  const char* call = "dat_rmr_bind";
  const FlagRules rules{kRequestFlags, request_model_.load(std::memory_order_relaxed), DAT_INVALID_ARG6};
  if (const DAT_RETURN rc = check_post_flags(call, flags, rules)) return rc;
  if (&pz != parts_.pz) {
    return fail(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE, "{}: the endpoint is not of the RMR's protection zone", call);
  }
  if (!open_to_requests(state())) return wrong_state(call);
  request.flags = to_nic(flags);
  return post_outcome(call, queue_pair_->post_bind(request, key));
}

}  // namespace anydat::dapl
