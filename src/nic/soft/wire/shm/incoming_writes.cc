// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/incoming_writes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "nic/soft/adapter.h"
#include "nic/soft/copy.h"
#include "nic/soft/wire/shm/copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

namespace {

// More than a peer sends before it asks again (RdmaPages::told()), with its messages.
constexpr std::size_t kHeldBytesMax = 2 * kFaultInBytesMax;
constexpr std::size_t kHeldOverhead = 128;
static_assert(kHeldOverhead + sizeof(PutBody) + 64 <= kPutOverhead);

bool is_program_message(CellKind kind) {
  return kind == CellKind::send || kind == CellKind::send_invalidate || kind == CellKind::announce ||
         kind == CellKind::immediate;
}

}  // namespace

// `left`: of the Write, from these bytes on. False: the memory is not there, and has been asked for. What may not be
// written, since the program has taken away its own leave to, or the memory, is refused when that is found, as where
// the peer writes across by itself.
bool IncomingWrites::put_in_place(std::uint64_t where, std::span<const std::byte> bytes, std::uint64_t left,
                                  bool last) {
  const nic::Segment target{0, 0, where, left};
  if (!stream_.pages().of_arrivals().there({&target, 1}, {0, bytes.size()}, left, true)) return false;
  copy_ascending(reinterpret_cast<std::byte*>(where), bytes.data(), bytes.size());
  if (last) done();
  return true;
}

// A piece of a Write. False as put_in_place(); also where the connection has ended.
bool IncomingWrites::put_piece(const CellView& view, std::span<const std::byte> bytes) {
  PutBody body;
  std::memcpy(&body, view.body, sizeof body);
  if (body.offset > body.length || view.length > body.length - body.offset) {
    stream_.disconnection().violated("it sent more of an RDMA Write than there is");
    return false;
  }
  std::uint64_t where = 0;
  if (!stream_.responder().opens(body.key, body.address, body.length, access::kRemoteWrite, where)) return false;
  return put_in_place(where + body.offset, bytes, body.length - body.offset, (view.flags & kFlagLast) != 0);
}

// A short Write, in one message. False as put_piece().
bool IncomingWrites::put_short(const CellView& view, bool& sane) {
  WriteBody body;
  sane = view.length > sizeof body && view.length <= sizeof body + kShortWriteMax && view.length <= view.body_room;
  if (!sane) return false;
  std::memcpy(&body, view.body, sizeof body);
  const std::size_t count = view.length - sizeof body;
  std::uint64_t where = 0;
  if (!stream_.responder().opens(body.key, body.address, count, access::kRemoteWrite, where)) return false;
  return put_in_place(where, {view.body + sizeof body, count}, count, (view.flags & kFlagLast) != 0);
}

void IncomingWrites::piece_arrived(const CellView& view, const std::byte* bytes) {
  const std::span piece(bytes, view.length);
  if ((held_ || !put_piece(view, piece)) && !stream_.over()) [[unlikely]]
    hold(view, piece);
}

bool IncomingWrites::short_arrived(const CellView& view) {
  bool sane = true;
  if (!put_short(view, sane) && sane && !stream_.over()) [[unlikely]]
    hold(view);
  return sane;
}

void IncomingWrites::done() {
  ++done_;
  stream_.link()->receiver().owes_done(stream_);
}

void IncomingWrites::tell_done() {
  if (done_ != 0) stream_.link()->sender().send_control(CellKind::done, stream_.remote(), std::exchange(done_, 0) - 1);
}

// ---- those that wait for their memory

CellView IncomingWrites::HeldCell::view() const {
  return {kind, flags, cells, length, 0, aux, bytes.data(), body_bytes};
}

// Whether it acts on memory of this side, or tells this side's program of something that has been done there; or asks
// for memory, which is for what comes behind, and is refused in its turn.
bool IncomingWrites::comes_in_order(CellKind kind) {
  switch (kind) {
    case CellKind::send:
    case CellKind::send_invalidate:
    case CellKind::announce:
    case CellKind::immediate:
    case CellKind::write:
    case CellKind::put:
    case CellKind::get:
    case CellKind::atomic:
    case CellKind::fault_in:
      return true;
    default:
      return false;
  }
}

