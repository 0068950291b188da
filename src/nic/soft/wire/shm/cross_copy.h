// SPDX-License-Identifier: BSD-3-Clause
// Copying between the memory of two processes in one step, by the kernel. It may be forbidden (another PID namespace, a
// security policy), so it is tried out before it is relied on.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <span>

#include "nic/soft/wire/shm/layout.h"
#include "nic/types.h"

namespace anydat::nic::soft::shm {

// Announces in our own segment what a peer can try to read.
void offer_probe(SegmentHeader& header);

// Can we read (and, by the same permission, write) the memory of process `pid`, and is it the one that made `segment`?
bool can_reach(pid_t pid, const SegmentHeader& segment);

struct CopyRange {
  std::uint64_t offset;
  std::uint64_t count;
};

// Copies the range of a message between local segments and remote spans. False if the memory is not there any more.
bool copy_from(pid_t pid, std::span<const nic::Segment> to, std::span<const MemoryBody::Span> from, CopyRange range);
bool copy_to(pid_t pid, std::span<const nic::Segment> from, std::span<const MemoryBody::Span> to, CopyRange range);

// Ranges of several messages, in one call of the kernel. Each call has a price of its own, whatever it moves.
class CopyBatch {
 public:
  // False if there is no room left for it; nothing has changed then.
  bool add(std::span<const nic::Segment> local, std::span<const MemoryBody::Span> remote, CopyRange range);
  bool copy_from(pid_t pid) const;  // false if not all of it could be copied

 private:
  static constexpr std::size_t kPieces = 160;
  std::array<iovec, kPieces> local_;
  std::array<iovec, kPieces> remote_;
  std::size_t locals_ = 0;
  std::size_t remotes_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace anydat::nic::soft::shm
