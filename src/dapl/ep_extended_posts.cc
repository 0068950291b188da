// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/ep_extended_posts.h"

#include <optional>

#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/lmr.h"
#include "dapl/segments.h"

namespace anydat::dapl {

namespace {

constexpr unsigned kFlags =
    completion::kSuppress | completion::kSolicitedWait | completion::kUnsignalled | completion::kBarrierFence;

}  // namespace

// D2-EXT-5: what all have in common, before their segments are looked at. `needed`: of `ability`.
Error EpExtendedPosts::check_extended(const char* call, std::uint32_t needed, CompletionFlags flags) {
  if ((ep_.ia().description().abilities() & needed) == 0) {
    return fail(Code::model_not_supported, Detail::none, "{}: {} has no such operation", call, ep_.ia().name());
  }
  const EpPosts::FlagRules rules{kFlags, posts_.request_model_.load(std::memory_order_relaxed)};
  if (const Error error = posts_.check_post_flags(call, flags, rules)) return error;
  if (!posts_.takes_requests()) return posts_.state_machine_.wrong_state(call);
  return kSuccess;
}

// The same of those that name memory of the peer.
Error EpExtendedPosts::check_extended(const char* call, std::uint32_t needed, const PackedSegment* remote,
                                      CompletionFlags flags) {
  if (const Error error = check_extended(call, needed, flags)) return error;
  return remote ? kSuccess : fail(Argument::remote_buffer, "{}: remote_buffer is NULL", call);
}

Error EpExtendedPosts::post_write_immediate(Count num_segments, const PackedSegment* iov, std::uint64_t cookie,
                                            const PackedSegment* remote, std::uint32_t value, CompletionFlags flags) {
  const char* call = "dat_ib_post_rdma_write_immed";
  if (const Error error = check_extended(call, nic::ability::kImmediate, remote, flags)) return error;
  CheckedSegments segments;
  const SegmentRules rules{call,
                           posts_.max_rdma_write_iov_.load(std::memory_order_relaxed),
                           "the endpoint's",
                           posts_.zone_.load(std::memory_order_relaxed),
                           nic::access::kLocalRead,
                           ep_.ia().habits().sends_without_local_read.hint};
  if (const Error error = segments.check(posts_.regions_, rules, num_segments, iov)) return error;
  if (segments.length() > remote->length && !posts_.local_length_counts_) {  // RDW-2
    return fail(Code::length_error, Detail::none, "{}: {} bytes do not fit into the {} bytes of the remote buffer{}",
                call, segments.length(), remote->length, ep_.ia().habits().short_remote_segment.hint);
  }
  if (segments.length() > posts_.max_rdma_size_.load(std::memory_order_relaxed)) {
    return posts_.too_long(Argument::local_iov, call, segments.length(), "max_rdma_size", posts_.max_rdma_size_.load(),
                           ep_.ia().limits().max_rdma_size);
  }
  const nic::ExtendedRequest request{{cookie,
                                      segments.span(),
                                      segments.length(),
                                      nic::WorkFlags(static_cast<std::uint8_t>(flags)),
                                      nic::WorkKind::write_immediate,
                                      {remote->address, remote->key, value},
                                      segments.regions_seen()}};
  return posts_.post_outcome(call, posts_.queue_pair_->post_extended(request));
}

Error EpExtendedPosts::post_send_invalidate(Count num_segments, const PackedSegment* iov, std::uint64_t cookie,
                                            CompletionFlags flags, std::uint32_t context) {
  const char* call = "dat_ep_post_send_with_invalidate";
  if (const Error error = check_extended(call, nic::ability::kInvalidate, flags)) return error;
  CheckedSegments segments;
  if (const Error error = posts_.check_message(call, num_segments, iov, segments)) return error;
  const nic::ExtendedRequest request{{cookie,
                                      segments.span(),
                                      segments.length(),
                                      nic::WorkFlags(static_cast<std::uint8_t>(flags)),
                                      nic::WorkKind::send_invalidate,
                                      {0, context},
                                      segments.regions_seen()}};
  return posts_.post_outcome(call, posts_.queue_pair_->post_extended(request));
}

Error EpExtendedPosts::post_atomic(const Atomic& atomic, const PackedSegment* local, std::uint64_t cookie,
                                   const PackedSegment* remote, CompletionFlags flags) {
  const char* call = atomic.kind == nic::WorkKind::fetch_add ? "dat_ib_post_fetch_and_add" : "dat_ib_post_cmp_and_swap";
  if (const Error error = check_extended(call, nic::ability::kAtomics, remote, flags)) return error;
  CheckedSegments segments;
  const SegmentRules rules{call, 1, "an atomic operation's", posts_.zone_.load(std::memory_order_relaxed),
                           nic::access::kLocalWrite};
  if (const Error error = segments.check(posts_.regions_, rules, 1, local)) return error;
  if (segments.length() != kAtomicWordBytes) {
    return fail(Argument::local_iov, "{}: the local segment has {} bytes instead of {}", call, segments.length(),
                kAtomicWordBytes);
  }
  // Programs name their whole buffer.
  if (remote->length < kAtomicWordBytes || remote->address % kAtomicWordBytes != 0) {
    return fail(Argument::remote_buffer, "{}: the remote buffer is no word: {} bytes at {:#x}", call, remote->length,
                remote->address);
  }
  const nic::ExtendedRequest request{{cookie,
                                      segments.span(),
                                      kAtomicWordBytes,
                                      nic::WorkFlags(static_cast<std::uint8_t>(flags)),
                                      atomic.kind,
                                      {remote->address, remote->key},
                                      segments.regions_seen()},
                                     atomic.operand,
                                     atomic.compare};
  return posts_.post_outcome(call, posts_.queue_pair_->post_extended(request));
}

// D2-READRMR-2. The window is named as a peer names it, and may be used as a peer may.
Error EpExtendedPosts::locate_in_window(const char* call, const Segment& local, std::uint64_t& where) const {
  const std::optional<nic::Region> window = posts_.regions_.find(local.key);
  if (!window || (window->rights & nic::access::kWindow) == 0) {
    return fail(Code::privileges_violation, Detail::none,
                "{}: the local buffer names the RMR context {:#x}; no RMR has it", call, local.key);
  }
  constexpr std::uint32_t kRights = nic::access::kRemoteWrite | nic::access::kLocalWrite;
  const nic::RegionUser user(posts_.zone_.load(std::memory_order_relaxed), posts_.queue_pair_->scope());
  switch (window->resolve(local.address, local.length, user, kRights, where)) {
    case nic::RegionCheck::ok:
      return kSuccess;
    case nic::RegionCheck::wrong_zone:
      return fail(
          Code::protection_violation, Detail::none,
          "{}: the RMR with context {:#x} is not of the endpoint's protection zone, or another endpoint's alone", call,
          local.key);
    case nic::RegionCheck::no_right:
      return fail(Code::privileges_violation, Detail::privileges_write,
                  "{}: the RMR with context {:#x} is not bound with REMOTE_WRITE", call, local.key);
    default:
      return fail(Argument::local_buffer, "{}: {} bytes at {:#x} reach outside the RMR with context {:#x}", call,
                  local.length, local.address, local.key);
  }
}

Error EpExtendedPosts::post_rdma_read_to_rmr(const PackedSegment* local, std::uint64_t cookie,
                                             const PackedSegment* remote, CompletionFlags flags) {
  const char* call = "dat_ep_post_rdma_read_to_rmr";
  if (!ep_.ia().description().reads_into_windows()) {
    return fail(Code::model_not_supported, Detail::none, "{}: {} has no RDMA Reads into windows", call,
                ep_.ia().name());
  }
  if (!local) return fail(Argument::local_buffer, "{}: local_buffer is NULL", call);
  if (!remote) return fail(Argument::remote_buffer, "{}: remote_buffer is NULL", call);
  const EpPosts::FlagRules rules{kFlags, posts_.request_model_.load(std::memory_order_relaxed)};
  if (const Error error = posts_.check_post_flags(call, flags, rules)) return error;
  if (!posts_.takes_requests()) return posts_.state_machine_.wrong_state(call);
  ep_.ia().nic().expect_reads_into_windows();
  const std::uint64_t regions_seen = posts_.regions_.removals();
  Segment sink = whole(*local);
  if (sink.length > 0) {
    if (const Error error = locate_in_window(call, whole(*local), sink.address)) return error;
  }
  if (remote->length > sink.length) {  // D2-READRMR-3
    return fail(Code::length_error, Detail::none, "{}: {} bytes do not fit into the {} bytes of the local buffer", call,
                remote->length, sink.length);
  }
  if (remote->length > posts_.max_rdma_size_.load(std::memory_order_relaxed)) {
    return posts_.too_long(Argument::remote_buffer, call, remote->length, "max_rdma_size", posts_.max_rdma_size_.load(),
                           ep_.ia().limits().max_rdma_size);
  }
  sink.length = remote->length;
  return posts_.post_outcome(call, posts_.queue_pair_->post_send({cookie,
                                                                  {&sink, sink.length > 0 ? 1u : 0u},
                                                                  sink.length,
                                                                  nic::WorkFlags(static_cast<std::uint8_t>(flags)),
                                                                  nic::WorkKind::rdma_read,
                                                                  {remote->address, remote->key},
                                                                  regions_seen}));
}

}  // namespace anydat::dapl
