// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/rdma_pages.h"

#include <algorithm>
#include <optional>
#include <span>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

namespace {

// So long what the peer has said of its memory holds.
constexpr std::uint64_t kMomentsTold = 15;

}  // namespace

// Whether the bytes can be copied without waiting for their pages. Else the request, and those behind it, are blocked
// until they are there: the peer is asked to bring its pages in, and a thread of the PageFaulter brings in ours. Either
// may take for ever, and holds up nothing else.
bool RdmaPages::there(const SendRequest& message, std::uint64_t shift, std::uint64_t offset, std::uint64_t count) {
  const bool reads = message.kind == WorkKind::rdma_read;
  const MemoryBody::Span remote{message.remote.address + shift, message.length};
  const std::uint64_t now = stream_.fabric().adapter().engine().ticks();
  const bool there = stream_.link()->peer_memory().there({&remote, 1}, {offset, count}, !reads, now);
  const GetBody wanted{message.remote.address + offset, std::min(message.length - offset, kFaultInBytesMax),
                       message.remote.key};
  // A refusal is of the memory that was asked for, and only until that has come by itself.
  const Asked answer = asked_.load(std::memory_order_acquire);
  if (!there && answer == Asked::told && is_wanted(wanted, remote_right(message.kind))) return false;
  if (answer == Asked::told || (answer == Asked::refused && there))
    asked_.store(Asked::nothing, std::memory_order_relaxed);
  if (!there) {
    want(wanted, remote_right(message.kind));
    return false;  // the answer asks again
  }
  if (!stream_.pages().of_requests().there(message.segments, {offset, count}, message.length - offset, reads, now))
    return false;  // write_by_peer() relies on it, too
  if (message.segments.size() == 1) {
    seen_ = {stream_.link()->peer_memory().epoch(),
             Seen::first_of(remote.address + offset),
             Seen::last_of(remote.address + offset, count),
             Seen::first_of(message.segments[0].address + offset),
             Seen::last_of(message.segments[0].address + offset, count),
             reads};
  }
  return true;
}

// The same of a Write, where this side cannot look at the peer's memory: the peer is asked, and what it says holds for
// some milliseconds. It could only end the connection with what cannot be put in place.
bool RdmaPages::told(const SendRequest& message, std::uint64_t offset, std::uint64_t count, const RegionUser& user) {
  const std::optional<Region> region = stream_.link()->peer_regions().find(message.remote.key);
  if (!region || region->known().check(message.remote.address, message.length, user, remote_right(message.kind)) !=
                     RegionCheck::ok) {
    return true;  // its owner refuses it
  }
  const std::uint64_t shift = region->address - region->known().address;
  const std::uint64_t now = stream_.fabric().adapter().moments().now();
  if (asked_.load(std::memory_order_acquire) == Asked::told) {
    if (wanted_.key == message.remote.key && right_ == access::kRemoteWrite) {
      const std::uint64_t first = wanted_.address + shift;
      told_ = {wanted_.key, static_cast<std::uint32_t>(now), Seen::first_of(first),
               Seen::last_of(first, wanted_.length), kFaultInBytesMax};
    }
    asked_.store(Asked::nothing, std::memory_order_relaxed);
  }
  const std::uint64_t address = message.remote.address + offset;
  if (told_.key == message.remote.key && told_.left >= count + kPutOverhead &&
      ((now - told_.moment) & kMomentMask) < kMomentsTold && address + shift >= told_.first &&
      address + shift + count - 1 <= told_.last) {
    told_.left -= count + kPutOverhead;
    return true;
  }
  want({address, std::min(message.length - offset, kFaultInBytesMax), message.remote.key}, remote_right(message.kind));
  return false;
}

// Unless something is on its way already, or this is what was refused.
void RdmaPages::want(const GetBody& wanted, std::uint32_t right) {
  const Asked state = asked_.load(std::memory_order_acquire);
  if (state == Asked::wanted || state == Asked::asked) return;
  if (state == Asked::refused && is_wanted(wanted, right)) return;
  wanted_ = wanted;
  right_ = right;
  asked_.store(Asked::wanted, std::memory_order_release);
  stream_.link()->sender().schedule_turn(stream_);
}

void RdmaPages::ask() {
  if (asked_.load(std::memory_order_acquire) != Asked::wanted) return;
  asked_.store(Asked::asked, std::memory_order_relaxed);
  stream_.link()->sender().send_control(CellKind::fault_in, stream_.remote(), right_,
                                        std::as_bytes(std::span(&wanted_, 1)));
}

bool RdmaPages::faulted_in_arrived(std::uint32_t outcome) {
  if (asked_.load() != Asked::asked || outcome > 1) return false;
  asked_.store(outcome == 0 ? Asked::told : Asked::refused, std::memory_order_release);
  stream_.queue_pair().sends().pump();
  return true;
}

}  // namespace anydat::nic::soft::shm
