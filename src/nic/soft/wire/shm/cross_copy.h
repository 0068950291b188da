// SPDX-License-Identifier: BSD-3-Clause
// Copying between the memory of two processes in one step, by the kernel. It may be forbidden (another PID namespace, a
// security policy), so it is tried out before it is relied on; and it may become so at any moment (a program that drops
// its privileges), so there is another way for everything.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <span>

#include "nic/soft/copy_range.h"
#include "nic/soft/resident_pages.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/types.h"
#include "os/clock.h"
#include "os/process_memory.h"

namespace anydat::os {
class PeerProcess;
}

namespace anydat::nic::soft::shm {

// Announces in our own segment what a peer can try to read, and the thread of ours by which it reaches us.
void offer_probe(SegmentHeader& header, std::uint32_t thread);

enum class CopyOutcome : std::uint8_t {
  copied,
  no_memory_there,  // the addresses are not the peer's to give
  not_resident,     // some of it is not in memory now, so it has not been tried
  not_reachable,    // the kernel does not let us any more, though the peer lives: another way is needed from now on
  peer_gone,
};

// Ranges of several messages, in one call of the kernel. Each call has a price of its own, whatever it moves.
class CopyBatch {
 public:
  // False if there is no room left for it; nothing has changed then.
  bool add(std::span<const nic::Segment> local, std::span<const MemoryBody::Span> remote, CopyRange range);

 private:
  friend class PeerMemory;
  static constexpr std::size_t kPieces = 160;
  std::array<iovec, kPieces> local_;
  std::array<iovec, kPieces> remote_;
  std::size_t locals_ = 0;
  std::size_t remotes_ = 0;
  std::uint64_t bytes_ = 0;
};

// The memory of a link's peer, as far as the kernel lets us reach it.
//
// The kernel is given the number of the peer's progress thread, not that of its process. That thread is there as long
// as the peer's adapter, also when the program has ended its first thread. And execve(2) ends it before the process
// becomes another program: that program's memory is never reached, because no thread of it has the number. Should the
// number come to be another thread's, the link has ended long before; so the end of the link is looked for before a
// copy, too, if the last look was a while ago.
class PeerMemory {
 public:
  // Tries it out. `socket` is the link's, `segment` the one that the peer has made. Both outlive this. `now`, as below:
  // of Engine::ticks().
  void attach(int socket, const os::PeerProcess& process, const SegmentHeader& segment, std::uint64_t now);

  // False once it has turned out that the kernel does not let us. From any thread.
  bool reachable() const { return thread_.load(std::memory_order_relaxed) > 0; }

  // Before a copy: `copied` if nothing speaks against it.
  CopyOutcome ready() {
    if (!reachable()) return CopyOutcome::not_reachable;
    return link_stands(os::now_ns()) ? CopyOutcome::copied : CopyOutcome::peer_gone;
  }
  // What is known of either side's pages holds until this changes, about every millisecond.
  os::Nanoseconds epoch() const { return looked_.load(std::memory_order_relaxed); }
  // Whether what the peer has there can be copied without waiting for it to come into memory, which may take for ever.
  bool there(std::span<const MemoryBody::Span> spans, CopyRange range, bool to_write, std::uint64_t now);

  // Copies the range of a message between local segments and remote spans. From any thread, while the link stands.
  // Requires of all: that ready() has just said so, and that the pages are there.
  CopyOutcome copy_from(std::span<const nic::Segment> to, std::span<const MemoryBody::Span> from, CopyRange range);
  CopyOutcome copy_to(std::span<const nic::Segment> from, std::span<const MemoryBody::Span> to, CopyRange range);
  // All of it or not; but of what is not all copied, bytes may have arrived.
  CopyOutcome copy_from(const CopyBatch& batch);
  CopyOutcome copy_to(const CopyBatch& batch);
  template <bool from>
  CopyOutcome copy_whole(const iovec& here, const std::array<iovec, 2>& there) {
    const pid_t thread = thread_.load(std::memory_order_relaxed);
    const ssize_t moved = from ? os::read_memory_of(thread, std::span(&here, 1), there)
                               : os::write_memory_of(thread, std::span(&here, 1), there);
    if (moved == static_cast<ssize_t>(here.iov_len)) [[likely]]
      return CopyOutcome::copied;
    return failed(moved < 0 ? errno : EFAULT);
  }

 private:
  // A number that is given up comes back after all others have been used. No machine does that in this time.
  static constexpr os::Nanoseconds kLookAfter = 1'000'000;

  template <typename Call>
  CopyOutcome copy(const CopyBatch& batch, Call&& call);
  template <typename Call>
  CopyOutcome copy(std::span<const nic::Segment> local, std::span<const MemoryBody::Span> remote, CopyRange range,
                   Call&& call);
  bool link_stands(os::Nanoseconds now) {
    return now - looked_.load(std::memory_order_relaxed) < kLookAfter || look_at_link(now);
  }
  bool look_at_link(os::Nanoseconds now);
  CopyOutcome failed(int error);

  int socket_ = -1;
  int process_ = -1;
  std::atomic<pid_t> thread_{0};
  std::atomic<os::Nanoseconds> looked_{0};  // when the link was last seen to stand
  ResidentPages pages_;
};

}  // namespace anydat::nic::soft::shm
