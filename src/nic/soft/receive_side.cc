// SPDX-License-Identifier: BSD-3-Clause
// The receiving side: how messages get to their receives, and what completes them.
#include "nic/soft/receive_side.h"

#include <algorithm>
#include <utility>

#include "nic/soft/adapter.h"
#include "nic/soft/queue_pair.h"
#include "nic/soft/scatter.h"

namespace anydat::nic::soft {

ReceiveSide::ReceiveSide(SoftQueuePair& queue_pair, SoftAdapter& adapter, ReceivePool* shared, QueuePairEvents& events,
                         QueuePair::Counters& counters)
    : buffers_(queue_pair, adapter.regions(), shared),
      queue_pair_(queue_pair),
      batch_(adapter.batch()),
      events_(events),
      counters_(counters),
      not_ready_(queue_pair, adapter),
      watermarks_(queue_pair, events) {}

Status ReceiveSide::init(const QueuePairLimits& limits) {
  if (const Status status = buffers_.init(queue_pair_.connection().engine(), limits); status != Status::ok)
    return status;
  note_straight_way();
  return Status::ok;
}

// ---- the consumer's side

Status ReceiveSide::post(const RecvRequest& request) {
  if (watermarks_.any()) [[unlikely]]
    watermarks_.post_begins();
  if (const Status status = buffers_.own()->post(request); status != Status::ok) {
    watermarks_.post_failed();
    return status;
  }
  // Closing changes the state before it flushes, so a receive posted around that moment is flushed by one of us.
  if (queue_pair_.sends().state_now() == ConnectionState::closed) [[unlikely]]
    flush_posted();
  if (watermarks_.any()) [[unlikely]]
    watermarks_.posted();  // EP-WM-16
  return Status::ok;
}

Status ReceiveSide::post_row(const RecvRow& row, std::size_t& posted) {
  posted = buffers_.own()->post_row(row);
  if (posted > 0 && queue_pair_.sends().state_now() == ConnectionState::closed) [[unlikely]]
    flush_posted();
  if (posted > 0 && watermarks_.any()) [[unlikely]]
    watermarks_.posted();
  return posted == row.receives.size() ? Status::ok : Status::queue_full;
}

void ReceiveSide::set_watermarks(std::int32_t soft, std::int32_t hard) {
  watermarks_.set(soft, hard);
  note_straight_way();
  watermarks_.test();  // EP-WM-6, EP-WM-8: both may happen during the call
}

void ReceiveSide::complete(const PostedReceive& receive, WorkStatus status, std::uint64_t length, bool solicited,
                           WorkKind kind, std::uint32_t value) {
  if (buffers_.own()) buffers_.own()->reaped();  // DTO-14: completion frees the slot
  CompletionQueue* queue = queue_.load(std::memory_order_relaxed);
  if (!queue) {
    if (buffers_.shared()) buffers_.shared()->reaped();  // SRQ-ACC-12
    return;
  }
  const Completion completion{events_.owner, receive.cookie, length,
                              kind,          status,         receive.unsignalled,
                              solicited,     value,          buffers_.reap_count(nullptr)};
  if (!queue->push(completion)) [[unlikely]]
    completion_lost(completion);
}

void ReceiveSide::completion_lost(const Completion& completion) {
  if (completion.reaped) completion.reaped->queue.reaped();
  if (completion.status == WorkStatus::success) queue_pair_.connection().completion_overflowed();
}

// By the end of the connection and by late posts; each finds the lock held until the other's are on the queue, so they
// stay in order (DTO-40).
void ReceiveSide::flush_posted() {
  if (!buffers_.own()) return;
  // A late post that comes here when the endpoint has been reset leaves them: they are the next connection's, whose
  // messages take them with the engine held alone.
  queue_pair_.sends().if_closed([this] {
    Receive receive;
    buffers_.own()->await_posts();
    while (buffers_.own()->take(receive)) complete(receive, WorkStatus::flushed, 0, false);
  });
}

bool ReceiveSide::take_buffer(Receive& out) {
  if (not_ready_.is_behind_others(buffers_.pool()) || !buffers_.pool().take(out)) return false;
  buffers_.pool().turn_is_over();
  return true;
}

void ReceiveSide::note_straight_way() {
  CompletionQueue* const queue = queue_.load(std::memory_order_relaxed);
  straight_ = {watermarks_.any() ? nullptr : queue, &buffers_.pool(), buffers_.reap_count(queue), buffers_.zone()};
}

// Into several segments, or where the check at the post does not hold any more, or cannot be told to.
bool ReceiveSide::deliver_otherwise(const std::byte* bytes, std::size_t length, bool solicited) {
  const bool usual = straight_.queue && !not_ready_.is_behind_others(buffers_.pool());
  const ReceivePool::Slot* const receive = usual ? buffers_.pool().next() : nullptr;
  if (!receive) {
    batch_.flush();
    Incoming* message = begin(length, solicited);
    if (!message) return is_over(queue_pair_.state());
    if (place(*message, bytes, length)) finish(*message);
    return true;
  }
  buffers_.pool().take_next();
  buffers_.pool().turn_is_over();
  const std::span<const Segment> segments = receive->all();
  if (const WorkStatus status = buffers_.check(*receive, segments, length); status != WorkStatus::success)
      [[unlikely]] {
    const PostedReceive failed = *receive;
    batch_.flush();
    complete(failed, status, 0, solicited);
    failed_status_ = status;
    queue_pair_.connection().break_off(WorkStatus::flushed, CloseReason::local_error);
    return true;
  }
  scatter(segments, 0, bytes, length);
  arriving_.completed_at_once();
  counters_.receives.add();
  counters_.receive_bytes.add(length);
  batch_.add(*straight_.queue, *this) = {arrival(*receive, length, solicited), straight_.reaped};
  if (!straight_.reaped) buffers_.pool().reaped_by_taker();
  return true;
}

// The receive is taken as by a Send of no bytes, and told of the Write.
bool ReceiveSide::deliver_immediate(std::uint64_t length, std::uint32_t value, bool solicited) {
  batch_.flush();
  Incoming* message = begin(0, solicited);
  if (!message) return is_over(queue_pair_.state());
  message->kind = WorkKind::recv_immediate;
  message->value = value;
  message->length = length;
  finish(*message);
  return true;
}

Incoming* ReceiveSide::begin(std::uint64_t length, bool solicited) {
  return begin_at(arriving_.newest() + 1, length, solicited);
}

Incoming* ReceiveSide::begin_at(std::uint64_t number, std::uint64_t length, bool solicited) {
  std::unique_ptr<Incoming> message = arriving_.prepare();
  if (!take_buffer(message->buffer)) {
    arriving_.recycle(std::move(message));
    return nullptr;
  }
  Incoming& begun = arriving_.begin(std::move(message), number, length, solicited);
  queue_pair_.memory().enter();
  if (buffers_.shared()) watermarks_.test();  // EP-WM-18: what was taken is flushed with the rest
  if (is_over(queue_pair_.state())) return nullptr;
  if (const WorkStatus status = buffers_.check(begun.buffer, begun.buffer.all(), length);
      status != WorkStatus::success) {
    fail(begun, status);
    return nullptr;
  }
  return &begun;
}

// A message fails on its own account. Those before it are incomplete and will stay so; a failure is followed by
// failures only, in order, so they are flushed first.
void ReceiveSide::fail(Incoming& message, WorkStatus status) {
  failed_message_ = &message;
  failed_status_ = status;
  queue_pair_.connection().break_off(WorkStatus::flushed, CloseReason::local_error);
}

// Null: all of them.
void ReceiveSide::flush_incoming_to(const Incoming* last) {
  for (bool more = true; more && !arriving_.empty();) {
    const std::unique_ptr<Incoming> message = arriving_.take_oldest();
    const WorkStatus status = message.get() == failed_message_ ? failed_status_ : WorkStatus::flushed;
    complete(message->buffer, status, 0, false);
    more = message.get() != last;
  }
}

bool ReceiveSide::extend(Incoming& message, std::uint64_t length) {
  message.length = length;
  const WorkStatus status = check(message);
  if (status != WorkStatus::success) fail(message, status);
  return status == WorkStatus::success;
}

std::size_t ReceiveSide::aim(Incoming& message, std::size_t count, std::span<iovec> pieces) {
  if (!extend(message, message.length)) return 0;
  return pieces_of(message.buffer.all(), message.placed, count, pieces);
}

bool ReceiveSide::place(Incoming& message, const std::byte* bytes, std::size_t count) {
  // The memory may have been freed since the buffer was taken (LMR-FREE-4, LMR-FREE-8).
  if (!extend(message, message.length)) return false;
  scatter(message.buffer.all(), message.placed, bytes, count);
  message.placed += count;
  return true;
}

bool ReceiveSide::finish(Incoming& message) {
  const bool immediate = message.kind == WorkKind::recv_immediate;
  (immediate ? counters_.immediates : counters_.receives).add();
  (immediate ? counters_.immediate_bytes : counters_.receive_bytes).add(message.length);
  std::unique_ptr<Incoming> done = arriving_.take_oldest();
  complete(done->buffer, WorkStatus::success, done->length, done->solicited, done->kind, done->value);
  arriving_.recycle(std::move(done));
  queue_pair_.connection().orderly_end().message_finished();
  return !is_over(queue_pair_.state());
}

QueuePair::RecvInfo ReceiveSide::info() const {
  // A receive posted to a queue pair of its own counts until it completes, which is when its slot is free.
  if (!buffers_.shared()) {
    // Each of them belongs to one message, also where segments overtake each other (EP-RQ-9).
    const std::uint32_t allocated = buffers_.own()->counts().outstanding;
    return {allocated, allocated};
  }
  return arriving_.info();
}

// ---- the life of a connection

void ReceiveSide::flush_to_failed() {
  if (failed_message_) flush_incoming_to(failed_message_);
  failed_message_ = nullptr;
}

void ReceiveSide::flush_rest() {
  flush_incoming_to(nullptr);
  arriving_.drop_spare();
  flush_posted();
}

}  // namespace anydat::nic::soft
