// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/hazard_slots.h"

#include <algorithm>

#include "base/fence.h"

namespace anydat::nic::soft::shm {

namespace {

constexpr os::Nanoseconds kDelayMin = 50'000;
constexpr os::Nanoseconds kDelayMax = 50'000'000;

}  // namespace

HazardSlots::HazardSlots(Engine& engine, SegmentHeader& header, bool fences, os::Biased<os::SpinLock>& sending)
    : engine_(engine),
      header_(header),
      fences_(fences),
      sending_(sending),
      // Something has been done then, so the sources are looked at once more.
      look_timer_([this] { delay_ = std::min(2 * delay_, kDelayMax); }) {}

std::uint32_t HazardSlots::take() {
  if (fences_) return 0;  // a fence of one's own each time costs what a shared slot does
  os::Guard guard(sending_);
  const std::uint32_t slot = own_slots_.take();
  if (slot >= kSharedRdmaSlots) {
    header_.rdma_own_slots.store(1);
    base::full_fence();  // an owner that has not seen it has taken its key out before we look for it
  }
  return slot;
}

void HazardSlots::give_back(HazardSlot& slot) {
  os::Guard guard(sending_);
  own_slots_.give_back(slot.give_up(header_));
}

// A slot is held for a tenth of a millisecond, by another thread of this process that may have been preempted, or for
// ever, by a peer that takes its own.
void HazardSlots::look_for_shared() {
  if (!wanted_.exchange(false, std::memory_order_relaxed)) {
    delay_ = kDelayMin;
    return;
  }
  // A thread that polls comes here with each pass, which is sooner.
  if (!look_timer_.pending()) engine_.set_timer(look_timer_, os::now_ns() + delay_);
}

}  // namespace anydat::nic::soft::shm
