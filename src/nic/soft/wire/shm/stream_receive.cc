// SPDX-License-Identifier: BSD-3-Clause
// The receiving side of a connection over shared memory.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/log.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

namespace {

// In one turn, of one message and of all: the engine is held meanwhile.
constexpr std::uint64_t kPulledOfOne = 256 << 10;
constexpr std::uint64_t kPulledPerTurn = 512 << 10;

bool covers(const MemoryBody& memory, std::uint64_t length) {
  std::uint64_t left = length;
  for (std::uint32_t i = 0; i < memory.span_count; ++i) {
    if (memory.spans[i].length > left) return false;
    left -= memory.spans[i].length;
  }
  return left == 0;
}

}  // namespace

bool ShmStream::message_arrived(const CellView& view) {
  if (view.length > kInlineBytesMax || view.length > view.body_room || view.cells != cells_for(view.length))
    return false;
  if (!within_window(view.cells)) return false;
  const std::uint32_t key = view.kind == CellKind::send_invalidate ? view.aux : 0;
  if (view.kind == CellKind::send_invalidate && key == 0) return false;
  const bool solicited = (view.flags & kFlagSolicited) != 0;
  const bool next = parked_.empty() && receives_.arriving().empty();
  const auto deliver = [&] { return deliver_small(view.body, view.length, solicited, key); };
  if (next && deliver_completed(deliver)) {
    delivered(view.cells);
    return true;
  }
  std::unique_ptr<std::byte[]> bytes(new std::byte[std::max<std::uint32_t>(view.length, 1)]);
  std::memcpy(bytes.get(), view.body, view.length);
  park({view.length, view.cells, solicited, std::move(bytes), nullptr, 0, false, 0, key});
  if (parked_.size() == 1 && receives_.arriving().empty()) receives_.not_ready().wait_for_buffer();
  return true;
}

void ShmStream::park(Parked message) {
  const std::uint32_t cells = message.cells;
  parked_.push_back(std::move(message));
  parked_cells_ += cells;
}

bool ShmStream::immediate_arrived(const CellView& view) {
  ImmediateBody body;
  if (view.length != sizeof body) return false;
  if (view.cells != cells_for(sizeof body) || (queue_pair_.takes() & ability::kImmediate) == 0) return false;
  if (!within_window(view.cells)) return false;
  std::memcpy(&body, view.body, sizeof body);
  if ((view.flags & kFlagLast) != 0) put_done();
  const bool solicited = (view.flags & kFlagSolicited) != 0;
  const bool next = parked_.empty() && receives_.arriving().empty();
  const auto deliver = [&] { return receives_.deliver_immediate(body.length, body.value, solicited); };
  if (next && deliver_completed(deliver)) {
    delivered(view.cells);
    return true;
  }
  park({body.length, view.cells, solicited, nullptr, nullptr, 0, true, body.value});
  if (next) receives_.not_ready().wait_for_buffer();
  return true;
}

bool ShmStream::announce_arrived(const CellView& view) {
  AnnounceBody body;
  if (view.body_room < sizeof body || view.cells != cells_for(sizeof body)) return false;
  std::memcpy(&body, view.body, sizeof body);
  if (body.length <= kInlineBytesMax || body.memory.span_count > kSpansMax || body.memory.leaf >= kLeafCount ||
      (body.memory.span_count > 0 && !covers(body.memory, body.length)) || !within_window(view.cells)) {
    return false;
  }
  const bool solicited = (view.flags & kFlagSolicited) != 0;
  const bool next = parked_.empty() && may_begin(body.length, body.invalidates);
  if (next && accept_announced(body, view.aux, solicited)) {
    delivered(view.cells);
    return true;
  }
  if (closed_) return true;
  park({body.length, view.cells, solicited, nullptr, std::make_unique<AnnounceBody>(body), view.aux, false, 0});
  if (next) receives_.not_ready().wait_for_buffer();
  return true;
}

// A message that would end the connection, because it does not fit the next receive or names a key that it may not
// invalidate, begins only when all before it are in, so that they still complete (DTO-40). Whatever finishes the last
// of them calls deliver_parked().
bool ShmStream::may_begin(std::uint64_t length, std::uint32_t invalidates) {
  const std::size_t busy = receives_.arriving().count();
  const bool harmless = invalidates == 0 || queue_pair_.connection().windows().may_invalidate(invalidates);
  return busy == 0 || (busy < kAnnouncedMax && harmless && receives_.buffers().next_takes(length));
}

