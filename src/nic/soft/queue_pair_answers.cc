// SPDX-License-Identifier: BSD-3-Clause
// The software NIC's queue pair: what its stream tells of the requests that it holds.
#include <algorithm>
#include <array>
#include <cstring>

#include "nic/soft/queue_pair.h"
#include "nic/soft/scatter.h"

namespace anydat::nic::soft {

namespace {

bool is_atomic(WorkKind kind) {
  return kind == WorkKind::fetch_add || kind == WorkKind::compare_swap;
}

}  // namespace

void SoftQueuePair::send_finished(std::uint64_t number, WorkStatus status) {
  bool drained = false;
  WorkStatus failure = WorkStatus::success;
  {
    base::Guard guard(send_lock_);
    SendRing::Entry* entry = sends_.find(number);
    if (!entry) return;
    if (status == WorkStatus::success) {
      entry->finished = true;
      if (is_read(entry->kind)) --reads_held_;
      retire_finished();
      failure = failure_at_front();
    } else {
      entry->rdma.progress.failure = status;
    }
    drained = sends_.empty();
  }
  if (status != WorkStatus::success) break_connection(WorkStatus::flushed, CloseReason::request_failed);
  if (failure != WorkStatus::success) break_connection(failure, CloseReason::request_failed);
  if (drained && state() == State::draining) finish_draining();
}

// Whether the stream has it, and will say what comes of it.
template <typename Wanted>
inline bool SoftQueuePair::is_held(const SendRing::Entry& entry, Wanted&& wanted) {
  return wanted(entry.kind) && !entry.finished &&
         !(is_read(entry.kind) && entry.rdma.progress.failure != WorkStatus::success);
}

template <typename Wanted>
SendRing::Entry* SoftQueuePair::oldest_held(Wanted&& wanted) {
  for (std::uint64_t number = sends_.first(); number != sends_.unsent(); ++number) {
    SendRing::Entry& entry = sends_.at(number);
    if (is_held(entry, wanted)) return &entry;
  }
  return nullptr;
}

SendRing::Entry* SoftQueuePair::oldest_read() {
  return oldest_held([](WorkKind kind) { return kind == WorkKind::rdma_read; });
}

bool SoftQueuePair::oldest_finished(bool (*wanted)(WorkKind), std::uint32_t count) {
  bool drained = false;
  bool blocked = false;
  WorkStatus failure = WorkStatus::success;
  {
    base::Guard guard(send_lock_);
    for (std::uint64_t number = sends_.first(); number != sends_.unsent() && count > 0; ++number) {
      SendRing::Entry& entry = sends_.at(number);
      if (!is_held(entry, wanted)) continue;
      entry.finished = true;
      if (is_read(entry.kind)) --reads_held_;
      --count;
    }
    if (count > 0) return false;
    retire_finished();
    drained = sends_.empty();
    blocked = !sends_.all_sent();
    failure = failure_at_front();
  }
  if (failure != WorkStatus::success) {
    break_connection(failure, CloseReason::request_failed);
  } else if (drained && state() == State::draining) {
    finish_draining();
  } else if (blocked) {
    pump();
  }
  return true;
}

bool SoftQueuePair::writes_finished(std::uint32_t count) {
  return oldest_finished(is_write, count);
}

bool SoftQueuePair::atomic_finished(std::uint64_t was) {
  bool usable_memory = false;
  {
    base::Guard guard(send_lock_);
    const SendRing::Entry* entry = oldest_held(is_atomic);
    if (!entry) return false;
    usable_memory = usable(entry->request());
    if (usable_memory) std::memcpy(reinterpret_cast<void*>(entry->all().front().address), &was, sizeof was);
  }
  if (usable_memory) return oldest_finished(is_atomic);
  atomic_failed(WorkStatus::local_protection);
  return true;
}

std::size_t SoftQueuePair::aim_atomic(std::span<iovec> pieces) {
  base::Guard guard(send_lock_);
  const SendRing::Entry* entry = oldest_held(is_atomic);
  return entry && usable(entry->request()) ? pieces_of(entry->all(), 0, entry->length, pieces) : 0;
}

void SoftQueuePair::atomic_failed(WorkStatus status) {
  fail_oldest(is_atomic, status);
}

// What it has failed with before holds.
void SoftQueuePair::note_failure(SendRing::Entry& entry, WorkStatus status) {
  if (entry.rdma.progress.failure == WorkStatus::success) entry.rdma.progress.failure = status;
}

// The stream has it, or has sent the beginning of it.
bool SoftQueuePair::is_under_way(std::uint64_t number) {
  if (number == sends_.next() || sends_.at(number).kind == WorkKind::bind) return false;
  return number < sends_.unsent() || sends_.at(number).rdma.progress.bytes > 0;
}

// The first that is not done and is meant is at fault. False: it is none that we know.
template <typename Culprit>
bool SoftQueuePair::writes_done_up_to(Culprit&& culprit, WorkStatus status) {
  base::Guard guard(send_lock_);
  std::uint64_t end = sends_.first();
  while (end != sends_.unsent() && !(!sends_.at(end).finished && culprit(sends_.at(end)))) ++end;
  if (end == sends_.unsent() && !(is_under_way(end) && culprit(sends_.at(end)))) return false;
  for (std::uint64_t number = sends_.first(); number != end; ++number) {
    SendRing::Entry& entry = sends_.at(number);
    if (is_write(entry.kind)) entry.finished = true;
  }
  note_failure(sends_.at(end), status);
  retire_finished();
  return true;
}

bool SoftQueuePair::write_refused(std::uint32_t key, std::uint64_t address, WorkStatus status) {
  const auto is_it = [&](const SendRing::Entry& entry) {
    return is_write(entry.kind) && entry.rdma.remote.key == key && address - entry.rdma.remote.address < entry.length;
  };
  return writes_done_up_to(is_it, status);
}

bool SoftQueuePair::read_refused(std::size_t before_it, WorkStatus status) {
  const auto is_it = [&](const SendRing::Entry& entry) { return is_read(entry.kind) && before_it-- == 0; };
  return writes_done_up_to(is_it, status);
}

void SoftQueuePair::request_refused(std::uint64_t number, WorkStatus status) {
  base::Guard guard(send_lock_);
  if (SendRing::Entry* const entry = sends_.find(number)) note_failure(*entry, status);
}

bool SoftQueuePair::request_refused(bool (*wanted)(WorkKind), std::size_t before_it, WorkStatus status) {
  base::Guard guard(send_lock_);
  // Or the next to be sent, if it has only asked for the peer's pages yet. Of Reads the peer counts also those that
  // have failed here.
  for (std::uint64_t number = sends_.first(); number != sends_.next() && number <= sends_.unsent(); ++number) {
    SendRing::Entry& entry = sends_.at(number);
    if (entry.finished || !wanted(entry.kind) || before_it-- != 0) continue;
    note_failure(entry, status);
    return true;
  }
  return false;
}

void SoftQueuePair::message_refused(const std::function<std::uint32_t()>& sent, WorkStatus status) {
  base::Guard guard(send_lock_);
  // With the lock, so that none is sent meanwhile.
  std::uint32_t from_it_on = sent();
  std::uint64_t message = sends_.unsent();
  while (from_it_on > 0 && message != sends_.first()) {
    if (is_message(sends_.at(--message).kind)) --from_it_on;
  }
  if (from_it_on > 0) return;  // it has completed, and what was before it: what comes behind is not to blame
  for (std::uint64_t number = sends_.first(); number != message; ++number) {
    SendRing::Entry& entry = sends_.at(number);
    if (is_write(entry.kind) || is_message(entry.kind)) entry.finished = true;
  }
  if (is_under_way(message)) note_failure(sends_.at(message), status);
  retire_finished();
}

std::optional<std::size_t> SoftQueuePair::aim_read(std::size_t skipped, std::size_t count, std::span<iovec> pieces) {
  base::Guard guard(send_lock_);
  const SendRing::Entry* entry = oldest_read();
  if (!entry || skipped + count > entry->length - entry->rdma.progress.bytes) return 0;
  if (!usable(entry->request())) return std::nullopt;
  return pieces_of(entry->all(), entry->rdma.progress.bytes + skipped, count, pieces);
}

void SoftQueuePair::read_failed(WorkStatus status) {
  fail_oldest([](WorkKind kind) { return kind == WorkKind::rdma_read; }, status);
}

void SoftQueuePair::fail_oldest(bool (*wanted)(WorkKind), WorkStatus status) {
  bool first = false;
  {
    base::Guard guard(send_lock_);
    SendRing::Entry* entry = oldest_held(wanted);
    if (!entry) return;
    entry->rdma.progress.failure = status;
    first = entry == &sends_.at(sends_.first());
  }
  if (first) break_connection(status, CloseReason::request_failed);
}

WorkStatus SoftQueuePair::failure_at_front() {
  if (sends_.first() == sends_.unsent()) return WorkStatus::success;
  const SendRing::Entry& entry = sends_.at(sends_.first());
  return is_read(entry.kind) ? entry.rdma.progress.failure : WorkStatus::success;
}

bool SoftQueuePair::read_placed(std::size_t count) {
  bool whole = false;
  {
    base::Guard guard(send_lock_);
    SendRing::Entry* entry = oldest_read();
    if (!entry || count > entry->length - entry->rdma.progress.bytes) return false;
    entry->rdma.progress.bytes += count;
    whole = entry->rdma.progress.bytes == entry->length;
  }
  if (whole) oldest_finished([](WorkKind kind) { return kind == WorkKind::rdma_read; });
  return true;
}

bool SoftQueuePair::place_read(const std::byte* bytes, std::size_t count) {
  if (unwanted_ != 0) {
    if (count > unwanted_) return false;
    unwanted_ -= count;
    return true;
  }
  std::array<iovec, kSegmentsMax> pieces;
  const std::optional<std::size_t> used = aim_read(0, count, pieces);
  if (!used) {
    {
      base::Guard guard(send_lock_);
      const SendRing::Entry* entry = oldest_read();
      unwanted_ = entry->length - entry->rdma.progress.bytes - count;
    }
    read_failed(WorkStatus::local_protection);
    return true;
  }
  if (*used == 0) return broken();
  for (const iovec& piece : std::span(pieces).first(*used)) {
    std::memcpy(piece.iov_base, bytes, piece.iov_len);
    bytes += piece.iov_len;
  }
  return read_placed(count);
}

}  // namespace anydat::nic::soft
