// SPDX-License-Identifier: BSD-3-Clause
// Memory of this process that is not there when a connection over shared memory is to copy from or to it.
//
// A program may register memory whose pages take long to come, or never do. A copy is made with the engine held, or a
// lock that the engine may need, so nothing is copied that has not been seen in memory: a thread of the adapter brings
// it in, and the connection goes on when it is there. Other connections notice nothing.
#include <algorithm>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

namespace {

constexpr std::uint64_t kBroughtAtOnce = 4 << 20;

}  // namespace

// `left`: of the message, from the range's first byte on; that much is brought in, if any of the range is not there.
// With the engine, or inside a post. False: take_turn() comes when it is there, or the connection breaks because it
// cannot be.
bool ShmStream::ours_there(std::span<const nic::Segment> segments, CopyRange range, std::uint64_t left, bool to_write) {
  const base::Nanoseconds now = base::now_ns();
  ResidentPages& pages = fabric_.adapter().resident_pages();
  for (const nic::Segment& segment : segments) {
    if (range.count == 0) break;
    if (range.offset >= segment.length) {
      range.offset -= segment.length;
      continue;
    }
    const std::uint64_t part = std::min(range.count, segment.length - range.offset);
    const std::uint64_t address = segment.address + range.offset;
    const std::uint64_t rest = std::min(left, segment.length - range.offset);
    if (!pages.hold(0, {address, part, rest}, to_write, now)) {
      Ours free = Ours::nothing;
      if (ours_.compare_exchange_strong(free, Ours::being_written)) {
        ours_wanted_ = {address, std::min(rest, std::max(part, kBroughtAtOnce)), to_write};
        ours_.store(Ours::wanted, std::memory_order_release);
        link_->come_back(*this);
      }
      return false;
    }
    range.count -= part;
    left -= part;
    range.offset = 0;
  }
  return true;
}

void ShmStream::bring_ours() {
  if (ours_.load(std::memory_order_acquire) != Ours::wanted) return;
  ours_.store(Ours::asked, std::memory_order_relaxed);
  fabric_.adapter().page_faulter().ask(pages_of_ours_, ours_wanted_.address, ours_wanted_.length,
                                       ours_wanted_.to_write);
}

void ShmStream::brought_ours(bool there) {
  ours_.store(Ours::nothing, std::memory_order_release);
  if (closed_) return;
  if (there) {
    link_->come_back(*this);
  } else {
    queue_pair_.break_connection(WorkStatus::local_protection, CloseReason::local_error);
  }
}

}  // namespace anydat::nic::soft::shm
