// SPDX-License-Identifier: BSD-3-Clause
// RDMA requests that the peer carries out, since it is faster or the only one who can.
#include <algorithm>
#include <array>
#include <cstring>

#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/atomic_word.h"
#include "nic/soft/copy.h"
#include "nic/soft/wire/shm/copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/rdma_requester.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

namespace {

// So many Writes that the peer has not answered: it may have to keep them, and keeps no more than 8 MiB.
constexpr std::uint32_t kPutsUnderWayMax = kFaultInBytesMax / (kShortWriteMax + kPutOverhead);

}  // namespace

// What the peer refuses ends the connection, and messages before it are not to end with that.
SendOutcome RdmaRequester::by_peer(const SendRequest& message, Progress& progress) {
  if (stream_.rendezvous_sender().any()) return SendOutcome::blocked;  // asked again once they have left
  sends_.lanes().close();
  if (message.kind != WorkKind::rdma_read && progress.bytes == 0 && message.length <= kShortWriteMax)
    return pages_.told(message, 0, message.length, remote_user()) ? write_by_peer(message, progress)
                                                                  : without_pages(message, progress);
  const RemoteSegment& remote = message.remote;
  if (message.kind == WorkKind::rdma_read) {
    // What comes is put in place when it does. What this side has read before it could no longer is not asked for
    // again.
    const GetBody body{remote.address + progress.bytes, message.length - progress.bytes, remote.key};
    if (!stream_.pages().of_requests().there(message.segments, {progress.bytes, body.length}, body.length, true))
      return SendOutcome::blocked;
    const bool sent = link_->sender().try_send(stream_, CellKind::get, 0, remote_, sizeof body, 0,
                                               [&](std::byte* to) { std::memcpy(to, &body, sizeof body); });
    return sent ? SendOutcome::pending : SendOutcome::blocked;
  }
  for (int turn = 0; turn < budget::kPiecesPerTurn; ++turn) {
    const std::uint64_t count = std::min<std::uint64_t>(kPieceBytesMax, message.length - progress.bytes);
    if (!pages_.told(message, progress.bytes, count, remote_user())) return without_pages(message, progress);
    if (!stream_.pages().of_requests().there(message.segments, {progress.bytes, count}, message.length - progress.bytes,
                                             false))
      return SendOutcome::blocked;
    const bool last = progress.bytes + count == message.length;
    // Of one with immediate data, these ask.
    const bool asks = last && message.kind == WorkKind::rdma_write;
    if (asks) count_put(1);
    const PutBody body{0, remote.address, message.length, progress.bytes, remote.key};
    const bool sent = link_->sender().try_send_piece(
        stream_, CellKind::put, asks ? kFlagLast : 0, remote_, static_cast<std::uint32_t>(count), 0, body,
        [&](std::byte* to) { gather_streaming(to, message.segments, progress.bytes, count); });
    if (!sent) {
      if (asks) count_put(-1u);
      return SendOutcome::blocked;
    }
    progress.bytes += count;
    begun_by_peer_ = !asks;
    if (last) return SendOutcome::pending;
  }
  return later();
}

// A short one, in one message.
SendOutcome RdmaRequester::write_by_peer(const SendRequest& message, Progress& progress) {
  if (stream_.rendezvous_sender().any() || puts_under_way() >= kPutsUnderWayMax)
    return SendOutcome::blocked;  // as in by_peer()
  const bool seen = message.segments.size() == 1 &&
                    pages_.seen().cover(link_->peer_memory().epoch(), message.segments[0].address, message.length);
  if (!seen && !stream_.pages().of_requests().there(message.segments, {0, message.length}, message.length, false))
    return SendOutcome::blocked;
  const bool asks = message.kind == WorkKind::rdma_write;
  if (asks) count_put(1);
  const WriteBody body{message.remote.address, message.remote.key, 0};
  const bool sent = link_->sender().try_send(
      stream_, CellKind::write, asks ? kFlagLast : 0, remote_, static_cast<std::uint32_t>(sizeof body + message.length),
      0, [&](std::byte* to) {
        std::memcpy(to, &body, sizeof body);
        to += sizeof body;
        gather(message.segments, 0, message.length, [&](const std::byte* from, std::size_t part) {
          std::memcpy(to, from, part);
          to += part;
        });
      });
  if (!sent) {
    if (asks) count_put(-1u);
    return SendOutcome::blocked;
  }
  progress.bytes = message.length;
  begun_by_peer_ = !asks;
  if (link_->peer_memory().reachable()) sends_.counters().rdmas_by_peer.add();
  return SendOutcome::pending;
}

