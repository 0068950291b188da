// SPDX-License-Identifier: BSD-3-Clause
// RDMA Writes of the peer to memory of this side that is not there, where it is this side that puts them in place. The
// peer asks before it sends them, but pages may go meanwhile, and not every peer does as it should.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

namespace {

// More than a peer sends before it asks again (pages_told()), with its messages.
constexpr std::size_t kHeldBytesMax = 2 * kFaultInBytesMax;
constexpr std::size_t kHeldOverhead = 128;
static_assert(kHeldOverhead + sizeof(PutBody) + 64 <= kPutOverhead);

bool is_message(CellKind kind) {
  return kind == CellKind::send || kind == CellKind::send_invalidate || kind == CellKind::announce ||
         kind == CellKind::immediate;
}

// Whether it acts on memory of this side, or tells this side's program of something that has been done there; or asks
// for memory, which is for what comes behind, and is refused in its turn.
bool comes_in_order(CellKind kind) {
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

}  // namespace

CellView ShmStream::HeldCell::view() const {
  return {kind, flags, cells, length, 0, aux, bytes.data(), body_bytes};
}

bool ShmStream::awaits_memory_for_parked() const {
  return held_ && std::any_of(held_->cells.begin(), held_->cells.end(),
                              [](const HeldCell& cell) { return is_message(cell.kind); });
}

bool ShmStream::waits_behind_held(const CellView& view) const {
  return held_ && comes_in_order(view.kind);
}

// `piece`: what a put has in the bulk ring.
void ShmStream::hold(const CellView& view, std::span<const std::byte> piece) {
  or_break([&] {
    if (!held_) {
      held_ = std::make_unique<Held>();
      queue_pair_.memory().enter();  // its region may go
    }
    HeldCell cell{view.kind, view.flags, view.cells, view.length, view.aux, view.body_room, {}};
    cell.bytes.reserve(view.body_room + piece.size());
    cell.bytes.assign(view.body, view.body + view.body_room);
    cell.bytes.insert(cell.bytes.end(), piece.begin(), piece.end());
    held_->bytes += cell.bytes.size() + kHeldOverhead;
    held_->cells.push_back(std::move(cell));
  });
  if (held_ && held_->bytes > kHeldBytesMax) violated("it goes on writing to memory that is not there");
}

// In order, as far as the memory is there.
void ShmStream::go_on_with_held() {
  if (!held_ || closed_) return;
  const bool moved = place_cells_held();
  // A pass over the link sees to this else, and to what the peer is owed.
  fabric_.adapter().batch().flush();
  if (!moved || closed_) return;
  link_->come_back(*this);
  queue_pair_.connection().orderly_end().message_finished();  // perhaps one
}

// True if any was placed.
bool ShmStream::place_cells_held() {
  bool moved = false;
  while (held_ && !closed_) {
    std::list<HeldCell> first;  // apart, since the connection may end with it
    first.splice(first.begin(), held_->cells, held_->cells.begin());
    const HeldCell& cell = first.front();
    const CellView view = cell.view();
    if (view.kind != CellKind::send) fabric_.adapter().batch().flush();
    bool sane = true;
    if (view.kind == CellKind::put || view.kind == CellKind::write) {
      const bool placed = view.kind == CellKind::put ? put_piece(view, std::span(cell.bytes).subspan(cell.body_bytes))
                                                     : put_short(view, sane);
      if (!placed && sane && held_) {
        held_->cells.splice(held_->cells.begin(), first);
        arrival_pages_.bring();
        return moved;
      }
    } else {
      sane = arrived_in(queue_pair_.state(), connected(), view);
    }
    if (!held_) return true;
    if (!sane) {
      violated("it sent a malformed message");
      return true;
    }
    moved = true;
    held_->bytes -= cell.bytes.size() + kHeldOverhead;
    if (held_->cells.empty()) held_.reset();
  }
  return moved;
}

// The memory that the oldest of them is for is not to be had. False: it is not for that.
bool ShmStream::fail_held(std::uint64_t address) {
  if (!held_) return false;
  const CellView view = held_->cells.front().view();
  std::uint64_t where = 0;
  std::uint64_t length = 0;
  if (view.kind == CellKind::put) {
    PutBody body;
    std::memcpy(&body, view.body, sizeof body);
    length = body.length;
    if (!opens(body.key, body.address, length, access::kRemoteWrite, where)) return true;
  } else {
    WriteBody body;
    std::memcpy(&body, view.body, sizeof body);
    length = view.length - sizeof body;
    if (!opens(body.key, body.address, length, access::kRemoteWrite, where)) return true;
  }
  if (address - where >= length) return false;
  refuse({Refused::a_write, 0}, CloseReason::remote_access);
  return true;
}

}  // namespace anydat::nic::soft::shm
