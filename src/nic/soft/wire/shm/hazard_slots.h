// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "base/annotations.h"
#include "nic/engine.h"
#include "nic/soft/wire/shm/hazard_slot.h"
#include "nic/soft/wire/shm/rdma_uses.h"
#include "os/biased_lock.h"
#include "os/clock.h"

namespace anydat::nic::soft::shm {

// The slots of a peer's segment, for RDMA of this side (rdma_uses.h): which connection has one for itself, and how
// those that share the others come by one when all are taken.
//
// Thread safety: take() and wait_for_shared() from any thread, all else with the engine held. Lives and dies with its
// link.
class HazardSlots {
 public:
  // `header`: of the peer's segment. `fences`: the two processes cannot fence each other from afar. `sending`: the lock
  // under which the link sends.
  HazardSlots(Engine& engine, SegmentHeader& header, bool fences, os::Biased<os::SpinLock>& sending);
  HazardSlots(const HazardSlots&) = delete;
  HazardSlots& operator=(const HazardSlots&) = delete;

  // A slot for a connection alone, until give_back(). One below kSharedRdmaSlots: there is none.
  std::uint32_t take();
  void give_back(HazardSlot& slot);

  // All shared slots are taken. They come free without a word, so the streams that come back to the link are asked
  // again by time as well.
  void wait_for_shared() { wanted_.store(true, std::memory_order_relaxed); }
  // Streams that came back have just had their turn: if one of them needs another by and by, it is seen to.
  void look_for_shared();
  void stop() { engine_.cancel_timer(look_timer_); }

 private:
  Engine& engine_;
  SegmentHeader& header_;
  const bool fences_;
  os::Biased<os::SpinLock>& sending_;
  ConnectionSlots own_slots_ ANYDAT_GUARDED_BY(sending_);
  std::atomic<bool> wanted_{false};
  Timer look_timer_;
  os::Nanoseconds delay_ = 0;  // of the next look by time
};

}  // namespace anydat::nic::soft::shm
