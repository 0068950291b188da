// SPDX-License-Identifier: BSD-3-Clause
// The software NIC's queue pair: requests, from the post to the completion. What becomes of those that the stream holds
// is in queue_pair_answers.cc.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <type_traits>

#include "nic/soft/adapter.h"
#include "nic/soft/own_pages.h"
#include "nic/soft/queue_pair.h"
#include "nic/soft/window.h"

namespace anydat::nic::soft {

namespace {

constexpr std::uint32_t ability_for(WorkKind kind) {
  switch (kind) {
    case WorkKind::write_immediate:
      return ability::kImmediate;
    case WorkKind::fetch_add:
    case WorkKind::compare_swap:
      return ability::kAtomics;
    case WorkKind::send_invalidate:
      return ability::kInvalidate;
    default:
      return 0;
  }
}

bool is_extended(WorkKind kind) {
  return ability_for(kind) != 0;
}

}  // namespace

// What keeps a request back besides its stream.
SendOutcome SoftQueuePair::hand_over(std::uint64_t number, const SendRequest& message, Progress& progress) {
  if (reads_held_ > 0) [[unlikely]] {
    if (message.flags.fence()) return SendOutcome::blocked;                               // DTO-33
    if (is_read(message.kind) && reads_held_ >= reads_out_) return SendOutcome::blocked;  // RDR-10
  }
  if (is_read(message.kind) && reads_out_ == 0) {
    progress.failure = WorkStatus::local_ep;
    return SendOutcome::failed;
  }
  const SendOutcome outcome = stream_->send(number, message, progress);
  if (outcome == SendOutcome::pending && is_read(message.kind)) ++reads_held_;
  return outcome;
}

inline void SoftQueuePair::write_completed(QueuedEvent& done, std::uint64_t cookie, std::uint64_t length,
                                           WorkKind kind) const {
  done.event.kind = EventKind::dto_completion;
  done.event.status = WorkStatus::success;
  done.event.operation = kind;
  done.event.notice = 0;
  done.event.detail = 0;
  done.event.object = events_.owner;
  done.event.cookie = cookie;
  done.event.length = length;
  done.reaped = nullptr;
}

// Of a request that is done while none is pending. False: the completion found no room.
inline bool SoftQueuePair::complete_at_once(std::uint64_t cookie, std::uint64_t length, WorkKind kind,
                                            WorkFlags flags) {
  sends_.skip();
  CompletionQueue* queue = send_queue_.load(std::memory_order_relaxed);
  if (flags.suppress() || !queue) [[unlikely]]
    return true;
  return queue->push_quietly(1, [&](QueuedEvent& done) { write_completed(done, cookie, length, kind); }) ||
         queue->push({events_.owner, cookie, length, kind, WorkStatus::success, flags.unsignalled()});
}

// The same of several. False: one of the completions at least found none.
bool SoftQueuePair::complete_at_once(std::span<const SingleSend> sends) {
  sends_.skip(sends.size());
  CompletionQueue* queue = send_queue_.load(std::memory_order_relaxed);
  const auto completes = [](const SingleSend& send) { return !send.flags.suppress(); };
  const auto count = static_cast<std::size_t>(std::count_if(sends.begin(), sends.end(), completes));
  if (count == 0 || !queue) [[unlikely]]
    return true;
  auto next = sends.begin();
  if (queue->push_quietly(count, [&](QueuedEvent& done) {
        next = std::find_if(next, sends.end(), completes);
        write_completed(done, next->cookie, next->segment.length, WorkKind::send);
        ++next;
      })) [[likely]] {
    return true;
  }
  std::array<Completion, kRowMax> completions;
  std::size_t used = 0;
  for (const SingleSend& send : sends) {
    if (!completes(send)) continue;
    completions[used++] = {events_.owner,  send.cookie,         send.segment.length,
                           WorkKind::send, WorkStatus::success, send.flags.unsignalled()};
  }
  return queue->push(std::span(completions).first(used)) == used;
}

template <WorkKind kind>
bool SoftQueuePair::again(const SingleRdma& request) {
  bool overflowed = false;
  {
    base::Guard guard(send_lock_);
    if (state_.load(std::memory_order_relaxed) != State::connected || !sends_.empty() ||
        !lane<kind>().leads_to(request.remote.key) || !lane<kind>().carry(request)) [[unlikely]] {
      return false;
    }
    counters_.count_rdma(kind, request.length);
    counters_.rdmas_in_memory.add();
    overflowed = !complete_at_once(request.cookie, request.length, kind, request.flags);
  }
  if (overflowed) [[unlikely]]
    adapter_.engine().schedule(overflow_task_);  // EVM-54
  return true;
}

bool SoftQueuePair::send_again(const SingleSend& send) {
  if (!send_lane_.is(send.segment.key)) return false;
  bool overflowed = false;
  {
    base::Guard guard(send_lock_);
    if (state_.load(std::memory_order_relaxed) != State::connected || !sends_.empty() ||
        !send_lane_.holds(send.segment, adapter_.engine(), adapter_.resident_pages()) || !stream_->send_again(send))
        [[unlikely]] {
      return false;
    }
    counters_.sends.add();
    counters_.send_bytes.add(send.segment.length);
    overflowed = !complete_at_once(send.cookie, send.segment.length, WorkKind::send, send.flags);
  }
  if (overflowed) [[unlikely]]
    adapter_.engine().schedule(overflow_task_);  // EVM-54
  return true;
}

bool SoftQueuePair::put_again(const SingleRdma& request) {
  base::Guard guard(send_lock_);
  if (state_.load(std::memory_order_relaxed) != State::connected || !sends_.all_sent() || sends_.full() ||
      (request.flags.fence() && reads_held_ > 0) || !put_lane_.holds(request.local) || !stream_->put_again(request))
      [[unlikely]] {
    put_lane_.close();  // until one is put again; those that go another way pay nothing for it
    return false;
  }
  counters_.count_rdma(WorkKind::rdma_write, request.length);
  counters_.rdmas_by_peer.add();
  SendRing::Entry& entry = sends_.append(SendRequest{
      request.cookie, {&request.local, 1}, request.length, request.flags, WorkKind::rdma_write, request.remote});
  entry.rdma.progress.bytes = request.length;
  sends_.mark_sent();
  return true;
}

// What no lane leads to pays next to nothing for the question, and has no frame built for it.
bool SoftQueuePair::write_again(const SingleRdma& request) {
  if (write_lane_.leads_to(request.remote.key)) return again<WorkKind::rdma_write>(request);
  return put_lane_.is(request.local.key) && put_again(request);
}

bool SoftQueuePair::read_again(const SingleRdma& request) {
  return read_lane_.leads_to(request.remote.key) && again<WorkKind::rdma_read>(request);
}

// In place, since this is the way of every post.
template <typename Request>
[[gnu::always_inline]] inline Status SoftQueuePair::post_locked(const Request& request, Aftermath& after) {
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
      queue->push({events_.owner, request.cookie, 0, request.kind, WorkStatus::flushed, request.flags.unsignalled()});
    }
    return Status::ok;
  }
  if constexpr (std::is_same_v<Request, ExtendedRequest>) {
    if ((peer_takes_ & ability_for(request.kind)) == 0) return Status::unsupported;
  }
  if (sends_.full()) return Status::queue_full;
  bool sends = request.kind == WorkKind::send;
  if constexpr (std::is_same_v<Request, ExtendedRequest>) sends = request.kind == WorkKind::send_invalidate;
  if (sends) {
    counters_.sends.add();
    counters_.send_bytes.add(request.length);
  } else {
    counters_.count_rdma(request.kind, request.length);
  }
  Progress progress;
  if (sends_.empty()) {
    note_sending();  // before the stream asks usable(), and before it may open a lane
    const SendOutcome outcome = hand_over(sends_.next(), request, progress);
    if (outcome == SendOutcome::done) {
      after.overflowed |= !complete_at_once(request.cookie, request.length, request.kind, request.flags);
    } else {
      sends_.append(request).rdma.progress = progress;
      if (outcome == SendOutcome::pending) sends_.mark_sent();
      after.failed |= outcome == SendOutcome::failed;
    }
  } else {
    const bool nothing_blocked = sends_.all_sent();
    SendRing::Entry& entry = sends_.append(request);
    if (nothing_blocked) {
      const SendOutcome outcome = hand_over(sends_.next() - 1, request, progress);
      entry.rdma.progress = progress;
      entry.finished = outcome == SendOutcome::done;  // completes after those before it
      if (outcome == SendOutcome::done || outcome == SendOutcome::pending) sends_.mark_sent();
      after.failed |= outcome == SendOutcome::failed;
    }
  }
  return Status::ok;
}

