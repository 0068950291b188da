// SPDX-License-Identifier: BSD-3-Clause
// A link: slots for RDMA of this side, and when the peer uses no memory of ours any more.

#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/link.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

std::uint32_t Link::take_rdma_lane() {
  if (fences_) return 0;  // a fence of one's own each time costs what a shared slot does
  base::Guard guard(tx_lock_);
  const std::uint32_t slot = lanes_.take();
  if (slot >= kSharedRdmaSlots) {
    outbound_.header().rdma_lanes.store(1);
    base::full_fence();  // an owner that has not seen it has taken its key out before we look for it
  }
  return slot;
}

bool Link::let_go() const {
  return !hazards_.uses_any() || base::now_ns() >= end_at_;
}

// The peer may have been stopped in the middle of a stretch. Nobody else waits for it with its connections.
void Link::look_whether_let_go() {
  if (let_go()) return finish();
  fabric_.engine().set_timer(end_timer_, base::now_ns() + Hazards::kBetweenLooks);
}

}  // namespace anydat::nic::soft::shm
