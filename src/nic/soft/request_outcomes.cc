// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/request_outcomes.h"

#include <array>
#include <cstring>

#include "nic/soft/queue_pair.h"
#include "nic/soft/scatter.h"

namespace anydat::nic::soft {

namespace {

bool is_atomic(WorkKind kind) {
  return kind == WorkKind::fetch_add || kind == WorkKind::compare_swap;
}

bool is_rdma_read(WorkKind kind) {
  return kind == WorkKind::rdma_read;
}

}  // namespace

void RequestOutcomes::finished(std::uint64_t number, WorkStatus status) {
  SendQueue::Outcome outcome;
  {
    os::Guard guard(sends_.lock());
    SendRing::Entry* entry = sends_.requests().find(number);
    if (!entry) return;
    if (status == WorkStatus::success) {
      sends_.requests().finish(*entry);
      outcome = sends_.retire();
    } else {
      entry->rdma.progress.failure = status;
    }
  }
  if (status != WorkStatus::success)
    queue_pair_.connection().break_off(WorkStatus::flushed, CloseReason::request_failed);
  if (outcome.failure != WorkStatus::success) {
    queue_pair_.connection().break_off(outcome.failure, CloseReason::request_failed);
  }
  if (outcome.drained) queue_pair_.connection().orderly_end().finish_if_drained();
}

inline SendRing::Entry* RequestOutcomes::oldest_read() {
  return sends_.requests().oldest_held([](WorkKind kind) { return kind == WorkKind::rdma_read; });
}

bool RequestOutcomes::oldest_finished(bool (*wanted)(WorkKind), std::uint32_t count) {
  SendQueue::Outcome outcome;
  {
    os::Guard guard(sends_.lock());
    if (!sends_.requests().finish_oldest(wanted, count)) return false;
    outcome = sends_.retire();
  }
  if (outcome.failure != WorkStatus::success) {
    queue_pair_.connection().break_off(outcome.failure, CloseReason::request_failed);
  } else if (outcome.drained) {
    queue_pair_.connection().orderly_end().finish_if_drained();
  } else if (outcome.blocked) {
    sends_.pump();
  }
  return true;
}

bool RequestOutcomes::writes_finished(std::uint32_t count) {
  return oldest_finished(is_write, count);
}

bool RequestOutcomes::atomic_finished(std::uint64_t was) {
  bool usable_memory = false;
  {
    os::Guard guard(sends_.lock());
    const SendRing::Entry* entry = sends_.requests().oldest_held(is_atomic);
    if (!entry) return false;
    usable_memory = sends_.usable(entry->request());
    if (usable_memory) std::memcpy(reinterpret_cast<void*>(entry->all().front().address), &was, sizeof was);
  }
  if (usable_memory) return oldest_finished(is_atomic);
  atomic_failed(WorkStatus::local_protection);
  return true;
}

std::size_t RequestOutcomes::aim_atomic(std::span<iovec> pieces) {
  os::Guard guard(sends_.lock());
  const SendRing::Entry* entry = sends_.requests().oldest_held(is_atomic);
  return entry && sends_.usable(entry->request()) ? pieces_of(entry->all(), 0, entry->length, pieces) : 0;
}

void RequestOutcomes::atomic_failed(WorkStatus status) {
  fail_oldest(is_atomic, status);
}

template <typename Culprit>
bool RequestOutcomes::refused(Culprit&& culprit, WorkStatus status) {
  os::Guard guard(sends_.lock());
  if (!sends_.requests().refuse(culprit, status)) return false;
  sends_.retire_finished();
  return true;
}

bool RequestOutcomes::write_refused(std::uint32_t key, std::uint64_t address, WorkStatus status) {
  const auto is_it = [&](const SendRing::Entry& entry) {
    return is_write(entry.kind) && entry.rdma.remote.key == key && address - entry.rdma.remote.address < entry.length;
  };
  return refused(is_it, status);
}

bool RequestOutcomes::read_refused(std::size_t before_it, WorkStatus status) {
  const auto is_it = [&](const SendRing::Entry& entry) { return is_read(entry.kind) && before_it-- == 0; };
  return refused(is_it, status);
}

void RequestOutcomes::request_refused(std::uint64_t number, WorkStatus status) {
  os::Guard guard(sends_.lock());
  if (SendRing::Entry* const entry = sends_.requests().find(number)) PendingRequests::note_failure(*entry, status);
}

bool RequestOutcomes::request_refused(bool (*wanted)(WorkKind), std::size_t before_it, WorkStatus status) {
  os::Guard guard(sends_.lock());
  return sends_.requests().refuse(wanted, before_it, status);
}

void RequestOutcomes::message_refused(const std::function<std::uint32_t()>& sent, WorkStatus status) {
  os::Guard guard(sends_.lock());
  sends_.requests().refuse_message(sent(), status);
  sends_.retire_finished();
}

std::optional<std::size_t> RequestOutcomes::aim_read(std::size_t skipped, std::size_t count, std::span<iovec> pieces) {
  os::Guard guard(sends_.lock());
  const SendRing::Entry* entry = oldest_read();
  if (!entry || skipped + count > entry->length - entry->rdma.progress.bytes) return 0;
  if (!sends_.usable(entry->request())) return std::nullopt;
  return pieces_of(entry->all(), entry->rdma.progress.bytes + skipped, count, pieces);
}

void RequestOutcomes::read_failed(WorkStatus status) {
  fail_oldest(is_rdma_read, status);
}

void RequestOutcomes::fail_oldest(bool (*wanted)(WorkKind), WorkStatus status) {
  bool first = false;
  {
    os::Guard guard(sends_.lock());
    PendingRequests& requests = sends_.requests();
    SendRing::Entry* entry = requests.oldest_held(wanted);
    if (!entry) return;
    entry->rdma.progress.failure = status;
    first = entry == &requests.at(requests.first());
  }
  if (first) queue_pair_.connection().break_off(status, CloseReason::request_failed);
}

bool RequestOutcomes::read_placed(std::size_t count) {
  bool whole = false;
  {
    os::Guard guard(sends_.lock());
    SendRing::Entry* entry = oldest_read();
    if (!entry || count > entry->length - entry->rdma.progress.bytes) return false;
    entry->rdma.progress.bytes += count;
    whole = entry->rdma.progress.bytes == entry->length;
  }
  if (whole) oldest_finished(is_rdma_read);
  return true;
}

bool RequestOutcomes::place_read(const std::byte* bytes, std::size_t count) {
  if (unwanted_ != 0) {
    if (count > unwanted_) return false;
    unwanted_ -= count;
    return true;
  }
  std::array<iovec, kSegmentsMax> pieces;
  const std::optional<std::size_t> used = aim_read(0, count, pieces);
  if (!used) {
    {
      os::Guard guard(sends_.lock());
      const SendRing::Entry* entry = oldest_read();
      unwanted_ = entry->length - entry->rdma.progress.bytes - count;
    }
    read_failed(WorkStatus::local_protection);
    return true;
  }
  if (*used == 0) return is_over(queue_pair_.state());
  for (const iovec& piece : std::span(pieces).first(*used)) {
    std::memcpy(piece.iov_base, bytes, piece.iov_len);
    bytes += piece.iov_len;
  }
  return read_placed(count);
}

}  // namespace anydat::nic::soft
