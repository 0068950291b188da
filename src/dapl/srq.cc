// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/srq.h"

#include <utility>

#include "dapl/evd.h"
#include "dapl/ia.h"

namespace anydat::dapl {

Srq::Srq(Ia& ia, Pz& pz, const SrqAttributes& attr)
    : Object(ia, kType),
      pz_(pz),
      regions_(ia.nic().regions()),
      max_iov_(attr.max_recv_iov),
      low_watermark_(attr.low_watermark) {}

Srq::~Srq() = default;

Error Srq::create(Ia& ia, Pz& pz, const SrqAttributes& attr, Handle* handle) {
  const Limits& limits = ia.limits();
  if (!handle) return fail(Argument::srq_handle, "dat_srq_create: srq_handle is NULL");
  if (!ia.description().shared_queues()) {  // SRQ-CREATE-15
    return fail(Code::model_not_supported, Detail::none, "dat_srq_create: srq_supported of {} is FALSE", ia.name());
  }
  if (attr.max_recv_dtos <= 0 || attr.max_recv_dtos > limits.max_recv_per_srq) {
    return fail(Argument::srq_attr, "dat_srq_create: max_recv_dtos {} is not between 1 and {}", attr.max_recv_dtos,
                limits.max_recv_per_srq);
  }
  if (attr.max_recv_iov <= 0 || attr.max_recv_iov > limits.max_iov) {
    return fail(Argument::srq_attr, "dat_srq_create: max_recv_iov {} is not between 1 and {}", attr.max_recv_iov,
                limits.max_iov);
  }
  if (attr.low_watermark < 0 || attr.low_watermark > attr.max_recv_dtos) {
    return fail(Argument::srq_attr, "dat_srq_create: low_watermark {} is not between 0 and max_recv_dtos {}",
                attr.low_watermark, attr.max_recv_dtos);
  }
  os::Guard guard(ia.engine());
  if (!pz.alive()) return freed_meanwhile("dat_srq_create", "protection zone", Detail::handle_pz);
  auto made = std::make_unique<Srq>(ia, pz, attr);
  made->queue_ = ia.nic().create_receive_queue(static_cast<std::uint32_t>(attr.max_recv_dtos),
                                               static_cast<std::uint32_t>(attr.max_recv_iov), pz.zone(), *made);
  Srq* srq = made->queue_ ? ia.adopt(std::move(made)) : nullptr;
  if (!srq) return ia.out_of("dat_srq_create", "shared receive queues", Detail::srq);
  pz.use();
  // SRQ-CREATE-8: an empty queue is below any watermark but 0.
  if (attr.low_watermark > 0) srq->queue_->arm(static_cast<std::uint32_t>(attr.low_watermark));
  *handle = srq->handle();
  return kSuccess;
}

template <typename AnySegment>
Error Srq::post_any_recv(Count num_segments, const AnySegment* iov, std::uint64_t cookie) {
  CheckedSegments segments;
  const SegmentRules rules{"dat_srq_post_recv", max_iov_, "the SRQ's", pz_.zone(), nic::access::kLocalWrite};
  if (const Error error = segments.check(regions_, rules, num_segments, iov)) return error;
  const nic::RecvRequest request{cookie, segments.span(), false, rules.zone, segments.regions_seen()};
  return queue_->post(request) == nic::Status::ok ? kSuccess : is_full();
}
template Error Srq::post_any_recv(Count, const Segment*, std::uint64_t);
template Error Srq::post_any_recv(Count, const PackedSegment*, std::uint64_t);

Error Srq::Row::post(Count& posted) {
  const std::size_t count = std::exchange(count_, 0);
  if (count == 0) return kSuccess;
  const std::size_t done = srq_.queue_->post_row({{receives_, count}, zone_, regions_seen_});
  posted += static_cast<Count>(done);
  return done == count ? kSuccess : srq_.is_full();
}

Error Srq::is_full() const {
  const auto counts = queue_->counts();
  return fail(Code::insufficient_resources, Detail::srq,
              "dat_srq_post_recv: {} of {} entries are outstanding ({} of them on the queue)", counts.outstanding,
              counts.depth, counts.available);
}

SrqParameters Srq::query() {
  const nic::ReceiveQueue::Counts counts = queue_->counts();
  return {ia().handle(),
          pz_.handle(),
          static_cast<Count>(counts.depth),
          max_iov_,
          low_watermark_.load(),
          static_cast<Count>(counts.available),
          static_cast<Count>(counts.outstanding)};
}

Error Srq::resize(Count max_recv_dtos) {
  if (max_recv_dtos <= 0 || max_recv_dtos > ia().limits().max_recv_per_srq) {
    return fail(Argument::srq_max_recv_dto, "dat_srq_resize: {} is not between 1 and {}", max_recv_dtos,
                ia().limits().max_recv_per_srq);
  }
  os::Guard guard(ia().engine());
  if (!alive()) return freed_meanwhile("dat_srq_resize", "SRQ", Detail::handle_srq);
  if (max_recv_dtos < low_watermark_.load()) {
    return fail(Code::invalid_state, Detail::none, "dat_srq_resize: {} is below the low watermark {}", max_recv_dtos,
                low_watermark_.load());
  }
  switch (queue_->resize(static_cast<std::uint32_t>(max_recv_dtos))) {
    case nic::Status::ok:
      return kSuccess;
    case nic::Status::queue_full:
      return fail(Code::invalid_state, Detail::none, "dat_srq_resize: more than {} receives are outstanding ({})",
                  max_recv_dtos, queue_->counts().outstanding);
    default:
      return fail(Code::insufficient_resources, Detail::memory, "dat_srq_resize: no memory for {} receives",
                  max_recv_dtos);
  }
}

Error Srq::set_low_watermark(Count low_watermark) {
  os::Guard guard(ia().engine());
  if (!alive()) return freed_meanwhile("dat_srq_set_lw", "SRQ", Detail::handle_srq);
  const auto depth = static_cast<Count>(queue_->counts().depth);
  if (low_watermark < 0 || low_watermark > depth) {
    return fail(Argument::low_watermark, "dat_srq_set_lw: {} is not between 0 and max_recv_dtos {}", low_watermark,
                depth);
  }
  low_watermark_.store(low_watermark);
  queue_->arm(static_cast<std::uint32_t>(low_watermark));
  return kSuccess;
}

void Srq::on_low_watermark() {
  // SRQ-LW-15, ruling R26: the number of an object without one of its own; the reason tells.
  ia().post_async(*this, EventKind::provider_internal_error, async_reason::kSrqLowWatermark);
}

void Srq::on_fault() {
  ia().post_async(*this, EventKind::provider_internal_error, async_reason::kSrqOther);  // EVT-34
}

Error Srq::free() {
  if (endpoints_ > 0) {
    return fail(Code::invalid_state, Detail::srq_in_use, "dat_srq_free: {} endpoints still use it", endpoints_);
  }
  ia().retire(*this);
  return kSuccess;
}

void Srq::shut_down() {
  // SRQ-FREE-5: completions that endpoints have left behind stay reapable.
  ia().for_each_evd([&](Evd& evd) { evd.forget(*queue_); });
  pz_.release();
}

}  // namespace anydat::dapl
