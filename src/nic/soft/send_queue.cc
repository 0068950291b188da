// SPDX-License-Identifier: BSD-3-Clause
// The send queue: its connection's life, and the requests that the stream did not take when they were posted.
#include "nic/soft/send_queue.h"

#include <algorithm>
#include <optional>

#include "nic/soft/adapter.h"
#include "nic/soft/own_pages.h"
#include "nic/soft/queue_pair.h"

namespace anydat::nic::soft {

SendQueue::SendQueue(SoftQueuePair& queue_pair, SoftAdapter& adapter, const QueuePairEvents& events)
    : queue_pair_(queue_pair),
      adapter_(adapter),
      regions_(adapter.regions()),
      requests_(events),
      lanes_(adapter.regions()),
      pump_task_{[this] { pump(); }} {}

bool SendQueue::make_room() {
  adapter_.engine().assert_held();
  os::Guard guard(lock_);
  return requests_.make_room();
}

std::uint32_t SendQueue::peer_takes() const {
  os::Guard guard(lock_);
  return state() == State::connected || state() == State::draining ? peer_takes_ : 0;
}

void SendQueue::set_peer_takes(std::uint32_t abilities) {
  os::Guard guard(lock_);
  peer_takes_ = abilities & adapter_.info().abilities;
}

// ---- requests that wait for the stream

bool SendQueue::pump() {
  bool moved = false;
  Outcome outcome;
  {
    os::Guard guard(lock_);
    if (state() != State::connected && state() != State::draining) return false;
    note_sending();  // the engine is held throughout, so this serves for all of them
    WorkStatus failure = WorkStatus::success;
    while (!requests_.all_sent()) {
      SendRing::Entry& entry = requests_.at(requests_.unsent());
      if (entry.kind == WorkKind::bind) {
        if (requests_.fences(entry.flags)) break;
        // No thread hands over anything behind it meanwhile (RMR-BIND-3), and only this thread, which holds the engine,
        // takes entries out. The lock is not needed, and a thread that uses the old key may need it.
        lock_.unlock();
        const std::optional<bool> bound = queue_pair_.connection().windows().carry_out(entry);
        lock_.lock();
        if (bound == false && requests_.unsent() == requests_.first()) failure = WorkStatus::bind_failed;
        if (bound != true) break;
        entry.finished = true;
        requests_.mark_sent();
        moved = true;
        continue;
      }
      if (entry.rdma.progress.failure != WorkStatus::success) [[unlikely]] {  // fail_blocked()
        if (requests_.unsent() == requests_.first()) failure = entry.rdma.progress.failure;
        break;
      }
      const std::uint64_t before = entry.rdma.progress.bytes;
      const SendOutcome sent = is_extended(entry.kind)
                                   ? hand_over(requests_.unsent(), entry.extended(), entry.rdma.progress)
                                   : hand_over(requests_.unsent(), entry.request(), entry.rdma.progress);
      moved |= entry.rdma.progress.bytes != before;
      if (sent == SendOutcome::failed && requests_.unsent() == requests_.first()) {
        failure = entry.rdma.progress.failure;
      }
      // A failure waits until all before it are done: it is theirs to be reported first (DTO-40).
      if (sent == SendOutcome::blocked || sent == SendOutcome::failed) break;
      moved = true;
      entry.finished = sent == SendOutcome::done;
      requests_.mark_sent();
      if (entry.finished) retire_finished();
    }
    outcome = retire();
    if (failure != WorkStatus::success) outcome.failure = failure;
  }
  if (outcome.failure != WorkStatus::success) {
    queue_pair_.connection().break_off(outcome.failure, CloseReason::request_failed);
    return true;
  }
  if (outcome.drained) queue_pair_.connection().orderly_end().finish_if_drained();
  return moved;
}

bool SendQueue::fail_blocked(std::uint64_t address, bool to_write, WorkStatus status) {
  bool first = false;
  {
    os::Guard guard(lock_);
    if (requests_.all_sent()) return false;
    SendRing::Entry& entry = requests_.at(requests_.unsent());
    if (entry.kind == WorkKind::bind || is_read(entry.kind) != to_write || !lies_in(address, entry.all())) return false;
    entry.rdma.progress.failure = status;
    first = requests_.unsent() == requests_.first();
  }
  if (first) queue_pair_.connection().break_off(status, CloseReason::request_failed);
  return true;
}

void SendQueue::retire_finished() {
  if (!requests_.retire_finished()) queue_pair_.connection().completion_overflowed();
}

SendQueue::Outcome SendQueue::retire() {
  retire_finished();
  return {requests_.failure_at_front(), requests_.empty(), !requests_.all_sent()};
}

// ---- users of memory

bool SendQueue::usable_still(const SendRequest& message) const {
  const std::uint32_t right = is_read(message.kind) ? access::kLocalWrite : access::kLocalRead;
  return std::all_of(message.segments.begin(), message.segments.end(), [&](const Segment& segment) {
    return segment.length == 0 || regions_.covers(segment.key, segment.address, segment.length,
                                                  queue_pair_.memory().user(), right) == RegionCheck::ok;
  });
}

void SendQueue::enter_to_send() {
  noted_sending_ = true;
  queue_pair_.memory().enter();
}

void SendQueue::await_posts(bool receives) {
  os::Guard inside_a_post(lock_);
  lanes_.close();
  noted_sending_ = false;
  if (!requests_.empty() || receives) enter_to_send();
}

// ---- the life of a connection

SendQueue::Progressed SendQueue::progressed() {
  os::Guard guard(lock_);
  Progressed now{requests_.first(), 0};
  if (!requests_.all_sent() && requests_.at(requests_.unsent()).kind != WorkKind::bind) {
    now.handed = requests_.at(requests_.unsent()).rdma.progress.bytes;
  }
  return now;
}

// One that has begun has changed its window and is not flushed (RMR-BIND-13).
bool SendQueue::begun_bind_is_over() {
  SendRing::Entry* entry = nullptr;
  {
    os::Guard guard(lock_);
    if (requests_.all_sent()) return true;
    entry = &requests_.at(requests_.unsent());
  }
  if (entry->kind != WorkKind::bind || !entry->bind.begun) return true;
  const std::optional<bool> bound = queue_pair_.connection().windows().carry_out(*entry);
  if (bound != true) return bound == false;
  os::Guard guard(lock_);
  entry->finished = true;
  requests_.mark_sent();
  retire_finished();
  return true;
}

void SendQueue::flush(WorkStatus first_status) {
  os::Guard guard(lock_);
  nic::enter(state_, State::closed);
  if (!requests_.flush(first_status)) queue_pair_.connection().completion_overflowed();
}

void SendQueue::reset() {
  os::Guard guard(lock_);
  nic::enter(state_, State::idle);
  stream_ = nullptr;
  peer_takes_ = 0;
}

void SendQueue::destroy() {
  adapter_.engine().cancel_task(pump_task_);
  change_stream(nullptr);
}

}  // namespace anydat::nic::soft
