// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/rendezvous_sender.h"

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

SendOutcome RendezvousSender::announce(std::uint64_t number, const SendRequest& message) {
  const std::uint32_t sequence = count_.load(std::memory_order_relaxed);
  const std::uint32_t cells = cells_for(sizeof(AnnounceBody));
  if (sequence - retired_.load(std::memory_order_acquire) >= kAnnouncedMax) return SendOutcome::blocked;
  if (!stream_.sender().window().has_room(cells)) return SendOutcome::blocked;
  Announced& entry = announced_[sequence % kAnnouncedMax];
  entry.number = number;
  entry.offset = 0;
  entry.has_grant.store(false, std::memory_order_relaxed);
  entry.state.store(Announced::State::waiting, std::memory_order_relaxed);
  // Noted first: the answer may be there before try_send() has returned.
  count_.store(sequence + 1, std::memory_order_release);
  const bool sent =
      stream_.link()->sender().try_send(stream_, CellKind::announce, message.flags.solicited() ? kFlagSolicited : 0,
                                        stream_.remote(), sizeof(AnnounceBody), sequence, [&](std::byte* to) {
                                          AnnounceBody body{};
                                          describe(message, body, entry);
                                          std::memcpy(to, &body, sizeof body);
                                        });
  if (!sent) {
    entry.state.store(Announced::State::done, std::memory_order_relaxed);
    count_.store(sequence, std::memory_order_release);
    return SendOutcome::blocked;
  }
  stream_.sender().window().use(cells);
  return SendOutcome::pending;
}

// Under the link's sending lock, which guards its grants, too.
bool RendezvousSender::describe(const SendRequest& message, AnnounceBody& body, Announced& entry) {
  body.length = message.length;
  body.invalidates = message.kind == WorkKind::send_invalidate ? message.remote.key : 0;
  body.can_push = stream_.link()->peer_memory().reachable() ? 1 : 0;
  MemoryBody& memory = body.memory;
  // The peer may be able to reach us where we do not reach it.
  if (!stream_.fabric().adapter().config().cross_copy) return false;
  for (const nic::Segment& segment : message.segments) {
    if (segment.length == 0) continue;
    if (memory.span_count == kSpansMax) {
      memory.span_count = 0;
      return false;
    }
    memory.spans[memory.span_count++] = {segment.address, segment.length};
  }
  if (!stream_.link()->grants().issue_in_fill(memory.grant_slot, memory.grant)) {
    memory.span_count = 0;
    return false;
  }
  entry.grant_slot = memory.grant_slot;
  entry.has_grant.store(true);
  return true;
}

RendezvousSender::Announced* RendezvousSender::announced(std::uint32_t sequence) {
  const std::uint32_t retired = retired_.load(std::memory_order_relaxed);
  const std::uint32_t count = count_.load(std::memory_order_acquire) - retired;
  return sequence - retired < count ? &announced_[sequence % kAnnouncedMax] : nullptr;
}

std::optional<std::uint64_t> RendezvousSender::number_of(std::uint32_t sequence) {
  const Announced* const entry = announced(sequence);
  if (!entry || entry->state.load() == Announced::State::done) return std::nullopt;
  return entry->number;
}

RendezvousSender::Announced* RendezvousSender::first_in(Announced::State state, std::uint32_t& sequence) {
  const std::uint32_t end = count_.load(std::memory_order_acquire);
  for (sequence = retired_.load(std::memory_order_relaxed); sequence != end; ++sequence) {
    Announced& entry = announced_[sequence % kAnnouncedMax];
    if (entry.state.load(std::memory_order_relaxed) == state) return &entry;
  }
  return nullptr;
}

bool RendezvousSender::clear_to_send_arrived(std::uint32_t sequence) {
  Announced* entry = announced(sequence);
  if (!entry || entry->state.load() != Announced::State::waiting) return false;
  entry->state.store(Announced::State::pieces);
  send_pieces();
  return true;
}

bool RendezvousSender::push_arrived(const CellView& view) {
  Announced* entry = announced(view.aux);
  if (!entry || entry->state.load() != Announced::State::waiting || view.body_room < sizeof entry->target) return false;
  std::memcpy(&entry->target, view.body, sizeof entry->target);
  if (entry->target.span_count > kSpansMax || entry->target.grant_slot >= kGrantSlots) return false;
  entry->state.store(Announced::State::pushing);
  stream_.link()->sender().come_back(stream_);
  return true;
}

bool RendezvousSender::pulled_arrived(std::uint32_t sequence) {
  Announced* entry = announced(sequence);
  if (!entry || entry->state.load() != Announced::State::waiting || !entry->has_grant.load()) return false;
  finish(*entry, WorkStatus::success);
  return true;
}

void RendezvousSender::finish(Announced& entry, WorkStatus status) {
  if (entry.has_grant.exchange(false)) stream_.link()->grants().withdraw(entry.grant_slot);
  const std::uint64_t number = entry.number;  // a posting thread may use the entry anew as soon as it is retired
  entry.state.store(Announced::State::done);
  std::uint32_t retired = retired_.load(std::memory_order_relaxed);
  const std::uint32_t end = count_.load(std::memory_order_acquire);
  while (retired != end && announced_[retired % kAnnouncedMax].state.load() == Announced::State::done) ++retired;
  retired_.store(retired, std::memory_order_release);
  stream_.queue_pair().initiator().finished(number, status);
  if (!stream_.over()) stream_.queue_pair().sends().pump();
}

