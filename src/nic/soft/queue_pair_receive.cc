// SPDX-License-Identifier: BSD-3-Clause
// The software NIC's queue pair: receives, arriving messages, and waiting for buffers.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "nic/soft/adapter.h"
#include "nic/soft/queue_pair.h"

namespace anydat::nic::soft {

namespace {

constexpr base::Nanoseconds kNotReadyWarning = base::kNsPerSecond;
// From one look to the next whether messages are still arriving that one without a buffer has to wait for; and how long
// they may arrive without progress.
constexpr base::Nanoseconds kOthersLook = 10'000'000;
constexpr base::Nanoseconds kOthersPatience = 2 * base::kNsPerSecond;

}  // namespace

Status SoftQueuePair::post_recv(const RecvRequest& request) {
  // EP-WM-16: the post counts even if a message that waited for it is gone with it at once.
  const bool watched = watermarks_set();
  if (watched) [[unlikely]]
    posted_peak_.store(recv_info().allocated + 1);
  if (const Status status = own_pool_->post(request); status != Status::ok) {
    posted_peak_.store(0);
    return status;
  }
  // Closing changes the state before it flushes, so a receive posted around that moment is flushed by one of us.
  if (state_.load() == State::closed) [[unlikely]]
    flush_receives();
  if (watermarks_set()) [[unlikely]]
    adapter_.engine().schedule(watermark_task_);  // EP-WM-16
  return Status::ok;
}

Status SoftQueuePair::post_recvs(const RecvRow& row, std::size_t& posted) {
  if (watermarks_set()) [[unlikely]]
    return QueuePair::post_recvs(row, posted);  // each counts by itself
  posted = own_pool_->post_row(row);
  if (posted > 0 && state_.load() == State::closed) [[unlikely]]
    flush_receives();
  if (posted > 0 && watermarks_set()) [[unlikely]]
    adapter_.engine().schedule(watermark_task_);
  return posted == row.receives.size() ? Status::ok : Status::queue_full;
}

void SoftQueuePair::complete_recv(const PostedReceive& receive, WorkStatus status, std::uint64_t length, bool solicited,
                                  WorkKind kind, std::uint32_t value) {
  if (own_pool_) own_pool_->reaped();  // DTO-14: completion frees the slot
  CompletionQueue* queue = recv_queue_.load(std::memory_order_relaxed);
  if (!queue) {
    if (shared_) shared_->reaped();  // SRQ-ACC-12
    return;
  }
  const Completion completion{events_.owner, receive.cookie, length,
                              kind,          status,         receive.unsignalled,
                              solicited,     value,          shared_ ? &shared_->reap_count(nullptr) : nullptr};
  if (!queue->push(completion)) [[unlikely]]
    completion_lost(completion);
}

void SoftQueuePair::completion_lost(const Completion& completion) {
  if (completion.reaped) completion.reaped->queue.reaped();
  if (completion.status == WorkStatus::success) adapter_.engine().add_task(overflow_task_);
}

// By the end of the connection and by late posts; each finds the lock held until the other's are on the queue, so they
// stay in order (DTO-40).
void SoftQueuePair::flush_receives() {
  if (!own_pool_) return;
  Receive receive;
  base::Guard guard(send_lock_);
  // A late post that comes here when the endpoint has been reset leaves them: they are the next connection's, whose
  // messages take them with the engine held alone.
  if (state() != State::closed) return;
  own_pool_->let_posts_end();
  while (own_pool_->take(receive)) complete_recv(receive, WorkStatus::flushed, 0, false);
}

bool SoftQueuePair::take_buffer(Receive& out) {
  return !pool().anybody_waits_before(asker_) && pool().take(out);
}

WorkStatus SoftQueuePair::check_buffer(const PostedReceive& receive, std::span<const Segment> segments,
                                       std::uint64_t length) const {
  const bool checked = still_checked(receive, receive_zone());
  std::uint64_t room = 0;
  for (const Segment& segment : segments) {
    room += segment.length;
    if (checked || segment.length == 0) continue;
    const RegionCheck check =
        regions_.covers(segment.key, segment.address, segment.length, receive_zone(), access::kLocalWrite);
    if (check != RegionCheck::ok) return WorkStatus::local_protection;
  }
  return length > room ? WorkStatus::local_length : WorkStatus::success;
}

void SoftQueuePair::scatter(std::span<const Segment> segments, std::uint64_t offset, const std::byte* bytes,
                            std::size_t count) {
  for (const Segment& segment : segments) {
    if (count == 0) return;
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const std::size_t part = std::min<std::uint64_t>(count, segment.length - offset);
    std::memcpy(reinterpret_cast<std::byte*>(segment.address + offset), bytes, part);
    bytes += part;
    count -= part;
    offset = 0;
  }
}

std::size_t SoftQueuePair::pieces_of(std::span<const Segment> segments, std::uint64_t offset, std::size_t count,
                                     std::span<iovec> pieces) {
  std::size_t used = 0;
  for (const Segment& segment : segments) {
    if (count == 0 || used == pieces.size()) break;
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const std::size_t part = std::min<std::uint64_t>(count, segment.length - offset);
    pieces[used++] = {reinterpret_cast<void*>(segment.address + offset), part};
    count -= part;
    offset = 0;
  }
  return used;
}

void SoftQueuePair::note_straight_way() {
  CompletionQueue* const queue = recv_queue_.load(std::memory_order_relaxed);
  straight_ = {watermarks_set() ? nullptr : queue, &pool(), shared_ ? &shared_->reap_count(queue) : nullptr,
               receive_zone()};
}

// Into several segments, or where the check at the post does not hold any more, or cannot be told to.
bool SoftQueuePair::deliver_otherwise(const std::byte* bytes, std::size_t length, bool solicited) {
  const bool usual = straight_.queue && !pool().anybody_waits_before(asker_);
  const ReceivePool::Slot* const receive = usual ? pool().next() : nullptr;
  if (!receive) {
    batch_.flush();
    Incoming* message = begin(length, solicited);
    if (!message) return broken();
    if (place(*message, bytes, length)) finish(*message);
    return true;
  }
  pool().take_next();
  const std::span<const Segment> segments = receive->all();
  if (const WorkStatus status = check_buffer(*receive, segments, length); status != WorkStatus::success) [[unlikely]] {
    const PostedReceive failed = *receive;
    batch_.flush();
    complete_recv(failed, status, 0, solicited);
    failed_status_ = status;
    break_connection(WorkStatus::flushed, CloseReason::local_error);
    return true;
  }
  scatter(segments, 0, bytes, length);
  ++finished_;
  counters_.receives.add();
  counters_.receive_bytes.add(length);
  batch_.complete(*straight_.queue, *this, {arrival(*receive, length, solicited), straight_.reaped});
  if (!straight_.reaped) pool().reaped_by_taker();
  return true;
}

bool SoftQueuePair::next_takes(std::uint64_t length) {
  const ReceivePool::Slot* const next = pool().next();
  return !next || check_buffer(*next, next->all(), length) == WorkStatus::success;
}

std::size_t SoftQueuePair::aim_next(std::size_t count, std::span<iovec> pieces) {
  const ReceivePool::Slot* const next = pool().next();
  if (!next) return 0;
  const std::span<const Segment> segments = next->all();
  if (segments.size() == 1 && count > 0) [[likely]] {
    pieces[0] = {reinterpret_cast<void*>(segments[0].address), std::min<std::uint64_t>(count, segments[0].length)};
    return 1;
  }
  return pieces_of(segments, 0, count, pieces);
}

// The receive is taken as by a Send of no bytes, and told of the Write.
bool SoftQueuePair::deliver_immediate(std::uint64_t length, std::uint32_t value, bool solicited) {
  batch_.flush();
  Incoming* message = begin(0, solicited);
  if (!message) return broken();
  message->kind = WorkKind::recv_immediate;
  message->value = value;
  message->length = length;
  finish(*message);
  return true;
}

std::unique_ptr<Incoming> SoftQueuePair::take_front() {
  std::unique_ptr<Incoming> message = std::move(incoming_.front());
  incoming_.erase(incoming_.begin());
  finished_ = message->number;
  note_arriving();
  return message;
}

// EP-RQ-6, EP-RQ-10: both numbers in one.
void SoftQueuePair::note_arriving() {
  const std::uint64_t span = incoming_.empty() ? 0 : incoming_.back()->number - finished_;
  arriving_.store(span << 32 | incoming_.size());
}

Incoming* SoftQueuePair::begin(std::uint64_t length, bool solicited) {
  return begin_at(next_number(), length, solicited);
}

Incoming* SoftQueuePair::begin_at(std::uint64_t number, std::uint64_t length, bool solicited) {
  std::unique_ptr<Incoming> message;
  // Whatever memory this message and its end need is there before it takes a buffer.
  incoming_.reserve(incoming_.size() + 1);
  spare_incoming_.reserve(spare_incoming_.size() + incoming_.size() + 1);
  if (!spare_incoming_.empty()) {
    message = std::move(spare_incoming_.back());
    spare_incoming_.pop_back();
  } else {
    message = std::make_unique<Incoming>();
  }
  if (!take_buffer(message->buffer)) {
    spare_incoming_.push_back(std::move(message));
    return nullptr;
  }
  message->number = number;
  message->length = length;
  message->placed = 0;
  message->solicited = solicited;
  message->kind = WorkKind::recv;
  message->value = 0;
  message->invalidating = false;
  message->end_known = false;
  message->arrived.clear();
  Incoming* result = message.get();
  incoming_.insert(place_of(number), std::move(message));
  adapter_.memory_users().add(memory_user_);
  note_arriving();
  if (shared_) test_watermarks();  // EP-WM-18: what was taken is flushed with the rest
  if (broken()) return nullptr;
  if (const WorkStatus status = check_buffer(result->buffer, result->buffer.all(), length);
      status != WorkStatus::success) {
    fail_message(*result, status);
    return nullptr;
  }
  return result;
}

// A message fails on its own account. Those before it are incomplete and will stay so; a failure is followed by
// failures only, in order, so they are flushed first.
void SoftQueuePair::fail_message(Incoming& message, WorkStatus status) {
  failed_message_ = &message;
  failed_status_ = status;
  break_connection(WorkStatus::flushed, CloseReason::local_error);
}

// Null: all of them.
void SoftQueuePair::flush_incoming_to(const Incoming* last) {
  for (bool more = true; more && !incoming_.empty();) {
    const std::unique_ptr<Incoming> message = take_front();
    const WorkStatus status = message.get() == failed_message_ ? failed_status_ : WorkStatus::flushed;
    complete_recv(message->buffer, status, 0, false);
    more = message.get() != last;
  }
}

bool SoftQueuePair::extend(Incoming& message, std::uint64_t length) {
  message.length = length;
  const WorkStatus status = check(message);
  if (status != WorkStatus::success) fail_message(message, status);
  return status == WorkStatus::success;
}

std::size_t SoftQueuePair::aim(Incoming& message, std::size_t count, std::span<iovec> pieces) {
  if (!extend(message, message.length)) return 0;
  return pieces_of(message.buffer.all(), message.placed, count, pieces);
}

bool SoftQueuePair::place(Incoming& message, const std::byte* bytes, std::size_t count) {
  // The memory may have been freed since the buffer was taken (LMR-FREE-4, LMR-FREE-8).
  if (!extend(message, message.length)) return false;
  scatter(message.buffer.all(), message.placed, bytes, count);
  message.placed += count;
  return true;
}

SoftQueuePair::Readiness SoftQueuePair::make_ready(Incoming& message) {
  if (message.kind != WorkKind::recv_invalidate) return Readiness::yes;
  SoftWindow* const window = windows_.find(message.value);
  // Found before and no more: this side has taken it back meanwhile.
  if (!window) return message.invalidating ? Readiness::yes : Readiness::no;
  message.invalidating = true;
  if (window->taken_back()) return Readiness::yes;
  invalidation_waits_ = true;
  adapter_.engine().set_timer(window_timer_, base::now_ns() + kWindowLook);
  return Readiness::not_yet;
}

bool SoftQueuePair::finish(Incoming& message) {
  const bool immediate = message.kind == WorkKind::recv_immediate;
  (immediate ? counters_.immediates : counters_.receives).add();
  (immediate ? counters_.immediate_bytes : counters_.receive_bytes).add(message.length);
  std::unique_ptr<Incoming> done = take_front();
  complete_recv(done->buffer, WorkStatus::success, done->length, done->solicited, done->kind, done->value);
  spare_incoming_.push_back(std::move(done));
  return !broken();
}

QueuePair::RecvInfo SoftQueuePair::recv_info() const {
  // A receive posted to a queue pair of its own counts until it completes, which is when its slot is free.
  if (!shared_) {
    // Each of them belongs to one message, also where segments overtake each other (EP-RQ-9).
    const std::uint32_t allocated = own_pool_->counts().outstanding;
    return {allocated, allocated};
  }
  const std::uint64_t arriving = arriving_.load();
  return {static_cast<std::uint32_t>(arriving), static_cast<std::uint32_t>(arriving >> 32)};
}

QueuePair::PostedReceives SoftQueuePair::posted_receives() const {
  if (!own_pool_) return {0, 0};
  const ReceiveQueue::Counters& counters = own_pool_->counters();
  return {counters.posted.get(), counters.posted_bytes.get()};
}

std::uint32_t SoftQueuePair::largest_posted_recv_segments() const {
  return own_pool_ ? own_pool_->largest_segment_count() : 0;
}

// ---- waiting for receive buffers

void SoftQueuePair::wait_for_receive() {
  if (waits_for_receive_) return;
  const base::Nanoseconds limit = adapter_.config().receiver_not_ready_ns;
  counters_.buffer_waits.add();
  waits_for_receive_ = true;
  waits_since_ = base::now_ns();
  if (!not_ready_timer_.pending()) {
    adapter_.engine().set_timer(not_ready_timer_, waits_since_ + std::min(limit, kNotReadyWarning));
  }
  pool().wait_for_receive(asker_);
}

// A message that has its buffer is not to end with a later one that has none, as long as there is progress.
bool SoftQueuePair::others_come_first() {
  if (!arrives_in_turn()) return false;
  const std::pair<std::uint64_t, std::uint64_t> now{incoming_.front()->number, incoming_.front()->placed};
  if (now != arriving_seen_) {
    arriving_seen_ = now;
    arriving_since_ = base::now_ns();
  }
  return base::now_ns() - arriving_since_ < kOthersPatience;
}

void SoftQueuePair::stop_waiting() {
  if (!waits_for_receive_) return;
  waits_for_receive_ = false;
  counters_.buffer_wait_ns.add(static_cast<std::uint64_t>(base::now_ns() - waits_since_));
  pool().stop_waiting(asker_);
}

void SoftQueuePair::receives_available() {
  stop_waiting();
  if (stream_) stream_->resume_receiving();
}

void SoftQueuePair::not_ready_timed_out() {
  const base::Nanoseconds limit = adapter_.config().receiver_not_ready_ns;
  if (!waits_for_receive_) return;
  const base::Nanoseconds waited = base::now_ns() - waits_since_;
  if (const base::Nanoseconds first = std::min(limit, kNotReadyWarning); waited < first) {
    adapter_.engine().set_timer(not_ready_timer_, waits_since_ + first);  // it was set for an earlier message
    return;
  }
  if (limit != base::kForever && waited >= limit) {
    if (others_come_first()) {
      adapter_.engine().set_timer(not_ready_timer_, base::now_ns() + kOthersLook);
      return;
    }
    base::log(base::LogLevel::warn, "a message found no receive buffer within {} ms; its connection breaks",
              limit / 1'000'000);
    break_connection(WorkStatus::flushed, CloseReason::receiver_not_ready);
    return;
  }
  base::log(base::LogLevel::warn,
            "a message at port qualifier {} has waited {} ms for a receive buffer; post more receives, or set "
            "DAT_RNR_TIMEOUT_MS",
            local_port_, waited / 1'000'000);
  if (limit != base::kForever) adapter_.engine().set_timer(not_ready_timer_, waits_since_ + limit);
}

void SoftQueuePair::delivered_everything() {
  if (peer_closing_ && incoming_.empty()) finish_draining();
}

}  // namespace anydat::nic::soft