bool IncomingWrites::holds_messages() const {
  return held_ && std::any_of(held_->cells.begin(), held_->cells.end(),
                              [](const HeldCell& cell) { return is_program_message(cell.kind); });
}

// `piece`: what a put has in the bulk ring.
void IncomingWrites::hold(const CellView& view, std::span<const std::byte> piece) {
  stream_.disconnection().or_break([&] {
    if (!held_) {
      held_ = std::make_unique<Held>();
      stream_.queue_pair().memory().enter();  // its region may go
    }
    HeldCell cell{view.kind, view.flags, view.cells, view.length, view.aux, view.body_room, {}};
    cell.bytes.reserve(view.body_room + piece.size());
    cell.bytes.assign(view.body, view.body + view.body_room);
    cell.bytes.insert(cell.bytes.end(), piece.begin(), piece.end());
    held_->bytes += cell.bytes.size() + kHeldOverhead;
    held_->cells.push_back(std::move(cell));
  });
  if (held_ && held_->bytes > kHeldBytesMax)
    stream_.disconnection().violated("it goes on writing to memory that is not there");
}

// In order, as far as the memory is there.
void IncomingWrites::go_on() {
  if (!held_ || stream_.over()) return;
  const bool moved = place_held();
  // A pass over the link sees to this else, and to what the peer is owed.
  stream_.fabric().adapter().batch().flush();
  if (!moved || stream_.over()) return;
  stream_.link()->sender().schedule_turn(stream_);
  stream_.queue_pair().connection().orderly_end().message_finished();  // perhaps one
}

// True if any was placed.
bool IncomingWrites::place_held() {
  bool moved = false;
  while (held_ && !stream_.over()) {
    std::list<HeldCell> first;  // apart, since the connection may end with it
    first.splice(first.begin(), held_->cells, held_->cells.begin());
    const HeldCell& cell = first.front();
    const CellView view = cell.view();
    if (view.kind != CellKind::send) stream_.fabric().adapter().batch().flush();
    bool sane = true;
    if (view.kind == CellKind::put || view.kind == CellKind::write) {
      const bool placed = view.kind == CellKind::put ? put_piece(view, std::span(cell.bytes).subspan(cell.body_bytes))
                                                     : put_short(view, sane);
      if (!placed && sane && held_) {
        held_->cells.splice(held_->cells.begin(), first);
        stream_.pages().of_arrivals().bring();
        return moved;
      }
    } else {
      sane = stream_.arrived_in(stream_.queue_pair().state(), stream_.connected(), view);
    }
    if (!held_) return true;
    if (!sane) {
      stream_.disconnection().violated("it sent a malformed message");
      return true;
    }
    moved = true;
    held_->bytes -= cell.bytes.size() + kHeldOverhead;
    if (held_->cells.empty()) held_.reset();
  }
  return moved;
}

// The memory that the oldest of them is for is not to be had. False: it is not for that.
bool IncomingWrites::fail(std::uint64_t address) {
  if (!held_) return false;
  const CellView view = held_->cells.front().view();
  std::uint64_t where = 0;
  std::uint64_t length = 0;
  if (view.kind == CellKind::put) {
    PutBody body;
    std::memcpy(&body, view.body, sizeof body);
    length = body.length;
    if (!stream_.responder().opens(body.key, body.address, length, access::kRemoteWrite, where)) return true;
  } else {
    WriteBody body;
    std::memcpy(&body, view.body, sizeof body);
    length = view.length - sizeof body;
    if (!stream_.responder().opens(body.key, body.address, length, access::kRemoteWrite, where)) return true;
  }
  if (address - where >= length) return false;
  stream_.disconnection().refuse({Refused::a_write, 0}, CloseReason::remote_access);
  return true;
}

}  // namespace anydat::nic::soft::shm
