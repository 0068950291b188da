// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/cross_copy.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/random.h"

namespace anydat::nic::soft::shm {

namespace {

// Random, so that a process that happens to have something at the address is not taken for the right one.
const std::uint64_t& probe() {
  static const std::uint64_t value = [] {
    std::uint64_t random = 0;
    base::fill_random(std::as_writable_bytes(std::span(&random, 1)));
    return random | 1;
  }();
  return value;
}

using Vector = std::array<iovec, 64>;

std::size_t add(std::span<iovec> vector, std::size_t used, std::uint64_t address, std::uint64_t length,
                CopyRange& left) {
  if (left.count == 0 || used == vector.size()) return used;
  if (left.offset >= length) {
    left.offset -= length;
    return used;
  }
  const std::uint64_t part = std::min(left.count, length - left.offset);
  vector[used] = {reinterpret_cast<void*>(address + left.offset), part};
  left.count -= part;
  left.offset = 0;
  return used + 1;
}

template <typename Call>
bool copy(pid_t pid, std::span<const nic::Segment> local, std::span<const MemoryBody::Span> remote, CopyRange range,
          Call&& call) {
  while (range.count > 0) {
    Vector here, there;
    std::size_t here_count = 0, there_count = 0;
    CopyRange left = range;
    for (const nic::Segment& segment : local) here_count = add(here, here_count, segment.address, segment.length, left);
    left = range;
    for (const MemoryBody::Span& span : remote) there_count = add(there, there_count, span.address, span.length, left);
    const ssize_t moved = call(pid, here.data(), here_count, there.data(), there_count, 0);
    if (moved <= 0) return false;
    range.offset += static_cast<std::uint64_t>(moved);
    range.count -= std::min(range.count, static_cast<std::uint64_t>(moved));
  }
  return true;
}

}  // namespace

void offer_probe(SegmentHeader& header) {
  header.probe_address = reinterpret_cast<std::uint64_t>(&probe());
  header.probe_value = probe();
}

bool can_reach(pid_t pid, const SegmentHeader& segment) {
  if (pid <= 0) return false;
  std::uint64_t seen = 0;
  const iovec here{&seen, sizeof seen};
  const iovec there{reinterpret_cast<void*>(segment.probe_address), sizeof seen};
  return process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof seen && seen == segment.probe_value;
}

bool copy_from(pid_t pid, std::span<const nic::Segment> to, std::span<const MemoryBody::Span> from, CopyRange range) {
  return copy(pid, to, from, range, process_vm_readv);
}

bool copy_to(pid_t pid, std::span<const nic::Segment> from, std::span<const MemoryBody::Span> to, CopyRange range) {
  return copy(pid, from, to, range, process_vm_writev);
}

bool CopyBatch::add(std::span<const nic::Segment> local, std::span<const MemoryBody::Span> remote, CopyRange range) {
  if (local_.size() - locals_ < local.size() || remote_.size() - remotes_ < remote.size()) return false;
  CopyRange left = range;
  for (const nic::Segment& segment : local) locals_ = shm::add(local_, locals_, segment.address, segment.length, left);
  left = range;
  for (const MemoryBody::Span& span : remote) remotes_ = shm::add(remote_, remotes_, span.address, span.length, left);
  bytes_ += range.count;
  return true;
}

bool CopyBatch::copy_from(pid_t pid) const {
  return process_vm_readv(pid, local_.data(), locals_, remote_.data(), remotes_, 0) == static_cast<ssize_t>(bytes_);
}

}  // namespace anydat::nic::soft::shm
