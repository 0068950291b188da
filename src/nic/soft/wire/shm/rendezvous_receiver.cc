// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/rendezvous_receiver.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/scatter.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

bool RendezvousReceiver::accept(const AnnounceBody& body, std::uint32_t sequence, bool solicited) {
  beginning_ = sequence;
  Incoming* message = begin(body.length, solicited, body.invalidates);
  beginning_.reset();
  if (!message) return false;
  arriving_.push_back({message, sequence, MessageWay::pieces, false, false, {}});
  Arriving& large = arriving_.back();
  large.way = choose_way(body, large);
  switch (large.way) {
    case MessageWay::pieces:
      clear_pieces();
      break;
    case MessageWay::push:
      stream_.link()->sender().send_control(CellKind::push, stream_.remote(), sequence,
                                            std::as_bytes(std::span(&large.memory, 1)));
      break;
    case MessageWay::pull:
      large.memory = body.memory;
      stream_.link()->sender().schedule_turn(stream_);
      break;
  }
  return true;
}

// A message that is to have a place among arriving_. Null: there is no buffer for it now, or the connection has ended.
Incoming* RendezvousReceiver::begin(std::uint64_t length, bool solicited, std::uint32_t invalidates) {
  if (invalidates != 0 && !stream_.queue_pair().connection().windows().may_invalidate(invalidates)) {  // D2-SENDINV-4
    stream_.queue_pair().connection().break_off(WorkStatus::flushed, CloseReason::remote_access);
    return nullptr;
  }
  arriving_.reserve(kAnnouncedMax);
  Incoming* const message = stream_.queue_pair().receives().begin(length, solicited);
  if (message && invalidates != 0) message->invalidate(invalidates);
  return message;
}

bool RendezvousReceiver::take_small(const std::byte* bytes, std::size_t length, bool solicited, std::uint32_t key) {
  stream_.fabric().adapter().batch().flush();
  Incoming* message = begin(length, solicited, key);
  if (!message) return is_over(stream_.queue_pair().state());
  Arriving small{message, 0, MessageWay::pieces, false, true, {}};
  if (!stream_.pages().of_arrivals().there(message->buffer.all(), {0, length}, length, true,
                                           OwnPages::CopiedBy::us_in_short)) {
    small.held.reset(new std::byte[length]);
    std::memcpy(small.held.get(), bytes, length);
    arriving_.push_back(std::move(small));
    stream_.pages().of_arrivals().bring();
    return true;
  }
  if (!stream_.queue_pair().receives().place(*message, bytes, length)) return true;
  small.done = true;
  arriving_.push_back(std::move(small));
  complete();
  return true;
}

void RendezvousReceiver::place_held() {
  if (arriving_.empty() || !arriving_.front().held) return;
  Arriving& small = arriving_.front();
  Incoming& message = *small.message;
  if (!stream_.pages().of_arrivals().there(message.buffer.all(), {0, message.length}, message.length, true,
                                           OwnPages::CopiedBy::us_in_short)) {
    stream_.pages().of_arrivals().bring();
    return;
  }
  const std::unique_ptr<std::byte[]> bytes = std::move(small.held);
  // It has completed at its sender.
  if (!stream_.receiver().deliver_completed(
          [&] { return stream_.queue_pair().receives().place(message, bytes.get(), message.length); }))
    return;
  small.done = true;
  finish();
}

MessageWay RendezvousReceiver::choose_way(const AnnounceBody& body, Arriving& large) {
  const bool can_pull = body.memory.span_count > 0 && stream_.link()->peer_memory().reachable();
  const auto busy = [&](MessageWay way) {
    return static_cast<std::size_t>(std::count_if(arriving_.begin(), arriving_.end(), [&](const Arriving& other) {
      return &other != &large && other.way == way && !other.done;
    }));
  };
  return message_way({can_pull, body.can_push != 0, busy(MessageWay::pull), busy(MessageWay::push)},
                     [&] { return offer(body, can_pull, large); });
}

// Makes its buffer known to the peer, which is to write there. False: it cannot now.
bool RendezvousReceiver::offer(const AnnounceBody& body, bool can_pull, Arriving& large) {
  const std::span<const nic::Segment> buffer = large.message->buffer.all();
  // It is there, or the peer would have to ask for it.
  if (can_pull &&
      !stream_.pages().of_arrivals().there(buffer, {0, body.length}, body.length, true, OwnPages::CopiedBy::kernel))
    return false;
  MemoryBody target{};
  std::uint64_t left = body.length;
  for_each_piece(buffer, 0, body.length, [&](const Piece& piece) {
    if (target.span_count == kSpansMax) return false;
    target.spans[target.span_count++] = {piece.address, piece.count};
    left -= piece.count;
    return true;
  });
  if (left != 0 || !stream_.link()->grants().issue(target.grant_slot, target.grant)) return false;
  large.memory = target;
  return true;
}