// The conditions of send(), unmapped() and write_by_peer() for one that is like the one before it. The region is
// looked at by the peer alone.
inline bool RdmaRequester::put_again(const SingleRdma& request) {
  if (put_lane_.key != request.remote.key || request.length > kShortWriteMax || put_lane_.left == 0 || begun_by_peer_ ||
      waits_ || puts_under_way() >= kPutsUnderWayMax || stream_.rendezvous_sender().any() ||
      !link_->doorbell().peer_polls() || !link_->doorbell().peer_expects() ||
      !pages_.seen().cover(link_->peer_memory().epoch(), request.remote.address + put_lane_.shift,
                           request.local.address, request.length, false)) {
    return false;
  }
  --put_lane_.left;
  count_put(1);
  const WriteBody body{request.remote.address, request.remote.key, 0};
  const auto length = static_cast<std::uint32_t>(sizeof body + request.length);
  if (link_->sender().try_send_again(CellKind::write, kFlagLast, remote_, length, [&](std::byte* to) {
        std::memcpy(to, &body, sizeof body);
        copy_short(to + sizeof body, reinterpret_cast<const std::byte*>(request.local.address), request.length);
      })) [[likely]] {
    return true;
  }
  count_put(-1u);
  return false;
}

// Here, so that there is one function for it.
bool ShmStream::put_again(const SingleRdma& request) {
  return rdma_.put_again(request);
}

// What a Write is followed by: in the ring, which is in order behind all ways that its bytes may have gone.
SendOutcome RdmaRequester::write_immediate(const SendRequest& message, Progress& progress) {
  if (peer_left_) return SendOutcome::blocked;
  if (progress.bytes < message.length) {
    const SendOutcome outcome = send<WorkKind::rdma_write>(message, progress);
    if (outcome == SendOutcome::blocked || outcome == SendOutcome::failed) return outcome;
  }
  constexpr std::uint32_t cells = cells_for(sizeof(ImmediateBody));
  if (!stream_.sender().window().has_room(cells)) return SendOutcome::blocked;
  const ImmediateBody body{message.length, message.remote.value};
  const bool asks = begun_by_peer_;
  if (asks) count_put(1);
  const auto flags =
      static_cast<std::uint8_t>((message.flags.solicited() ? kFlagSolicited : 0) | (asks ? kFlagLast : 0));
  const bool sent = link_->sender().try_send(stream_, CellKind::immediate, flags, remote_, sizeof body, 0,
                                             [&](std::byte* to) { std::memcpy(to, &body, sizeof body); });
  if (!sent) {
    if (asks) count_put(-1u);
    return SendOutcome::blocked;
  }
  stream_.sender().window().use(cells);
  begun_by_peer_ = false;
  return asks ? SendOutcome::pending : SendOutcome::done;
}

// Also where the memory is at hand: its owner carries out those of all peers, so that they have one order (D2-ATOM-4).
SendOutcome RdmaRequester::atomic(const ExtendedRequest& message, Progress& progress) {
  if (!sends_.usable(message)) return fail(progress, WorkStatus::local_protection);
  if (remote_terms_.reads_in == 0) return fail(progress, WorkStatus::remote_responder);
  if (peer_left_ || stream_.rendezvous_sender().any()) return SendOutcome::blocked;  // as in send() and by_peer()
  const AtomicBody body{
      message.remote.address, message.operand, message.compare, message.remote.key,
      message.kind == WorkKind::fetch_add ? AtomicOperation::fetch_add : AtomicOperation::compare_swap};
  if (!stream_.pages().of_requests().there(message.segments, {0, kAtomicBytes}, kAtomicBytes, true))
    return SendOutcome::blocked;
  atomics_under_way_.fetch_add(1);  // first: the answer may be there before try_send() has returned
  const bool sent = link_->sender().try_send(stream_, CellKind::atomic, 0, remote_, sizeof body, 0,
                                             [&](std::byte* to) { std::memcpy(to, &body, sizeof body); });
  if (!sent) atomics_under_way_.fetch_sub(1);
  return sent ? SendOutcome::pending : SendOutcome::blocked;
}

bool RdmaRequester::atomic_done_arrived(const CellView& view) {
  AtomicDoneBody body;
  if (view.length != sizeof body || atomics_under_way_.load() == 0) return false;
  std::memcpy(&body, view.body, sizeof body);
  atomics_under_way_.fetch_sub(1);
  return stream_.queue_pair().outcomes().atomic_finished(body.was);
}

bool RdmaRequester::done_arrived(std::uint32_t more) {
  if (more >= puts_under_way()) return false;
  puts_answered_.store(puts_answered_.load(std::memory_order_relaxed) + more + 1, std::memory_order_release);
  return stream_.queue_pair().outcomes().writes_finished(more + 1);
}

}  // namespace anydat::nic::soft::shm
