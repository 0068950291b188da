// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/receive_side.h"

#include <new>

#include "nic/verbs/adapter.h"
#include "nic/verbs/queue_pair.h"
#include "os/cancel.h"

namespace anydat::nic::verbs {

namespace {

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

ReceiveSide::ReceiveSide(VerbsQueuePair& queue_pair, VerbsAdapter& adapter, SharedQueue* shared,
                         const QueuePairEvents& events, QueuePair::Counters& counters)
    : queue_pair_(queue_pair), adapter_(adapter), events_(events), counters_(counters), shared_(shared) {}

Status ReceiveSide::init(const QueuePairLimits& limits) {
  if (shared_) return Status::ok;
  own_ = std::make_unique<ReceivePool>(adapter_.device(), ReceivePool::Use::own, nullptr);
  return own_->init(limits.recv_depth, limits.recv_segments);
}

// By the end of the connection and by late posts; each finds the lock held until the other's are on the queue, so they
// stay in order (DTO-40).
void ReceiveSide::flush() {
  os::Guard guard(queue_pair_.sends().lock());
  flush_locked();
}

// When the endpoint has been reset meanwhile, what is there is the next connection's.
void ReceiveSide::flush_late() {
  os::Guard guard(queue_pair_.sends().lock());
  if (queue_pair_.sends().state_now() == ConnectionState::closed) flush_locked();
}

void ReceiveSide::flush_locked() {
  if (!own_) return;
  while (const std::optional<ReceivePool::Done> done = own_->take_waiting()) {
    own_->reaped();
    CompletionQueue* queue = queue_.load(std::memory_order_relaxed);
    if (queue) queue->push({events_.owner, done->cookie, 0, WorkKind::recv, WorkStatus::flushed, done->unsignalled});
  }
}

QueuePair::RecvInfo ReceiveSide::info() const {
  if (!own_) {
    // Only the device knows of a message that is arriving; without a connection there is none.
    const ConnectionState now = queue_pair_.state();
    if (now == ConnectionState::idle || now == ConnectionState::connecting || now == ConnectionState::closed)
      return {0, 0};
    return {QueuePair::RecvInfo::kUnknown, QueuePair::RecvInfo::kUnknown};
  }
  const std::uint32_t allocated = own_->counts().outstanding;
  return {allocated, allocated};
}

// ---- completions

inline void ReceiveSide::complete(const ReceivePool::Done& done, WorkStatus status, std::uint64_t length,
                                  bool solicited) {
  if (own_) own_->reaped();  // DTO-14: completion frees the slot
  CompletionQueue* queue = queue_.load(std::memory_order_relaxed);
  if (!queue) {
    if (shared_) shared_->reaped();  // SRQ-ACC-12
    return;
  }
  adapter_.completions().batch().add(*queue, queue_pair_,
                                     {events_.owner, done.cookie, length, WorkKind::recv, status, done.unsignalled,
                                      solicited, 0, shared_ ? &shared_->reap_count(queue) : nullptr});
}

inline void ReceiveSide::completed(const ibv_wc& wc, const ReceivePool::Done& done) {
  const WorkStatus status = recv_status(wc.status, done.usable);
  const bool good = status == WorkStatus::success;
  if (good) {
    counters_.receives.add();
    counters_.receive_bytes.add(wc.byte_len);
  }
  const bool told = (wc.wc_flags & IBV_WC_WITH_IMM) != 0 && wc.imm_data == kSolicited;
  complete(done, status, good ? wc.byte_len : 0, good && (told || adapter_.device().is_iwarp()));
  if (good || status == WorkStatus::flushed) return;
  queue_pair_.connection().break_once_told();
}

inline void ReceiveSide::completed(const ibv_wc& wc, std::uint32_t slot, ZoneId zone) {
  if (!own_) return;
  if (const std::optional<ReceivePool::Done> done = own_->complete(slot, wc.status != IBV_WC_SUCCESS, zone)) {
    completed(wc, *done);
  }
}

// ---- of the queue pair, but here: what every message comes by is one function

// SRQ-TAKE-2: is it to be put aside until it is said that the other side has accepted? Without memory for that, better
// early than lost.
inline bool VerbsQueuePair::comes_early(const ibv_wc& wc) {
  const ConnectionState now = state();
  if (now == ConnectionState::accepting) [[unlikely]]
    first_has_come(wc);
  return now == ConnectionState::connecting;
}

// The peer's last word may come later than its first message. What the device only gives back is none: over InfiniBand
// the accept has failed (CR-ACC-4), while over iWARP it is the peer that has left again.
void VerbsQueuePair::first_has_come(const ibv_wc& wc) {
  if (wc.status == IBV_WC_WR_FLUSH_ERR && !adapter_.device().is_iwarp()) return;
  const os::CancelOff off;  // an EVD that is full disconnects (EP-SM-26), by a call of the kernel
  connection_.establishment().done({});
}

void VerbsQueuePair::completed(const ibv_wc& wc, const WorkId& id) {
  if (comes_early(wc) && receives_.put_aside({wc, id, {}})) return;
  if (id.queue == WorkId::Queue::recv) {
    receives_.completed(wc, id.slot, zone_);
  } else {
    sends_.completed(wc, id.slot);
  }
  if (wc.status == IBV_WC_WR_FLUSH_ERR) connection_.work_flushed();
  if (state() == ConnectionState::ending) connection_.look_soon();
}

void VerbsQueuePair::completed_shared(const ibv_wc& wc, const ReceivePool::Done& done) {
  if (comes_early(wc) && receives_.put_aside({wc, {}, done})) return;
  receives_.completed(wc, done);
}

// ---- what comes before a connection stands

bool ReceiveSide::put_aside(const Early& early) {
  try {
    early_.push_back(early);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void ReceiveSide::flush_early() {
  for (const Early& early : take_early()) {
    if (early.done) complete(*early.done, WorkStatus::flushed, 0, false);
  }
}

}  // namespace anydat::nic::verbs
