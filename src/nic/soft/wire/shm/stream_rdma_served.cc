// SPDX-License-Identifier: BSD-3-Clause
// RDMA over shared memory, of the peer, as far as it is this side that carries it out.
#include <algorithm>
#include <cstring>

#include "nic/soft/adapter.h"
#include "nic/soft/atomic_word.h"
#include "nic/soft/copy.h"
#include "nic/soft/wire/shm/copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

bool ShmStream::atomic_arrived(const CellView& view) {
  AtomicBody body;
  if (view.length != sizeof body || (queue_pair_.takes() & ability::kAtomics) == 0) return false;
  std::memcpy(&body, view.body, sizeof body);
  if (body.operation > AtomicOperation::compare_swap) return false;
  if (served_reads_.size() >= queue_pair_.reads_in()) {  // RDR-11
    refuse(read_behind(served_reads_.size()), CloseReason::local_error);
    return true;
  }
  served_reads_.push_back({{}, 0, body});
  serve_reads();
  return true;
}

// False: not yet, or the connection has just ended.
bool ShmStream::serve_atomic(const AtomicBody& body) {
  std::uint64_t where = 0;
  if (!opens(body.key, body.address, kAtomicBytes, access::kRemoteAtomic, where)) return false;
  if (where % kAtomicBytes != 0) {
    refuse({Refused::a_read, 0}, CloseReason::remote_access);
    return false;
  }
  const nic::Segment word{0, 0, where, kAtomicBytes};
  if (!served_pages_.there(std::span(&word, 1), {0, kAtomicBytes}, kAtomicBytes, true)) return false;
  const WorkKind operation =
      body.operation == AtomicOperation::fetch_add ? WorkKind::fetch_add : WorkKind::compare_swap;
  const AtomicDoneBody done{carry_out(operation, where, body.operand, body.compare)};
  link_->send_control(CellKind::atomic_done, remote_, 0, std::as_bytes(std::span(&done, 1)));
  return true;
}

bool ShmStream::opens(std::uint32_t key, std::uint64_t at, std::uint64_t length, std::uint32_t right,
                      std::uint64_t& where, std::size_t reads_before_it) {
  const RegionCheck check =
      fabric_.adapter().regions().resolve(key, at, length, queue_pair_.memory().user(), right, where);
  if (check == RegionCheck::ok) return true;
  refuse(right == access::kRemoteWrite ? CloseBody{Refused::a_write, 0} : read_behind(reads_before_it),
         CloseReason::remote_access);
  return false;
}

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

bool ShmStream::fault_in_arrived(const CellView& view) {
  GetBody body;
  if (view.body_room < sizeof body || pages_for_peer_.pending()) return false;
  std::memcpy(&body, view.body, sizeof body);
  if (body.length == 0 || body.length > kFaultInBytesMax) return false;
  if (view.aux != access::kRemoteRead && view.aux != access::kRemoteWrite) return false;
  std::uint64_t where = 0;
  // Its Read would be the next.
  if (!opens(body.key, body.address, body.length, view.aux, where, served_reads_.size())) return true;
  const bool to_write = view.aux == access::kRemoteWrite;
  // A peer that cannot look for itself asks each time.
  if (resident_pages_.hold(0, {where, body.length}, to_write, engine_.ticks())) {
    link_->send_control(CellKind::faulted_in, remote_, 0);
  } else {
    fabric_.adapter().page_faulter().ask(pages_for_peer_, where, body.length, to_write);
  }
  return true;
}

bool ShmStream::get_arrived(const CellView& view) {
  GetBody body;
  if (view.body_room < sizeof body) return false;
  std::memcpy(&body, view.body, sizeof body);
  if (body.length == 0) return false;
  if (served_reads_.size() >= queue_pair_.reads_in()) {  // RDR-11
    refuse(read_behind(served_reads_.size()), CloseReason::local_error);
    return true;
  }
  served_reads_.push_back({body});
  serve_reads();
  return true;
}

bool ShmStream::serve_reads() {
  bool moved = false;
  for (int turn = 0; turn < kPiecesPerTurn && !closed_; ++turn) {
    if (served_reads_.empty()) return moved;
    Served& read = served_reads_.front();
    if (read.atomic) {
      if (!serve_atomic(*read.atomic)) return moved;
      served_reads_.erase(served_reads_.begin());
      moved = true;
      continue;
    }
    const GetBody& request = read.request;
    std::uint64_t where = 0;
    if (!opens(request.key, request.address, request.length, access::kRemoteRead, where)) return moved;
    const std::uint64_t count = std::min<std::uint64_t>(kPieceBytesMax, request.length - read.offset);
    const nic::Segment source{0, 0, where, request.length};
    if (!served_pages_.there(std::span(&source, 1), {read.offset, count}, request.length - read.offset, false))
      return moved;
    const bool sent = link_->try_send_piece(*this, CellKind::got, 0, remote_, static_cast<std::uint32_t>(count), 0,
                                            PieceBody{}, [&](std::byte* to) {
                                              gather_streaming(to, {&source, 1}, read.offset, count);
                                            });
    if (!sent) return moved;
    moved = true;
    read.offset += count;
    if (read.offset == request.length) served_reads_.erase(served_reads_.begin());
  }
  if (!closed_ && !served_reads_.empty()) link_->come_back(*this);
  return moved;
}

}  // namespace anydat::nic::soft::shm
