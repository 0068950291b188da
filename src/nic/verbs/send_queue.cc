// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/send_queue.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "nic/verbs/adapter.h"
#include "nic/verbs/queue_pair.h"
#include "nic/verbs/window.h"
#include "os/cancel.h"

namespace anydat::nic::verbs {

namespace {

// The key of a bind that shows nothing to any peer. No device has such a key: they begin with an index, counted from 1.
constexpr std::uint32_t kKeyToNothing = 1;

WorkStatus send_status(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return WorkStatus::success;
    case IBV_WC_WR_FLUSH_ERR:
      return WorkStatus::flushed;
    case IBV_WC_LOC_LEN_ERR:
      return WorkStatus::local_length;
    // Soft-RoCE says the former of memory that has gone. Requests that are no good otherwise do not get to the device.
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return WorkStatus::local_protection;
    case IBV_WC_BAD_RESP_ERR:
      return WorkStatus::bad_response;
    case IBV_WC_REM_ACCESS_ERR:
      return WorkStatus::remote_access;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
      return WorkStatus::remote_responder;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return WorkStatus::receiver_not_ready;
    default:
      return WorkStatus::transport;
  }
}

}  // namespace

SendQueue::SendQueue(VerbsQueuePair& queue_pair, VerbsAdapter& adapter, const QueuePairEvents& events)
    : queue_pair_(queue_pair), adapter_(adapter), events_(events), retire_task_{[this] { retire(); }} {}

SendQueue::Room::Room(const QueuePairLimits& limits, bool keeps_segments)
    : ring(limits.send_depth), gather(std::max(limits.send_segments, 1u)), chain(gather.size()) {
  if (keeps_segments) posted_segments.resize(ring.slots * gather.size());
}

void SendQueue::move_to(Room room) {
  requests_.move_to(std::move(room.ring));
  gather_ = std::move(room.gather);
  chain_ = std::move(room.chain);
  posted_segments_ = std::move(room.posted_segments);
  posted_most_ = gather_.size();
}

void SendQueue::reset() {
  os::Guard guard(lock_);
  nic::enter(state_, State::idle);
  blocked_.store(false, std::memory_order_relaxed);
  one_failed_ = false;
}

void SendQueue::destroy() {
  adapter_.engine().cancel_task(retire_task_);
}

// ---- posting

// What no opcode of ours looks at stays in the request as it was made.
inline Status SendQueue::hand_over(const SendRequest& request, std::uint64_t number) {
  ibv_send_wr& first = chain_.front();
  first.next = nullptr;
  first.wr_id = WorkId{WorkId::Queue::send, tag_, static_cast<std::uint32_t>(number)}.packed();
  first.sg_list = gather_.data();
  first.num_sge = adapter_.device().fill(gather_.data(), request.segments);
  first.send_flags = IBV_SEND_SIGNALED | (request.flags.fence() ? unsigned{IBV_SEND_FENCE} : 0u);
  if (request.kind == WorkKind::send) {
    first.opcode = IBV_WR_SEND;
    if (request.flags.solicited()) {
      first.send_flags |= IBV_SEND_SOLICITED;
      if (!adapter_.device().is_iwarp()) {
        first.opcode = IBV_WR_SEND_WITH_IMM;
        first.imm_data = kSolicited;
      }
    }
  } else {
    first.opcode = request.kind == WorkKind::rdma_read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    first.wr.rdma.remote_addr = request.remote.address;
    first.wr.rdma.rkey = request.remote.key;
  }
  if (request.kind == WorkKind::rdma_read) {
    spread_read(request);
  } else if (request.length <= inline_max_) {
    first.send_flags |= IBV_SEND_INLINE;
  }
  ibv_send_wr* bad = nullptr;
  // Software devices ring their doorbell by write(2), some with a lock of theirs held: a thread that ended in there
  // would leave it locked.
  const os::CancelOff off;
  return ibv_post_send(qp_, &first, &bad) == 0 ? Status::ok : Status::failed;
}

