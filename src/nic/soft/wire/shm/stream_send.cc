// SPDX-License-Identifier: BSD-3-Clause
// The sending side of a connection over shared memory.
#include <algorithm>
#include <cstring>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/copy.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

namespace {

// Of one large message in one turn, so that it does not keep others of the link waiting.
constexpr std::uint64_t kPushedPerTurn = 128 << 10;

}  // namespace

inline bool ShmStream::small_source_there(const SendRequest& message) {
  if (message.segments.size() == 1 && seen_lately(message.segments.front(), false, engine_.moment(), sends_seen_))
      [[likely]]
    return true;
  return request_pages_.there(message.segments, {0, message.length}, message.length, false,
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
  if (message.kind == WorkKind::rdma_write) return rdma<WorkKind::rdma_write>(message, progress);
  if (message.kind == WorkKind::rdma_read) return rdma<WorkKind::rdma_read>(message, progress);
  if (message.kind == WorkKind::send) [[likely]]
    return message.length <= kInlineBytesMax ? send_inline<CellKind::send>(message, progress)
                                             : announce(number, message);
  if (message.kind == WorkKind::send_invalidate) {
    return message.length <= kInlineBytesMax ? send_inline<CellKind::send_invalidate>(message, progress)
                                             : announce(number, message);
  }
  if (message.kind == WorkKind::write_immediate) return write_immediate(message, progress);
  return atomic(static_cast<const ExtendedRequest&>(message), progress);
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

SendOutcome ShmStream::announce(std::uint64_t number, const SendRequest& message) {
  const std::uint32_t sequence = announced_count_.load(std::memory_order_relaxed);
  const std::uint32_t cells = cells_for(sizeof(AnnounceBody));
  if (sequence - retired_.load(std::memory_order_acquire) >= kAnnouncedMax) return SendOutcome::blocked;
  if (!send_window_.has_room(cells)) return SendOutcome::blocked;
  Announced& entry = announced_[sequence % kAnnouncedMax];
  entry.number = number;
  entry.offset = 0;
  entry.has_leaf.store(false, std::memory_order_relaxed);
  entry.state.store(Announced::State::waiting, std::memory_order_relaxed);
  // Noted first: the answer may be there before try_send() has returned.
  announced_count_.store(sequence + 1, std::memory_order_release);
  const bool sent = link_->try_send(*this, CellKind::announce, message.flags.solicited() ? kFlagSolicited : 0, remote_,
                                    sizeof(AnnounceBody), sequence, [&](std::byte* to) {
                                      AnnounceBody body{};
                                      describe(message, body, entry);
                                      std::memcpy(to, &body, sizeof body);
                                    });
  if (!sent) {
    entry.state.store(Announced::State::done, std::memory_order_relaxed);
    announced_count_.store(sequence, std::memory_order_release);
    return SendOutcome::blocked;
  }
  send_window_.use(cells);
  return SendOutcome::pending;
}

// Under the link's sending lock, which guards its leaves, too.
bool ShmStream::describe(const SendRequest& message, AnnounceBody& body, Announced& entry) {
  body.length = message.length;
  body.invalidates = message.kind == WorkKind::send_invalidate ? message.remote.key : 0;
  body.can_push = link_->reaches_peer() ? 1 : 0;
  MemoryBody& memory = body.memory;
  // The peer may be able to reach us where we do not reach it.
  if (!fabric_.adapter().config().cross_copy) return false;
  for (const nic::Segment& segment : message.segments) {
    if (segment.length == 0) continue;
    if (memory.span_count == kSpansMax) {
      memory.span_count = 0;
      return false;
    }
    memory.spans[memory.span_count++] = {segment.address, segment.length};
  }
  if (!link_->issue_leave(memory.leaf, memory.leave)) {
    memory.span_count = 0;
    return false;
  }
  entry.leaf = memory.leaf;
  entry.has_leaf.store(true);
  return true;
}

ShmStream::Announced* ShmStream::announced(std::uint32_t sequence) {
  const std::uint32_t retired = retired_.load(std::memory_order_relaxed);
  const std::uint32_t count = announced_count_.load(std::memory_order_acquire) - retired;
  return sequence - retired < count ? &announced_[sequence % kAnnouncedMax] : nullptr;
}

ShmStream::Announced* ShmStream::first_in(Announced::State state, std::uint32_t& sequence) {
  const std::uint32_t end = announced_count_.load(std::memory_order_acquire);
  for (sequence = retired_.load(std::memory_order_relaxed); sequence != end; ++sequence) {
    Announced& entry = announced_[sequence % kAnnouncedMax];
    if (entry.state.load(std::memory_order_relaxed) == state) return &entry;
  }
  return nullptr;
}

bool ShmStream::grant_arrived(std::uint32_t sequence) {
  Announced* entry = announced(sequence);
  if (!entry || entry->state.load() != Announced::State::waiting) return false;
  entry->state.store(Announced::State::pieces);
  send_pieces();
  return true;
}

bool ShmStream::push_arrived(const CellView& view) {
  Announced* entry = announced(view.aux);
  if (!entry || entry->state.load() != Announced::State::waiting || view.body_room < sizeof entry->target) return false;
  std::memcpy(&entry->target, view.body, sizeof entry->target);
  if (entry->target.span_count > kSpansMax || entry->target.leaf >= kLeafCount) return false;
  entry->state.store(Announced::State::pushing);
  link_->come_back(*this);
  return true;
}

bool ShmStream::pulled_arrived(std::uint32_t sequence) {
  Announced* entry = announced(sequence);
  if (!entry || entry->state.load() != Announced::State::waiting || !entry->has_leaf.load()) return false;
  finish(*entry, WorkStatus::success);
  return true;
}

void ShmStream::finish(Announced& entry, WorkStatus status) {
  if (entry.has_leaf.exchange(false)) link_->withdraw_leave(entry.leaf);
  const std::uint64_t number = entry.number;  // a posting thread may use the entry anew as soon as it is retired
  entry.state.store(Announced::State::done);
  std::uint32_t retired = retired_.load(std::memory_order_relaxed);
  const std::uint32_t end = announced_count_.load(std::memory_order_acquire);
  while (retired != end && announced_[retired % kAnnouncedMax].state.load() == Announced::State::done) ++retired;
  retired_.store(retired, std::memory_order_release);
  initiator_.finished(number, status);
  if (!closed_) sends_.pump();
}

ShmStream::Step ShmStream::send_piece(Announced& entry, std::uint32_t sequence, std::uint64_t& length) {
  Step step = Step::unusable;
  sends_.with_request(entry.number, [&](const SendRequest& message) {
    length = message.length;
    if (!sends_.usable(message)) return;
    const std::uint64_t count = std::min<std::uint64_t>(kPieceBytesMax, message.length - entry.offset);
    if (!request_pages_.there(message.segments, {entry.offset, count}, message.length - entry.offset, false)) {
      step = Step::no_room;
      return;
    }
    const bool sent = link_->try_send_piece(
        *this, CellKind::piece, 0, remote_, static_cast<std::uint32_t>(count), sequence, PieceBody{},
        [&](std::byte* to) { gather_streaming(to, message.segments, entry.offset, count); });
    step = sent ? Step::moved : Step::no_room;
    if (sent) entry.offset += count;
  });
  return step;
}

// True if there is more to do and nothing to wait for.
bool ShmStream::send_pieces() {
  for (int turn = 0; turn < kPiecesPerTurn && !closed_; ++turn) {
    std::uint32_t sequence = 0;
    Announced* entry = first_in(Announced::State::pieces, sequence);
    if (!entry) return false;
    std::uint64_t length = 0;
    switch (send_piece(*entry, sequence, length)) {
      case Step::moved:
        if (entry->offset == length) finish(*entry, WorkStatus::success);
        break;
      case Step::no_room:
        return false;  // the link asks again, or the memory that is to come
      case Step::unusable:
        finish(*entry, WorkStatus::local_protection);
        return false;
    }
  }
  // Others first; the link comes back to us with its next pass.
  if (!closed_) link_->come_back(*this);
  return !closed_;
}

bool ShmStream::push_some() {
  std::uint32_t sequence = 0;
  Announced* entry = closed_ ? nullptr : first_in(Announced::State::pushing, sequence);
  if (!entry) return false;
  bool usable_memory = false, waits = false, withdrawn = false;
  CopyOutcome outcome = CopyOutcome::copied;
  std::uint64_t length = 0;
  sends_.with_request(entry->number, [&](const SendRequest& message) {
    length = message.length;
    usable_memory = sends_.usable(message);
    if (!usable_memory) return;
    const std::uint64_t count = std::min(kPushedPerTurn, length - entry->offset);
    waits = !request_pages_.there(message.segments, {entry->offset, count}, length - entry->offset, false,
                                  OwnPages::CopiedBy::kernel);
    if (waits) return;
    PeerMemory& peer = link_->peer_memory();
    const std::span<const MemoryBody::Span> target{entry->target.spans, entry->target.span_count};
    outcome = peer.ready();
    if (outcome == CopyOutcome::copied &&
        !peer.there(target, {entry->offset, count}, true, fabric_.adapter().engine().ticks())) {
      outcome = CopyOutcome::not_resident;
    }
    if (outcome != CopyOutcome::copied) return;
    SegmentHeader& header = link_->outbound_header();
    withdrawn = !begin_writing(header, entry->target.leaf, entry->target.leave);
    if (withdrawn) return;
    outcome = peer.copy_to(message.segments, target, {entry->offset, count});
    end_writing(header, entry->target.leaf, entry->target.leave);
    if (outcome == CopyOutcome::copied) entry->offset += count;
  });
  if (!usable_memory) {
    finish(*entry, WorkStatus::local_protection);
    return false;
  }
  if (waits) return false;
  if (withdrawn) return false;  // its end is near
  switch (outcome) {
    case CopyOutcome::copied:
      break;
    case CopyOutcome::not_resident:  // the receiver brings its memory in by itself
    case CopyOutcome::not_reachable:
      entry->offset = 0;
      entry->state.store(Announced::State::waiting);
      link_->send_control(CellKind::cannot_push, remote_, sequence);
      link_->come_back(*this);
      return true;
    case CopyOutcome::no_memory_there:
      violated("it asked for a message at a place that it does not have");
      return false;
    case CopyOutcome::peer_gone:
      return false;
  }
  if (entry->offset == length) {
    link_->send_control(CellKind::pushed, remote_, sequence);
    finish(*entry, WorkStatus::success);
  }
  if (!closed_) link_->come_back(*this);
  return true;
}

bool ShmStream::take_turn() {
  if (const std::uint32_t key = mapping_wanted_.exchange(0); key != 0 && !closed_) link_->ask_for_mapping(key);
  bool moved = false;
  or_break([&] {
    if (!closed_) ask_for_pages_now();
    for (OwnPages* const pages : {&request_pages_, &arrival_pages_}) {
      if (!closed_) pages->bring();
    }
    if (!closed_) responder_.bring();
    if (!closed_) place_held();
    if (!closed_) writes_.go_on();
    if (!closed_) grant_pieces();
    moved = !closed_ && pull_some();
    moved |= !closed_ && push_some();
    moved |= !closed_ && send_pieces();
    moved |= !closed_ && responder_.serve();
  });
  moved |= !closed_ && sends_.pump();
  return moved;
}

}  // namespace anydat::nic::soft::shm
