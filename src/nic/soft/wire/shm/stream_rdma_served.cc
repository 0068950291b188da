// SPDX-License-Identifier: BSD-3-Clause
// RDMA Writes of the peer, as far as it is this side that carries them out.
#include <algorithm>
#include <cstring>

#include "nic/soft/adapter.h"
#include "nic/soft/copy.h"
#include "nic/soft/wire/shm/copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

// `left`: of the Write, from these bytes on. False: the memory is not there, and has been asked for. What may not be
// written, since the program has taken away its own leave to, or the memory, is refused when that is found, as where
// the peer writes across by itself.
bool ShmStream::put_in_place(std::uint64_t where, std::span<const std::byte> bytes, std::uint64_t left, bool last) {
  const nic::Segment target{0, 0, where, left};
  if (!arrival_pages_.there({&target, 1}, {0, bytes.size()}, left, true)) return false;
  copy_ascending(reinterpret_cast<std::byte*>(where), bytes.data(), bytes.size());
  if (last) put_done();
  return true;
}

// A piece of a Write. False as put_in_place(); also where the connection has ended.
bool ShmStream::put_piece(const CellView& view, std::span<const std::byte> bytes) {
  PutBody body;
  std::memcpy(&body, view.body, sizeof body);
  if (body.offset > body.length || view.length > body.length - body.offset) {
    violated("it sent more of an RDMA Write than there is");
    return false;
  }
  std::uint64_t where = 0;
  if (!opens(body.key, body.address, body.length, access::kRemoteWrite, where)) return false;
  return put_in_place(where + body.offset, bytes, body.length - body.offset, (view.flags & kFlagLast) != 0);
}

// A short Write, in one message. False likewise.
bool ShmStream::put_short(const CellView& view, bool& sane) {
  WriteBody body;
  sane = view.length > sizeof body && view.length <= sizeof body + kShortWriteMax && view.length <= view.body_room;
  if (!sane) return false;
  std::memcpy(&body, view.body, sizeof body);
  const std::size_t count = view.length - sizeof body;
  std::uint64_t where = 0;
  if (!opens(body.key, body.address, count, access::kRemoteWrite, where)) return false;
  return put_in_place(where, {view.body + sizeof body, count}, count, (view.flags & kFlagLast) != 0);
}

void ShmStream::put_arrived(const CellView& view, const std::byte* bytes) {
  const std::span piece(bytes, view.length);
  if ((held_ || !put_piece(view, piece)) && !closed_) [[unlikely]]
    hold(view, piece);
}

bool ShmStream::write_arrived(const CellView& view) {
  bool sane = true;
  if (!put_short(view, sane) && sane && !closed_) [[unlikely]]
    hold(view);
  return sane;
}

// Told together with those that follow at once.
void ShmStream::put_done() {
  ++puts_done_;
  link_->owes_done(*this);
}

void ShmStream::tell_puts_done() {
  if (puts_done_ != 0) link_->send_control(CellKind::done, remote_, std::exchange(puts_done_, 0) - 1);
}

}  // namespace anydat::nic::soft::shm
