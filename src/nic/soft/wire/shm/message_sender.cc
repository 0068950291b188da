// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/message_sender.h"

#include <algorithm>
#include <cstring>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

MessageSender::MessageSender(ShmStream& stream)
    : stream_(stream), sends_(stream.queue_pair().sends()), adapter_(stream.fabric().adapter()) {}

inline bool MessageSender::seen_lately(const nic::Segment& memory, std::uint64_t moment) {
  return adapter_.resident_pages().seen({memory.address, memory.length}, false, moment, seen_);
}

inline bool MessageSender::source_there(const SendRequest& message) {
  if (message.segments.size() == 1 && seen_lately(message.segments.front(), adapter_.engine().moment())) [[likely]]
    return true;
  return stream_.pages().of_requests().there(message.segments, {0, message.length}, message.length, false,
                                             OwnPages::CopiedBy::us_in_short);
}

// Apart, so that what it needs is not in the way of RDMA.
template <CellKind kind>
[[gnu::noinline]] SendOutcome MessageSender::send(const SendRequest& message, Progress& progress) {
  if (!sends_.usable(message)) [[unlikely]] {
    progress.failure = WorkStatus::local_protection;
    return SendOutcome::failed;
  }
  const std::uint32_t cells = cells_for(message.length);
  if (!window_.has_room(cells)) return SendOutcome::blocked;
  if (!source_there(message)) [[unlikely]]
    return SendOutcome::blocked;  // take_turn() hands it over again
  const bool sent =
      link_->sender().try_send(stream_, kind, message.flags.solicited() ? kFlagSolicited : 0, remote_,
                               static_cast<std::uint32_t>(message.length),
                               kind == CellKind::send_invalidate ? message.remote.key : 0, [&](std::byte* body) {
                                 for (const nic::Segment& segment : message.segments) {
                                   if (segment.length == 0) continue;
                                   std::memcpy(body, reinterpret_cast<const void*>(segment.address), segment.length);
                                   body += segment.length;
                                 }
                               });
  if (!sent) return SendOutcome::blocked;
  window_.use(cells);
  if (kind == CellKind::send) sends_.lanes().open_send(message, stream_.queue_pair().memory().zone());
  return SendOutcome::done;
}

inline bool MessageSender::send_again(const SingleSend& send) {
  if (send.segment.length > kInlineBytesMax) [[unlikely]]
    return false;
  const std::uint32_t cells = cells_for(send.segment.length);
  if (!window_.has_room(cells) || !link_->sender().try_send_again(remote_, send, cells)) [[unlikely]] {
    return false;
  }
  window_.use(cells);
  return true;
}

inline std::size_t MessageSender::send_row(const SendRow& row) {
  if (row.sends.front().segment.length > kInlineBytesMax || !sends_.surely_usable(row)) [[unlikely]]
    return 0;
  const std::uint64_t used = window_.in_use();
  if (used >= kWindowCells) [[unlikely]]
    return 0;  // also where the peer has given back more than there was
  std::uint64_t moment = adapter_.engine().moment();
  if (moment == kNoMoment) moment = moment_of(adapter_.engine().ticks());
  const auto unseen = std::find_if_not(row.sends.begin(), row.sends.end(),
                                       [&](const SingleSend& send) { return seen_lately(send.segment, moment); });
  const std::span<const SingleSend> seen(row.sends.begin(), unseen);
  if (seen.empty()) [[unlikely]]
    return 0;
  const std::uint64_t left = kWindowCells - used;
  std::uint64_t still_left = left;
  const std::size_t sent = link_->sender().try_send_row(remote_, seen, still_left);
  window_.use(left - still_left);
  return sent;
}

bool MessageSender::credit_arrived(std::uint32_t cells) {
  if (cells > kWindowCells) return false;
  window_.credit(cells);
  sends_.pump();
  return true;
}

// The stream's own, here, so that each is one function with what it calls.
SendOutcome ShmStream::send(std::uint64_t number, const SendRequest& message, Progress& progress) {
  if (message.kind == WorkKind::rdma_write) return rdma_.send<WorkKind::rdma_write>(message, progress);
  if (message.kind == WorkKind::rdma_read) return rdma_.send<WorkKind::rdma_read>(message, progress);
  if (message.kind == WorkKind::send) [[likely]]
    return message.length <= kInlineBytesMax ? sender_.send<CellKind::send>(message, progress)
                                             : rendezvous_sender_.announce(number, message);
  if (message.kind == WorkKind::send_invalidate) {
    return message.length <= kInlineBytesMax ? sender_.send<CellKind::send_invalidate>(message, progress)
                                             : rendezvous_sender_.announce(number, message);
  }
  if (message.kind == WorkKind::write_immediate) return rdma_.write_immediate(message, progress);
  return rdma_.atomic(static_cast<const ExtendedRequest&>(message), progress);
}

bool ShmStream::send_again(const SingleSend& send) {
  return sender_.send_again(send);
}

std::size_t ShmStream::send_row(const SendRow& row) {
  return sender_.send_row(row);
}

}  // namespace anydat::nic::soft::shm