// The segments may have more room than is read (RDR-2), or be more than one Read of the device scatters to.
void SendQueue::spread_read(const SendRequest& request) {
  ibv_send_wr& first = chain_.front();
  // Soft-iWARP refuses Reads that are fenced. They need not be: a peer answers the Reads before them first.
  if (adapter_.device().is_iwarp()) first.send_flags &= ~unsigned{IBV_SEND_FENCE};
  std::uint64_t left = request.length;
  int used = 0;
  for (; used < first.num_sge && left > 0; ++used) {
    std::uint32_t& length = gather_[static_cast<std::size_t>(used)].length;
    length = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, left));
    left -= length;
  }
  first.num_sge = used;
  if (used <= static_cast<int>(adapter_.device().read_segments())) return;
  // One request of the device for each; the last one tells that all are done, since they are done in order.
  std::uint64_t offset = 0;
  for (int i = 0; i < used; ++i) {
    ibv_send_wr& part = chain_[static_cast<std::size_t>(i)];
    if (i > 0) part = first;
    part.sg_list = &gather_[static_cast<std::size_t>(i)];
    part.num_sge = 1;
    part.wr.rdma.remote_addr = request.remote.address + offset;
    offset += part.sg_list->length;
  }
  for (int i = 0; i + 1 < used; ++i) {
    chain_[static_cast<std::size_t>(i)].send_flags &= ~static_cast<unsigned>(IBV_SEND_SIGNALED);
    chain_[static_cast<std::size_t>(i)].next = &chain_[static_cast<std::size_t>(i) + 1];
  }
}

inline void SendQueue::note_segments(const SendRequest& request, std::uint64_t number) {
  if (posted_segments_.empty()) return;
  const std::size_t places = posted_segments_.size() / posted_most_;
  Segment* const place = &posted_segments_[(number & (places - 1)) * posted_most_];
  std::fill(std::copy(request.segments.begin(), request.segments.end(), place), place + posted_most_, Segment{});
}

// Gives it to the device. False: that does not take it, and nothing is begun behind it.
inline bool SendQueue::begin(const SendRequest& request, std::uint64_t number, SendRing::Entry& entry) {
  if (request.kind == WorkKind::rdma_read && reads_agreed_.load(std::memory_order_relaxed) == 0) [[unlikely]] {
    // The device would wait for ever to begin it.
    entry.finish(queue_pair_.limits().reads_out == 0 ? WorkStatus::local_ep : WorkStatus::remote_access);
  } else if (hand_over(request, number) != Status::ok) [[unlikely]] {
    entry.finish(WorkStatus::local_ep);
  } else {
    return true;
  }
  blocked_.store(true, std::memory_order_relaxed);
  return false;
}

// The same of what has waited. The driver copies short messages, and would not ask whether their memory is still there
// (LMR-FREE-4). With the engine, so that no region goes meanwhile.
bool SendQueue::begin_late(std::uint64_t number, SendRing::Entry& entry) {
  const SendRing::Later& later = *entry.later;
  entry.stage.store(SendRing::Stage::at_device, std::memory_order_relaxed);
  const bool alive = std::all_of(later.segments.begin(), later.segments.end(), [&](const Segment& segment) {
    return segment.length == 0 || adapter_.regions().alive(segment.key);
  });
  if (alive) {
    return begin({entry.cookie, later.segments, entry.length, entry.flags, entry.kind, later.remote}, number, entry);
  }
  entry.finish(WorkStatus::local_protection);
  blocked_.store(true, std::memory_order_relaxed);
  return false;
}

inline void SendQueue::count(const SendRequest& request) {
  if (request.kind == WorkKind::send) {
    counters_.sends.add();
    counters_.send_bytes.add(request.length);
  } else {
    counters_.count_rdma(request.kind, request.length);
  }
}

// RMR-BIND-3. What may find no memory comes first.
Status SendQueue::keep_behind_bind(const SendRequest& request) {
  auto later = std::make_unique<SendRing::Later>(
      SendRing::Later{{request.segments.begin(), request.segments.end()}, request.remote});
  count(request);
  note_segments(request, requests_.next());
  requests_.append(request, SendRing::Stage::waits).later = std::move(later);
  return Status::ok;
}

