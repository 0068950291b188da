// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/pending_requests.h"

#include "nic/soft/window.h"

namespace anydat::nic::soft {

bool PendingRequests::complete(const Entry& entry, WorkStatus status) {
  if (status == WorkStatus::success && entry.flags.suppress()) return true;
  if (!queue_) return true;
  void* owner = entry.kind == WorkKind::bind ? entry.bind.owner : owner_;
  const bool kept = queue_->push({owner, entry.cookie, entry.length, entry.kind, status, entry.flags.unsignalled()});
  return kept || status != WorkStatus::success;
}

bool PendingRequests::retire_finished() {
  bool kept = true;
  while (!empty() && at(first()).finished) {
    if (const std::uint64_t plain = finished_plainly(); plain > 1 && complete_in_a_row(plain)) continue;
    kept &= complete(at(first()), WorkStatus::success);
    drop_first();
  }
  return kept;
}

// How many of the finished ones in front complete, of this queue pair and with nothing unusual.
std::uint64_t PendingRequests::finished_plainly() {
  std::uint64_t end = first();
  const auto plain = [](const Entry& entry) {
    return entry.finished && entry.kind != WorkKind::bind && !entry.flags.suppress() && !entry.flags.unsignalled();
  };
  while (end != unsent() && end - first() < kRowMax && plain(at(end))) ++end;
  return end - first();
}

// False: nothing has happened.
bool PendingRequests::complete_in_a_row(std::uint64_t count) {
  std::uint64_t next = first();
  const bool kept = queue_ && queue_->push_quietly(count, [&](QueuedEvent& done) {
    const Entry& entry = at(next++);
    write_completed(done, entry.cookie, entry.length, entry.kind);
  });
  for (; kept && count > 0; --count) drop_first();
  return kept;
}

bool PendingRequests::flush(WorkStatus first_status) {
  reads_held_ = 0;
  WorkStatus rest = first_status;
  bool failed = false;
  bool kept = true;
  while (!empty()) {
    const Entry& entry = at(first());
    if (entry.kind == WorkKind::bind && entry.finished) {
      // Flushed would say that its window is as it was (RMR-BIND-13).
      kept &= complete(entry, WorkStatus::success);
      drop_first();
      continue;
    }
    if (entry.kind == WorkKind::bind) entry.bind.window->give_up(entry.bind.key, entry.bind.tag);
    const WorkStatus own = failed ? WorkStatus::success : failure_of(entry);
    const WorkStatus status = own != WorkStatus::success ? own : rest;
    failed |= status != WorkStatus::flushed;
    complete(entry, status);
    drop_first();
    rest = WorkStatus::flushed;
  }
  return kept;
}

bool PendingRequests::finish_oldest(bool (*wanted)(WorkKind), std::uint32_t count) {
  for (std::uint64_t number = first(); number != unsent() && count > 0; ++number) {
    Entry& entry = at(number);
    if (!is_held(entry, wanted)) continue;
    finish(entry);
    --count;
  }
  return count == 0;
}

// The stream has it, or has sent the beginning of it.
bool PendingRequests::is_under_way(std::uint64_t number) {
  if (number == next() || at(number).kind == WorkKind::bind) return false;
  return number < unsent() || at(number).rdma.progress.bytes > 0;
}

bool PendingRequests::refuse(bool (*wanted)(WorkKind), std::size_t before_it, WorkStatus status) {
  // Or the next to be sent, if it has only asked for the peer's pages yet. Of Reads the peer counts also those that
  // have failed here.
  for (std::uint64_t number = first(); number != next() && number <= unsent(); ++number) {
    Entry& entry = at(number);
    if (entry.finished || !wanted(entry.kind) || before_it-- != 0) continue;
    note_failure(entry, status);
    return true;
  }
  return false;
}

void PendingRequests::refuse_message(std::uint32_t from_it_on, WorkStatus status) {
  std::uint64_t message = unsent();
  while (from_it_on > 0 && message != first()) {
    if (is_message(at(--message).kind)) --from_it_on;
  }
  if (from_it_on > 0) return;  // it has completed, and what was before it: what comes behind is not to blame
  finish_before(message, [](WorkKind kind) { return is_write(kind) || is_message(kind); });
  if (is_under_way(message)) note_failure(at(message), status);
}

}  // namespace anydat::nic::soft