inline void SoftQueuePair::see_to(const Aftermath& after) {
  if (after.overflowed) [[unlikely]]
    adapter_.engine().schedule(overflow_task_);  // EVM-54
  if (after.failed) [[unlikely]]
    adapter_.engine().schedule(pump_task_);  // breaking the connection takes the engine
}

template <typename Request>
inline Status SoftQueuePair::post(const Request& request) {
  Aftermath after;
  Status status = Status::ok;
  {
    base::Guard guard(send_lock_);
    status = post_locked(request, after);
  }
  see_to(after);
  return status;
}

Status SoftQueuePair::post_of_row(const SendRequest& request, Aftermath& after) {
  return post_locked(request, after);
}

// Sends of the row, from the first on, that are done now and have nothing before them. How many.
std::size_t SoftQueuePair::send_at_once(const SendRow& row, Aftermath& after) {
  if (state() != State::connected || !sends_.empty() || sends_.full()) return 0;
  note_sending();
  const std::size_t done = stream_->send_row(row);
  if (done == 0) return 0;
  const std::span<const SingleSend> sent = row.sends.first(done);
  counters_.sends.add(done);
  counters_.send_bytes.add(std::transform_reduce(sent.begin(), sent.end(), std::uint64_t{0}, std::plus<>(),
                                                 [](const SingleSend& send) { return send.segment.length; }));
  after.overflowed |= !complete_at_once(sent);
  return done;
}

