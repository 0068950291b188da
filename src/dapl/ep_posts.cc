// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/ep_posts.h"

#include <utility>

#include "dapl/ep.h"
#include "dapl/ep_attr.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/segments.h"

namespace anydat::dapl {

namespace {

constexpr unsigned kRequestFlags =
    completion::kSuppress | completion::kSolicitedWait | completion::kUnsignalled | completion::kBarrierFence;
constexpr unsigned kRecvFlags = completion::kUnsignalled;

constexpr unsigned kUnusualFlags = ~(kRequestFlags & ~completion::kUnsignalled);

constexpr int kLooksForTheWord = 1000;

static_assert(nic::WorkFlags::kSuppress == completion::kSuppress &&
              nic::WorkFlags::kSolicited == completion::kSolicitedWait &&
              nic::WorkFlags::kUnsignalled == completion::kUnsignalled &&
              nic::WorkFlags::kFence == completion::kBarrierFence);

nic::WorkFlags to_nic(CompletionFlags flags) {
  return nic::WorkFlags(static_cast<std::uint8_t>(flags));
}

}  // namespace

EpPosts::EpPosts(Ep& ep, bool shared)
    : ep_(ep),
      regions_(ep.ia().nic().regions()),
      shared_(shared),
      local_length_counts_(ep.ia().habits().short_remote_segment) {}

void EpPosts::set_attributes(const EpAttributes& attr) {
  max_recv_iov_.store(attr.max_recv_iov);
  max_request_iov_.store(attr.max_request_iov);
  // DTO-5: 0 means the limit of the other requests.
  max_rdma_read_iov_.store(attr.max_rdma_read_iov > 0 ? attr.max_rdma_read_iov : attr.max_request_iov);
  max_rdma_write_iov_.store(attr.max_rdma_write_iov > 0 ? attr.max_rdma_write_iov : attr.max_request_iov);
  // DTO-8, R61: the established DAT test programs leave these 0 and send all the same; only the IA's limit holds then,
  // as it does by habit whatever they say.
  const bool only_ia = static_cast<bool>(ep_.ia().habits().any_transfer_size);
  const auto bound = [only_ia](std::uint64_t own, std::uint64_t of_ia) { return only_ia || own == 0 ? of_ia : own; };
  max_message_size_.store(bound(attr.max_message_size, ep_.ia().limits().max_message_size));
  max_rdma_size_.store(bound(attr.max_rdma_size, ep_.ia().limits().max_rdma_size));
  recv_model_.store(recv_model(attr.recv_completion_flags));
  request_model_.store(request_model(attr.request_completion_flags));
}

bool EpPosts::receives_solicited() const {
  return recv_model_.load(std::memory_order_relaxed) == StreamCounts::kSolicited;
}

// DTO-32, DTO-34, DTO-35
Error EpPosts::check_unusual_flags(const char* call, CompletionFlags flags, FlagRules rules) const {
  if ((flags & ~rules.allowed) != 0) {
    return fail(Argument::completion_flags, "{}: completion flags {:#x} are not within {:#x}", call, flags,
                rules.allowed);
  }
  if ((flags & completion::kUnsignalled) != 0 && rules.model != StreamCounts::kUnsignalled) {
    return fail(Argument::completion_flags,
                "{}: UNSIGNALLED needs an endpoint whose completion flags for that direction are UNSIGNALLED", call);
  }
  return kSuccess;
}

// RDW-9 and its like. An RDMA Write of the peer may be in place before anybody here has looked at its word that the
// connection stands, and a program that polls its memory (RDW-11) may answer while the endpoint is still
// COMPLETION_PENDING. That word came before the Write, so a look finds it, for which this post takes the engine.
bool EpPosts::takes_requests_after_all() {
  // One look takes so much from each peer; others may have sent more before.
  for (int i = 0;
       i < kLooksForTheWord && state_machine_.state() == EpState::completion_pending && ep_.ia().engine().look(); ++i) {
  }
  return state_machine_.open_to_requests();
}

Error EpPosts::post_outcome(const char* call, nic::Status status) const {
  switch (status) {
    case nic::Status::ok:
      return kSuccess;
    case nic::Status::queue_full:
      return fail(Code::insufficient_resources, Detail::none,
                  "{}: as many requests as max_request_dtos allows have not completed", call);
    case nic::Status::unsupported:  // D2-EXT-8
      return fail(Code::model_not_supported, Detail::none, "{}: the peer does not carry out such a request", call);
    case nic::Status::no_memory:
      return fail(Code::insufficient_resources, Detail::memory_region, "{}: no memory region is left", call);
    default:
      return state_machine_.wrong_state(call);
  }
}

// And nothing about the endpoint either that needs a closer look.
template <typename AnySegment>
inline bool EpPosts::is_plain(Count num_segments, const AnySegment* iov, CompletionFlags flags,
                              std::uint32_t rights) const {
  return (flags & kUnusualFlags) == 0 && state_machine_.open_to_requests() &&
         dapl::is_plain(regions_, num_segments, iov, zone_.load(std::memory_order_relaxed), rights);
}

// Of what is plain.
inline Error EpPosts::post_plain(const char* call, nic::WorkKind kind, const Segment& local, std::uint64_t length,
                                 std::uint64_t cookie, CompletionFlags flags, const nic::RemoteSegment& remote,
                                 std::uint64_t regions_seen) {
  const nic::Status status =
      queue_pair_->post_send({cookie, {&local, 1}, length, to_nic(flags), kind, remote, regions_seen});
  if (status == nic::Status::ok) [[likely]]
    return kSuccess;
  return post_outcome(call, status);
}

template <typename AnySegment>
inline bool EpPosts::is_plain_send(Count num_segments, const AnySegment* iov, CompletionFlags flags) const {
  return is_plain(num_segments, iov, flags, nic::access::kLocalRead) &&
         max_request_iov_.load(std::memory_order_relaxed) >= 1 &&
         iov->length <= max_message_size_.load(std::memory_order_relaxed);
}

template <typename AnySegment>
Error EpPosts::post_send(Count num_segments, const AnySegment* iov, std::uint64_t cookie, CompletionFlags flags) {
  if (num_segments == 1 && iov && (flags & kUnusualFlags) == 0 && iov->length != 0 &&
      state_machine_.open_to_requests() && iov->length <= max_message_size_.load(std::memory_order_relaxed) &&
      queue_pair_->send_again({cookie, whole(*iov), to_nic(flags)})) [[likely]] {
    return kSuccess;
  }
  return post_new_send(num_segments, iov, cookie, flags);
}

// Apart, as post_new_rdma().
template <typename AnySegment>
Error EpPosts::post_new_send(Count num_segments, const AnySegment* iov, std::uint64_t cookie, CompletionFlags flags) {
  const std::uint64_t regions_seen = regions_.removals();
  if (is_plain_send(num_segments, iov, flags)) [[likely]] {
    return post_plain("dat_ep_post_send", nic::WorkKind::send, whole(*iov), iov->length, cookie, flags, {},
                      regions_seen);
  }
  return post_any_send(num_segments, iov, cookie, flags);
}

bool EpPosts::SendRow::add(const Segment& segment, std::uint64_t cookie, CompletionFlags flags) {
  if (count_ == 0) regions_seen_ = posts_.regions_.removals();
  if (!posts_.is_plain_send(1, &segment, flags)) [[unlikely]]
    return false;
  nic::SingleSend& send = sends_[count_++];
  send.cookie = cookie;
  send.segment = segment;
  send.flags = to_nic(flags);
  return true;
}

Error EpPosts::SendRow::post(Count& posted) {
  const std::size_t count = std::exchange(count_, 0);
  if (count == 0) return kSuccess;
  std::size_t done = 0;
  const nic::Status status = posts_.queue_pair_->post_sends({{sends_, count}, regions_seen_}, done);
  posted += static_cast<Count>(done);
  if (status == nic::Status::ok) [[likely]]
    return kSuccess;
  return posts_.post_outcome("dat_ep_post_send", status);
}

Error EpPosts::too_long(Argument argument, const char* call, std::uint64_t length, const char* name,
                        std::uint64_t limit, std::uint64_t limit_of_ia) const {
  const bool of_ia = limit == limit_of_ia;
  return fail(argument, "{}: {} bytes exceed the {} {} {}{}", call, length, of_ia ? "adapter's" : "endpoint's", name,
              limit, length > limit_of_ia ? "" : ep_.ia().habits().any_transfer_size.hint);
}

template <typename AnySegment>
[[gnu::always_inline]] inline Error EpPosts::check_message(const char* call, Count num_segments, const AnySegment* iov,
                                                           CheckedSegments& segments) const {
  const SegmentRules rules{call,
                           max_request_iov_.load(std::memory_order_relaxed),
                           "the endpoint's",
                           zone_.load(std::memory_order_relaxed),
                           nic::access::kLocalRead,
                           ep_.ia().habits().sends_without_local_read.hint};
  if (const Error error = segments.check(regions_, rules, num_segments, iov)) return error;
  if (segments.length() > max_message_size_.load(std::memory_order_relaxed)) [[unlikely]] {
    return too_long(Argument::local_iov, call, segments.length(), "max_message_size", max_message_size_.load(),
                    ep_.ia().limits().max_message_size);
  }
  return kSuccess;
}

template <typename AnySegment>
Error EpPosts::post_any_send(Count num_segments, const AnySegment* iov, std::uint64_t cookie, CompletionFlags flags) {
  const char* call = "dat_ep_post_send";
  if (flags != completion::kDefault) {
    const FlagRules rules{kRequestFlags, request_model_.load(std::memory_order_relaxed)};
    if (const Error error = check_post_flags(call, flags, rules)) return error;
  }
  if (!takes_requests()) [[unlikely]]
    return state_machine_.wrong_state(call);
  CheckedSegments segments;
  if (const Error error = check_message(call, num_segments, iov, segments)) return error;
  const nic::Status status = queue_pair_->post_send(
      {cookie, segments.span(), segments.length(), to_nic(flags), nic::WorkKind::send, {}, segments.regions_seen()});
  if (status == nic::Status::ok) [[likely]]
    return kSuccess;
  return post_outcome(call, status);
}

template <typename AnySegment>
inline bool EpPosts::is_plain_recv(Count num_segments, const AnySegment* iov, CompletionFlags flags,
                                   nic::ZoneId zone) const {
  return !shared_ && flags == completion::kDefault && max_recv_iov_.load(std::memory_order_relaxed) >= 1 &&
         dapl::is_plain(regions_, num_segments, iov, zone, nic::access::kLocalWrite);
}

template <typename AnySegment>
Error EpPosts::post_recv(Count num_segments, const AnySegment* iov, std::uint64_t cookie, CompletionFlags flags) {
  const std::uint64_t regions_seen = regions_.removals();
  const nic::ZoneId zone = zone_.load(std::memory_order_relaxed);
  if (is_plain_recv(num_segments, iov, flags, zone)) [[likely]] {
    const nic::Segment segment = whole(*iov);
    if (queue_pair_->post_recv({cookie, {&segment, 1}, false, zone, regions_seen}) == nic::Status::ok) [[likely]]
      return kSuccess;
    return receives_full();
  }
  return post_any_recv(num_segments, iov, cookie, flags);
}

template <typename AnySegment>
Error EpPosts::post_any_recv(Count num_segments, const AnySegment* iov, std::uint64_t cookie, CompletionFlags flags) {
  const char* call = "dat_ep_post_recv";
  if (shared_) {
    return fail(Code::invalid_state, detail_of(state_machine_.state()),
                "{}: the endpoint takes its buffers from an SRQ", call);
  }
  if (flags != completion::kDefault) {
    const FlagRules rules{kRecvFlags, recv_model_.load(std::memory_order_relaxed)};
    if (const Error error = check_post_flags(call, flags, rules)) return error;
  }
  CheckedSegments segments;
  const SegmentRules rules{call, max_recv_iov_.load(std::memory_order_relaxed), "the endpoint's",
                           zone_.load(std::memory_order_relaxed), nic::access::kLocalWrite};
  if (const Error error = segments.check(regions_, rules, num_segments, iov)) return error;
  const bool unsignalled = (flags & completion::kUnsignalled) != 0;
  const nic::RecvRequest request{cookie, segments.span(), unsignalled, rules.zone, segments.regions_seen()};
  return queue_pair_->post_recv(request) == nic::Status::ok ? kSuccess : receives_full();
}

bool EpPosts::RecvRow::add(const Segment& segment, std::uint64_t cookie, CompletionFlags flags) {
  if (count_ == 0) {
    regions_seen_ = posts_.regions_.removals();
    zone_ = posts_.zone_.load(std::memory_order_relaxed);
  }
  if (!posts_.is_plain_recv(1, &segment, flags, zone_)) [[unlikely]]
    return false;
  receives_[count_++] = {cookie, segment};
  return true;
}

Error EpPosts::RecvRow::post(Count& posted) {
  const std::size_t count = std::exchange(count_, 0);
  if (count == 0) return kSuccess;
  std::size_t done = 0;
  const nic::Status status = posts_.queue_pair_->post_recvs({{receives_, count}, zone_, regions_seen_}, done);
  posted += static_cast<Count>(done);
  return status == nic::Status::ok ? kSuccess : posts_.receives_full();
}

Error EpPosts::receives_full() const {
  return fail(Code::insufficient_resources, Detail::none,
              "dat_ep_post_recv: as many receives as max_recv_dtos allows have not completed");
}

template <nic::WorkKind kind, typename AnySegment>
Error EpPosts::post_any_rdma(Count max_segments, Count num_segments, const AnySegment* iov, std::uint64_t cookie,
                             const AnySegment* remote, CompletionFlags flags) {
  constexpr bool reads = kind == nic::WorkKind::rdma_read;
  const char* call = reads ? "dat_ep_post_rdma_read" : "dat_ep_post_rdma_write";
  if (!remote) return fail(Argument::remote_buffer, "{}: remote_buffer is NULL", call);
  if (flags != completion::kDefault) {
    const FlagRules rules{kRequestFlags, request_model_.load(std::memory_order_relaxed)};
    if (const Error error = check_post_flags(call, flags, rules)) return error;
  }
  if (!takes_requests()) [[unlikely]]
    return state_machine_.wrong_state(call);
  CheckedSegments segments;
  const SegmentRules rules{call,
                           max_segments,
                           "the endpoint's",
                           zone_.load(std::memory_order_relaxed),
                           reads ? nic::access::kLocalWrite : nic::access::kLocalRead,
                           ep_.ia().habits().sends_without_local_read.hint};
  if (const Error error = segments.check(regions_, rules, num_segments, iov)) return error;
  std::uint64_t remote_length = remote->length;
  if (local_length_counts_ && remote_length < segments.length()) remote_length = segments.length();
  // What moves fills the remote segment for a Read, and is the local data for a Write (RDR-2, RDW-2).
  const std::uint64_t from = reads ? remote_length : segments.length();
  const std::uint64_t to = reads ? segments.length() : remote_length;
  if (from > to) [[unlikely]] {
    return fail(Code::length_error, Detail::none, "{}: {} bytes do not fit into the {} bytes of the {} buffer{}", call,
                from, to, reads ? "local" : "remote", reads ? "" : ep_.ia().habits().short_remote_segment.hint);
  }
  if (from > max_rdma_size_.load(std::memory_order_relaxed)) [[unlikely]] {
    return too_long(reads ? Argument::remote_buffer : Argument::local_iov, call, from, "max_rdma_size",
                    max_rdma_size_.load(), ep_.ia().limits().max_rdma_size);
  }
  const nic::Status status = queue_pair_->post_send(
      {cookie, segments.span(), from, to_nic(flags), kind, {remote->address, remote->key}, segments.regions_seen()});
  if (status == nic::Status::ok) [[likely]]
    return kSuccess;
  return post_outcome(call, status);
}

// Whether the lengths go together and say what is to move, without a closer look.
template <nic::WorkKind kind>
inline bool EpPosts::fits(std::uint64_t from, std::uint64_t to) const {
  if constexpr (kind == nic::WorkKind::rdma_read) return from == to || (from < to && !local_length_counts_);
  return from <= to;
}

// Apart, so that what it needs is not in the way of those that are like the ones before them.
template <nic::WorkKind kind, typename AnySegment>
Error EpPosts::post_new_rdma(Count max_segments, Count num_segments, const AnySegment* iov, std::uint64_t cookie,
                             const AnySegment* remote, CompletionFlags flags) {
  constexpr bool reads = kind == nic::WorkKind::rdma_read;
  const std::uint64_t regions_seen = regions_.removals();
  if (remote && max_segments >= 1 &&
      is_plain(num_segments, iov, flags, reads ? nic::access::kLocalWrite : nic::access::kLocalRead)) [[likely]] {
    const std::uint64_t from = reads ? remote->length : iov->length;
    const std::uint64_t to = reads ? iov->length : remote->length;
    if (fits<kind>(from, to) && from <= max_rdma_size_.load(std::memory_order_relaxed)) [[likely]] {
      return post_plain(reads ? "dat_ep_post_rdma_read" : "dat_ep_post_rdma_write", kind, whole(*iov), from, cookie,
                        flags, {remote->address, remote->key}, regions_seen);
    }
  }
  return post_any_rdma<kind>(max_segments, num_segments, iov, cookie, remote, flags);
}

template <nic::WorkKind kind, typename AnySegment>
inline Error EpPosts::post_rdma(Count max_segments, Count num_segments, const AnySegment* iov, std::uint64_t cookie,
                                const AnySegment* remote, CompletionFlags flags) {
  constexpr bool reads = kind == nic::WorkKind::rdma_read;
  if (iov && remote && num_segments == 1 && max_segments >= 1 && (flags & kUnusualFlags) == 0) [[likely]] {
    const std::uint64_t from = reads ? remote->length : iov->length;
    const std::uint64_t to = reads ? iov->length : remote->length;
    if (from != 0 && fits<kind>(from, to) && from <= max_rdma_size_.load(std::memory_order_relaxed) &&
        state_machine_.open_to_requests()) [[likely]] {
      const nic::SingleRdma request{cookie, whole(*iov), from, to_nic(flags), {remote->address, remote->key}};
      if (reads ? queue_pair_->read_again(request) : queue_pair_->write_again(request)) [[likely]]
        return kSuccess;
    }
  }
  return post_new_rdma<kind>(max_segments, num_segments, iov, cookie, remote, flags);
}

template <typename AnySegment>
Error EpPosts::post_rdma_read(Count num_segments, const AnySegment* iov, std::uint64_t cookie, const AnySegment* remote,
                              CompletionFlags flags) {
  return post_rdma<nic::WorkKind::rdma_read>(max_rdma_read_iov_.load(std::memory_order_relaxed), num_segments, iov,
                                             cookie, remote, flags);
}

template <typename AnySegment>
Error EpPosts::post_rdma_write(Count num_segments, const AnySegment* iov, std::uint64_t cookie,
                               const AnySegment* remote, CompletionFlags flags) {
  return post_rdma<nic::WorkKind::rdma_write>(max_rdma_write_iov_.load(std::memory_order_relaxed), num_segments, iov,
                                              cookie, remote, flags);
}

// Both layouts.
template Error EpPosts::post_send(Count, const Segment*, std::uint64_t, CompletionFlags);
template Error EpPosts::post_send(Count, const PackedSegment*, std::uint64_t, CompletionFlags);
template Error EpPosts::post_recv(Count, const Segment*, std::uint64_t, CompletionFlags);
template Error EpPosts::post_recv(Count, const PackedSegment*, std::uint64_t, CompletionFlags);
template Error EpPosts::post_rdma_read(Count, const Segment*, std::uint64_t, const Segment*, CompletionFlags);
template Error EpPosts::post_rdma_read(Count, const PackedSegment*, std::uint64_t, const PackedSegment*,
                                       CompletionFlags);
template Error EpPosts::post_rdma_write(Count, const Segment*, std::uint64_t, const Segment*, CompletionFlags);
template Error EpPosts::post_rdma_write(Count, const PackedSegment*, std::uint64_t, const PackedSegment*,
                                        CompletionFlags);
template Error EpPosts::check_message(const char*, Count, const PackedSegment*, CheckedSegments&) const;

Error EpPosts::post_bind(nic::BindRequest request, CompletionFlags flags, const Pz& pz, std::uint32_t& key) {
  const char* call = "dat_rmr_bind";
  const FlagRules rules{kRequestFlags, request_model_.load(std::memory_order_relaxed)};
  if (const Error error = check_post_flags(call, flags, rules)) return error;
  if (&pz != ep_.configuration().parts().pz) {
    return fail(Code::protection_violation, Detail::none, "{}: the endpoint is not of the RMR's protection zone", call);
  }
  if (!state_machine_.open_to_requests()) return state_machine_.wrong_state(call);
  request.flags = to_nic(flags);
  return post_outcome(call, queue_pair_->post_bind(request, key));
}

}  // namespace anydat::dapl
