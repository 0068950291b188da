// SPDX-License-Identifier: BSD-3-Clause
// The sending side of a connection over shared memory.
#include <algorithm>
#include <cstring>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

inline bool ShmStream::small_source_there(const SendRequest& message) {
  if (message.segments.size() == 1 && seen_lately(message.segments.front(), false, engine_.moment(), sends_seen_))
      [[likely]]
    return true;
  return pages_.of_requests().there(message.segments, {0, message.length}, message.length, false,
                                    OwnPages::CopiedBy::us_in_short);
}

// Apart, so that what it needs is not in the way of RDMA.
template <CellKind kind>
[[gnu::noinline]] SendOutcome ShmStream::send_inline(const SendRequest& message, Progress& progress) {
  if (!sends_.usable(message)) [[unlikely]] {
    progress.failure = WorkStatus::local_protection;
    return SendOutcome::failed;
  }
  const std::uint32_t cells = cells_for(message.length);
  if (!send_window_.has_room(cells)) return SendOutcome::blocked;
  if (!small_source_there(message)) [[unlikely]]
    return SendOutcome::blocked;  // take_turn() hands it over again
  const bool sent = link_->try_send(
      *this, kind, message.flags.solicited() ? kFlagSolicited : 0, remote_, static_cast<std::uint32_t>(message.length),
      kind == CellKind::send_invalidate ? message.remote.key : 0, [&](std::byte* body) {
        for (const nic::Segment& segment : message.segments) {
          if (segment.length == 0) continue;
          std::memcpy(body, reinterpret_cast<const void*>(segment.address), segment.length);
          body += segment.length;
        }
      });
  if (!sent) return SendOutcome::blocked;
  send_window_.use(cells);
  if (kind == CellKind::send) sends_.lanes().open_send(message, queue_pair_.memory().zone());
  return SendOutcome::done;
}

SendOutcome ShmStream::send(std::uint64_t number, const SendRequest& message, Progress& progress) {
  if (message.kind == WorkKind::rdma_write) return rdma_.send<WorkKind::rdma_write>(message, progress);
  if (message.kind == WorkKind::rdma_read) return rdma_.send<WorkKind::rdma_read>(message, progress);
  if (message.kind == WorkKind::send) [[likely]]
    return message.length <= kInlineBytesMax ? send_inline<CellKind::send>(message, progress)
                                             : rendezvous_sender_.announce(number, message);
  if (message.kind == WorkKind::send_invalidate) {
    return message.length <= kInlineBytesMax ? send_inline<CellKind::send_invalidate>(message, progress)
                                             : rendezvous_sender_.announce(number, message);
  }
  if (message.kind == WorkKind::write_immediate) return rdma_.write_immediate(message, progress);
  return rdma_.atomic(static_cast<const ExtendedRequest&>(message), progress);
}

bool ShmStream::send_again(const SingleSend& send) {
  if (send.segment.length > kInlineBytesMax) [[unlikely]]
    return false;
  const std::uint32_t cells = cells_for(send.segment.length);
  if (!send_window_.has_room(cells) || !link_->try_send_again(remote_, send, cells)) [[unlikely]] {
    return false;
  }
  send_window_.use(cells);
  return true;
}

std::size_t ShmStream::send_row(const SendRow& row) {
  if (row.sends.front().segment.length > kInlineBytesMax || !sends_.surely_usable(row)) [[unlikely]]
    return 0;
  const std::uint64_t used = send_window_.in_use();
  if (used >= kWindowCells) [[unlikely]]
    return 0;  // also where the peer has given back more than there was
  std::uint64_t moment = engine_.moment();
  if (moment == kNoMoment) moment = moment_of(engine_.ticks());
  const auto unseen = std::find_if_not(row.sends.begin(), row.sends.end(), [&](const SingleSend& send) {
    return seen_lately(send.segment, false, moment, sends_seen_);
  });
  const std::span<const SingleSend> seen(row.sends.begin(), unseen);
  if (seen.empty()) [[unlikely]]
    return 0;
  const std::uint64_t left = kWindowCells - used;
  std::uint64_t still_left = left;
  const std::size_t sent = link_->try_send_row(remote_, seen, still_left);
  send_window_.use(left - still_left);
  return sent;
}

bool ShmStream::take_turn() {
  rdma_.ask_for_mapping();
  bool moved = false;
  or_break([&] {
    if (!closed_) rdma_.ask_for_pages();
    pages_.bring();
    if (!closed_) responder_.bring();
    if (!closed_) rendezvous_receiver_.place_held();
    if (!closed_) writes_.go_on();
    if (!closed_) rendezvous_receiver_.grant_pieces();
    moved = !closed_ && rendezvous_receiver_.pull_some();
    moved |= !closed_ && rendezvous_sender_.push_some();
    moved |= !closed_ && rendezvous_sender_.send_pieces();
    moved |= !closed_ && responder_.serve();
  });
  moved |= !closed_ && sends_.pump();
  return moved;
}

}  // namespace anydat::nic::soft::shm