Status SoftQueuePair::post_sends(const SendRow& row, std::size_t& posted) {
  Aftermath after;
  Status status = Status::ok;
  posted = 0;
  while (status == Status::ok && posted < row.sends.size()) {
    base::Guard guard(send_lock_);
    const std::size_t done = send_at_once(row.behind(posted), after);
    posted += done;
    if (done > 0) continue;
    // A long one may take its time in the stream, so the lock goes from hand to hand between two. Behind one that is
    // blocked they only join the ring.
    do {
      status = post_of_row(row.request(posted), after);
      if (status == Status::ok) ++posted;
    } while (status == Status::ok && posted < row.sends.size() && !sends_.all_sent());
  }
  see_to(after);
  return status;
}

Status SoftQueuePair::post_recvs(const RecvRow& row, std::size_t& posted) {
  return receives_.counts_each_post() ? QueuePair::post_recvs(row, posted) : receives_.post_row(row, posted);
}

Status SoftQueuePair::post_send(const SendRequest& request) {
  return post(request);
}

Status SoftQueuePair::post_extended(const ExtendedRequest& request) {
  return post(request);
}

Status SoftQueuePair::post_bind(const BindRequest& request, std::uint32_t& key) {
  key = 0;
  {
    base::Guard guard(send_lock_);
    const State now = state_.load(std::memory_order_relaxed);
    if (now == State::closed) {
      CompletionQueue* queue = send_queue_.load(std::memory_order_relaxed);
      if (queue) {
        queue->push(
            {request.owner, request.cookie, 0, WorkKind::bind, WorkStatus::flushed, request.flags.unsignalled()});
      }
      return Status::ok;
    }
    if (now != State::connected && now != State::ending) return Status::not_connected;
    if (sends_.full()) return Status::queue_full;
    key = adapter_.regions().reserve();
    if (key == 0) return Status::no_memory;
    counters_.binds.add();
    SendRing::Entry& entry =
        sends_.append(SendRequest{request.cookie, {&request.part, 1}, 0, request.flags, WorkKind::bind, {}});
    entry.bind = {static_cast<SoftWindow*>(request.window), request.owner, request.tag, key, request.rights, false};
  }
  pump();
  return Status::ok;
}

