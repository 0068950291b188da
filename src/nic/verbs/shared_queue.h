// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "nic/outstanding_receives.h"
#include "nic/verbs/completions.h"
#include "nic/verbs/reaper.h"
#include "nic/verbs/receive_pool.h"

namespace anydat::nic::verbs {

class VerbsAdapter;

// A shared receive queue: one of the device's, with the pool in front of it. Made and removed with the engine held.
class SharedQueue final : public ReceiveQueue {
 public:
  SharedQueue(VerbsAdapter& adapter, ReceiveQueueEvents& events);
  ~SharedQueue() override;
  Status init(std::uint32_t depth, std::uint32_t segments, ZoneId zone);

  Status post(const RecvRequest& request) override { return pool_.post(request); }
  Status resize(std::uint32_t depth) override;
  void arm(std::uint32_t watermark) override { pool_.arm(watermark); }
  Counts counts() const override { return pool_.counts(); }
  void reaped() override { pool_.reaped(); }
  ReapCount& reap_count(const CompletionQueue*) override { return reap_count_; }
  const Counters& counters() const override { return const_cast<ReceivePool&>(pool_).counters(); }

  ReceivePool& pool() { return pool_; }
  // Not after a fault, until those who used it have gone.
  bool usable() const { return srq_ && !failed_; }
  ibv_srq* device_queue() const { return srq_.get(); }
  Cq& completions() const { return *cq_; }

  // Each queue pair of the device that receives from it, from its making to its end.
  void attach() { ++queue_pairs_; }
  void detach();
  // The device's queue, or its completions, are of no use any more, and their queue pairs have been told. When the last
  // of these has gone, another queue takes its place and gets what it had.
  void failed();

 private:
  Status make_device_queue();
  void take_device_queue(Reaper::Job& parts);
  void remove_device_queue();
  void replace();

  VerbsAdapter& adapter_;
  ReapCount reap_count_{*this};
  ReceivePool pool_;
  ReceiveQueueEvents& events_;
  std::uint32_t segments_ = 1;
  PdPtr pd_;
  Cq* cq_ = nullptr;
  SrqPtr srq_;
  std::shared_ptr<KeptParts> parts_;  // for the end
  std::uint32_t queue_pairs_ = 0;
  bool failed_ = false;
};

}  // namespace anydat::nic::verbs
