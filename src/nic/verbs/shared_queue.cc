// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/shared_queue.h"

#include <algorithm>
#include <utility>

#include "env/log.h"
#include "nic/verbs/adapter.h"

namespace anydat::nic::verbs {

SharedQueue::SharedQueue(VerbsAdapter& adapter, ReceiveQueueEvents& events)
    : adapter_(adapter), pool_(adapter.device(), ReceivePool::Use::shared, &events), events_(events) {}

SharedQueue::~SharedQueue() {
  failed_ = false;  // nothing takes its place
  adapter_.abandoned().drop_on(this);
  adapter_.reaper().finish();  // of queue pairs on it
  if (!parts_) return;
  take_device_queue(parts_->parts);
  adapter_.abandoned().leave_to(this, parts_);
}

// What is still on its completion queue, or comes, belongs to queue pairs that have gone, or never connect.
void SharedQueue::take_device_queue(Reaper::Job& parts) {
  pool_.detach();
  if (srq_) srq_->srq_context = nullptr;
  parts.pd = pd_;
  parts.shared = std::move(srq_);
  if (cq_) parts.completions = adapter_.completions().queues().take(std::exchange(cq_, nullptr));
}

Status SharedQueue::init(std::uint32_t depth, std::uint32_t segments, ZoneId zone) {
  if (const Status status = pool_.init(depth, segments); status != Status::ok) return status;
  pd_ = adapter_.device().zone(zone);
  segments_ = std::max(segments, 1u);
  parts_ = std::make_shared<KeptParts>(adapter_.reaper());
  return pd_ ? make_device_queue() : Status::no_memory;
}

Status SharedQueue::make_device_queue() {
  const std::uint32_t depth = pool_.counts().depth;
  ibv_srq_init_attr attributes{};
  attributes.srq_context = this;
  attributes.attr.max_wr = depth;
  attributes.attr.max_sge = segments_;
  srq_.reset(ibv_create_srq(pd_.get(), &attributes));
  if (!srq_) return Status::no_memory;
  cq_ = adapter_.completions().queues().create_own(depth, *this);
  if (!cq_) return Status::no_memory;
  pool_.attach(srq_.get(), depth);
  return Status::ok;
}

void SharedQueue::remove_device_queue() {
  Reaper::Job parts;
  take_device_queue(parts);
  adapter_.reaper().give(std::move(parts));
}

void SharedQueue::failed() {
  // The device's queue gets no more receives; those that it has come back when no queue pair fills them any longer.
  pool_.close();
  failed_ = true;
  adapter_.abandoned().drop_on(this);
  if (queue_pairs_ == 0) replace();
  events_.on_fault();
}

void SharedQueue::detach() {
  if (--queue_pairs_ == 0 && failed_) replace();
}

void SharedQueue::replace() {
  failed_ = false;
  remove_device_queue();
  if (adapter_.gone() || make_device_queue() == Status::ok) return;
  remove_device_queue();
  env::log(env::LogLevel::error, "{}: no other shared receive queue can be had for one that has failed",
           adapter_.info().name);
}

// The pool follows every rule of resizing; the device's queue only has to be as large for the sake of speed, and it
// stays as it is where the device cannot do it. Then its limit, which may be armed, says nothing any more.
Status SharedQueue::resize(std::uint32_t depth) {
  if (const Status status = pool_.resize(depth); status != Status::ok) return status;
  if (depth <= pool_.room() || !srq_ || failed_) return Status::ok;
  ibv_srq_attr attributes{};
  attributes.max_wr = depth;
  if (ibv_modify_srq(srq_.get(), &attributes, IBV_SRQ_MAX_WR) != 0) return Status::ok;
  if (static_cast<std::uint32_t>(cq_->get()->cqe) < depth) {
    // All that the device has may complete before anybody looks.
    adapter_.completions().drain();
    if (ibv_resize_cq(cq_->get(), static_cast<int>(depth)) != 0) return Status::ok;
  }
  pool_.attach(srq_.get(), depth);
  return Status::ok;
}

}  // namespace anydat::nic::verbs