void SoftQueuePair::complete_send(const SendRing::Entry& entry, WorkStatus status) {
  if (status == WorkStatus::success && entry.flags.suppress()) return;
  CompletionQueue* queue = send_queue_.load(std::memory_order_relaxed);
  if (!queue) return;
  void* owner = entry.kind == WorkKind::bind ? entry.bind.owner : events_.owner;
  const bool kept = queue->push({owner, entry.cookie, entry.length, entry.kind, status, entry.flags.unsignalled()});
  if (!kept && status == WorkStatus::success) completion_overflowed();
}

void SoftQueuePair::retire_finished() {
  while (!sends_.empty() && sends_.at(sends_.first()).finished) {
    if (const std::uint64_t plain = finished_plainly(); plain > 1 && complete_in_a_row(plain)) continue;
    complete_send(sends_.at(sends_.first()), WorkStatus::success);
    sends_.drop_first();
  }
}

// How many of the finished ones in front complete, of this queue pair and with nothing unusual.
std::uint64_t SoftQueuePair::finished_plainly() {
  std::uint64_t end = sends_.first();
  const auto plain = [](const SendRing::Entry& entry) {
    return entry.finished && entry.kind != WorkKind::bind && !entry.flags.suppress() && !entry.flags.unsignalled();
  };
  while (end != sends_.unsent() && end - sends_.first() < kRowMax && plain(sends_.at(end))) ++end;
  return end - sends_.first();
}

// False: nothing has happened.
bool SoftQueuePair::complete_in_a_row(std::uint64_t count) {
  CompletionQueue* const queue = send_queue_.load(std::memory_order_relaxed);
  std::uint64_t next = sends_.first();
  const bool kept = queue && queue->push_quietly(count, [&](QueuedEvent& done) ANYDAT_NO_ANALYSIS {  // called within
    const SendRing::Entry& entry = sends_.at(next++);
    write_completed(done, entry.cookie, entry.length, entry.kind);
  });
  for (; kept && count > 0; --count) sends_.drop_first();
  return kept;
}

// A bind whose turn it is. False: its region has gone. Nothing: a peer is in the middle of using what its window
// showed, and it is looked at again.
std::optional<bool> SoftQueuePair::carry_out(SendRing::Entry& entry) {
  SendRing::Entry::Bind& bind = entry.bind;
  const Segment& part = entry.all().front();
  if (!bind.begun && !bind.window->can_bind(part)) return false;
  bind.begun = true;
  if (!bind.window->withdrawn()) {
    adapter_.engine().set_timer(window_timer_, base::now_ns() + kWindowLook);
    return std::nullopt;
  }
  // The region may have gone while that took its time.
  if (!bind.window->can_bind(part)) {
    bind.window->shows_nothing();
    return false;
  }
  bind.window->bind(bind.key, part, bind.rights, bind.tag, {scope(), windows_, *stream_});
  return true;
}

// Of a connection that is over. One that has begun has changed its window and is not flushed (RMR-BIND-13). False: it
// is still to come.
bool SoftQueuePair::begun_bind_is_over() {
  SendRing::Entry* entry = nullptr;
  {
    base::Guard guard(send_lock_);
    if (sends_.all_sent()) return true;
    entry = &sends_.at(sends_.unsent());
  }
  if (entry->kind != WorkKind::bind || !entry->bind.begun) return true;
  const std::optional<bool> bound = carry_out(*entry);
  if (bound != true) return bound == false;
  base::Guard guard(send_lock_);
  entry->finished = true;
  sends_.mark_sent();
  retire_finished();
  return true;
}

