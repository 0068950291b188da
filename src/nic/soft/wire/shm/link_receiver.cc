// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/link_receiver.h"

#include <cstring>
#include <new>
#include <utility>

#include "base/fence.h"
#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/link.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

namespace {

// How far reading may run ahead of telling the sender, in cells.
constexpr std::uint64_t kPublishEvery = kCellCount / 8;

// Of which a program has a completion, now or when the rest has come.
constexpr bool is_message(CellKind kind) {
  return kind == CellKind::send || kind == CellKind::send_invalidate || kind == CellKind::announce ||
         kind == CellKind::immediate;
}

}  // namespace

LinkReceiver::LinkReceiver(Link& link, Fabric& fabric, const Segment& inbound, bool fences)
    : fences_(fences), header_(inbound.header()), batch_(fabric.adapter().batch()), link_(link), fabric_(fabric) {
  ring_.attach(inbound);
}

bool LinkReceiver::receive() {
  int count = 0;
  for (; count < budget::kMessagesPerTurn && !stopped_; ++count) {
    CellView view;
    const ReadResult result = ring_.peek(view);
    if (result == ReadResult::empty) break;
    const bool small = result == ReadResult::message && view.kind == CellKind::send;
    ShmStream* const to = small ? stream(view.connection) : nullptr;
    if (to && to->arrived_straight(view, [&] { return ring_.is_last(view); })) [[likely]] {
      ring_.take_of_row(view);
    } else if (!receive_otherwise()) {
      return true;
    }
    if (ring_.unpublished() >= kPublishEvery) [[unlikely]]
      publish_consumed();
  }
  batch_.flush();
  if (owing_) [[unlikely]]
    tell_done();
  if (ring_.unpublished() > 0) {
    publish_consumed();
    ring_.prefetch_next();
  }
  return count > 0;
}

// By the general way, so that the straight way is compiled into one place only. Cells that are no messages (answers,
// credit, RDMA) are dealt with on the way to the first that is one.
void LinkReceiver::take_first_message() {
  std::size_t bytes = 0;
  for (int left = budget::kMessagesPerTurn; left > 0 && bytes < budget::kReadWhileOthersWait && !stopped_; --left) {
    CellView view;
    if (ring_.peek(view) == ReadResult::empty) break;
    link_.note_progress(true);
    if (!receive_otherwise() || is_message(view.kind)) break;
    bytes += view.length;
  }
  batch_.flush();
}

// The peer may have changed the message since it was looked at, so it is looked at anew.
[[gnu::noinline]] bool LinkReceiver::receive_otherwise() {
  CellView view;
  try {
    if (ring_.peek(view) != ReadResult::message || !dispatch(view)) {
      link_.end().fail("it sent a malformed message");
      return false;
    }
  } catch (const std::bad_alloc&) {
    link_.end().fail("no memory is left for what it sends");
    return false;
  }
  ring_.take(view);
  return true;
}

void LinkReceiver::tell_done() {
  std::exchange(owing_, nullptr)->writes().tell_done();
}

void LinkReceiver::publish_consumed() {
  ring_.publish();
  base::compiler_fence();  // as in Doorbell::attract()
  if (fences_) base::full_fence();
  if (header_.room_wanted.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  header_.room_wanted.store(0);
  link_.doorbell().attract();
}

inline ShmStream* LinkReceiver::stream(std::uint32_t connection) {
  if (!latest_ || latest_->name() != connection) [[unlikely]]
    latest_ = fabric_.find(connection, link_);
  return latest_;
}

bool LinkReceiver::dispatch(const CellView& view) {
  if (view.kind != CellKind::send) batch_.flush();
  switch (view.kind) {
    case CellKind::pad:
      return true;
    case CellKind::connect:
      return fabric_.connect_arrived(link_, view);
    case CellKind::map:
      link_.mappings().show(view.aux);
      return true;
    case CellKind::unmap:
      link_.mappings().taken_back(view.aux);
      return true;
    case CellKind::cancel:
      link_.users().cancelled(view.aux);
      return true;
    case CellKind::piece:
    case CellKind::put:
    case CellKind::got: {
      PieceBody body;
      if (view.length == 0 || view.length > kPieceBytesMax) return false;
      std::memcpy(&body, view.body, sizeof body);
      const std::byte* bytes = ring_.bulk(body.position, view.length);
      if (!bytes) return false;
      if (ShmStream* stream = this->stream(view.connection); stream && !stream->piece_arrived(view, bytes))
        return false;
      ring_.take_bulk(body.position, view.length);
      return true;
    }
    case CellKind::accept: {
      if (ShmStream* stream = this->stream(view.connection)) return stream->negotiation().accept_arrived(view);
      // Ours is gone; tell the one that was accepted for it.
      AcceptBody body;
      if (view.body_room < sizeof body) return false;
      std::memcpy(&body, view.body, sizeof body);
      link_.sender().send_control(CellKind::close, body.connection, static_cast<std::uint32_t>(CloseReason::abrupt));
      return true;
    }
    default: {
      // Messages to a connection that has ended here meanwhile mean nothing.
      ShmStream* const stream = this->stream(view.connection);
      const bool sane = !stream || stream->arrived(view);
      if (view.kind == CellKind::close && link_.hazards().open_gate()) link_.users().schedule_turn();
      return sane;
    }
  }
}

// Bounded, since a peer that is cut off but alive could go on writing.
void LinkReceiver::drain() {
  for (std::uint32_t cells = 0; cells < kCellCount && !stopped_ && receive(); cells += budget::kMessagesPerTurn) {
  }
}

void LinkReceiver::forget(ShmStream& stream) {
  if (latest_ == &stream) latest_ = nullptr;
  if (owing_ == &stream) owing_ = nullptr;
}

}  // namespace anydat::nic::soft::shm
