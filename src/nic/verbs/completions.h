// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "nic/adapter.h"
#include "nic/budget.h"
#include "nic/loop.h"
#include "nic/verbs/device.h"
#include "nic/verbs/queue_pair_table.h"
#include "nic/verbs/reaper.h"

namespace anydat::nic::verbs {

class VerbsQueuePair;
class SharedQueue;

// One completion queue of the device, with room for all work whose completions may lie on it at once. With the engine
// held.
class Cq {
 public:
  Cq(CqPtr cq, SharedQueue* shared) : cq_(std::move(cq)), shared_(shared) {}
  ibv_cq* get() const { return cq_.get(); }
  std::uint32_t room() const { return failed_ ? 0 : static_cast<std::uint32_t>(cq_->cqe) - used_; }
  void use(std::uint32_t count) { used_ += count; }
  void release(std::uint32_t count) { used_ -= count; }
  bool unused() const { return used_ == 0; }
  SharedQueue* shared() const { return shared_; }  // whose receives complete here, and nothing else; or null

  // Makes the device say on the completion channel when something comes.
  void arm() {
    if (!armed_ && !failed_) armed_ = ibv_req_notify_cq(cq_.get(), 0) == 0;
  }
  void said_so() { armed_ = false; }

  // What is left of it says nothing to anybody.
  CqPtr take() {
    cq_->cq_context = nullptr;
    return std::move(cq_);
  }

  // The device says that it is of no use any more. It goes with the last queue pair that has it.
  void fail() { failed_ = true; }

 private:
  CqPtr cq_;
  SharedQueue* const shared_;
  std::uint32_t used_ = 0;
  bool armed_ = false;
  bool failed_ = false;
};

// All completion queues of an adapter. Queue pairs share them: each takes as much room as it may have work under way.
class CompletionQueues final : public FdHandler {
 public:
  CompletionQueues(const Device& device, Reaper& reaper) : device_(device), reaper_(reaper) {}
  Status open();
  int descriptor() const { return channel_->fd; }
  void descriptors_lost() { channel_.note_loss(); }

  // Null when out of memory or of the device's queues.
  Cq* reserve(std::uint32_t room);
  void release(Cq* cq, std::uint32_t room);
  // One of its own for the receives of a shared queue.
  Cq* create_own(std::uint32_t room, SharedQueue& shared);
  // What is still on it, or comes, belongs to no queue pair any more.
  CqPtr take(Cq* cq);

  // FdHandler: takes what the channel has to say; what it is about is found by polling.
  void ready(std::uint32_t events) override;
  const std::vector<std::unique_ptr<Cq>>& all() const { return all_; }

 private:
  Cq* create(std::uint32_t room, SharedQueue* shared);

  const Device& device_;
  Reaper& reaper_;
  CompletionChannel channel_;
  std::vector<std::unique_ptr<Cq>> all_;
};

// Completions on their way to an event dispatcher, which takes several under one lock. With the engine held.
class CompletionBatch {
 public:
  void add(CompletionQueue& queue, VerbsQueuePair& queue_pair, const Completion& completion) {
    if (queue_ != &queue || count_ == completions_.size()) flush();
    queue_ = &queue;
    queue_pairs_[count_] = &queue_pair;
    completions_[count_++] = completion;
  }
  void flush();

 private:
  CompletionQueue* queue_ = nullptr;
  std::size_t count_ = 0;
  std::array<Completion, 32> completions_;
  std::array<VerbsQueuePair*, 32> queue_pairs_;
};

// Takes an adapter's completions from the device's queues and hands them to whose they are. With the engine held.
class CompletionPoller {
 public:
  CompletionPoller(const Device& device, Reaper& reaper) : queues_(device, reaper) {}

  CompletionQueues& queues() { return queues_; }
  CompletionBatch& batch() { return batch_; }
  QueuePairTable& queue_pairs() { return queue_pairs_; }

  // True if there was any.
  bool poll();
  // Handles every completion that is there when it begins. Requires: not called while one is being handled.
  void drain();
  void arm() {
    for (const auto& cq : queues_.all()) cq->arm();
  }

 private:
  int handle(Cq& cq, std::array<ibv_wc, budget::kCompletionsPerLook>& completions, int count);
  void dispatch(Cq& cq, const ibv_wc& wc);

  CompletionQueues queues_;
  CompletionBatch batch_;
  QueuePairTable queue_pairs_;
  bool polling_ = false;
};

}  // namespace anydat::nic::verbs
