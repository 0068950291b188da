// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/rendezvous_sender.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/copy.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

namespace {

// In one turn, of one message and of several, so that it does not keep others of the link waiting. With more of several
// the receiver would wait for the first of them.
constexpr std::uint64_t kPushedOfOne = 256 << 10;
constexpr std::uint64_t kPushedOfSeveral = 128 << 10;

}  // namespace

SendOutcome RendezvousSender::announce(std::uint64_t number, const SendRequest& message) {
  const std::uint32_t cells = cells_for(sizeof(AnnounceBody));
  if (announcements_.full() || !stream_.sender().window().has_room(cells)) return SendOutcome::blocked;
  const std::uint32_t sequence = announcements_.next();
  // Noted first: the answer may be there before try_send() has returned.
  Announced& entry = announcements_.begin(number);
  const bool sent =
      stream_.link()->sender().try_send(stream_, CellKind::announce, message.flags.solicited() ? kFlagSolicited : 0,
                                        stream_.remote(), sizeof(AnnounceBody), sequence, [&](std::byte* to) {
                                          AnnounceBody body{};
                                          describe(message, body, entry);
                                          std::memcpy(to, &body, sizeof body);
                                        });
  if (!sent) {
    announcements_.take_back();
    return SendOutcome::blocked;
  }
  announcements_.left();
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
  return announcements_.find(sequence, [this] { stream_.queue_pair().sends().await_post(); });
}