[[gnu::always_inline]] inline Status SendQueue::post(const SendRequest& request) {
  bool refused = false;
  {
    os::Guard guard(lock_);
    const State now = state_.load(std::memory_order_relaxed);
    if (now != State::connected && now != State::ending) [[unlikely]] {
      if (now != State::closed) return Status::not_connected;
      // DTO-20: accepted and flushed at once, behind everything that was flushed before.
      CompletionQueue* queue = queue_.load(std::memory_order_relaxed);
      if (queue) {
        queue->push({events_.owner, request.cookie, 0, request.kind, WorkStatus::flushed, request.flags.unsignalled()});
      }
      return Status::ok;
    }
    if (requests_.full()) return Status::queue_full;
    // Drivers in software are rung by writing to the device's descriptor, which may be a file of the program's.
    if (now == State::ending || blocked_.load(std::memory_order_relaxed) || !adapter_.descriptors_are_ours())
        [[unlikely]] {
      requests_.append(request, SendRing::Stage::kept);  // it will be flushed in its turn
      return Status::ok;
    }
    if (binds_ > 0) [[unlikely]]
      return keep_behind_bind(request);
    count(request);
    // In the ring before it is handed over: it may complete before the device's driver returns.
    const std::uint64_t number = requests_.next();
    note_segments(request, number);
    refused = !begin(request, number, requests_.append(request, SendRing::Stage::at_device));
  }
  if (refused) [[unlikely]]
    adapter_.engine().schedule(retire_task_);  // if it is the oldest, that is reported now
  adapter_.engine().note_post();
  return Status::ok;
}

// In one function with post(), since this is the way of every request.
Status VerbsQueuePair::post_send(const SendRequest& request) {
  return sends_.post(request);
}

Status SendQueue::post_bind(const BindRequest& request, std::uint32_t& key) {
  key = 0;
  auto* const part = static_cast<RegisteredPart*>(request.prepared);
  {
    auto bind = std::make_unique<SendRing::Bind>();
    os::Guard guard(lock_);
    const State now = state_.load(std::memory_order_relaxed);
    if (now == State::closed) {
      CompletionQueue* queue = queue_.load(std::memory_order_relaxed);
      if (queue) {
        queue->push(
            {request.owner, request.cookie, 0, WorkKind::bind, WorkStatus::flushed, request.flags.unsignalled()});
      }
      return Status::ok;
    }
    if (now != State::connected && now != State::ending) return Status::not_connected;
    if (requests_.full()) return Status::queue_full;
    if (request.part.length > 0 && !part) return Status::no_memory;
    if (part) bind->memory = std::move(part->memory);
    // Memory that peers have no right to may have no key.
    key = bind->memory && bind->memory->rkey != 0 ? bind->memory->rkey : kKeyToNothing;
    bind->window = static_cast<VerbsWindow*>(request.window);
    bind->owner = request.owner;
    bind->tag = request.tag;
    bind->part = request.part;
    counters_.binds.add();
    const bool goes_on = now == State::connected && !blocked_.load(std::memory_order_relaxed);
    if (goes_on) ++binds_;
    bind->window->expect(*bind);
    requests_.append({request.cookie, {}, 0, request.flags, WorkKind::bind, {}},
                     goes_on ? SendRing::Stage::finished : SendRing::Stage::kept, std::move(bind));
  }
  retire();
  return Status::ok;
}

// ---- binds

// Nothing: it is still to come, and Connection::window_let_go() does when the device has let go of what its window
// shows. What has not begun when the connection ends is flushed with the rest.
std::optional<WorkStatus> SendQueue::carry_out(SendRing::Bind& bind) {
  const State now = state();
  if (!bind.begun && !stands(now)) return WorkStatus::flushed;
  if (!bind.begun && !bind.window->can_bind(bind.part)) return WorkStatus::bind_failed;
  bind.begun = true;
  if (!bind.window->withdrawn(tag_)) return std::nullopt;
  // The region may have gone while that took its time.
  if (!bind.window->can_bind(bind.part)) {
    bind.window->shows_nothing();
    return WorkStatus::bind_failed;
  }
  bind.window->bind(bind, bind.tag);
  go_on_behind_bind();
  return WorkStatus::success;
}

// The device gets what has waited for the bind in front, which is done.
void SendQueue::go_on_behind_bind() {
  bool refused = false;
  {
    os::Guard guard(lock_);
    --binds_;
    const State now = state();
    // Else what waits is flushed in its turn.
    const bool goes_on = stands(now) && !blocked_.load(std::memory_order_relaxed) && adapter_.descriptors_are_ours();
    const std::uint64_t end = goes_on ? requests_.next() : 0;
    for (std::uint64_t number = requests_.first() + 1; number < end && !refused; ++number) {
      SendRing::Entry& entry = requests_.at(number);
      if (entry.kind == WorkKind::bind) break;
      if (entry.stage.load(std::memory_order_relaxed) != SendRing::Stage::waits) continue;
      refused = !begin_late(number, entry);
    }
  }
  if (refused) adapter_.engine().add_task(retire_task_);
}

