// SPDX-License-Identifier: BSD-3-Clause
// The sending side: posts, and what stands before them in the queue pair, so that it is one call.
#include "nic/soft/send_side.h"

#include <functional>
#include <numeric>
#include <type_traits>

#include "nic/soft/adapter.h"
#include "nic/soft/queue_pair.h"
#include "nic/soft/window.h"

namespace anydat::nic::soft {

// EVM-54
void SendSide::overflowed() {
  queue_pair_.connection().completion_overflowed();
  adapter_.engine().run_tasks_if_free();
}

template <WorkKind kind>
bool SendSide::again(const SingleRdma& request) {
  bool overflows = false;
  {
    os::Guard guard(lock_);
    if (state() != State::connected || !requests_.empty() || !lanes_.rdma<kind>().leads_to(request.remote.key) ||
        !lanes_.rdma<kind>().carry(request, adapter_.engine().moment(), adapter_.moments(), adapter_.resident_pages()))
        [[unlikely]] {
      return false;
    }
    counters_.count_rdma(kind, request.length);
    counters_.rdmas_in_memory.add();
    overflows = !requests_.complete_at_once(request.cookie, request.length, kind, request.flags);
  }
  if (overflows) [[unlikely]]
    overflowed();
  return true;
}

[[gnu::always_inline]] inline bool SendSide::send_again(const SingleSend& send) {
  if (!lanes_.send.is(send.segment.key)) return false;
  bool overflows = false;
  {
    os::Guard guard(lock_);
    if (state() != State::connected || !requests_.empty() ||
        !lanes_.send.holds(send.segment, adapter_.engine().moment(), adapter_.moments(), adapter_.resident_pages()) ||
        !stream_->send_again(send)) [[unlikely]] {
      return false;
    }
    counters_.sends.add();
    counters_.send_bytes.add(send.segment.length);
    overflows = !requests_.complete_at_once(send.cookie, send.segment.length, WorkKind::send, send.flags);
  }
  if (overflows) [[unlikely]]
    overflowed();
  return true;
}

bool SendSide::put_again(const SingleRdma& request) {
  os::Guard guard(lock_);
  if (state() != State::connected || !requests_.all_sent() || requests_.full() || requests_.fences(request.flags) ||
      !lanes_.put.holds(request.local) || !stream_->put_again(request)) [[unlikely]] {
    lanes_.put.close();  // until one is put again; those that go another way pay nothing for it
    return false;
  }
  counters_.count_rdma(WorkKind::rdma_write, request.length);
  counters_.rdmas_by_peer.add();
  SendRing::Entry& entry = requests_.append(SendRequest{
      request.cookie, {&request.local, 1}, request.length, request.flags, WorkKind::rdma_write, request.remote});
  entry.rdma.progress.bytes = request.length;
  requests_.mark_sent();
  return true;
}

// Of no connection, or one that is over or ends in order.
template <typename Request>
Status SendSide::post_unconnected(const Request& request) {
  switch (state()) {
    case State::ending:  // it will be flushed in its turn
      if (requests_.full()) return Status::queue_full;
      requests_.append(request);
      return Status::ok;
    case State::closed:
      // DTO-20: accepted and flushed at once, behind everything that was flushed before.
      requests_.flush_at_once(request.cookie, request.kind, request.flags);
      return Status::ok;
    default:
      return Status::not_connected;
  }
}

// In place, since this is the way of every post.
template <typename Request>
[[gnu::always_inline]] inline Status SendSide::post_locked(const Request& request, Aftermath& after) {
  if (state() != State::connected) [[unlikely]]
    return post_unconnected(request);
  if constexpr (std::is_same_v<Request, ExtendedRequest>) {
    if ((peer_takes_ & ability_for(request.kind)) == 0) return Status::unsupported;
  }
  if (requests_.full()) return Status::queue_full;
  bool sends = request.kind == WorkKind::send;
  if constexpr (std::is_same_v<Request, ExtendedRequest>) sends = request.kind == WorkKind::send_invalidate;
  if (sends) {
    counters_.sends.add();
    counters_.send_bytes.add(request.length);
  } else {
    counters_.count_rdma(request.kind, request.length);
  }
  Progress progress;
  if (requests_.empty()) {
    note_sending();  // before the stream asks usable(), and before it may open a lane
    const SendOutcome outcome = hand_over(requests_.next(), request, progress);
    if (outcome == SendOutcome::done) {
      after.overflowed |= !requests_.complete_at_once(request.cookie, request.length, request.kind, request.flags);
    } else {
      requests_.append(request).rdma.progress = progress;
      if (outcome == SendOutcome::pending) requests_.mark_sent();
      after.failed |= outcome == SendOutcome::failed;
    }
  } else {
    const bool nothing_blocked = requests_.all_sent();
    SendRing::Entry& entry = requests_.append(request);
    if (nothing_blocked) {
      const SendOutcome outcome = hand_over(requests_.next() - 1, request, progress);
      entry.rdma.progress = progress;
      entry.finished = outcome == SendOutcome::done;  // completes after those before it
      if (outcome == SendOutcome::done || outcome == SendOutcome::pending) requests_.mark_sent();
      after.failed |= outcome == SendOutcome::failed;
    }
  }
  return Status::ok;
}

inline void SendSide::see_to(const Aftermath& after) {
  if (after.overflowed) [[unlikely]]
    overflowed();
  if (after.failed) [[unlikely]]
    adapter_.engine().schedule(pump_task_);  // breaking the connection takes the engine
}

// Apart, so that it knows the send queue alone: of the queue pair, too, it would need more registers than there are.
template <typename Request>
[[gnu::noinline]] Status SendSide::post(const Request& request) {
  Aftermath after;
  Status status = Status::ok;
  {
    os::Guard guard(lock_);
    status = post_locked(request, after);
  }
  see_to(after);
  return status;
}

Status SendSide::post_of_row(const SendRequest& request, Aftermath& after) {
  return post_locked(request, after);
}

// Sends of the row, from the first on, that are done now and have nothing before them. How many.
std::size_t SendSide::send_at_once(const SendRow& row, Aftermath& after) {
  if (state() != State::connected || !requests_.empty() || requests_.full()) return 0;
  note_sending();
  const std::size_t done = stream_->send_row(row);
  if (done == 0) return 0;
  const std::span<const SingleSend> sent = row.sends.first(done);
  counters_.sends.add(done);
  counters_.send_bytes.add(std::transform_reduce(sent.begin(), sent.end(), std::uint64_t{0}, std::plus<>(),
                                                 [](const SingleSend& send) { return send.segment.length; }));
  after.overflowed |= !requests_.complete_at_once(sent);
  return done;
}

[[gnu::always_inline]] inline Status SendSide::post_row(const SendRow& row, std::size_t& posted) {
  Aftermath after;
  Status status = Status::ok;
  posted = 0;
  while (status == Status::ok && posted < row.sends.size()) {
    os::Guard guard(lock_);
    const std::size_t done = send_at_once(row.behind(posted), after);
    posted += done;
    if (done > 0) continue;
    // A long one may take its time in the stream, so the lock goes from hand to hand between two. Behind one that is
    // blocked they only join the ring.
    do {
      status = post_of_row(row.request(posted), after);
      if (status == Status::ok) ++posted;
    } while (status == Status::ok && posted < row.sends.size() && !requests_.all_sent());
  }
  see_to(after);
  return status;
}

Status SendSide::post_bind(const BindRequest& request, std::uint32_t& key) {
  key = 0;
  {
    os::Guard guard(lock_);
    if (state() == State::closed) {
      requests_.flush_at_once(request.owner, request.cookie, WorkKind::bind, request.flags);
      return Status::ok;
    }
    if (state() != State::connected && state() != State::ending) return Status::not_connected;
    if (requests_.full()) return Status::queue_full;
    key = adapter_.regions().reserve();
    if (key == 0) return Status::no_memory;
    counters_.binds.add();
    SendRing::Entry& entry =
        requests_.append(SendRequest{request.cookie, {&request.part, 1}, 0, request.flags, WorkKind::bind, {}});
    entry.bind = {static_cast<SoftWindow*>(request.window), request.owner, request.tag, key, request.rights, false};
  }
  pump();
  return Status::ok;
}

// ---- as the queue pair's own

Status SoftQueuePair::post_send(const SendRequest& request) {
  return sends_.post(request);
}

Status SoftQueuePair::post_extended(const ExtendedRequest& request) {
  return sends_.post(request);
}

Status SoftQueuePair::post_sends(const SendRow& row, std::size_t& posted) {
  return sends_.post_row(row, posted);
}

Status SoftQueuePair::post_bind(const BindRequest& request, std::uint32_t& key) {
  return sends_.post_bind(request, key);
}

bool SoftQueuePair::write_again(const SingleRdma& request) {
  return sends_.write_again(request);
}

bool SoftQueuePair::read_again(const SingleRdma& request) {
  return sends_.read_again(request);
}

bool SoftQueuePair::send_again(const SingleSend& send) {
  return sends_.send_again(send);
}

}  // namespace anydat::nic::soft