bool ShmStream::accept_announced(const AnnounceBody& body, std::uint32_t sequence, bool solicited) {
  begins_announced_ = sequence;
  Incoming* message = begin(body.length, solicited, body.invalidates);
  begins_announced_.reset();
  if (!message) return false;
  large_.push_back({message, sequence, Large::Way::pieces, false, false, {}});
  Large& large = large_.back();
  large.way = choose_way(body, large);
  switch (large.way) {
    case Large::Way::pieces:
      grant_pieces();
      break;
    case Large::Way::push:
      link_->send_control(CellKind::push, remote_, sequence, std::as_bytes(std::span(&large.memory, 1)));
      break;
    case Large::Way::pull:
      large.memory = body.memory;
      link_->come_back(*this);
      break;
  }
  return true;
}

// A message that is to have a place among large_. Null: there is no buffer for it now, or the connection has ended.
Incoming* ShmStream::begin(std::uint64_t length, bool solicited, std::uint32_t invalidates) {
  if (invalidates != 0 && !queue_pair_.connection().windows().may_invalidate(invalidates)) {  // D2-SENDINV-4
    queue_pair_.connection().break_off(WorkStatus::flushed, CloseReason::remote_access);
    return nullptr;
  }
  large_.reserve(kAnnouncedMax);
  Incoming* const message = receives_.begin(length, solicited);
  if (message && invalidates != 0) message->invalidate(invalidates);
  return message;
}

// A message that is wholly here, when no other is arriving. False: there is no buffer for it now. One that takes a
// window back completes as a large one does, since it may have to wait for the peer to let go of that; and so does one
// whose buffer is not in memory.
bool ShmStream::deliver_small(const std::byte* bytes, std::size_t length, bool solicited, std::uint32_t key) {
  if (key == 0 && next_buffer_there(length)) [[likely]]
    return receives_.deliver(bytes, length, solicited);
  fabric_.adapter().batch().flush();
  Incoming* message = begin(length, solicited, key);
  if (!message) return is_over(queue_pair_.state());
  Large small{message, 0, Large::Way::pieces, false, true, {}};
  if (!arrival_pages_.there(message->buffer.all(), {0, length}, length, true, OwnPages::CopiedBy::us_in_short)) {
    small.held.reset(new std::byte[length]);
    std::memcpy(small.held.get(), bytes, length);
    large_.push_back(std::move(small));
    arrival_pages_.bring();
    return true;
  }
  if (!receives_.place(*message, bytes, length)) return true;
  small.done = true;
  large_.push_back(std::move(small));
  complete_large();
  return true;
}

// Whether there is a next receive, and its memory can be written, as far as `length` goes. One that is posted just then
// is none yet: it has not been looked at.
bool ShmStream::next_buffer_there(std::size_t length) {
  const ReceivePool::Slot* const next = receives_.buffers().next();
  if (!next) return false;
  const std::uint64_t now = engine_.ticks();
  std::uint64_t left = length;
  for (const nic::Segment& segment : next->all()) {
    const std::uint64_t part = std::min(left, segment.length);
    if (!resident_pages_.hold(0, {segment.address, part}, true, now, ResidentPages::CopiedBy::us_in_short))
      return false;
    left -= part;
  }
  return true;
}

void ShmStream::place_held() {
  if (large_.empty() || !large_.front().held) return;
  Large& small = large_.front();
  Incoming& message = *small.message;
  if (!arrival_pages_.there(message.buffer.all(), {0, message.length}, message.length, true,
                            OwnPages::CopiedBy::us_in_short)) {
    arrival_pages_.bring();
    return;
  }
  const std::unique_ptr<std::byte[]> bytes = std::move(small.held);
  // It has completed at its sender.
  if (!deliver_completed([&] { return receives_.place(message, bytes.get(), message.length); })) return;
  small.done = true;
  finish_large();
}

ShmStream::Large::Way ShmStream::choose_way(const AnnounceBody& body, Large& large) {
  const bool can_pull = body.memory.span_count > 0 && link_->reaches_peer();
  const auto busy = [&](Large::Way way) {
    return std::count_if(large_.begin(), large_.end(),
                         [&](const Large& other) { return &other != &large && other.way == way && !other.done; });
  };
  // Both processors copy: messages are pulled and pushed turn and turn about. A lone one is pulled, which saves a hop.
  if (can_pull && busy(Large::Way::pull) <= busy(Large::Way::push)) return Large::Way::pull;
  // What the peer is to write into is there, or it would have to ask for it.
  const std::span<const nic::Segment> buffer = large.message->buffer.all();
  if (body.can_push != 0 &&
      (!can_pull || arrival_pages_.there(buffer, {0, body.length}, body.length, true, OwnPages::CopiedBy::kernel))) {
    MemoryBody target{};
    std::uint64_t left = body.length;
    for (const nic::Segment& segment : large.message->buffer.all()) {
      if (segment.length == 0 || left == 0) continue;
      if (target.span_count == kSpansMax) break;
      const std::uint64_t part = std::min(left, segment.length);
      target.spans[target.span_count++] = {segment.address, part};
      left -= part;
    }
    if (left == 0 && link_->issue_leave_locked(target.leaf, target.leave)) {
      large.memory = target;
      return Large::Way::push;
    }
  }
  return can_pull ? Large::Way::pull : Large::Way::pieces;
}

