// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/read_responder.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/atomic_word.h"
#include "nic/soft/copy.h"
#include "nic/soft/wire/shm/copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

ReadResponder::ReadResponder(ShmStream& stream)
    : stream_(stream),
      sources_(stream.fabric().adapter(), *this),
      pages_for_peer_([this](bool there, std::span<const PageFaulter::Pages>) {
        if (!stream_.over())
          stream_.link()->sender().send_control(CellKind::faulted_in, stream_.remote(), there ? 0 : 1);
      }) {}

ReadResponder::~ReadResponder() {
  stream_.fabric().adapter().page_faulter().cancel(pages_for_peer_);
}

bool ReadResponder::read_arrived(const CellView& view) {
  GetBody body;
  if (view.body_room < sizeof body) return false;
  std::memcpy(&body, view.body, sizeof body);
  if (body.length == 0) return false;
  if (!has_room()) return true;
  served_.push_back({body});
  serve();
  return true;
}

bool ReadResponder::atomic_arrived(const CellView& view) {
  AtomicBody body;
  if (view.length != sizeof body || (stream_.queue_pair().takes() & ability::kAtomics) == 0) return false;
  std::memcpy(&body, view.body, sizeof body);
  if (body.operation > AtomicOperation::compare_swap) return false;
  if (!has_room()) return true;
  served_.push_back({{}, 0, body});
  serve();
  return true;
}

bool ReadResponder::fault_in_arrived(const CellView& view) {
  GetBody body;
  if (view.body_room < sizeof body || pages_for_peer_.pending()) return false;
  std::memcpy(&body, view.body, sizeof body);
  if (body.length == 0 || body.length > kFaultInBytesMax) return false;
  if (view.aux != access::kRemoteRead && view.aux != access::kRemoteWrite) return false;
  std::uint64_t where = 0;
  // Its Read would be the next.
  if (!opens(body.key, body.address, body.length, view.aux, where, served_.size())) return true;
  const bool to_write = view.aux == access::kRemoteWrite;
  // A peer that cannot look for itself asks each time.
  if (stream_.fabric().adapter().resident_pages().are_resident(0, {where, body.length}, to_write,
                                                               stream_.fabric().engine().ticks())) {
    stream_.link()->sender().send_control(CellKind::faulted_in, stream_.remote(), 0);
  } else {
    stream_.fabric().adapter().page_faulter().ask(pages_for_peer_, where, body.length, to_write);
  }
  return true;
}

bool ReadResponder::serve() {
  bool moved = false;
  for (int turn = 0; turn < budget::kPiecesPerTurn && !stream_.over(); ++turn) {
    if (served_.empty()) return moved;
    Served& read = served_.front();
    if (read.atomic) {
      if (!serve_atomic(*read.atomic)) return moved;
      served_.erase(served_.begin());
      moved = true;
      continue;
    }
    const GetBody& request = read.request;
    std::uint64_t where = 0;
    if (!opens(request.key, request.address, request.length, access::kRemoteRead, where)) return moved;
    const std::uint64_t count = std::min<std::uint64_t>(kPieceBytesMax, request.length - read.offset);
    const nic::Segment source{0, 0, where, request.length};
    if (!sources_.there(std::span(&source, 1), {read.offset, count}, request.length - read.offset, false)) return moved;
    const bool sent =
        stream_.link()->sender().try_send_piece(stream_, CellKind::got, 0, stream_.remote(),
                                                static_cast<std::uint32_t>(count), 0, PieceBody{}, [&](std::byte* to) {
                                                  gather_streaming(to, {&source, 1}, read.offset, count);
                                                });
    if (!sent) return moved;
    moved = true;
    read.offset += count;
    if (read.offset == request.length) served_.erase(served_.begin());
  }
  if (!stream_.over() && !served_.empty()) stream_.link()->sender().schedule_turn(stream_);
  return moved;
}

bool ReadResponder::opens(std::uint32_t key, std::uint64_t at, std::uint64_t length, std::uint32_t right,
                          std::uint64_t& where, std::size_t reads_before_it) {
  const RegionCheck check =
      stream_.fabric().adapter().regions().resolve(key, at, length, stream_.queue_pair().memory().user(), right, where);
  if (check == RegionCheck::ok) return true;
  stream_.disconnection().refuse(
      right == access::kRemoteWrite ? CloseBody{Refused::a_write, 0} : read_behind(reads_before_it),
      CloseReason::remote_access);
  return false;
}

// RDR-11. The connection has ended where this answers no.
bool ReadResponder::has_room() {
  if (served_.size() < stream_.queue_pair().reads_in()) return true;
  stream_.disconnection().refuse(read_behind(served_.size()), CloseReason::local_error);
  return false;
}

// False: not yet, or the connection has just ended.
bool ReadResponder::serve_atomic(const AtomicBody& body) {
  std::uint64_t where = 0;
  if (!opens(body.key, body.address, kAtomicBytes, access::kRemoteAtomic, where)) return false;
  if (where % kAtomicBytes != 0) {
    stream_.disconnection().refuse({Refused::a_read, 0}, CloseReason::remote_access);
    return false;
  }
  const nic::Segment word{0, 0, where, kAtomicBytes};
  if (!sources_.there(std::span(&word, 1), {0, kAtomicBytes}, kAtomicBytes, true)) return false;
  const WorkKind operation =
      body.operation == AtomicOperation::fetch_add ? WorkKind::fetch_add : WorkKind::compare_swap;
  const AtomicDoneBody done{carry_out(operation, where, body.operand, body.compare)};
  stream_.link()->sender().send_control(CellKind::atomic_done, stream_.remote(), 0, std::as_bytes(std::span(&done, 1)));
  return true;
}

// Of Reads and atomic operations of the peer; those behind the first have not been looked at.
void ReadResponder::fail(std::uint64_t address, bool writes) {
  if (served_.empty() || served_.front().atomic.has_value() != writes) return;
  const Served& read = served_.front();
  const std::uint64_t length = read.atomic ? kAtomicBytes : read.request.length;
  std::uint64_t where = 0;
  if (!opens(read.atomic ? read.atomic->key : read.request.key,
             read.atomic ? read.atomic->address : read.request.address, length,
             read.atomic ? access::kRemoteAtomic : access::kRemoteRead, where)) {
    return;
  }
  if (address - where < length) stream_.disconnection().refuse({Refused::a_read, 0}, CloseReason::remote_access);
}

void ReadResponder::wants_pages() {
  stream_.link()->sender().schedule_turn(stream_);
}

void ReadResponder::pages_brought(const OwnPages&, const OwnPages::Brought& news) {
  if (stream_.over()) return;
  if (!news.there) stream_.disconnection().or_break([&] { fail(news.address, news.to_write); });
  stream_.pages().go_on();
}

}  // namespace anydat::nic::soft::shm
