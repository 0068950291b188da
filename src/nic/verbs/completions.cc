// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/completions.h"

#include <algorithm>
#include <new>

#include "nic/budget.h"
#include "nic/verbs/queue_pair.h"
#include "nic/verbs/shared_queue.h"
#include "os/descriptor.h"

namespace anydat::nic::verbs {

namespace {

constexpr std::uint32_t kUsualRoom = 4096;  // of a completion queue that queue pairs share

constexpr std::size_t kFewQueues = 2;
constexpr int kRoundsOfFewQueues = 3;

}  // namespace

Status CompletionQueues::open() {
  channel_ = CompletionChannel::of([this] { return ibv_create_comp_channel(device_.context()); });
  if (!channel_) return Status::no_memory;
  return os::set_nonblocking(channel_->fd) ? Status::ok : Status::failed;
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
  if (!cq->unused()) return;
  Reaper::Job job;
  job.completions = take(cq);
  reaper_.give(std::move(job));
}

Cq* CompletionQueues::create_own(std::uint32_t room, SharedQueue& shared) {
  return create(room, &shared);
}

CqPtr CompletionQueues::take(Cq* cq) {
  CqPtr taken = cq->take();
  std::erase_if(all_, [&](const auto& entry) { return entry.get() == cq; });
  return taken;
}

void CompletionQueues::ready(std::uint32_t) {
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

bool CompletionPoller::poll() {
  std::array<ibv_wc, budget::kCompletionsPerLook> completions;
  bool any = false;
  // Getting here and back costs as much as a few looks in vain.
  const int rounds = queues_.all().size() <= kFewQueues ? kRoundsOfFewQueues : 1;
  for (int round = 0; round < rounds && !any; ++round) {
    for (std::size_t i = 0; i < queues_.all().size(); ++i) {
      Cq& cq = *queues_.all()[i];
      const int count = ibv_poll_cq(cq.get(), budget::kCompletionsPerLook, completions.data());
      if (count <= 0) [[likely]]
        continue;
      handle(cq, completions, count);
      any = true;
    }
  }
  return any;
}

void CompletionPoller::drain() {
  if (polling_) return;
  std::array<ibv_wc, budget::kCompletionsPerLook> completions;
  for (std::size_t i = 0; i < queues_.all().size(); ++i) {
    // All that is there is no more than the queue has room for. What comes meanwhile is not waited for: as long as a
    // peer goes on sending there would always be more.
    for (int left = queues_.all()[i]->get()->cqe; left > 0 && i < queues_.all().size();) {
      Cq& cq = *queues_.all()[i];
      const int count = ibv_poll_cq(cq.get(), budget::kCompletionsPerLook, completions.data());
      if (count <= 0) break;
      left -= handle(cq, completions, count);
    }
  }
}

// The first `count` of `completions`, and what comes after them; answers how many that were.
int CompletionPoller::handle(Cq& cq, std::array<ibv_wc, budget::kCompletionsPerLook>& completions, int count) {
  polling_ = true;
  int handled = 0;
  for (int look = 1;; ++look) {
    handled += std::max(count, 0);
    for (int i = 0; i < count; ++i) dispatch(cq, completions[static_cast<std::size_t>(i)]);
    if (count < budget::kCompletionsPerLook || look == budget::kCompletionLooksPerTurn) break;
    count = ibv_poll_cq(cq.get(), budget::kCompletionsPerLook, completions.data());
  }
  polling_ = false;
  batch_.flush();
  return handled;
}

void CompletionPoller::dispatch(Cq& cq, const ibv_wc& wc) {
  const WorkId id = WorkId::unpacked(wc.wr_id);
  if (id.queue == WorkId::Queue::shared) {
    SharedQueue& shared = *cq.shared();
    const std::optional<ReceivePool::Done> done =
        shared.pool().complete(id.slot, wc.status != IBV_WC_SUCCESS, kAnyZone);
    if (!done) return;
    VerbsQueuePair* const queue_pair = queue_pairs_.numbered(wc.qp_num);
    if (!queue_pair) return shared.reaped();  // SRQ-ACC-12
    return queue_pair->completed_shared(wc, *done);
  }
  if (VerbsQueuePair* const queue_pair = queue_pairs_.find(id.tag)) queue_pair->completed(wc, id);
}

}  // namespace anydat::nic::verbs
