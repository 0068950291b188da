// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/message_receiver.h"

#include <algorithm>
#include <cstring>

#include "nic/soft/adapter.h"
#include "nic/soft/scatter.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

namespace {

bool covers(const MemoryBody& memory, std::uint64_t length) {
  std::uint64_t left = length;
  for (std::uint32_t i = 0; i < memory.span_count; ++i) {
    if (memory.spans[i].length > left) return false;
    left -= memory.spans[i].length;
  }
  return left == 0;
}

}  // namespace

MessageReceiver::MessageReceiver(ShmStream& stream)
    : stream_(stream), receives_(stream.queue_pair().receives()), adapter_(stream.fabric().adapter()) {}

bool MessageReceiver::message_arrived(const CellView& view) {
  if (view.length > kInlineBytesMax || view.length > view.body_room || view.cells != cells_for(view.length))
    return false;
  if (!window_.takes(view.cells)) return false;
  const std::uint32_t key = view.kind == CellKind::send_invalidate ? view.aux : 0;
  if (view.kind == CellKind::send_invalidate && key == 0) return false;
  const bool solicited = (view.flags & kFlagSolicited) != 0;
  const bool next = backlog_.empty() && receives_.arriving().empty();
  const auto deliver = [&] { return deliver_small(view.body, view.length, solicited, key); };
  if (next && deliver_completed(deliver)) {
    delivered(view.cells);
    return true;
  }
  std::unique_ptr<std::byte[]> bytes(new std::byte[std::max<std::uint32_t>(view.length, 1)]);
  std::memcpy(bytes.get(), view.body, view.length);
  add_to_backlog({view.length, view.cells, solicited, std::move(bytes), nullptr, 0, false, 0, key});
  if (backlog_.size() == 1 && receives_.arriving().empty()) receives_.not_ready().wait_for_buffer();
  return true;
}

void MessageReceiver::add_to_backlog(BacklogMessage message) {
  const std::uint32_t cells = message.cells;
  backlog_.push_back(std::move(message));
  window_.add_backlog(cells);
}

bool MessageReceiver::immediate_arrived(const CellView& view) {
  ImmediateBody body;
  if (view.length != sizeof body) return false;
  if (view.cells != cells_for(sizeof body) || (stream_.queue_pair().takes() & ability::kImmediate) == 0) return false;
  if (!window_.takes(view.cells)) return false;
  std::memcpy(&body, view.body, sizeof body);
  if ((view.flags & kFlagLast) != 0) stream_.writes().done();
  const bool solicited = (view.flags & kFlagSolicited) != 0;
  const bool next = backlog_.empty() && receives_.arriving().empty();
  const auto deliver = [&] { return receives_.deliver_immediate(body.length, body.value, solicited); };
  if (next && deliver_completed(deliver)) {
    delivered(view.cells);
    return true;
  }
  add_to_backlog({body.length, view.cells, solicited, nullptr, nullptr, 0, true, body.value});
  if (next) receives_.not_ready().wait_for_buffer();
  return true;
}

bool MessageReceiver::announce_arrived(const CellView& view) {
  AnnounceBody body;
  if (view.body_room < sizeof body || view.cells != cells_for(sizeof body)) return false;
  std::memcpy(&body, view.body, sizeof body);
  if (body.length <= kInlineBytesMax || body.memory.span_count > kSpansMax || body.memory.grant_slot >= kGrantSlots ||
      (body.memory.span_count > 0 && !covers(body.memory, body.length)) || !window_.takes(view.cells)) {
    return false;
  }
  const bool solicited = (view.flags & kFlagSolicited) != 0;
  const bool next = backlog_.empty() && may_begin(body.length, body.invalidates);
  if (next && stream_.rendezvous_receiver().accept(body, view.aux, solicited)) {
    delivered(view.cells);
    return true;
  }
  if (stream_.over()) return true;
  add_to_backlog(
      {body.length, view.cells, solicited, nullptr, std::make_unique<AnnounceBody>(body), view.aux, false, 0});
  if (next) receives_.not_ready().wait_for_buffer();
  return true;
}

// A message that would end the connection, because it does not fit the next receive or names a key that it may not
// invalidate, begins only when all before it are in, so that they still complete (DTO-40). Whatever finishes the last
// of them calls deliver_backlog().
bool MessageReceiver::may_begin(std::uint64_t length, std::uint32_t invalidates) {
  const std::size_t busy = receives_.arriving().count();
  const bool harmless = invalidates == 0 || stream_.queue_pair().connection().windows().may_invalidate(invalidates);
  return busy == 0 || (busy < kAnnouncedMax && harmless && receives_.buffers().next_takes(length));
}

// A message that is wholly here, when no other is arriving. False: there is no buffer for it now. One that takes a
// window back completes as a large one does, since it may have to wait for the peer to let go of that; and so does one
// whose buffer is not in memory.
bool MessageReceiver::deliver_small(const std::byte* bytes, std::size_t length, bool solicited, std::uint32_t key) {
  if (key == 0 && next_buffer_there(length)) [[likely]]
    return receives_.deliver(bytes, length, solicited);
  return stream_.rendezvous_receiver().take_small(bytes, length, solicited, key);
}

// Whether there is a next receive, and its memory can be written, as far as `length` goes. One that is posted just then
// is none yet: it has not been looked at.
bool MessageReceiver::next_buffer_there(std::size_t length) {
  const ReceivePool::Slot* const next = receives_.buffers().next();
  if (!next) return false;
  const std::uint64_t now = adapter_.engine().ticks();
  return for_each_piece(next->all(), 0, length, [&](const Piece& piece) {
    return adapter_.resident_pages().are_resident(0, {piece.address, piece.count}, true, now,
                                                  ResidentPages::CopiedBy::us_in_short);
  });
}

void MessageReceiver::deliver_backlog() {
  while (!stream_.over() && !backlog_.empty()) {
    BacklogMessage& message = backlog_.front();
    if (message.announcement ? !may_begin(message.length, message.announcement->invalidates)
                             : !receives_.arriving().empty()) {
      return;
    }
    const auto deliver = [&] {
      if (message.immediate) return receives_.deliver_immediate(message.length, message.value, message.solicited);
      return deliver_small(message.bytes.get(), message.length, message.solicited, message.invalidates);
    };
    const bool taken = message.announcement ? stream_.rendezvous_receiver().accept(*message.announcement,
                                                                                   message.sequence, message.solicited)
                                            : deliver_completed(deliver);
    // One by one: each may be the last for want of a buffer.
    stream_.fabric().adapter().batch().flush();
    if (stream_.over()) return;
    if (!taken) {
      receives_.not_ready().wait_for_buffer();
      return;
    }
    receives_.not_ready().stop_waiting();  // where it was not called
    const std::uint32_t cells = message.cells;
    backlog_.pop_front();
    window_.remove_backlog(cells);
    delivered(cells);
  }
  if (!stream_.over()) stream_.queue_pair().connection().orderly_end().delivered_everything();
}

void MessageReceiver::give_credit() {
  if (stream_.over()) return;
  stream_.link()->sender().send_control(CellKind::credit, stream_.remote(), window_.take_credit());
}

}  // namespace anydat::nic::soft::shm