bool SoftQueuePair::pump() {
  bool moved = false;
  bool drained = false;
  WorkStatus failure = WorkStatus::success;
  {
    base::Guard guard(send_lock_);
    if (state() != State::connected && state() != State::draining) return false;
    note_sending();  // the engine is held throughout, so this serves for all of them
    while (!sends_.all_sent()) {
      SendRing::Entry& entry = sends_.at(sends_.unsent());
      if (entry.kind == WorkKind::bind) {
        if (entry.flags.fence() && reads_held_ > 0) break;
        // Nobody hands over anything behind it meanwhile (RMR-BIND-3), and only this thread, which holds the engine,
        // takes entries out. The lock is not needed, and whoever uses the old key may need it.
        send_lock_.unlock();
        const std::optional<bool> bound = carry_out(entry);
        send_lock_.lock();
        if (bound == false && sends_.unsent() == sends_.first()) failure = WorkStatus::bind_failed;
        if (bound != true) break;
        entry.finished = true;
        sends_.mark_sent();
        moved = true;
        continue;
      }
      if (entry.rdma.progress.failure != WorkStatus::success) [[unlikely]] {  // fail_blocked()
        if (sends_.unsent() == sends_.first()) failure = entry.rdma.progress.failure;
        break;
      }
      const std::uint64_t before = entry.rdma.progress.bytes;
      const SendOutcome outcome = is_extended(entry.kind)
                                      ? hand_over(sends_.unsent(), entry.extended(), entry.rdma.progress)
                                      : hand_over(sends_.unsent(), entry.request(), entry.rdma.progress);
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
    if (failure == WorkStatus::success) failure = failure_at_front();
  }
  if (failure != WorkStatus::success) {
    break_connection(failure, CloseReason::request_failed);
    return true;
  }
  if (drained && state() == State::draining) finish_draining();
  return moved;
}

bool SoftQueuePair::fail_blocked(std::uint64_t address, bool to_write, WorkStatus status) {
  bool first = false;
  {
    base::Guard guard(send_lock_);
    if (sends_.all_sent()) return false;
    SendRing::Entry& entry = sends_.at(sends_.unsent());
    if (entry.kind == WorkKind::bind || is_read(entry.kind) != to_write || !lies_in(address, entry.all())) return false;
    entry.rdma.progress.failure = status;
    first = sends_.unsent() == sends_.first();
  }
  if (first) break_connection(status, CloseReason::request_failed);
  return true;
}

bool SoftQueuePair::usable_still(const SendRequest& message) const {
  const std::uint32_t right = is_read(message.kind) ? access::kLocalWrite : access::kLocalRead;
  return std::all_of(message.segments.begin(), message.segments.end(), [&](const Segment& segment) {
    return segment.length == 0 ||
           regions_.covers(segment.key, segment.address, segment.length, user(), right) == RegionCheck::ok;
  });
}

bool SoftQueuePair::send_idle() const {
  base::Guard guard(send_lock_);
  return sends_.empty();
}

void SoftQueuePair::enter_memory_users() {
  adapter_.memory_users().add(memory_user_);
}

void SoftQueuePair::enter_to_send() {
  noted_sending_ = true;
  enter_memory_users();
}

void SoftQueuePair::let_posts_end() {
  base::Guard inside_a_post(send_lock_);
  close_lanes();
  noted_sending_ = false;
  if (!sends_.empty() || receives_.incoming_count() > 0) enter_to_send();
}

bool SoftQueuePair::memory_changed() {
  let_posts_end();
  return !stream_ || stream_->memory_changed();
}

// Whatever is posted from now on is flushed by whoever posts it.
void SoftQueuePair::flush_sends(WorkStatus first_status) {
  base::Guard guard(send_lock_);
  state_.store(State::closed);
  reads_held_ = 0;
  WorkStatus rest = first_status;
  bool failed = false;
  while (!sends_.empty()) {
    const SendRing::Entry& entry = sends_.at(sends_.first());
    if (entry.kind == WorkKind::bind && entry.finished) {
      complete_send(entry, WorkStatus::success);  // flushed would say that its window is as it was (RMR-BIND-13)
      sends_.drop_first();
      continue;
    }
    if (entry.kind == WorkKind::bind) entry.bind.window->give_up(entry.bind.key, entry.bind.tag);
    const WorkStatus own = failed ? WorkStatus::success : SendRing::failure_of(entry);
    const WorkStatus status = own != WorkStatus::success ? own : rest;
    failed |= status != WorkStatus::flushed;
    complete_send(entry, status);
    sends_.drop_first();
    rest = WorkStatus::flushed;
  }
}

}  // namespace anydat::nic::soft
