// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/queue_pair.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "nic/soft/adapter.h"
#include "nic/soft/window.h"

namespace anydat::nic::soft {

namespace {

// How long what one side still owes the other may hold up an orderly end (EP-DISC-18).
constexpr base::Nanoseconds kLinger = 2 * base::kNsPerSecond;
constexpr base::Nanoseconds kNotReadyWarning = base::kNsPerSecond;

}  // namespace

SoftQueuePair::SoftQueuePair(SoftAdapter& adapter, ReceivePool* shared, QueuePairEvents& events)
    : adapter_(adapter),
      events_(events),
      shared_(shared),
      not_ready_timer_([this] { not_ready_timed_out(); }),
      linger_timer_([this] { finish_draining(); }),
      deadline_timer_([this] {
        if (state() != State::connecting) return;
        stream_->close(CloseReason::abrupt);
        connect_failed(ConnectFailure::timed_out);
      }),
      watermark_kick_{[this] { test_watermarks(); }},
      overflow_kick_{[this] { break_connection(WorkStatus::flushed, CloseReason::local_error); }},
      pump_kick_{[this] { pump(); }} {}

SoftQueuePair::~SoftQueuePair() = default;

Status SoftQueuePair::init(const QueuePairLimits& limits) {
  if (!shared_) {
    own_pool_ = ReceivePool::create(adapter_.engine(), limits.recv_depth, limits.recv_segments, kNoZone, nullptr);
    if (!own_pool_) return Status::no_memory;
  }
  reads_in_ = limits.reads_in;
  base::Guard guard(send_lock_);
  reads_out_ = limits.reads_out;
  return sends_.reserve(limits.send_depth, limits.send_segments) ? Status::ok : Status::no_memory;
}

// ---- configuration

void SoftQueuePair::set_zone(ZoneId zone) {
  zone_.store(zone, std::memory_order_relaxed);
}

void SoftQueuePair::set_completion_queues(CompletionQueue* recv, CompletionQueue* send) {
  base::Guard guard(send_lock_);
  recv_queue_.store(recv);
  send_queue_.store(send);
}

Status SoftQueuePair::set_limits(const QueuePairLimits& limits) {
  if (!shared_) {
    if (const Status status = own_pool_->set_segments(limits.recv_segments); status != Status::ok) return status;
    if (const Status status = own_pool_->resize(limits.recv_depth); status != Status::ok) return status;
  }
  reads_in_ = limits.reads_in;
  base::Guard guard(send_lock_);
  reads_out_ = limits.reads_out;
  return sends_.reserve(limits.send_depth, limits.send_segments) ? Status::ok : Status::no_memory;
}

void SoftQueuePair::set_watermarks(std::int32_t soft, std::int32_t hard) {
  soft_watermark_.store(soft);
  hard_watermark_.store(hard);
  soft_armed_ = soft != kUnlimited;
  test_watermarks();  // EP-WM-6, EP-WM-8: both may happen during the call
}

void SoftQueuePair::test_watermarks() {
  const auto allocated = static_cast<std::int64_t>(std::max(recv_info().allocated, posted_peak_.exchange(0)));
  const std::int32_t soft = soft_watermark_.load(std::memory_order_relaxed);
  if (soft_armed_ && soft != kUnlimited && allocated > soft) {
    soft_armed_ = false;
    counters_.soft_watermark_events.add();
    events_.on_soft_watermark();
  }
  const std::int32_t hard = hard_watermark_.load(std::memory_order_relaxed);
  if (hard != kUnlimited && allocated > hard && (state() == State::connected || state() == State::draining)) {
    break_connection(WorkStatus::flushed, CloseReason::local_error);
  }
}

// ---- requests

// What keeps a request back besides its stream.
SendOutcome SoftQueuePair::hand_over(std::uint64_t number, const Outgoing& message, WorkFlags flags,
                                     Progress& progress) {
  if (reads_held_ > 0) [[unlikely]] {
    if (flags.fence) return SendOutcome::blocked;                                                       // DTO-33
    if (message.kind == WorkKind::rdma_read && reads_held_ >= reads_out_) return SendOutcome::blocked;  // RDR-10
  }
  if (message.kind == WorkKind::rdma_read && reads_out_ == 0) {
    progress.failure = WorkStatus::local_ep;
    return SendOutcome::failed;
  }
  const SendOutcome outcome = stream_->send(number, message, progress);
  if (outcome == SendOutcome::pending && message.kind == WorkKind::rdma_read) ++reads_held_;
  return outcome;
}

Status SoftQueuePair::post_send(const SendRequest& request) {
  bool overflowed = false;
  bool failed = false;
  {
    base::Guard guard(send_lock_);
    const State now = state_.load(std::memory_order_relaxed);
    if (now != State::connected) [[unlikely]] {
      if (now == State::ending) {  // it will be flushed in its turn
        if (sends_.full()) return Status::queue_full;
        sends_.append(request);
        return Status::ok;
      }
      if (now != State::closed) return Status::not_connected;
      // DTO-20: accepted and flushed at once, behind everything that was flushed before.
      CompletionQueue* queue = send_queue_.load(std::memory_order_relaxed);
      if (queue) {
        queue->push({events_.owner, request.cookie, 0, request.kind, WorkStatus::flushed, request.flags.unsignalled});
      }
      return Status::ok;
    }
    if (sends_.full()) return Status::queue_full;
    if (request.kind == WorkKind::send) {
      counters_.sends.add();
      counters_.send_bytes.add(request.length);
    } else {
      counters_.rdmas.add();
      counters_.rdma_bytes.add(request.length);
    }
    const Outgoing message{request.kind, request.flags.solicited, request.length, request.segments, request.remote};
    Progress progress;
    if (sends_.empty()) {
      const SendOutcome outcome = hand_over(sends_.next(), message, request.flags, progress);
      if (outcome == SendOutcome::done) {
        sends_.skip();
        CompletionQueue* queue = send_queue_.load(std::memory_order_relaxed);
        if (!request.flags.suppress && queue) {
          overflowed = !queue->push({events_.owner, request.cookie, request.length, request.kind, WorkStatus::success,
                                     request.flags.unsignalled});
        }
      } else {
        sends_.append(request).rdma.progress = progress;
        if (outcome == SendOutcome::pending) sends_.mark_sent();
        failed = outcome == SendOutcome::failed;
      }
    } else {
      const bool nothing_blocked = sends_.all_sent();
      SendRing::Entry& entry = sends_.append(request);
      if (nothing_blocked) {
        const SendOutcome outcome = hand_over(sends_.next() - 1, message, request.flags, progress);
        entry.rdma.progress = progress;
        entry.finished = outcome == SendOutcome::done;  // completes after those before it
        if (outcome == SendOutcome::done || outcome == SendOutcome::pending) sends_.mark_sent();
        failed = outcome == SendOutcome::failed;
      }
    }
  }
  if (overflowed) [[unlikely]]
    adapter_.engine().kick(overflow_kick_);  // EVM-54
  if (failed) [[unlikely]]
    adapter_.engine().kick(pump_kick_);  // breaking the connection takes the engine
  return Status::ok;
}

Status SoftQueuePair::post_bind(const BindRequest& request, std::uint32_t& key) {
  key = 0;
  {
    base::Guard guard(send_lock_);
    const State now = state_.load(std::memory_order_relaxed);
    if (now == State::closed) {
      CompletionQueue* queue = send_queue_.load(std::memory_order_relaxed);
      if (queue) {
        queue->push({request.owner, request.cookie, 0, WorkKind::bind, WorkStatus::flushed, request.flags.unsignalled});
      }
      return Status::ok;
    }
    if (now != State::connected && now != State::ending) return Status::not_connected;
    if (sends_.full()) return Status::queue_full;
    key = adapter_.regions().reserve();
    if (key == 0) return Status::no_memory;
    counters_.binds.add();
    SendRing::Entry& entry = sends_.append({request.cookie, {&request.part, 1}, 0, request.flags, WorkKind::bind, {}});
    entry.bind = {static_cast<SoftWindow*>(request.window), request.owner, request.tag, key, request.rights};
  }
  pump();
  return Status::ok;
}

void SoftQueuePair::complete_send(const SendRing::Entry& entry, WorkStatus status) {
  if (status == WorkStatus::success && entry.flags.suppress) return;
  CompletionQueue* queue = send_queue_.load(std::memory_order_relaxed);
  if (!queue) return;
  void* owner = entry.kind == WorkKind::bind ? entry.bind.owner : events_.owner;
  const bool kept = queue->push({owner, entry.cookie, entry.length, entry.kind, status, entry.flags.unsignalled});
  if (!kept && status == WorkStatus::success)
    adapter_.engine().queue_kick(overflow_kick_);  // runs when the engine is released
}

void SoftQueuePair::retire_finished() {
  while (!sends_.empty() && sends_.at(sends_.first()).finished) {
    complete_send(sends_.at(sends_.first()), WorkStatus::success);
    sends_.drop_first();
  }
}

bool SoftQueuePair::pump() {
  bool moved = false;
  bool drained = false;
  WorkStatus failure = WorkStatus::success;
  {
    base::Guard guard(send_lock_);
    if (state() != State::connected && state() != State::draining) return false;
    while (!sends_.all_sent()) {
      SendRing::Entry& entry = sends_.at(sends_.unsent());
      if (entry.kind == WorkKind::bind) {
        if (entry.flags.fence && reads_held_ > 0) break;
        if (!entry.bind.window->can_bind(entry.all().front())) {
          if (sends_.unsent() == sends_.first()) failure = WorkStatus::bind_failed;
          break;
        }
        // Nobody hands over anything behind it meanwhile (RMR-BIND-3), and only this thread, which holds the engine,
        // takes entries out. The lock is not needed, and whoever uses the old key may need it.
        send_lock_.unlock();
        entry.bind.window->bind(entry.bind.key, entry.all().front(), entry.bind.rights, entry.bind.tag);
        send_lock_.lock();
        entry.finished = true;
        sends_.mark_sent();
        moved = true;
        continue;
      }
      const std::uint64_t before = entry.rdma.progress.bytes;
      const SendOutcome outcome = hand_over(sends_.unsent(), entry.outgoing(), entry.flags, entry.rdma.progress);
      moved |= entry.rdma.progress.bytes != before;
      if (outcome == SendOutcome::failed && sends_.unsent() == sends_.first()) failure = entry.rdma.progress.failure;
      // A failure waits until all before it are done: it is theirs to be reported first (DTO-40).
      if (outcome == SendOutcome::blocked || outcome == SendOutcome::failed) break;
      moved = true;
      entry.finished = outcome == SendOutcome::done;
      sends_.mark_sent();
      if (entry.finished) retire_finished();
    }
    retire_finished();
    drained = sends_.empty();
  }
  if (failure != WorkStatus::success) {
    break_connection(failure, CloseReason::request_failed);
    return true;
  }
  if (drained && state() == State::draining) finish_draining();
  return moved;
}

void SoftQueuePair::send_finished(std::uint64_t number, WorkStatus status) {
  bool drained = false;
  {
    base::Guard guard(send_lock_);
    SendRing::Entry* entry = sends_.find(number);
    if (!entry) return;
    if (status == WorkStatus::success) {
      entry->finished = true;
      if (entry->kind == WorkKind::rdma_read) --reads_held_;
      retire_finished();
    }
    drained = sends_.empty();
  }
  // Streams finish the requests they hold in order, so the failing one is the oldest and gets the status.
  if (status != WorkStatus::success) break_connection(status, CloseReason::local_error);
  if (drained && state() == State::draining) finish_draining();
}

SendRing::Entry* SoftQueuePair::oldest_held(WorkKind kind) {
  for (std::uint64_t number = sends_.first(); number != sends_.unsent(); ++number) {
    SendRing::Entry& entry = sends_.at(number);
    if (entry.kind == kind && !entry.finished) return &entry;
  }
  return nullptr;
}

bool SoftQueuePair::rdma_finished(WorkKind kind) {
  bool drained = false;
  {
    base::Guard guard(send_lock_);
    SendRing::Entry* entry = oldest_held(kind);
    if (!entry) return false;
    entry->finished = true;
    if (kind == WorkKind::rdma_read) --reads_held_;
    retire_finished();
    drained = sends_.empty();
  }
  if (drained && state() == State::draining) {
    finish_draining();
  } else {
    pump();
  }
  return true;
}

bool SoftQueuePair::place_read(const std::byte* bytes, std::size_t count) {
  bool whole = false;
  bool good = false;
  {
    base::Guard guard(send_lock_);
    SendRing::Entry* entry = oldest_held(WorkKind::rdma_read);
    if (!entry || count > entry->length - entry->rdma.progress.bytes) return false;
    good = usable(entry->outgoing());
    if (good) {
      scatter(entry->all(), entry->rdma.progress.bytes, bytes, count);
      entry->rdma.progress.bytes += count;
      whole = entry->rdma.progress.bytes == entry->length;
    }
  }
  if (!good) {
    break_connection(WorkStatus::local_protection, CloseReason::request_failed);
  } else if (whole) {
    rdma_finished(WorkKind::rdma_read);
  }
  return true;
}

bool SoftQueuePair::usable(const Outgoing& message) const {
  const std::uint32_t right = message.kind == WorkKind::rdma_read ? access::kLocalWrite : access::kLocalRead;
  return std::all_of(message.segments.begin(), message.segments.end(), [&](const Segment& segment) {
    return segment.length == 0 ||
           adapter_.regions().check(segment.key, segment.address, segment.length, zone(), right) == RegionCheck::ok;
  });
}

bool SoftQueuePair::send_idle() const {
  base::Guard guard(send_lock_);
  return sends_.empty();
}

bool SoftQueuePair::memory_changed() {
  { base::Guard inside_a_post(send_lock_); }
  return !stream_ || stream_->memory_changed();
}

// Whatever is posted from now on is flushed by whoever posts it.
void SoftQueuePair::flush_sends(WorkStatus first_status) {
  base::Guard guard(send_lock_);
  state_.store(State::closed);
  WorkStatus status = first_status;
  reads_held_ = 0;
  while (!sends_.empty()) {
    const SendRing::Entry& entry = sends_.at(sends_.first());
    if (entry.kind == WorkKind::bind && !entry.finished) entry.bind.window->give_up(entry.bind.key, entry.bind.tag);
    complete_send(entry, status);
    sends_.drop_first();
    status = WorkStatus::flushed;
  }
}

// ---- receives

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
    adapter_.engine().kick(watermark_kick_);  // EP-WM-16
  return Status::ok;
}

