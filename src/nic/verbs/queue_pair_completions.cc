// SPDX-License-Identifier: BSD-3-Clause
// What comes of work: completions of the device.
#include <algorithm>
#include <new>

#include "nic/verbs/adapter.h"
#include "nic/verbs/queue_pair.h"

namespace anydat::nic::verbs {

namespace {

// How long after work came back flushed the reason may take to arrive.
constexpr base::Nanoseconds kReason = base::kNsPerSecond;

// How long the device has to tell the sender of a message what is wrong with it before the connection breaks. Soft-RoCE
// tells us first.
constexpr base::Nanoseconds kWordToSender = 10'000'000;

}  // namespace

void VerbsQueuePair::completion_lost(const Completion& completion) {
  if (completion.reaped) completion.reaped->queue.reaped();
  if (completion.status != WorkStatus::success) return;
  break_soon();  // EVM-54
}

// ---- completions, with the engine held

// SRQ-TAKE-2: is it to be put aside until it is said that the other side has accepted? Without memory for that, better
// early than lost.
inline bool VerbsQueuePair::comes_early() {
  const State now = state();
  if (now == State::accepting) [[unlikely]]
    establishment_.done({});  // the peer's last word may come later than its first message
  return now == State::connecting;
}

void VerbsQueuePair::completed(const ibv_wc& wc, const WorkId& id) {
  if (comes_early() && receives_.put_aside({wc, id, {}})) return;
  if (id.queue == WorkId::Queue::recv) {
    receives_.completed(wc, id.slot, zone_);
  } else {
    sends_.completed(wc, id.slot);
  }
  if (wc.status == IBV_WC_WR_FLUSH_ERR && stands(state()) && !failed_ && !flushed_unasked_) {
    // The device has ended the connection; connection management will say on whose behalf.
    flushed_unasked_ = true;
    adapter_.engine().set_timer(linger_timer_, base::now_ns() + kReason);
  }
  if (state() == State::ending) look_soon();
}

void VerbsQueuePair::completed_shared(const ibv_wc& wc, const ReceivePool::Done& done) {
  if (comes_early() && receives_.put_aside({wc, {}, done})) return;
  receives_.completed(wc, done);
}

// A receive has failed. The connection breaks, but the device is to tell the sender first.
void VerbsQueuePair::break_once_told() {
  failed_ = true;
  if (stands(state())) adapter_.engine().set_timer(break_timer_, base::now_ns() + kWordToSender);
}

}  // namespace anydat::nic::verbs
