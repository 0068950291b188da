// SPDX-License-Identifier: BSD-3-Clause
// What comes of work: completions of the device, and the receives that they fill.
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

// `usable`: the memory of the receive was still there.
WorkStatus recv_status(ibv_wc_status status, bool usable) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return WorkStatus::success;
    case IBV_WC_WR_FLUSH_ERR:
      return WorkStatus::flushed;
    // Soft-RoCE says of a receive that was too small what it tells the sender.
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
      return WorkStatus::local_length;
    // It says one thing of a receive that was too small and of one whose memory has gone.
    case IBV_WC_LOC_QP_OP_ERR:
      return usable ? WorkStatus::local_length : WorkStatus::local_protection;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return WorkStatus::local_protection;
    default:  // soft-iWARP has one word for all other failures
      return usable ? WorkStatus::transport : WorkStatus::local_protection;
  }
}

}  // namespace

// ---- receives

Status VerbsQueuePair::post_recv(const RecvRequest& request) {
  const Status status = own_->post(request);
  // Closing changes the state before it flushes, so a receive posted around that moment is flushed by one of us.
  if (sends_.state_now() == State::closed && status == Status::ok) [[unlikely]]
    flush_receives();
  return status;
}

void VerbsQueuePair::complete_recv(const ReceivePool::Done& done, WorkStatus status, std::uint64_t length,
                                   bool solicited) {
  if (own_) own_->reaped();  // DTO-14: completion frees the slot
  CompletionQueue* queue = recv_queue_.load(std::memory_order_relaxed);
  if (!queue) {
    if (shared_) shared_->reaped();  // SRQ-ACC-12
    return;
  }
  adapter_.completions().batch().add(*queue, *this,
                                     {events_.owner, done.cookie, length, WorkKind::recv, status, done.unsignalled,
                                      solicited, 0, shared_ ? &shared_->reap_count(queue) : nullptr});
}

void VerbsQueuePair::completion_lost(const Completion& completion) {
  if (completion.reaped) completion.reaped->queue.reaped();
  if (completion.status != WorkStatus::success) return;
  break_soon();  // EVM-54
}

// By the end of the connection and by late posts; each finds the lock held until the other's are on the queue, so they
// stay in order (DTO-40).
void VerbsQueuePair::flush_receives() {
  if (!own_) return;
  base::Guard guard(sends_.lock());
  while (const std::optional<ReceivePool::Done> done = own_->take_waiting()) {
    own_->reaped();
    CompletionQueue* queue = recv_queue_.load(std::memory_order_relaxed);
    if (queue) queue->push({events_.owner, done->cookie, 0, WorkKind::recv, WorkStatus::flushed, done->unsignalled});
  }
}

QueuePair::RecvInfo VerbsQueuePair::recv_info() const {
  if (!own_) {
    // Only the device knows of a message that is arriving; without a connection there is none.
    const State now = state();
    if (now == State::idle || now == State::connecting || now == State::closed) return {0, 0};
    return {RecvInfo::kUnknown, RecvInfo::kUnknown};
  }
  const std::uint32_t allocated = own_->counts().outstanding;
  return {allocated, allocated};
}

// ---- completions, with the engine held

// SRQ-TAKE-2: is it to be put aside until it is said that the other side has accepted?
inline bool VerbsQueuePair::comes_early() {
  const State now = state();
  if (now == State::accepting) [[unlikely]]
    established({});  // the peer's last word may come later than its first message
  return now == State::connecting;
}

// Without memory for that, better early than lost.
bool VerbsQueuePair::put_aside(const Early& early) {
  try {
    early_.push_back(early);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void VerbsQueuePair::completed(const ibv_wc& wc, const WorkId& id) {
  if (comes_early() && put_aside({wc, id, {}})) return;
  if (id.queue == WorkId::Queue::recv) {
    if (const std::optional<ReceivePool::Done> done =
            own_ ? own_->complete(id.slot, wc.status != IBV_WC_SUCCESS, zone_) : std::nullopt) {
      received(wc, *done);
    }
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
  if (comes_early() && put_aside({wc, {}, done})) return;
  received(wc, done);
}

// A receive that is out of its pool.
void VerbsQueuePair::received(const ibv_wc& wc, const ReceivePool::Done& done) {
  const WorkStatus status = recv_status(wc.status, done.usable);
  const bool good = status == WorkStatus::success;
  if (good) {
    sends_.counters().receives.add();
    sends_.counters().receive_bytes.add(wc.byte_len);
  }
  const bool told = (wc.wc_flags & IBV_WC_WITH_IMM) != 0 && wc.imm_data == kSolicited;
  complete_recv(done, status, good ? wc.byte_len : 0, good && (told || adapter_.device().is_iwarp()));
  if (good || status == WorkStatus::flushed) return;
  failed_ = true;
  if (stands(state())) {
    adapter_.engine().set_timer(break_timer_, base::now_ns() + kWordToSender);
  }
}

}  // namespace anydat::nic::verbs