void SoftQueuePair::complete_recv(const Receive& receive, WorkStatus status, std::uint64_t length, bool solicited) {
  if (own_pool_) own_pool_->reaped();  // DTO-14: completion frees the slot
  CompletionQueue* queue = recv_queue_.load(std::memory_order_relaxed);
  if (!queue) {
    if (shared_) shared_->reaped();  // SRQ-ACC-12
    return;
  }
  const Completion completion{events_.owner, receive.cookie,      length,    WorkKind::recv,
                              status,        receive.unsignalled, solicited, shared_};
  if (!queue->push(completion)) [[unlikely]]
    completion_lost(completion);
}

void SoftQueuePair::completion_lost(const Completion& completion) {
  if (completion.shared) completion.shared->reaped();
  if (completion.status == WorkStatus::success) adapter_.engine().queue_kick(overflow_kick_);
}

// By the end of the connection and by late posts; each finds the lock held until the other's are on the queue, so they
// stay in order (DTO-40).
void SoftQueuePair::flush_receives() {
  if (!own_pool_) return;
  Receive receive;
  base::Guard guard(send_lock_);
  while (own_pool_->take(receive)) complete_recv(receive, WorkStatus::flushed, 0, false);
}

bool SoftQueuePair::take_buffer(Receive& out) {
  return !pool().anybody_waits_before(asker_) && pool().take(out);
}