RendezvousSender::Step RendezvousSender::send_piece(Announced& entry, std::uint32_t sequence, std::uint64_t& length) {
  Step step = Step::unusable;
  stream_.queue_pair().sends().with_request(entry.number, [&](const SendRequest& message) {
    length = message.length;
    if (!stream_.queue_pair().sends().usable(message)) return;
    const std::uint64_t count = std::min<std::uint64_t>(kPieceBytesMax, message.length - entry.offset);
    if (!stream_.pages().of_requests().there(message.segments, {entry.offset, count}, message.length - entry.offset,
                                             false)) {
      step = Step::no_room;
      return;
    }
    const bool sent = stream_.link()->sender().try_send_piece(
        stream_, CellKind::piece, 0, stream_.remote(), static_cast<std::uint32_t>(count), sequence, PieceBody{},
        [&](std::byte* to) { gather_streaming(to, message.segments, entry.offset, count); });
    step = sent ? Step::moved : Step::no_room;
    if (sent) entry.offset += count;
  });
  return step;
}

// True if there is more to do and nothing to wait for.
bool RendezvousSender::send_pieces() {
  for (int turn = 0; turn < ShmStream::kPiecesPerTurn && !stream_.over(); ++turn) {
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
  if (!stream_.over()) stream_.link()->sender().come_back(stream_);
  return !stream_.over();
}

bool RendezvousSender::push_some() {
  std::uint32_t sequence = 0;
  Announced* entry = stream_.over() ? nullptr : first_in(Announced::State::pushing, sequence);
  if (!entry) return false;
  bool usable_memory = false, waits = false, withdrawn = false;
  CopyOutcome outcome = CopyOutcome::copied;
  std::uint64_t length = 0;
  stream_.queue_pair().sends().with_request(entry->number, [&](const SendRequest& message) {
    length = message.length;
    usable_memory = stream_.queue_pair().sends().usable(message);
    if (!usable_memory) return;
    const std::uint64_t count = std::min(kPushedPerTurn, length - entry->offset);
    waits = !stream_.pages().of_requests().there(message.segments, {entry->offset, count}, length - entry->offset,
                                                 false, OwnPages::CopiedBy::kernel);
    if (waits) return;
    PeerMemory& peer = stream_.link()->peer_memory();
    const std::span<const MemoryBody::Span> target{entry->target.spans, entry->target.span_count};
    outcome = peer.ready();
    if (outcome == CopyOutcome::copied &&
        !peer.there(target, {entry->offset, count}, true, stream_.fabric().adapter().engine().ticks())) {
      outcome = CopyOutcome::not_resident;
    }
    if (outcome != CopyOutcome::copied) return;
    SegmentHeader& header = stream_.link()->outbound().header();
    withdrawn = !begin_writing(header, entry->target.grant_slot, entry->target.grant);
    if (withdrawn) return;
    outcome = peer.copy_to(message.segments, target, {entry->offset, count});
    withdrawn = !end_writing(header, entry->target.grant_slot, entry->target.grant);
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
      stream_.link()->sender().send_control(CellKind::cannot_push, stream_.remote(), sequence);
      stream_.link()->sender().come_back(stream_);
      return true;
    case CopyOutcome::no_memory_there:
      stream_.disconnection().violated("it asked for a message at a place that it does not have");
      return false;
    case CopyOutcome::peer_gone:
      return false;
  }
  if (entry->offset == length) {
    stream_.link()->sender().send_control(CellKind::pushed, stream_.remote(), sequence);
    finish(*entry, WorkStatus::success);
  }
  if (!stream_.over()) stream_.link()->sender().come_back(stream_);
  return true;
}

bool RendezvousSender::fail(std::uint64_t address) {
  const std::uint32_t end = count_.load(std::memory_order_acquire);
  for (std::uint32_t sequence = retired_.load(std::memory_order_relaxed); sequence != end; ++sequence) {
    Announced& entry = announced_[sequence % kAnnouncedMax];
    const Announced::State state = entry.state.load();
    if (state != Announced::State::pieces && state != Announced::State::pushing) continue;
    bool is_it = false;
    stream_.queue_pair().sends().with_request(
        entry.number, [&](const SendRequest& message) { is_it = lies_in(address, message.segments); });
    if (!is_it) continue;
    finish(entry, WorkStatus::local_protection);
    return true;
  }
  return false;
}

// LMR-FREE-8: what lies in a region that has gone can go no further.
void RendezvousSender::memory_changed() {
  for (std::uint32_t sequence = retired_.load(); sequence != count_.load() && !stream_.over(); ++sequence) {
    Announced& entry = announced_[sequence % kAnnouncedMax];
    bool good = true;
    if (entry.state.load() == Announced::State::waiting && entry.has_grant.load()) {
      stream_.queue_pair().sends().with_request(
          entry.number, [&](const SendRequest& message) { good = stream_.queue_pair().sends().usable(message); });
    }
    if (!good) finish(entry, WorkStatus::local_protection);
  }
}

void RendezvousSender::drop() {
  const std::uint32_t end = count_.load();
  for (std::uint32_t sequence = retired_.load(); sequence != end; ++sequence) {
    Announced& entry = announced_[sequence % kAnnouncedMax];
    if (entry.has_grant.exchange(false)) stream_.link()->grants().withdraw(entry.grant_slot);
    entry.state.store(Announced::State::done);
  }
  retired_.store(end);
}

}  // namespace anydat::nic::soft::shm