// A message that the peer is to write.
ShmStream::Large* ShmStream::pushed(std::uint32_t sequence) {
  const auto large = std::find_if(large_.begin(), large_.end(), [&](const Large& entry) {
    return entry.sequence == sequence && entry.way == Large::Way::push && !entry.done;
  });
  return large != large_.end() ? &*large : nullptr;
}

bool ShmStream::pushed_arrived(std::uint32_t sequence) {
  Large* const large = pushed(sequence);
  if (!large) return false;
  if (!withdraw(*large)) {
    violated("it says that it has written, and goes on writing");
    return true;
  }
  large->message->placed = large->message->length;
  large->done = true;
  finish_large();
  return true;
}

bool ShmStream::cannot_push_arrived(std::uint32_t sequence) {
  Large* const large = pushed(sequence);
  if (!large) return false;
  if (withdraw(*large)) {
    take_in_pieces(*large);
  } else {
    violated("it says that it cannot write, and goes on writing");
  }
  return true;
}

// From its first byte on, by the one way that is open to any two processes.
void ShmStream::take_in_pieces(Large& large) {
  large.way = Large::Way::pieces;
  large.message->placed = 0;
  grant_pieces();
}

// Pieces are put in place when they come, since what comes behind them in the ring is for others; so the buffer is
// there before they may come.
void ShmStream::grant_pieces() {
  for (Large& large : large_) {
    if (large.way != Large::Way::pieces || large.granted) continue;
    if (!arrival_pages_.there(large.message->buffer.all(), {0, large.message->length}, large.message->length, true))
      return;
    large.granted = true;
    link_->send_control(CellKind::grant, remote_, large.sequence);
  }
}

bool ShmStream::piece_arrived(const CellView& view, const std::byte* bytes) {
  if (closed_) return true;
  if (!connected()) return false;
  switch (view.kind) {
    case CellKind::put:
      put_arrived(view, bytes);
      break;
    case CellKind::got:
      if (!initiator_.place_read(bytes, view.length)) violated("it sent bytes that nobody asked for");
      break;
    default:
      part_arrived(view.aux, bytes, view.length);
  }
  return true;
}

void ShmStream::part_arrived(std::uint32_t sequence, const std::byte* bytes, std::size_t count) {
  const auto large = std::find_if(large_.begin(), large_.end(), [&](const Large& entry) {
    return entry.sequence == sequence && entry.way == Large::Way::pieces && !entry.done && !entry.held;
  });
  if (large == large_.end() || !large->granted || count > large->message->length - large->message->placed) {
    violated("it sent bytes that nobody asked for");
    return;
  }
  if (!receives_.place(*large->message, bytes, count)) return;
  if (large->message->placed < large->message->length) return;
  large->done = true;
  finish_large();
}

// Several messages at once if they are short, since asking the kernel costs as much as copying 16 KiB.
bool ShmStream::pull_some() {
  PeerMemory& peer = link_->peer_memory();
  CopyBatch batch;
  std::array<PulledShare, kAnnouncedMax> shares;
  std::size_t messages = 0;
  std::uint64_t left = kPulledPerTurn;
  for (Large& large : large_) {
    if (closed_ || left == 0 || messages == shares.size()) break;
    if (large.way != Large::Way::pull || large.done) continue;
    Incoming& message = *large.message;
    if (const WorkStatus status = receives_.check(message); status != WorkStatus::success) {
      if (messages > 0) break;  // those before it first
      receives_.fail(message, status);
      return false;
    }
    const std::uint64_t count = std::min({left, kPulledOfOne, message.length - message.placed});
    const std::span<const MemoryBody::Span> source{large.memory.spans, large.memory.span_count};
    if (!peer.there(source, {message.placed, count}, false, fabric_.adapter().engine().ticks())) {
      take_in_pieces(large);  // the sender brings its memory in by itself
      continue;
    }
    if (!arrival_pages_.there(message.buffer.all(), {message.placed, count}, message.length - message.placed, true,
                              OwnPages::CopiedBy::kernel))
      break;
    if (!batch.add(message.buffer.all(), source, {message.placed, count})) break;
    shares[messages++] = {&large, count};
    left -= count;
    // The rest of a long one comes first in the next turn.
    if (message.placed + count < message.length) break;
  }
  if (messages == 0 || closed_) return false;
  CopyOutcome outcome = peer.ready();
  if (outcome == CopyOutcome::copied) outcome = peer.copy_from(batch);
  if (outcome == CopyOutcome::peer_gone) return false;
  if (outcome == CopyOutcome::not_reachable) {
    for (Large& large : large_) {
      if (large.way == Large::Way::pull && !large.done) take_in_pieces(large);
    }
    return true;
  }
  return pulled(std::span(shares).first(messages), outcome);
}