WorkStatus SoftQueuePair::check_buffer(const Receive& receive, std::uint64_t length) const {
  const ZoneId zone = shared_ ? shared_->zone() : this->zone();
  std::uint64_t room = 0;
  for (const Segment& segment : receive.all()) {
    if (segment.length == 0) continue;
    const RegionCheck check =
        adapter_.regions().check(segment.key, segment.address, segment.length, zone, access::kLocalWrite);
    if (check != RegionCheck::ok) return WorkStatus::local_protection;
    room += segment.length;
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

bool SoftQueuePair::deliver(const std::byte* bytes, std::size_t length, bool solicited) {
  DeliveryBatch& batch = adapter_.batch();
  CompletionQueue* queue = recv_queue_.load(std::memory_order_relaxed);
  Receive receive;
  if (!queue || watermarks_set() || pool().anybody_waits_before(asker_) || !batch.take(pool(), receive)) [[unlikely]] {
    batch.flush();
    Incoming* message = begin(length, solicited);
    if (!message) return broken();
    if (place(*message, bytes, length)) finish(*message);
    return true;
  }
  const WorkStatus status = check_buffer(receive, length);
  if (status != WorkStatus::success) [[unlikely]] {
    batch.flush();
    complete_recv(receive, status, 0, solicited);
    break_connection(WorkStatus::flushed, CloseReason::local_error);
    return true;
  }
  scatter(receive.all(), 0, bytes, length);
  counters_.receives.add();
  counters_.receive_bytes.add(length);
  if (own_pool_) own_pool_->reaped();
  batch.complete(*queue, *this,
                 {events_.owner, receive.cookie, length, WorkKind::recv, WorkStatus::success, receive.unsignalled,
                  solicited, shared_});
  return true;
}

std::unique_ptr<Incoming> SoftQueuePair::take_front() {
  std::unique_ptr<Incoming> message = std::move(incoming_.front());
  incoming_.erase(incoming_.begin());
  incoming_held_.store(static_cast<std::uint32_t>(incoming_.size()));
  return message;
}

Incoming* SoftQueuePair::begin(std::uint64_t length, bool solicited) {
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
  message->length = length;
  message->placed = 0;
  message->solicited = solicited;
  Incoming* result = message.get();
  incoming_.push_back(std::move(message));
  incoming_held_.store(static_cast<std::uint32_t>(incoming_.size()));
  if (shared_) test_watermarks();  // EP-WM-18: what was taken is flushed with the rest
  if (broken()) return nullptr;
  if (const WorkStatus status = check_buffer(result->buffer, length); status != WorkStatus::success) {
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

bool SoftQueuePair::place(Incoming& message, const std::byte* bytes, std::size_t count) {
  // The memory may have been freed since the buffer was taken (LMR-FREE-4, LMR-FREE-8).
  if (const WorkStatus status = check_buffer(message.buffer, message.length); status != WorkStatus::success) {
    fail_message(message, status);
    return false;
  }
  scatter(message.buffer.all(), message.placed, bytes, count);
  message.placed += count;
  return true;
}

bool SoftQueuePair::finish(Incoming& message) {
  counters_.receives.add();
  counters_.receive_bytes.add(message.length);
  std::unique_ptr<Incoming> done = take_front();
  complete_recv(done->buffer, WorkStatus::success, done->length, done->solicited);
  spare_incoming_.push_back(std::move(done));
  return !broken();
}

QueuePair::RecvInfo SoftQueuePair::recv_info() const {
  // A receive posted to a queue pair of its own counts until it completes, which is when its slot is free.
  const std::uint32_t allocated = shared_ ? incoming_held_.load() : own_pool_->counts().outstanding;
  return {allocated, allocated};  // EP-RQ-11: messages are processed strictly in order
}

std::uint32_t SoftQueuePair::largest_posted_recv_segments() const {
  return own_pool_ ? own_pool_->largest_segment_count() : 0;
}

// ---- waiting for receive buffers

void SoftQueuePair::wait_for_receive() {
  if (waits_for_receive_) return;
  const base::Nanoseconds limit = adapter_.config().receiver_not_ready_ns;
  counters_.buffer_waits.add();
  if (limit == 0) {
    break_connection(WorkStatus::flushed, CloseReason::receiver_not_ready);
    return;
  }
  waits_for_receive_ = true;
  waits_since_ = base::now_ns();
  adapter_.engine().set_timer(not_ready_timer_, waits_since_ + std::min(limit, kNotReadyWarning));
  pool().wait_for_receive(asker_);
}

void SoftQueuePair::stop_waiting() {
  if (!waits_for_receive_) return;
  waits_for_receive_ = false;
  counters_.buffer_wait_ns.add(static_cast<std::uint64_t>(base::now_ns() - waits_since_));
  adapter_.engine().cancel_timer(not_ready_timer_);
  pool().stop_waiting(asker_);
}

void SoftQueuePair::receives_available() {
  stop_waiting();
  if (stream_) stream_->resume_receiving();
}

void SoftQueuePair::not_ready_timed_out() {
  const base::Nanoseconds limit = adapter_.config().receiver_not_ready_ns;
  const base::Nanoseconds waited = base::now_ns() - waits_since_;
  if (limit != base::kForever && waited >= limit) {
    base::log(base::LogLevel::warn, "a message found no receive buffer within {} ms; its connection breaks",
              limit / 1'000'000);
    break_connection(WorkStatus::flushed, CloseReason::receiver_not_ready);
    return;
  }
  base::log(base::LogLevel::warn,
            "a message on port {} has waited {} ms for a receive buffer; post more receives, or set DAT_RNR_TIMEOUT_MS",
            local_port_, waited / 1'000'000);
  if (limit != base::kForever) adapter_.engine().set_timer(not_ready_timer_, waits_since_ + limit);
}

void SoftQueuePair::delivered_everything() {
  if (peer_closing_ && incoming_.empty()) finish_draining();
}

// ---- life of a connection

Status SoftQueuePair::connect(const ConnectParameters& parameters) {
  std::unique_ptr<Stream> stream;
  const Status status = adapter_.open_stream(*this, parameters, stream, local_address_, local_port_);
  if (status != Status::ok) return status;
  remote_address_ = parameters.remote;
  remote_port_ = parameters.qual;
  {
    base::Guard guard(send_lock_);
    stream_ = std::move(stream);
    state_.store(State::connecting);
  }
  if (parameters.deadline != base::kForever) adapter_.engine().set_timer(deadline_timer_, parameters.deadline);
  return Status::ok;
}

void SoftQueuePair::begin_accept(std::unique_ptr<Stream> stream, const Address& local, std::uint64_t local_port,
                                 const Address& remote, std::uint64_t remote_port) {
  base::Guard guard(send_lock_);
  stream_ = std::move(stream);
  local_address_ = local;
  local_port_ = local_port;
  remote_address_ = remote;
  remote_port_ = remote_port;
  state_.store(State::accepting);
}

void SoftQueuePair::established(std::span<const std::byte> private_data) {
  adapter_.engine().cancel_timer(deadline_timer_);
  {
    base::Guard guard(send_lock_);
    state_.store(State::connected);
  }
  events_.on_established(private_data);
  test_watermarks();  // EP-WM-11
}

void SoftQueuePair::connect_failed(ConnectFailure why) {
  end({Ending::Report::connect_failed, why});
}

void SoftQueuePair::accept_failed() {
  end({Ending::Report::accept_failed});
}

void SoftQueuePair::disconnect(bool graceful) {
  switch (state()) {
    case State::connected:
      if (!graceful) break;
      {
        base::Guard guard(send_lock_);
        state_.store(State::draining);
      }
      if (send_idle()) {
        finish_draining();
      } else {
        adapter_.engine().set_timer(linger_timer_, base::now_ns() + kLinger);
      }
      return;
    case State::draining:
      if (graceful) return;
      break;
    case State::connecting:
    case State::accepting:
      break;
    case State::idle:
    case State::ending:
    case State::closed:
      return;
  }
  stream_->close(CloseReason::abrupt);
  end({Ending::Report::closed});
}

// Ends an orderly end: all is sent, all is received, or whoever had to do his part took too long.
void SoftQueuePair::finish_draining() {
  if (state() != State::connected && state() != State::draining) return;
  if (state() == State::draining && !peer_closing_) stream_->close(CloseReason::graceful);
  end({Ending::Report::closed, {}, peer_closing_ ? WorkStatus::flushed : WorkStatus::receiver_not_ready});
}

void SoftQueuePair::peer_closed(CloseReason reason) {
  switch (state()) {
    case State::connecting:
      connect_failed(ConnectFailure::refused);
      return;
    case State::accepting:
      accept_failed();
      return;
    case State::idle:
    case State::ending:
    case State::closed:
      return;
    case State::connected:
    case State::draining:
      break;
  }
  Ending ending{Ending::Report::broken};
  switch (reason) {
    case CloseReason::graceful:
      peer_closing_ = true;
      if (state() == State::connected && (stream_->holds_messages() || !incoming_.empty())) {
        adapter_.engine().set_timer(linger_timer_, base::now_ns() + kLinger);
        return;
      }
      finish_draining();
      return;
    case CloseReason::abrupt:
      ending.report = Ending::Report::closed;
      break;
    case CloseReason::local_error:
      ending.first_send_status = WorkStatus::remote_responder;
      break;
    case CloseReason::receiver_not_ready:
      ending.first_send_status = WorkStatus::receiver_not_ready;
      break;
    case CloseReason::remote_access:
      ending.first_send_status = WorkStatus::remote_access;
      break;
    case CloseReason::request_failed:
      break;
  }
  end(ending);
}

void SoftQueuePair::peer_lost(WorkStatus why) {
  switch (state()) {
    case State::connecting:
      connect_failed(ConnectFailure::refused);
      return;
    case State::accepting:
      accept_failed();
      return;
    case State::connected:
    case State::draining:
      end(peer_closing_ ? Ending{Ending::Report::closed} : Ending{Ending::Report::broken, {}, why});
      return;
    case State::idle:
    case State::ending:
    case State::closed:
      return;
  }
}

void SoftQueuePair::break_connection(WorkStatus send_status, CloseReason tell_peer) {
  if (state() != State::connected && state() != State::draining) return;
  stream_->close(tell_peer);
  end({Ending::Report::broken, {}, send_status});
}

void SoftQueuePair::end(Ending ending) {
  {
    base::Guard guard(send_lock_);
    state_.store(State::ending);
  }
  ending_ = ending;
  stop_waiting();
  adapter_.engine().cancel_timer(deadline_timer_);
  adapter_.engine().cancel_timer(linger_timer_);
  // Before anybody is told that memory is his again.
  if (!stream_ || stream_->let_go()) let_go_finished();
}

// Everything posted completes, in order; then nothing is left but the state.
void SoftQueuePair::let_go_finished() {
  if (failed_message_) flush_incoming_to(failed_message_);
  failed_message_ = nullptr;
  flush_sends(ending_.first_send_status);
  flush_incoming_to(nullptr);
  spare_incoming_.clear();
  flush_receives();
  switch (std::exchange(ending_.report, Ending::Report::none)) {
    case Ending::Report::none:
      break;
    case Ending::Report::closed:
      events_.on_closed(false);
      break;
    case Ending::Report::broken:
      events_.on_closed(true);
      break;
    case Ending::Report::connect_failed:
      events_.on_connect_failed(ending_.why);
      break;
    case Ending::Report::accept_failed:
      events_.on_accept_failed();
      break;
  }
}

void SoftQueuePair::reset() {
  base::Guard guard(send_lock_);
  state_.store(State::idle);
  stream_.reset();
  peer_closing_ = false;
  reached_ = {};
}

bool SoftQueuePair::cut() {
  set_completion_queues(nullptr, nullptr);
  ending_.report = Ending::Report::none;
  if (state() == State::ending) return false;
  if (state() == State::closed || state() == State::idle) return true;
  stream_->close(CloseReason::abrupt);
  end({});  // with no queues to complete to, this only releases what is held
  return state() == State::closed;
}

void SoftQueuePair::destroy() {
  [[maybe_unused]] const bool quiet = cut();
  assert(quiet);
  flush_receives();
  adapter_.engine().cancel_kick(watermark_kick_);
  adapter_.engine().cancel_kick(overflow_kick_);
  adapter_.engine().cancel_kick(pump_kick_);
  adapter_.forget(*this);
  base::Guard guard(send_lock_);
  stream_.reset();
}

}  // namespace anydat::nic::soft