// A message that the peer is to write.
RendezvousReceiver::Arriving* RendezvousReceiver::pushed(std::uint32_t sequence) {
  const auto large = std::find_if(arriving_.begin(), arriving_.end(), [&](const Arriving& entry) {
    return entry.sequence == sequence && entry.way == MessageWay::push && !entry.done;
  });
  return large != arriving_.end() ? &*large : nullptr;
}

bool RendezvousReceiver::pushed_arrived(std::uint32_t sequence) {
  Arriving* const large = pushed(sequence);
  if (!large) return false;
  if (!withdraw(*large)) {
    stream_.disconnection().violated("it says that it has written, and goes on writing");
    return true;
  }
  large->message->placed = large->message->length;
  large->done = true;
  finish();
  return true;
}

bool RendezvousReceiver::cannot_push_arrived(std::uint32_t sequence) {
  Arriving* const large = pushed(sequence);
  if (!large) return false;
  if (withdraw(*large)) {
    take_in_pieces(*large);
  } else {
    stream_.disconnection().violated("it says that it cannot write, and goes on writing");
  }
  return true;
}

// From its first byte on, by the one way that is open to any two processes.
void RendezvousReceiver::take_in_pieces(Arriving& large) {
  large.way = MessageWay::pieces;
  large.message->placed = 0;
  clear_pieces();
}

// Pieces are put in place when they come, since what comes behind them in the ring is for others; so the buffer is
// there before they may come.
void RendezvousReceiver::clear_pieces() {
  for (Arriving& large : arriving_) {
    if (large.way != MessageWay::pieces || large.cleared) continue;
    if (!stream_.pages().of_arrivals().there(large.message->buffer.all(), {0, large.message->length},
                                             large.message->length, true))
      return;
    large.cleared = true;
    stream_.link()->sender().send_control(CellKind::clear_to_send, stream_.remote(), large.sequence);
  }
}

void RendezvousReceiver::part_arrived(std::uint32_t sequence, const std::byte* bytes, std::size_t count) {
  const auto large = std::find_if(arriving_.begin(), arriving_.end(), [&](const Arriving& entry) {
    return entry.sequence == sequence && entry.way == MessageWay::pieces && !entry.done && !entry.held;
  });
  if (large == arriving_.end() || !large->cleared || count > large->message->length - large->message->placed) {
    stream_.disconnection().violated("it sent bytes that nobody asked for");
    return;
  }
  if (!stream_.queue_pair().receives().place(*large->message, bytes, count)) return;
  if (large->message->placed < large->message->length) return;
  large->done = true;
  finish();
}

// Several messages at once if they are short, since asking the kernel costs as much as copying 16 KiB.
bool RendezvousReceiver::pull_some() {
  PeerMemory& peer = stream_.link()->peer_memory();
  CopyBatch batch;
  std::array<PulledShare, kAnnouncedMax> shares;
  std::size_t messages = 0;
  std::uint64_t left = budget::kPulledPerTurn;
  for (Arriving& large : arriving_) {
    if (stream_.over() || left == 0 || messages == shares.size()) break;
    if (large.way != MessageWay::pull || large.done) continue;
    Incoming& message = *large.message;
    if (const WorkStatus status = stream_.queue_pair().receives().check(message); status != WorkStatus::success) {
      if (messages > 0) break;  // those before it first
      stream_.queue_pair().receives().fail(message, status);
      return false;
    }
    const std::uint64_t count = std::min({left, budget::kPulledOfOne, message.length - message.placed});
    const std::span<const MemoryBody::Span> source{large.memory.spans, large.memory.span_count};
    if (!peer.there(source, {message.placed, count}, false, stream_.fabric().adapter().engine().ticks())) {
      take_in_pieces(large);  // the sender brings its memory in by itself
      continue;
    }
    if (!stream_.pages().of_arrivals().there(message.buffer.all(), {message.placed, count},
                                             message.length - message.placed, true, OwnPages::CopiedBy::kernel))
      break;
    if (!batch.add(message.buffer.all(), source, {message.placed, count})) break;
    shares[messages++] = {&large, count};
    left -= count;
    // The rest of a long one comes first in the next turn.
    if (message.placed + count < message.length) break;
  }
  if (messages == 0 || stream_.over()) return false;
  CopyOutcome outcome = peer.ready();
  if (outcome == CopyOutcome::copied) outcome = peer.copy_from(batch);
  if (outcome == CopyOutcome::peer_gone) return false;
  if (outcome == CopyOutcome::not_reachable) {
    for (Arriving& large : arriving_) {
      if (large.way == MessageWay::pull && !large.done) take_in_pieces(large);
    }
    return true;
  }
  return pulled(std::span(shares).first(messages), outcome);
}

