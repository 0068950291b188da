// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/rdma_requester.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/copy.h"
#include "nic/soft/wire/shm/copy.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"
#include "nic/soft/wire/shm/transfer_policy.h"

namespace anydat::nic::soft::shm {

namespace {

// The first such Write by a link that the peer does not look at waits for the peer to look by time. So there have to
// have been that many within a millisecond.
constexpr std::uint32_t kWritesToKnock = 64;

// A Write may find after so many that its region has been mapped, or that another way is open.
constexpr std::uint32_t kPutsBetweenLooks = 256;

// A Write of so many bytes is a copy of so few instructions that those around it count.
constexpr std::uint64_t kShortWrite = 256;

// A turn's copy between the message and the remote bytes, which begin at `at`.
void copy_part(const SendRequest& message, std::byte* at, Progress& progress) {
  const std::uint64_t count = std::min(message.length - progress.bytes, budget::kCopiedInMemoryPerTurn);
  at += progress.bytes;
  gather(message.segments, progress.bytes, count, [&](const std::byte* local, std::size_t part) {
    if (message.kind == WorkKind::rdma_read) {
      copy_unordered(const_cast<std::byte*>(local), at, part);
    } else {
      copy_ascending(at, local, part);
    }
    at += part;
  });
  progress.bytes += count;
}

}  // namespace

RdmaRequester::RdmaRequester(ShmStream& stream)
    : stream_(stream), sends_(stream.queue_pair().sends()), adapter_(stream.fabric().adapter()), pages_(stream) {}

void RdmaRequester::wait_for_word() {
  waits_ = link_->sender().controls_wait();
}

template <WorkKind kind>
SendOutcome RdmaRequester::send(const SendRequest& message, Progress& progress) {
  constexpr bool reads = kind == WorkKind::rdma_read;
  if (message.length == 0) return SendOutcome::done;  // RDR-5, RDW-5
  if (!sends_.usable(message)) [[unlikely]]
    return fail(progress, WorkStatus::local_protection);
  if (reads && remote_terms_.reads_in == 0) return fail(progress, WorkStatus::remote_responder);  // RDR-12
  // RDW-9: who sees the bytes shall find the connection established when he looks.
  if (waits_) [[unlikely]] {
    if (peer_left_) return SendOutcome::blocked;
    if (link_->sender().controls_wait()) return later();
    waits_ = false;
  }
  // The peer carries them out in order (D2-ATOM-4).
  if (reads && atomics_under_way_.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return SendOutcome::blocked;
  const bool own_slot = slot_.is_own_for(message.remote.key);
  if (!own_slot && slot_.used_often(message.remote.key)) [[unlikely]]
    ask_for_own_slot(message.remote.key);
  Link& link = *link_;
  const RemoteSegment& remote = message.remote;
  {
    const RdmaUse use(link.outbound(), rdma_use(remote.key, remote_), slot_.place(own_slot));
    if (!use || link.outbound().header().rdma_gate.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      if (!use) {
        slot_.was_no_use();  // it was none
        link_->hazard_slots().wait_for_shared();
      }
      return use && link_->hazards().wait_at_gate() ? SendOutcome::blocked : later();
    }
    // What the peer is still to put in place comes first, also the rest of this one.
    const bool after_peer = puts_under_way() != 0 || begun_by_peer_;
    const MappedRegions::Mapped* const mapped = link.mappings().mapped().find(remote.key);
    if (!mapped || after_peer) return unmapped<kind>(message, progress, after_peer, mapped != nullptr);
    // The whole range each time: no byte of a Write that is refused is written (RDW-8).
    if (mapped->life->load(std::memory_order_acquire) != remote.key ||
        mapped->region.check(remote.address, message.length, remote_user(), remote_right(kind)) != RegionCheck::ok)
        [[unlikely]] {
      return fail(progress, WorkStatus::remote_access);
    }
    if (!local_there<reads>(message, progress)) [[unlikely]]
      return SendOutcome::blocked;
    std::byte* const at = mapped->place_of(remote.address);
    open_lane<kind>(message, *mapped, false);
    if (!reads && message.length <= kShortWrite && message.segments.size() == 1) [[likely]] {
      copy_ascending(at, reinterpret_cast<const std::byte*>(message.segments[0].address), message.length);
      progress.bytes = message.length;
    } else {
      copy_part(message, at, progress);
    }
  }
  if (progress.bytes != message.length) return later();
  sends_.counters().rdmas_in_memory.add();
  return SendOutcome::done;
}

// Whether this side's memory can be touched as far as a turn goes. What is mapped of the peer always can (rdma_lane.h).
template <bool reads>
inline bool RdmaRequester::local_there(const SendRequest& message, const Progress& progress) {
  if (message.segments.size() == 1 && message.length <= kShortWrite) [[likely]] {
    SeenMemory& seen = reads ? reads_seen_ : writes_seen_;
    const nic::Segment& local = message.segments.front();
    const ResidentPages::Range range{local.address, local.length};
    if (seen.holds(range, adapter_.engine().moment())) [[likely]]
      return true;
    if (seen.look(range, adapter_.moments(), adapter_.resident_pages())) return true;
  }
  const std::uint64_t left = message.length - progress.bytes;
  return stream_.pages().of_requests().there(message.segments,
                                             {progress.bytes, std::min(left, budget::kCopiedInMemoryPerTurn)}, left,
                                             reads, OwnPages::CopiedBy::us_in_short);
}

template SendOutcome RdmaRequester::send<WorkKind::rdma_read>(const SendRequest&, Progress&);
template SendOutcome RdmaRequester::send<WorkKind::rdma_write>(const SendRequest&, Progress&);

// A turn's copy by way of the kernel.
template <WorkKind kind>
inline CopyOutcome RdmaRequester::copy(const SendRequest& message, std::uint64_t shift, std::uint64_t offset,
                                       std::uint64_t count) {
  constexpr bool reads = kind == WorkKind::rdma_read;
  const std::uint64_t start = message.remote.address + shift;
  const std::uint64_t remote = start + offset;
  PeerMemory& peer = link_->peer_memory();
  if (const CopyOutcome outcome = peer.ready(); outcome != CopyOutcome::copied) return outcome;
  // The kernel's copy ascends, but within one span the processor may let later bytes be seen first. The end is a span
  // of its own, so that it comes last (RDW-11).
  const std::uint64_t tail = reads ? 0 : std::min<std::uint64_t>(message.length, 8);
  if (message.segments.size() == 1) [[likely]] {
    const std::uint64_t local = message.segments[0].address + offset;
    if (!pages_.seen().cover(peer.epoch(), remote, local, count, reads) && !pages_.there(message, shift, offset, count))
        [[unlikely]] {
      return CopyOutcome::not_resident;
    }
    const std::uint64_t before_tail = message.length - tail;
    const std::uint64_t first = offset < before_tail ? std::min(count, before_tail - offset) : 0;
    const std::array<iovec, 2> there{iovec{reinterpret_cast<void*>(remote), first},
                                     iovec{reinterpret_cast<void*>(remote + first), count - first}};
    return peer.copy_whole<reads>({reinterpret_cast<void*>(local), count}, there);
  }
  if (!pages_.there(message, shift, offset, count)) return CopyOutcome::not_resident;
  const MemoryBody::Span spans[] = {{start, message.length - tail}, {start + message.length - tail, tail}};
  return reads ? peer.copy_from(message.segments, spans, {offset, count})
               : peer.copy_to(message.segments, spans, {offset, count});
}

// The same where the remote region is not mapped here, or what is before this one is the peer's to do. Requires an
// RdmaUse.
template <WorkKind kind>
SendOutcome RdmaRequester::unmapped(const SendRequest& message, Progress& progress, bool after_peer, bool mapped) {
  const RemoteSegment& remote = message.remote;
  const bool here = !mapped && is_here(remote);
  if (rdma_way({here, link_->peer_memory().reachable(), begun_by_peer_ && progress.bytes > 0}) == RdmaWay::by_peer)
    return by_peer(message, progress);
  const std::optional<Region> region = link_->peer_regions().find(remote.key);
  std::uint64_t where = 0;
  if (!region ||
      region->resolve(remote.address, message.length, remote_user(), remote_right(kind), where) != RegionCheck::ok) {
    return fail(progress, WorkStatus::remote_access);
  }
  // From what the peer's program calls it to where it is.
  const std::uint64_t shift = where - remote.address;
  if (!here) {
    // What the peer has been given is done first, by it.
    const bool is_short = kind != WorkKind::rdma_read && progress.bytes == 0 && message.length <= kShortWriteMax;
    if (after_peer && (mapped || !is_short)) return SendOutcome::blocked;
    // Nor is its owner to wait for a page. If it cannot be had at all, this one is next when the others are done.
    if (after_peer && !pages_.seen(message, shift, link_->peer_memory().epoch()) &&
        !pages_.there(message, shift, 0, message.length))
      return SendOutcome::blocked;
    if (after_peer || (is_short && peer_is_faster(message, shift))) {
      open_put_lane(message, shift);
      return write_by_peer(message, progress);
    }
  }
  if (here) {
    const nic::Segment target{0, 0, remote.address + shift, message.length};
    if (!local_there<kind == WorkKind::rdma_read>(message, progress)) return SendOutcome::blocked;
    if (!target_there(target, message, progress)) {
      const bool refused = not_had_.exchange(0) - target.address < target.length;
      return refused ? fail(progress, WorkStatus::remote_access) : SendOutcome::blocked;
    }
    not_had_.store(0, std::memory_order_relaxed);
    open_lane<kind>(
        message,
        {region->known(), reinterpret_cast<std::byte*>(region->address), &link_->peer_regions().life_of(remote.key)},
        true);
    copy_part(message, reinterpret_cast<std::byte*>(remote.address + shift), progress);
  } else {
    const std::uint64_t count = std::min(message.length - progress.bytes, budget::kCopiedByKernelPerTurn);
    switch (copy<kind>(message, shift, progress.bytes, count)) {
      case CopyOutcome::copied:
        progress.bytes += count;
        break;
      case CopyOutcome::no_memory_there:
        return fail(progress, WorkStatus::remote_access);
      case CopyOutcome::not_resident:
        return without_pages(message, progress);
      case CopyOutcome::not_reachable:
        return by_peer(message, progress);
      case CopyOutcome::peer_gone:
        return later();
    }
  }
  if (progress.bytes != message.length) return later();
  if (here) sends_.counters().rdmas_in_memory.add();
  return SendOutcome::done;
}

// Whether the peer's memory, which is of this process and may be anything, can be touched as far as a turn goes.
bool RdmaRequester::target_there(const nic::Segment& target, const SendRequest& message, const Progress& progress) {
  const std::uint64_t left = message.length - progress.bytes;
  return stream_.pages().of_requests().there({&target, 1},
                                             {progress.bytes, std::min(left, budget::kCopiedInMemoryPerTurn)}, left,
                                             message.kind != WorkKind::rdma_read, OwnPages::CopiedBy::us_in_short);
}

// They are on their way; or the peer does not have them; or it has them, and the kernel does not let others see them,
// as it is with memory of a device: then they are for the peer to use.
SendOutcome RdmaRequester::without_pages(const SendRequest& message, Progress& progress) {
  switch (pages_.answer()) {
    case RdmaPages::Asked::told:
      if (message.kind == WorkKind::rdma_read) pages_.forget_answer();
      return by_peer(message, progress);
    case RdmaPages::Asked::refused:
      pages_.forget_answer();
      return fail(progress, WorkStatus::remote_access);
    default:
      return SendOutcome::blocked;
  }
}

// Whether the remote memory is in this process; if not, its owner may be asked for it.
bool RdmaRequester::is_here(const RemoteSegment& remote) {
  if (!stream_.fabric().adapter().config().cross_copy) return false;
  if (link_->within_process()) return true;
  if (link_->mappings().mapped().used(remote.key)) {
    mapping_wanted_.store(remote.key);
    link_->sender().schedule_turn(stream_);
  }
  return false;
}

void RdmaRequester::ask_for_mapping() {
  if (const std::uint32_t key = mapping_wanted_.exchange(0); key != 0 && !stream_.over())
    link_->mappings().ask_for(key);
}

void RdmaRequester::ask_for_own_slot(std::uint32_t key) {
  if (!slot_.has_own()) slot_.set_own(link_->hazard_slots().take());
  if (!slot_.has_own()) return;
  sends_.lanes().close();  // they note another key there
  slot_.announce(link_->outbound().header(), key);
}

// To the region that the message may write to, and that is here. As in ask_for_own_slot(), not for Writes that go to
// several regions in turn.
template <WorkKind kind>
void RdmaRequester::open_lane(const SendRequest& message, const MappedRegions::Mapped& to, bool ours) {
  const std::uint32_t key = message.remote.key;
  if (!slot_.used_again(key)) return;
  const Segment& peer = link_->outbound();
  SegmentHeader& header = peer.header();
  sends_.lanes().open<kind>(message,
                            {key, to.region, to.at, to.life, &header.rdma_gate, &header.rdma_uses[slot_.own()],
                             rdma_use(message.remote.key, remote_), peer.order(), ours},
                            stream_.queue_pair().memory().zone());
}

// As in open_lane(), and not for Writes whose peer is the only one who can do them.
void RdmaRequester::open_put_lane(const SendRequest& message, std::uint64_t shift) {
  const std::uint32_t key = message.remote.key;
  if (put_lane_.key == key) sends_.lanes().open_put(message, stream_.queue_pair().memory().zone());
  put_lane_ = {key, kPutsBetweenLooks, shift};
}

// Whether the peer is seen to poll, so that a short Write is sooner in place if it is put there by its owner. Nothing
// depends on it: who stops polling looks within a millisecond, as for any message.
bool RdmaRequester::peer_is_faster(const SendRequest& message, std::uint64_t shift) {
  if (message.segments.size() != 1 || stream_.rendezvous_sender().any()) return false;
  PeerMemory& peer = link_->peer_memory();
  if (!link_->doorbell().peer_polls() || peer.ready() != CopyOutcome::copied) return false;
  if (!link_->doorbell().peer_expects()) {
    if (std::exchange(short_writes_epoch_, peer.epoch()) != peer.epoch()) short_writes_ = 0;
    if (++short_writes_ < kWritesToKnock) return false;
  }
  return pages_.seen(message, shift, peer.epoch()) || pages_.there(message, shift, 0, message.length);
}

SendOutcome RdmaRequester::later() {
  link_->sender().schedule_turn(stream_);
  return SendOutcome::blocked;
}

}  // namespace anydat::nic::soft::shm
