// SPDX-License-Identifier: BSD-3-Clause
// RDMA Writes of the peer to memory of this side that is not there, where it is this side that puts them in place. The
// peer asks before it sends them, but pages may go meanwhile, and not every peer does as it should.
#include <cstring>
#include <memory>
#include <utility>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

namespace {

// More than a peer sends that has been told of the pages: twice what it may ask for at once.
constexpr std::size_t kHeldBytesMax = 2 * kFaultInBytesMax;
constexpr std::size_t kHeldOverhead = 128;

// Whether it acts on memory of this side, or tells this side's program of something that has been done there.
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
      return true;
    default:
      return false;
  }
}

}  // namespace

CellView ShmStream::HeldCell::view() const {
  return {kind, flags, cells, length, 0, aux, bytes.data(), body_bytes};
}

bool ShmStream::waits_behind_held(const CellView& view) const {
  // A peer that leaves in order has left nothing undone, so what is held is no Write of its, or it does as it likes.
  const bool leaves = view.kind == CellKind::close && view.aux == static_cast<std::uint32_t>(CloseReason::graceful);
  return held_ && (leaves || comes_in_order(view.kind));
}

// `piece`: what a put has in the bulk ring.
void ShmStream::hold(const CellView& view, std::span<const std::byte> piece) {
  or_break([&] {
    if (!held_) {
      held_ = std::make_unique<Held>();
      queue_pair_.enter_memory_users();  // its region may go
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
  while (held_ && !closed_) {
    std::list<HeldCell> first;  // apart, since the connection may end with it
    first.splice(first.begin(), held_->cells, held_->cells.begin());
    const HeldCell& cell = first.front();
    const CellView view = cell.view();
    bool sane = true;
    if (view.kind == CellKind::put || view.kind == CellKind::write) {
      const bool placed = view.kind == CellKind::put ? put_piece(view, std::span(cell.bytes).subspan(cell.body_bytes))
                                                     : put_short(view, sane);
      if (!placed && sane && held_) {
        held_->cells.splice(held_->cells.begin(), first);
        arrival_pages_.bring();
        return;
      }
    } else {
      sane = arrived_in(queue_pair_.state(), connected(), view);
    }
    if (!held_) return;
    if (!sane) return violated("it sent a malformed message");
    held_->bytes -= cell.bytes.size() + kHeldOverhead;
    if (held_->cells.empty()) held_.reset();
  }
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