// False: there is nothing to come back for.
bool RendezvousReceiver::pulled(std::span<const PulledShare> shares, CopyOutcome outcome) {
  bool stands = true;
  for (const PulledShare& share : shares) {
    Arriving& large = *share.message;
    // What was read counts only if it was still the sender's to give; else the end of the connection is on its way, and
    // there is nothing to come back for.
    stands = grant_stands(stream_.link()->outbound().header(), large.memory.grant_slot, large.memory.grant);
    if (!stands) break;
    if (outcome == CopyOutcome::no_memory_there) {
      stream_.disconnection().violated("it announced memory that it does not have");
      return false;
    }
    large.message->placed += share.bytes;
    if (large.message->placed < large.message->length) continue;
    large.done = true;
    stream_.link()->sender().send_control(CellKind::pulled, stream_.remote(), large.sequence);
  }
  finish();
  if (!stream_.over() && stands) stream_.link()->sender().schedule_turn(stream_);
  return stands;
}

// Completions come in the order of the messages, however they crossed. False: the oldest has to wait, or the connection
// has ended.
bool RendezvousReceiver::complete() {
  while (!stream_.over() && !arriving_.empty() && arriving_.front().done) {
    Incoming* message = arriving_.front().message;
    switch (stream_.queue_pair().connection().windows().make_ready(*message)) {
      case WindowOperations::Readiness::yes:
        break;
      case WindowOperations::Readiness::not_yet:
        return false;
      case WindowOperations::Readiness::no:
        // Its sender has been told that it has arrived, so no other is to blame.
        stream_.queue_pair().connection().break_off(WorkStatus::flushed, CloseReason::request_failed);
        return false;
    }
    arriving_.erase(arriving_.begin());
    stream_.queue_pair().receives().finish(*message);
  }
  return !stream_.over();
}

void RendezvousReceiver::finish() {
  if (complete()) stream_.disconnection().or_break([this] { stream_.receiver().deliver_backlog(); });
}

// Our buffer is ours again if this answers true. A peer that is just writing is given a moment. One that has died in
// the middle has written all it ever will; and no peer writes on a link that it has given up, for it has one lock for
// both. Both show as the end of the link, also where the peer's process has no number here (another PID namespace).
// On a link that this side has given up the peer may be writing, until it has had its time: then it may begin no other
// stretch.
bool RendezvousReceiver::withdraw(const Arriving& large) {
  if (large.way != MessageWay::push || large.done) return true;
  Link& link = *stream_.link();
  for (unsigned tries = 0; !link.grants().try_withdraw(large.memory.grant_slot, large.memory.grant); ++tries) {
    if (link.peer_gone() || link.end().peer_was_gone()) return true;
    if (tries == 20) {
      if (!link.dead() || !stream_.disconnection().out_of_patience()) return false;
      link.grants().withdraw(large.memory.grant_slot);
      return true;
    }
    os::cpu_relax();
  }
  return true;
}

bool RendezvousReceiver::all_have_come() const {
  return std::all_of(arriving_.begin(), arriving_.end(), [](const Arriving& it) { return it.done || it.held; });
}

// ---- ends

void RendezvousReceiver::fail(const Arriving& large, WorkStatus status) {
  const auto fail = [&, message = large.message] {
    stream_.queue_pair().receives().fail(*message, status);
    return true;
  };
  large.held ? stream_.receiver().deliver_completed(fail) : fail();
}

void RendezvousReceiver::fail(std::uint64_t address) {
  for (const Arriving& large : arriving_) {
    if (large.done || !lies_in(address, large.message->buffer.all())) continue;
    fail(large, WorkStatus::local_protection);
    return;
  }
}

// LMR-FREE-8: what is to come into a region that has gone can go no further.
bool RendezvousReceiver::region_removed() {
  for (std::size_t i = 0; i < arriving_.size() && !stream_.over(); ++i) {
    if (arriving_[i].done) continue;
    const WorkStatus status = stream_.queue_pair().receives().check(*arriving_[i].message);
    if (status != WorkStatus::success) fail(arriving_[i], status);
  }
  // What is left of a connection that is over is still being written.
  return !stream_.over() || std::all_of(arriving_.begin(), arriving_.end(), [&](const Arriving& large) {
    return stream_.queue_pair().receives().check(*large.message) == WorkStatus::success;
  });
}

bool RendezvousReceiver::take_back() {
  std::erase_if(arriving_, [&](const Arriving& large) { return withdraw(large); });
  return arriving_.empty();
}

std::optional<std::uint32_t> RendezvousReceiver::at_fault() const {
  if (beginning_) return beginning_;
  const auto large = std::find_if(arriving_.begin(), arriving_.end(), [&](const Arriving& it) {
    return it.message == stream_.queue_pair().receives().failed_message();
  });
  return large != arriving_.end() ? std::optional(large->sequence) : std::nullopt;
}

}  // namespace anydat::nic::soft::shm
