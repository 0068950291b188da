// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/endpoint_watermarks.h"

#include <algorithm>

#include "nic/soft/queue_pair.h"

namespace anydat::nic::soft {

void EndpointWatermarks::set(std::int32_t soft, std::int32_t hard) {
  soft_.store(soft);
  hard_.store(hard);
  set_.store(soft != kUnlimited || hard != kUnlimited);
  soft_armed_ = soft != kUnlimited;
}

void EndpointWatermarks::test() {
  const auto allocated =
      static_cast<std::int64_t>(std::max(queue_pair_.recv_info().allocated, posted_peak_.exchange(0)));
  const std::int32_t soft = soft_.load(std::memory_order_relaxed);
  if (soft_armed_ && soft != kUnlimited && allocated > soft) {
    soft_armed_ = false;
    queue_pair_.sends().counters().soft_watermark_events.add();
    events_.on_soft_watermark();
  }
  const std::int32_t hard = hard_.load(std::memory_order_relaxed);
  if (hard != kUnlimited && allocated > hard && stands(queue_pair_.state())) {
    queue_pair_.connection().break_off(WorkStatus::flushed, CloseReason::local_error);
  }
}

void EndpointWatermarks::post_begins() {
  posted_peak_.store(queue_pair_.recv_info().allocated + 1);
}

void EndpointWatermarks::posted() {
  queue_pair_.connection().engine().schedule(task_);
}

void EndpointWatermarks::destroy() {
  queue_pair_.connection().engine().cancel_task(task_);
}

}  // namespace anydat::nic::soft
