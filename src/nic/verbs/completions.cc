// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/completions.h"

#include <fcntl.h>

#include <algorithm>
#include <new>

#include "nic/verbs/queue_pair.h"

namespace anydat::nic::verbs {

namespace {

constexpr std::uint32_t kUsualRoom = 4096;  // of a completion queue that queue pairs share

}  // namespace

Status CompletionQueues::open() {
  channel_ = CompletionChannel::of([this] { return ibv_create_comp_channel(device_.context()); });
  if (!channel_) return Status::no_memory;
  return fcntl(channel_->fd, F_SETFL, O_NONBLOCK) == 0 ? Status::ok : Status::failed;
}

Cq* CompletionQueues::create(std::uint32_t room, SharedQueue* shared) {
  const auto most = static_cast<std::uint32_t>(std::max(device_.attributes().max_cqe, 1));
  if (room > most) return nullptr;
  CqPtr cq(ibv_create_cq(device_.context(), static_cast<int>(std::max(room, 1u)), nullptr, channel_.get(), 0));
  if (!cq) return nullptr;
  try {
    all_.push_back(std::make_unique<Cq>(std::move(cq), shared));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  all_.back()->get()->cq_context = all_.back().get();
  return all_.back().get();
}

Cq* CompletionQueues::reserve(std::uint32_t room) {
  Cq* found = nullptr;
  for (const auto& cq : all_) {
    if (!cq->shared() && cq->room() >= room) found = cq.get();
  }
  if (!found) {
    const auto most = static_cast<std::uint32_t>(std::max(device_.attributes().max_cqe, 1));
    found = create(std::max(room, std::min(kUsualRoom, most)), nullptr);
  }
  if (found) found->use(room);
  return found;
}

void CompletionQueues::release(Cq* cq, std::uint32_t room) {
  cq->release(room);
  if (cq->unused()) release_own(cq, nullptr, nullptr);
}

Cq* CompletionQueues::create_own(std::uint32_t room, SharedQueue& shared) {
  return create(room, &shared);
}

void CompletionQueues::release_own(Cq* cq, SrqPtr shared, PdPtr pd) {
  Reaper::Job job;
  job.pd = std::move(pd);
  job.shared = std::move(shared);
  job.completions = cq->take();
  reaper_.give(std::move(job));
  std::erase_if(all_, [&](const auto& entry) { return entry.get() == cq; });
}

void CompletionQueues::take_notices() {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &cq, &context) == 0) {
    // Once it is acknowledged, the queue may go: null if it is about to.
    if (auto* const ours = static_cast<Cq*>(cq->cq_context)) ours->said_so();
    ibv_ack_cq_events(cq, 1);
  }
}

void CompletionBatch::flush() {
  if (count_ == 0) return;
  const std::size_t count = std::exchange(count_, 0);
  const std::size_t kept = queue_->push(std::span(completions_).first(count));
  for (std::size_t i = kept; i < count; ++i) queue_pairs_[i]->completion_lost(completions_[i]);
}

}  // namespace anydat::nic::verbs
