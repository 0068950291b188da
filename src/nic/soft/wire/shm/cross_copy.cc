// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/cross_copy.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "nic/soft/scatter.h"
#include "os/fork.h"
#include "os/peer_process.h"
#include "os/random.h"

namespace anydat::nic::soft::shm {

namespace {

// Random, so that a process that happens to have something at the address is not taken for the right one.
struct Probe {
  Probe() {
    os::fill_random(std::as_writable_bytes(std::span(&value, 1)));
    value |= 1;
  }
  std::uint64_t value = 0;
};
constinit os::PerProcess<Probe> probe;

using Vector = std::array<iovec, 64>;

}  // namespace

void offer_probe(SegmentHeader& header, std::uint32_t thread) {
  header.probe_address = reinterpret_cast<std::uint64_t>(&probe->value);
  header.probe_value = probe->value;
  header.probe_thread = thread;
}

bool CopyBatch::add(std::span<const nic::Segment> local, std::span<const MemoryBody::Span> remote, CopyRange range) {
  if (local_.size() - locals_ < local.size() || remote_.size() - remotes_ < remote.size()) return false;
  locals_ += pieces_of(local, range.offset, range.count, std::span(local_).subspan(locals_));
  remotes_ += pieces_of(remote, range.offset, range.count, std::span(remote_).subspan(remotes_));
  bytes_ += range.count;
  return true;
}

void PeerMemory::attach(int socket, const os::PeerProcess& process, const SegmentHeader& segment, std::uint64_t now) {
  socket_ = socket;
  process_ = process.descriptor();
  // The peer may change what it has written there at any moment: each word is read once.
  const std::uint64_t address = segment.probe_address;
  const std::uint64_t value = segment.probe_value;
  const pid_t thread = process.thread(static_cast<pid_t>(segment.probe_thread));
  if (thread <= 0) return;
  std::uint64_t seen = 0;
  const iovec here{&seen, sizeof seen};
  const iovec there{reinterpret_cast<void*>(address), sizeof seen};
  if (os::read_memory_of(thread, std::span(&here, 1), std::span(&there, 1)) != sizeof seen || seen != value) return;
  thread_.store(thread);
  // The descriptor that this takes is there as long as the link.
  pages_.are_resident(thread, {address, sizeof seen}, false, now);
}

bool PeerMemory::look_at_link(os::Nanoseconds now) {
  if (os::peer_has_hung_up(socket_, process_)) return false;
  looked_.store(now, std::memory_order_relaxed);
  return true;
}

bool PeerMemory::there(std::span<const MemoryBody::Span> spans, CopyRange range, bool to_write, std::uint64_t now) {
  const pid_t thread = thread_.load(std::memory_order_relaxed);
  if (thread <= 0) return true;  // the copy says so
  for (const MemoryBody::Span& span : spans) {
    if (range.count == 0) break;
    if (range.offset >= span.length) {
      range.offset -= span.length;
      continue;
    }
    const std::uint64_t part = std::min(range.count, span.length - range.offset);
    const ResidentPages::Range pages{span.address + range.offset, part};
    if (!pages_.are_resident(thread, pages, to_write, now, ResidentPages::CopiedBy::kernel)) return false;
    range.count -= part;
    range.offset = 0;
  }
  return true;
}

CopyOutcome PeerMemory::failed(int error) {
  if (error == EFAULT) return CopyOutcome::no_memory_there;
  if (os::peer_has_hung_up(socket_, process_)) return CopyOutcome::peer_gone;
  thread_.store(0);
  return CopyOutcome::not_reachable;
}

template <typename Call>
CopyOutcome PeerMemory::copy(std::span<const nic::Segment> local, std::span<const MemoryBody::Span> remote,
                             CopyRange range, Call&& call) {
  const pid_t thread = thread_.load(std::memory_order_relaxed);
  if (thread <= 0) return CopyOutcome::not_reachable;
  while (range.count > 0) {
    Vector here, there;
    const std::size_t here_count = pieces_of(local, range.offset, range.count, here);
    const std::size_t there_count = pieces_of(remote, range.offset, range.count, there);
    const ssize_t moved = call(thread, std::span(here).first(here_count), std::span(there).first(there_count));
    if (moved <= 0) return failed(moved < 0 ? errno : EFAULT);
    range.offset += static_cast<std::uint64_t>(moved);
    range.count -= std::min(range.count, static_cast<std::uint64_t>(moved));
  }
  return CopyOutcome::copied;
}

CopyOutcome PeerMemory::copy_from(std::span<const nic::Segment> to, std::span<const MemoryBody::Span> from,
                                  CopyRange range) {
  return copy(to, from, range, os::read_memory_of);
}

CopyOutcome PeerMemory::copy_to(std::span<const nic::Segment> from, std::span<const MemoryBody::Span> to,
                                CopyRange range) {
  return copy(from, to, range, os::write_memory_of);
}

template <typename Call>
CopyOutcome PeerMemory::copy(const CopyBatch& batch, Call&& call) {
  const pid_t thread = thread_.load(std::memory_order_relaxed);
  if (thread <= 0) return CopyOutcome::not_reachable;
  const ssize_t moved =
      call(thread, std::span(batch.local_).first(batch.locals_), std::span(batch.remote_).first(batch.remotes_));
  if (moved == static_cast<ssize_t>(batch.bytes_)) return CopyOutcome::copied;
  return failed(moved < 0 ? errno : EFAULT);
}

CopyOutcome PeerMemory::copy_from(const CopyBatch& batch) {
  return copy(batch, os::read_memory_of);
}

CopyOutcome PeerMemory::copy_to(const CopyBatch& batch) {
  return copy(batch, os::write_memory_of);
}

}  // namespace anydat::nic::soft::shm
