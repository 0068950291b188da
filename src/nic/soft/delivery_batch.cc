// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/delivery_batch.h"

#include "nic/soft/queue_pair.h"

namespace anydat::nic::soft {

void DeliveryBatch::release_pool() {
  if (!pool_) return;
  ReceivePool& pool = *pool_;
  pool_ = nullptr;
  pool.lock().unlock();
  if (undercut_) {
    undercut_ = false;
    pool.report();
  }
}

void DeliveryBatch::push() {
  const std::size_t count = count_;
  count_ = 0;
  if (count == 0) return;
  const std::size_t kept = queue_->push(std::span(completions_.data(), count));
  for (std::size_t i = kept; i < count; ++i) queue_pairs_[i]->completion_lost(completions_[i]);
}

}  // namespace anydat::nic::soft