std::optional<std::uint64_t> RendezvousSender::number_of(std::uint32_t sequence) {
  const Announced* const entry = announced(sequence);
  if (!entry || entry->state.load() == Announced::State::done) return std::nullopt;
  return entry->number;
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
  stream_.link()->sender().schedule_turn(stream_);
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
  announcements_.retire(entry);
  stream_.queue_pair().outcomes().finished(number, status);
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
  for (int turn = 0; turn < budget::kPiecesPerTurn && !stream_.over(); ++turn) {
    std::uint32_t sequence = announcements_.first();
    Announced* entry = announcements_.first_in(Announced::State::pieces, sequence);
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
  if (!stream_.over()) stream_.link()->sender().schedule_turn(stream_);
  return !stream_.over();
}

// What can be pushed of a message now, into the batch.
RendezvousSender::Push RendezvousSender::add_to(CopyBatch& batch, PushedShare& share, std::uint64_t limit) {
  Announced& entry = *share.entry;
  Push can = Push::unusable;
  stream_.queue_pair().sends().with_request(entry.number, [&](const SendRequest& message) {
    if (!stream_.queue_pair().sends().usable(message)) return;
    share.length = message.length;
    share.bytes = std::min(limit, message.length - entry.offset);
    can = Push::not_now;
    if (!stream_.pages().of_requests().there(message.segments, {entry.offset, share.bytes},
                                             message.length - entry.offset, false, OwnPages::CopiedBy::kernel))
      return;
    PeerMemory& peer = stream_.link()->peer_memory();
    const std::span<const MemoryBody::Span> target{entry.target.spans, entry.target.span_count};
    const CopyOutcome ready = peer.ready();
    if (ready == CopyOutcome::peer_gone) return;
    can = Push::never;
    if (ready != CopyOutcome::copied ||
        !peer.there(target, {entry.offset, share.bytes}, true, stream_.fabric().adapter().engine().ticks()))
      return;
    can = batch.add(message.segments, target, {entry.offset, share.bytes}) ? Push::yes : Push::not_now;
  });
  return can;
}

// The receiver may take a grant back at any moment: then its end is near, as if it had gone.
CopyOutcome RendezvousSender::push(const CopyBatch& batch, std::span<const PushedShare> shares) {
  SegmentHeader& header = stream_.link()->outbound().header();
  const auto begun = std::find_if_not(shares.begin(), shares.end(), [&](const PushedShare& share) {
    return begin_writing(header, share.entry->target.grant_slot, share.entry->target.grant);
  });
  CopyOutcome outcome = CopyOutcome::peer_gone;
  if (begun == shares.end()) outcome = stream_.link()->peer_memory().copy_to(batch);
  for (const PushedShare& share : std::span(shares.begin(), begun)) {
    if (!end_writing(header, share.entry->target.grant_slot, share.entry->target.grant))
      outcome = CopyOutcome::peer_gone;
  }
  return outcome;
}

// Several messages at once if they are short, as in RendezvousReceiver::pull_some().
bool RendezvousSender::push_some() {
  std::uint32_t sequence = announcements_.first();
  if (stream_.over() || !announcements_.first_in(Announced::State::pushing, sequence)) return false;
  CopyBatch batch;
  std::array<PushedShare, kAnnouncedMax> shares;
  std::size_t messages = 0;
  std::uint64_t bytes = 0;
  for (; bytes < kPushedOfSeveral; ++sequence) {
    Announced* const entry = announcements_.first_in(Announced::State::pushing, sequence);
    if (!entry) break;
    PushedShare& share = shares[messages];
    share = {entry, sequence, 0, 0};
    if (const Push can = add_to(batch, share, messages == 0 ? kPushedOfOne : kPushedOfSeveral - bytes);
        can != Push::yes) {
      if (messages == 0) return cannot_push(can, share);
      break;  // those before it first
    }
    bytes += share.bytes;
    ++messages;
  }
  CopyOutcome outcome = push(batch, std::span(shares).first(messages));
  if (outcome == CopyOutcome::no_memory_there && messages > 1) {  // it does not say which
    CopyBatch first;
    messages = 1;
    if (const Push can = add_to(first, shares[0], kPushedOfOne); can != Push::yes) return cannot_push(can, shares[0]);
    outcome = push(first, std::span(shares).first(messages));
  }
  return pushed(std::span(shares).first(messages), outcome);
}

// True if there is more to do and nothing to wait for.
bool RendezvousSender::cannot_push(Push why, const PushedShare& share) {
  if (why == Push::unusable) finish(*share.entry, WorkStatus::local_protection);
  if (why != Push::never) return false;
  // The receiver brings its memory in by itself, or clears the message to be sent in pieces.
  share.entry->offset = 0;
  share.entry->state.store(Announced::State::waiting);
  stream_.link()->sender().send_control(CellKind::cannot_push, stream_.remote(), share.sequence);
  stream_.link()->sender().schedule_turn(stream_);
  return true;
}

bool RendezvousSender::pushed(std::span<const PushedShare> shares, CopyOutcome outcome) {
  switch (outcome) {
    case CopyOutcome::copied:
      break;
    case CopyOutcome::not_resident:
    case CopyOutcome::not_reachable:
      return cannot_push(Push::never, shares.front());
    case CopyOutcome::no_memory_there:
      stream_.disconnection().violated("it asked for a message at a place that it does not have");
      return false;
    case CopyOutcome::peer_gone:
      return false;
  }
  for (const PushedShare& share : shares) {
    if (stream_.over()) return true;
    share.entry->offset += share.bytes;
    if (share.entry->offset != share.length) continue;
    stream_.link()->sender().send_control(CellKind::pushed, stream_.remote(), share.sequence);
    finish(*share.entry, WorkStatus::success);
  }
  if (!stream_.over()) stream_.link()->sender().schedule_turn(stream_);
  return true;
}

bool RendezvousSender::fail(std::uint64_t address) {
  return announcements_.find_if([&](Announced& entry) {
    const Announced::State state = entry.state.load();
    if (state != Announced::State::pieces && state != Announced::State::pushing) return false;
    bool is_it = false;
    stream_.queue_pair().sends().with_request(
        entry.number, [&](const SendRequest& message) { is_it = lies_in(address, message.segments); });
    if (is_it) finish(entry, WorkStatus::local_protection);
    return is_it;
  });
}

// LMR-FREE-8: what lies in a region that has gone can go no further. What is posted from now on has been looked at
// anew.
void RendezvousSender::region_removed() {
  announcements_.find_if([&](Announced& entry) {
    bool good = true;
    if (entry.state.load() == Announced::State::waiting && entry.has_grant.load()) {
      stream_.queue_pair().sends().with_request(
          entry.number, [&](const SendRequest& message) { good = stream_.queue_pair().sends().usable(message); });
    }
    if (!good) finish(entry, WorkStatus::local_protection);
    return stream_.over();
  });
}

void RendezvousSender::drop() {
  announcements_.find_if([&](Announced& entry) {
    if (entry.has_grant.exchange(false)) stream_.link()->grants().withdraw(entry.grant_slot);
    entry.state.store(Announced::State::done);
    return false;
  });
  announcements_.retire_all();
}

}  // namespace anydat::nic::soft::shm
