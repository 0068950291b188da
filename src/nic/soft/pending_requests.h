// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "nic/adapter.h"
#include "nic/soft/send_ring.h"

namespace anydat::nic::soft {

// The requests of one queue pair that have not completed, and how they do: each once and in posting order (DTO-40), in
// silence if it is suppressed. It counts what its stream holds, and says what that keeps back.
//
// Knows no lock, no stream and no connection: SendQueue calls it with its lock held.
class PendingRequests : public SendRing {
 public:
  explicit PendingRequests(const QueuePairEvents& events) : owner_(events.owner) {}

  // Null: requests complete in silence.
  void set_queue(CompletionQueue* queue) { queue_ = queue; }
  std::uint32_t reads_out() const { return reads_out_; }

  // ---- limits. What only a connection needs is not kept for those that have none; those that have had one keep it.
  // What set_limits() wants. Nothing: no ring is needed yet. Without a ring in it: there is no memory.
  std::optional<Storage> room_within(const QueuePairLimits& limits) const {
    if (!has_room()) return std::nullopt;
    return room_for(limits.send_depth, limits.send_segments);
  }
  void set_limits(const QueuePairLimits& limits, std::optional<Storage> room) {
    if (room) move_to(*std::move(room));
    reads_out_ = limits.reads_out;
    depth_limit_ = limits.send_depth;
    segments_limit_ = limits.send_segments;
  }
  // To come before a connection. False: there is no memory for it.
  bool make_room() { return has_room() || reserve(depth_limit_, segments_limit_); }

  // ---- what keeps requests back
  bool fences(WorkFlags flags) const { return flags.fence() && reads_held_ > 0; }
  // Besides its stream.
  bool keeps_back(const SendRequest& request) const {
    if (reads_held_ == 0) [[likely]]
      return false;
    if (request.flags.fence()) return true;                     // DTO-33
    return is_read(request.kind) && reads_held_ >= reads_out_;  // RDR-10
  }
  void note_read_held() { ++reads_held_; }

  // ---- completing
  // A request that is done while none is pending. False: the completion found no room.
  bool complete_at_once(std::uint64_t cookie, std::uint64_t length, WorkKind kind, WorkFlags flags);
  // The same of several. False: one of the completions at least found none.
  bool complete_at_once(std::span<const SingleSend> sends);
  // A request that is posted when all others have been flushed (DTO-20).
  void flush_at_once(std::uint64_t cookie, WorkKind kind, WorkFlags flags) {
    flush_at_once(owner_, cookie, kind, flags);
  }
  void flush_at_once(void* owner, std::uint64_t cookie, WorkKind kind, WorkFlags flags) {
    if (queue_) queue_->push({owner, cookie, 0, kind, WorkStatus::flushed, flags.unsignalled()});
  }
  // It is done; it completes when those before it have.
  void finish(Entry& entry) {
    entry.finished = true;
    if (is_read(entry.kind)) --reads_held_;
  }
  // Those in front that are finished. False: a completion found no room.
  bool retire_finished();
  // All of them. The first ends with that status; so many as may have failed on their own account end with that, up to
  // the first failure that is told; whatever else is there is flushed. Binds that are finished succeed. False as above.
  bool flush(WorkStatus first_status);

  // ---- what is held: the stream has it, and will say what comes of it
  template <typename Wanted>
  Entry* oldest_held(Wanted&& wanted) {
    for (std::uint64_t number = first(); number != unsent(); ++number) {
      Entry& entry = at(number);
      if (is_held(entry, wanted)) return &entry;
    }
    return nullptr;
  }
  // So many of them, from the oldest on. False if there are fewer.
  bool finish_oldest(bool (*wanted)(WorkKind), std::uint32_t count);
  // What the oldest request has failed with, while others before it were not done (DTO-40).
  WorkStatus failure_at_front() {
    if (first() == unsent()) return WorkStatus::success;
    const Entry& entry = at(first());
    return is_read(entry.kind) ? entry.rdma.progress.failure : WorkStatus::success;
  }

  // ---- what the peer refuses, with the end of the connection. What it has failed with before holds.
  static void note_failure(Entry& entry, WorkStatus status) {
    if (entry.rdma.progress.failure == WorkStatus::success) entry.rdma.progress.failure = status;
  }
  // The first that is not done and that culprit(entry) is at fault; the Writes before it have been done. False: it is
  // none that we know.
  template <typename Culprit>
  bool refuse(Culprit&& culprit, WorkStatus status) {
    std::uint64_t end = first();
    while (end != unsent() && !(!at(end).finished && culprit(at(end)))) ++end;
    if (end == unsent() && !(is_under_way(end) && culprit(at(end)))) return false;
    finish_before(end, is_write);
    note_failure(at(end), status);
    return true;
  }
  // The one of its kind that has so many before it.
  bool refuse(bool (*wanted)(WorkKind), std::size_t before_it, WorkStatus status);
  // The message from which on so many have been sent, none if it is still being sent; messages before it have been
  // done, too.
  void refuse_message(std::uint32_t from_it_on, WorkStatus status);

 private:
  template <typename Wanted>
  static bool is_held(const Entry& entry, Wanted&& wanted) {
    return wanted(entry.kind) && !entry.finished &&
           !(is_read(entry.kind) && entry.rdma.progress.failure != WorkStatus::success);
  }
  bool is_under_way(std::uint64_t number);
  template <typename Done>
  void finish_before(std::uint64_t end, Done&& done) {
    for (std::uint64_t number = first(); number != end; ++number) {
      Entry& entry = at(number);
      if (done(entry.kind)) entry.finished = true;
    }
  }
  void write_completed(QueuedEvent& event, std::uint64_t cookie, std::uint64_t length, WorkKind kind) const;
  bool complete(const Entry& entry, WorkStatus status);
  std::uint64_t finished_plainly();
  bool complete_in_a_row(std::uint64_t count);

  void* const owner_;  // named in each completion
  CompletionQueue* queue_ = nullptr;
  std::uint32_t reads_held_ = 0;  // Reads, and atomic operations, that the stream holds
  std::uint32_t reads_out_ = 0;
  std::uint32_t depth_limit_ = 0;  // this and segments_limit_: the ring's when there is to be a connection
  std::uint32_t segments_limit_ = 0;
};

inline void PendingRequests::write_completed(QueuedEvent& done, std::uint64_t cookie, std::uint64_t length,
                                             WorkKind kind) const {
  done.event.kind = EventKind::dto_completion;
  done.event.status = WorkStatus::success;
  done.event.operation = kind;
  done.event.notice = 0;
  done.event.detail = 0;
  done.event.object = owner_;
  done.event.cookie = cookie;
  done.event.length = length;
  done.reaped = nullptr;
}

inline bool PendingRequests::complete_at_once(std::uint64_t cookie, std::uint64_t length, WorkKind kind,
                                              WorkFlags flags) {
  skip();
  CompletionQueue* const queue = queue_;
  if (flags.suppress() || !queue) [[unlikely]]
    return true;
  return queue->push_quietly(1, [&](QueuedEvent& done) { write_completed(done, cookie, length, kind); }) ||
         queue->push({owner_, cookie, length, kind, WorkStatus::success, flags.unsignalled()});
}

inline bool PendingRequests::complete_at_once(std::span<const SingleSend> sends) {
  skip(sends.size());
  CompletionQueue* const queue = queue_;
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
    completions[used++] = {owner_,         send.cookie,         send.segment.length,
                           WorkKind::send, WorkStatus::success, send.flags.unsignalled()};
  }
  return queue->push(std::span(completions).first(used)) == used;
}

}  // namespace anydat::nic::soft
