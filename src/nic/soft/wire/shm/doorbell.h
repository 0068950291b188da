// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/fence.h"
#include "nic/engine.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/marks.h"
#include "os/lock.h"
#include "os/slow_close.h"

namespace anydat::nic::soft::shm {

// The bell of a link's peer: how the peer is told that there is something for it in a segment, and what can be seen of
// whether it looks by itself. A peer that looks at this link's ring is told nothing; one that looks at others is marked
// in its table; one that may sleep is rung besides, by a byte over the link's socket, which is why the bell has it
// (docs/concurrency.md, "Armed bells and membarrier").
//
// Thread safety: any thread, but for socket() and hang_up(): with the engine. Lives and dies with its link.
class Doorbell {
 public:
  // `header`: of the segment that the peer receives by. `marks`: the peer's. `fences`: the two processes cannot fence
  // each other from afar.
  Doorbell(Engine& engine, os::LocalSocket socket, SegmentHeader& header, MarkTable marks, bool fences)
      : header_(header), fences_(fences), engine_(engine), socket_(std::move(socket)), marks_(std::move(marks)) {}

  // After publishing.
  void attract() {
    // Publishing comes before the look. The processor is made to keep that order by the sleeper's membarrier(2) or by
    // our fence; the compiler has to be told.
    base::compiler_fence();
    if (fences_) [[unlikely]]
      base::full_fence();
    if (header_.attention.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(Attention::looks)) [[unlikely]]
      call_attention();
  }

  // Whether the peer polls, so that it takes what is put into its ring within microseconds. A guess.
  bool peer_polls() { return passes_.polls(marks_); }
  // Whether it looks at this link meanwhile, as it does when something has come by it lately.
  bool peer_expects() const {
    return header_.attention.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(Attention::bell);
  }

  const os::LocalSocket& socket() const { return socket_; }
  void hang_up();  // closes the socket

 private:
  void call_attention();

  SegmentHeader& header_;
  const bool fences_;
  Engine& engine_;
  os::SpinLock bell_lock_;  // a post may still ring when the link fails
  os::LocalSocket socket_;  // given up under bell_lock_
  MarkTable marks_;
  PassWatch passes_;
};

}  // namespace anydat::nic::soft::shm