// False: there is nothing to come back for.
bool ShmStream::pulled(std::span<const PulledShare> shares, CopyOutcome outcome) {
  bool stands = true;
  for (const PulledShare& share : shares) {
    Large& large = *share.message;
    // What was read counts only if it was still the sender's to give; else the end of the connection is on its way, and
    // there is nothing to come back for.
    stands = leave_stands(link_->outbound_header(), large.memory.leaf, large.memory.leave);
    if (!stands) break;
    if (outcome == CopyOutcome::no_memory_there) {
      violated("it announced memory that it does not have");
      return false;
    }
    large.message->placed += share.bytes;
    if (large.message->placed < large.message->length) continue;
    large.done = true;
    link_->send_control(CellKind::pulled, remote_, large.sequence);
  }
  finish_large();
  if (!closed_ && stands) link_->come_back(*this);
  return stands;
}

// Completions come in the order of the messages, however they crossed. False: the oldest has to wait, or the connection
// has ended.
bool ShmStream::complete_large() {
  while (!closed_ && !large_.empty() && large_.front().done) {
    Incoming* message = large_.front().message;
    switch (queue_pair_.connection().windows().make_ready(*message)) {
      case WindowOperations::Readiness::yes:
        break;
      case WindowOperations::Readiness::not_yet:
        return false;
      case WindowOperations::Readiness::no:
        // Its sender has been told that it has arrived, so no other is to blame.
        queue_pair_.connection().break_off(WorkStatus::flushed, CloseReason::request_failed);
        return false;
    }
    large_.erase(large_.begin());
    receives_.finish(*message);
  }
  return !closed_;
}

void ShmStream::finish_large() {
  if (complete_large()) or_break([this] { deliver_parked(); });
}

void ShmStream::resume_receiving() {
  if (!large_.empty() && large_.front().done) {  // it has waited to take a window back
    finish_large();
  } else {
    or_break([this] { deliver_parked(); });
  }
}

void ShmStream::deliver_parked() {
  while (!closed_ && !parked_.empty()) {
    Parked& message = parked_.front();
    if (message.announcement ? !may_begin(message.length, message.announcement->invalidates)
                             : !receives_.arriving().empty()) {
      return;
    }
    const auto deliver = [&] {
      if (message.immediate) return receives_.deliver_immediate(message.length, message.value, message.solicited);
      return deliver_small(message.bytes.get(), message.length, message.solicited, message.invalidates);
    };
    const bool taken = message.announcement
                           ? accept_announced(*message.announcement, message.sequence, message.solicited)
                           : deliver_completed(deliver);
    // One by one: each may be the last for want of a buffer.
    fabric_.adapter().batch().flush();
    if (closed_) return;
    if (!taken) {
      receives_.not_ready().wait_for_buffer();
      return;
    }
    receives_.not_ready().stop_waiting();  // where it was not called
    const std::uint32_t cells = message.cells;
    parked_.pop_front();
    parked_cells_ -= cells;
    delivered(cells);
  }
  if (!closed_) queue_pair_.connection().orderly_end().delivered_everything();
}

void ShmStream::give_credit() {
  if (closed_) return;
  link_->send_control(CellKind::credit, remote_, owed_cells_);
  owed_cells_ = 0;
}

// Our buffer is ours again if this answers true. A peer that is just writing is given a moment. One that has died in
// the middle has written all it ever will; and no peer writes on a link that it has given up, for it has one lock for
// both. Both show as the end of the link, also where the peer's process has no number here (another PID namespace).
bool ShmStream::withdraw(const Large& large) {
  if (large.way != Large::Way::push || large.done) return true;
  for (unsigned tries = 0; !link_->try_withdraw_leave(large.memory.leaf, large.memory.leave); ++tries) {
    if (link_->dead() || link_->peer_gone()) return true;
    if (tries == 20) return false;
    base::cpu_relax();
  }
  return true;
}

}  // namespace anydat::nic::soft::shm
