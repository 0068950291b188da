// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/srq.h"

#include "dapl/error.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/pz.h"
#include "dapl/ranges.h"
#include "dapl/segments.h"

namespace anydat::dapl {

Srq::Srq(Ia& ia, Pz& pz, const DAT_SRQ_ATTR& attr)
    : Object(ia, kType),
      pz_(pz),
      regions_(ia.nic().regions()),
      max_iov_(attr.max_recv_iov),
      low_watermark_(attr.low_watermark) {}

Srq::~Srq() = default;

DAT_RETURN Srq::create(Ia& ia, Pz& pz, const DAT_SRQ_ATTR* attr, DAT_SRQ_HANDLE* handle) {
  const Limits& limits = ia.limits();
  if (!attr || reinterpret_cast<std::uintptr_t>(attr) % 4 != 0) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "dat_srq_create: srq_attr is NULL or not aligned");
  }
  if (!handle) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, "dat_srq_create: srq_handle is NULL");
  if (attr->max_recv_dtos <= 0 || attr->max_recv_dtos > limits.max_recv_per_srq) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "dat_srq_create: max_recv_dtos {} is not between 1 and {}",
                attr->max_recv_dtos, limits.max_recv_per_srq);
  }
  if (attr->max_recv_iov <= 0 || attr->max_recv_iov > limits.max_iov) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "dat_srq_create: max_recv_iov {} is not between 1 and {}",
                attr->max_recv_iov, limits.max_iov);
  }
  if (attr->low_watermark < 0 || attr->low_watermark > attr->max_recv_dtos) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
                "dat_srq_create: low_watermark {} is not between 0 and max_recv_dtos {}", attr->low_watermark,
                attr->max_recv_dtos);
  }
  base::Guard guard(ia.engine());
  auto made = std::make_unique<Srq>(ia, pz, *attr);
  made->queue_ = ia.nic().create_receive_queue(static_cast<std::uint32_t>(attr->max_recv_dtos),
                                               static_cast<std::uint32_t>(attr->max_recv_iov), pz.zone(), *made);
  Srq* srq = made->queue_ ? ia.adopt(std::move(made)) : nullptr;
  if (!srq) return ia.out_of("dat_srq_create", "shared receive queues", DAT_RESOURCE_SRQ);
  pz.use();
  // SRQ-CREATE-8: an empty queue is below any watermark but 0.
  if (attr->low_watermark > 0) srq->queue_->arm(static_cast<std::uint32_t>(attr->low_watermark));
  *handle = srq->handle();
  return DAT_SUCCESS;
}

DAT_RETURN Srq::post_recv(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie) {
  const std::uint64_t regions_seen = regions_.removals();
  const nic::ZoneId zone = pz_.zone();
  if (max_iov_ >= 1 && is_plain(regions_, num_segments, iov, zone, nic::access::kLocalWrite)) [[likely]] {
    const nic::Segment segment = to_nic(*iov);
    if (queue_->post({cookie.as_64, {&segment, 1}, false, zone, regions_seen}) == nic::Status::ok) [[likely]]
      return DAT_SUCCESS;
    return is_full();
  }
  return post_any_recv(num_segments, iov, cookie);
}

DAT_RETURN Srq::post_any_recv(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie) {
  CheckedSegments segments;
  const SegmentRules rules{"dat_srq_post_recv", max_iov_, "the SRQ's", pz_.zone(), nic::access::kLocalWrite};
  if (const DAT_RETURN rc = segments.check(regions_, rules, num_segments, iov)) return rc;
  const nic::RecvRequest request{cookie.as_64, segments.span(), false, rules.zone, segments.regions_seen()};
  return queue_->post(request) == nic::Status::ok ? DAT_SUCCESS : is_full();
}

DAT_RETURN Srq::is_full() const {
  const auto counts = queue_->counts();
  return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ,
              "dat_srq_post_recv: {} of {} entries are outstanding ({} of them on the queue)", counts.outstanding,
              counts.depth, counts.available);
}

DAT_RETURN Srq::query(DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM* param) {
  if (const DAT_RETURN rc = check_query("dat_srq_query", mask, DAT_SRQ_FIELD_ALL, param)) return rc;
  const nic::ReceiveQueue::Counts counts = queue_->counts();
  param->ia_handle = ia().handle();
  param->srq_state = DAT_SRQ_STATE_OPERATIONAL;
  param->pz_handle = pz_.handle();
  param->max_recv_dtos = static_cast<DAT_COUNT>(counts.depth);
  param->max_recv_iov = max_iov_;
  param->low_watermark = low_watermark_.load();
  param->available_dto_count = static_cast<DAT_COUNT>(counts.available);
  param->outstanding_dto_count = static_cast<DAT_COUNT>(counts.outstanding);
  return DAT_SUCCESS;
}

DAT_RETURN Srq::resize(DAT_COUNT max_recv_dtos) {
  if (max_recv_dtos <= 0 || max_recv_dtos > ia().limits().max_recv_per_srq) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_srq_resize: {} is not between 1 and {}", max_recv_dtos,
                ia().limits().max_recv_per_srq);
  }
  base::Guard guard(ia().engine());
  if (max_recv_dtos < low_watermark_.load()) {
    return fail(DAT_INVALID_STATE, DAT_NO_SUBTYPE, "dat_srq_resize: {} is below the low watermark {}", max_recv_dtos,
                low_watermark_.load());
  }
  switch (queue_->resize(static_cast<std::uint32_t>(max_recv_dtos))) {
    case nic::Status::ok:
      return DAT_SUCCESS;
    case nic::Status::queue_full:
      return fail(DAT_INVALID_STATE, DAT_NO_SUBTYPE, "dat_srq_resize: more than {} receives are outstanding ({})",
                  max_recv_dtos, queue_->counts().outstanding);
    default:
      return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY, "dat_srq_resize: no memory for {} receives",
                  max_recv_dtos);
  }
}

DAT_RETURN Srq::set_low_watermark(DAT_COUNT low_watermark) {
  base::Guard guard(ia().engine());
  const auto depth = static_cast<DAT_COUNT>(queue_->counts().depth);
  if (low_watermark < 0 || low_watermark > depth) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_srq_set_lw: {} is not between 0 and max_recv_dtos {}",
                low_watermark, depth);
  }
  low_watermark_.store(low_watermark);
  queue_->arm(static_cast<std::uint32_t>(low_watermark));
  return DAT_SUCCESS;
}

void Srq::on_low_watermark() {
  // SRQ-LW-15, ruling R26: the number of an object without one of its own; the reason tells.
  ia().post_async(*this, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, DAT_SRQ_LOW_WATERMARK_EVENT);
}

void Srq::on_fault() {
  ia().post_async(*this, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, DAT_SRQ_OTHER_ERROR);  // EVT-34
}

DAT_RETURN Srq::free() {
  if (endpoints_ > 0) {
    return fail(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE, "dat_srq_free: {} endpoints still use it", endpoints_);
  }
  ia().retire(*this);
  return DAT_SUCCESS;
}

void Srq::shut_down() {
  // SRQ-FREE-5: completions that endpoints have left behind stay reapable.
  ia().for_each_evd([&](Evd& evd) { evd.forget(*queue_); });
  pz_.release();
}

}  // namespace anydat::dapl