void SendQueue::give_up(SendRing::Bind& bind) {
  bind.window->give_up(bind, bind.tag);
}

bool SendQueue::bind_has_begun() {
  const SendRing::Entry* const entry = requests_.finished_front();
  return entry && entry->bind && entry->bind->begun;
}

// ---- completions, with the engine held

WorkStatus SendQueue::status_of(const ibv_wc& wc, std::uint32_t number) const {
  if (wc.status != IBV_WC_LOC_QP_OP_ERR || posted_segments_.empty()) return send_status(wc.status);
  const std::size_t places = posted_segments_.size() / posted_most_;
  const auto segments = std::span(posted_segments_).subspan((number & (places - 1)) * posted_most_, posted_most_);
  const bool alive = std::all_of(segments.begin(), segments.end(), [&](const Segment& segment) {
    return segment.length == 0 || adapter_.device().regions().find(segment.key).has_value();
  });
  if (!alive) return WorkStatus::local_protection;
  return state() == State::ending ? WorkStatus::flushed : WorkStatus::transport;
}

void SendQueue::completed(const ibv_wc& wc, std::uint32_t number) {
  if (SendRing::Entry* const entry = requests_.find_at_device(number)) {
    entry->finish(status_of(wc, number));
    retire_finished();
  }
}

void SendQueue::complete(SendRing::Entry& entry, WorkStatus status) {
  if (status == WorkStatus::success && entry.flags.suppress()) return;
  CompletionQueue* queue = queue_.load(std::memory_order_relaxed);
  if (!queue) return;
  adapter_.completions().batch().add(
      *queue, queue_pair_,
      {entry.kind == WorkKind::bind ? entry.bind->owner : events_.owner, entry.cookie,
       status == WorkStatus::success ? entry.length : 0, entry.kind, status, entry.flags.unsignalled()});
}

// Puts what is finished into the batch, oldest first; the first that failed breaks the connection. A bind is carried
// out when its turn comes.
void SendQueue::retire_finished() {
  adapter_.engine().assert_held();
  while (SendRing::Entry* const finished = requests_.finished_front()) {
    SendRing::Entry& entry = *finished;
    WorkStatus status = entry.status.load(std::memory_order_relaxed);
    // EP-DISC-3: over iWARP a Write may be done while a Read before it is not.
    if (status == WorkStatus::success && one_failed_) [[unlikely]]
      status = WorkStatus::flushed;
    if (entry.kind == WorkKind::bind && status == WorkStatus::success) [[unlikely]] {
      const std::optional<WorkStatus> done = carry_out(*entry.bind);
      if (!done) return;
      status = *done;
    }
    if (status == WorkStatus::flushed && entry.kind != WorkKind::bind) {
      // end() has been told what the first of them came to.
      status = std::exchange(first_flushed_, WorkStatus::flushed);
    }
    if (entry.kind == WorkKind::bind && status != WorkStatus::success) give_up(*entry.bind);
    complete(entry, status);
    requests_.drop_first();
    if (status != WorkStatus::success) one_failed_ = true;
    if (status == WorkStatus::success || status == WorkStatus::flushed) continue;
    blocked_.store(true, std::memory_order_relaxed);
    queue_pair_.connection().break_soon();
  }
  if (state() == State::draining && requests_.empty()) queue_pair_.connection().look_soon();
}

void SendQueue::retire() {
  retire_finished();
  adapter_.completions().batch().flush();
}

void SendQueue::flush() {
  // No more are posted without the engine. The kernel is asked without the lock.
  for (std::uint64_t number = requests_.first(), end = requests_.end(); number != end; ++number) {
    if (SendRing::Entry& entry = requests_.at(number); entry.kind == WorkKind::bind) give_up(*entry.bind);
  }
  os::Guard guard(lock_);
  nic::enter(state_, State::closed);
  binds_ = 0;
  WorkStatus status = std::exchange(first_flushed_, WorkStatus::flushed);
  while (SendRing::Entry* const entry = requests_.front()) {
    // A bind, and what has waited for one, has not been begun, and so nothing has held it up on its way.
    if (entry->kind == WorkKind::bind || entry->stage.load(std::memory_order_relaxed) == SendRing::Stage::waits) {
      status = WorkStatus::flushed;
    }
    complete(*entry, status);
    requests_.drop_first();
    status = WorkStatus::flushed;
  }
  adapter_.completions().batch().flush();  // before theirs
}

}  // namespace anydat::nic::verbs
