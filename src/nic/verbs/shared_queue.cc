// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/shared_queue.h"

#include <algorithm>

#include "nic/verbs/adapter.h"

namespace anydat::nic::verbs {

SharedQueue::SharedQueue(VerbsAdapter& adapter, ReceiveQueueEvents& events)
    : adapter_(adapter), pool_(adapter.device(), ReceivePool::Use::shared, &events) {}

SharedQueue::~SharedQueue() {
  adapter_.drop_abandoned(this);
  pool_.detach();
  srq_.reset();
  // What is still on its completion queue belongs to queue pairs that have gone.
  if (cq_) adapter_.completion_queues().release_own(cq_);
}

Status SharedQueue::init(std::uint32_t depth, std::uint32_t segments, ZoneId zone) {
  if (const Status status = pool_.init(depth, segments); status != Status::ok) return status;
  pd_ = adapter_.device().zone(zone);
  if (!pd_) return Status::no_memory;
  ibv_srq_init_attr attributes{};
  attributes.srq_context = this;
  attributes.attr.max_wr = depth;
  attributes.attr.max_sge = std::max(segments, 1u);
  srq_.reset(ibv_create_srq(pd_.get(), &attributes));
  if (!srq_) return Status::no_memory;
  cq_ = adapter_.completion_queues().create_own(depth, *this);
  if (!cq_) return Status::no_memory;
  pool_.attach(srq_.get(), depth);
  return Status::ok;
}

// The pool follows every rule of resizing; the device's queue only has to be as large for the sake of speed, and it
// stays as it is where the device cannot do it.
Status SharedQueue::resize(std::uint32_t depth) {
  if (const Status status = pool_.resize(depth); status != Status::ok) return status;
  if (depth <= pool_.room()) return Status::ok;
  ibv_srq_attr attributes{};
  attributes.max_wr = depth;
  if (ibv_modify_srq(srq_.get(), &attributes, IBV_SRQ_MAX_WR) != 0) return Status::ok;
  if (static_cast<std::uint32_t>(cq_->get()->cqe) < depth) {
    // All that the device has may complete before anybody looks.
    adapter_.drain();
    if (ibv_resize_cq(cq_->get(), static_cast<int>(depth)) != 0) return Status::ok;
  }
  pool_.attach(srq_.get(), depth);
  return Status::ok;
}

}  // namespace anydat::nic::verbs
