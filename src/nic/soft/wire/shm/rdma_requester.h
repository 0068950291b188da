// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "nic/soft/local_region.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/hazard_slot.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/mapped.h"
#include "nic/soft/wire/shm/rdma_pages.h"
#include "nic/soft/wire/shm/ring.h"
#include "os/clock.h"

namespace anydat::nic::soft {
class SendQueue;
class SoftAdapter;
}  // namespace anydat::nic::soft

namespace anydat::nic::soft::shm {

class Link;
class ShmStream;

// The RDMA requests of this side of a connection: Writes, Reads and atomic operations.
//
// This side does them all, where the peer's memory is mapped here, is of this process, or can be reached by way of the
// kernel (rdma_requester.cc); unless the kernel does not let it or the other side is faster: then the peer carries them
// out, and answers (rdma_requester_by_peer.cc). Atomic operations are always the peer's.
//
// Thread safety: requests come with the queue pair's send lock; all else with the engine held. Lives and dies with its
// stream.
class RdmaRequester {
 public:
  explicit RdmaRequester(ShmStream& stream);
  RdmaRequester(const RdmaRequester&) = delete;
  RdmaRequester& operator=(const RdmaRequester&) = delete;

  // ---- set-up
  void set_link(Link* link) { link_ = link; }
  void set_remote(std::uint32_t remote, const RdmaTerms& terms) {
    remote_ = remote;
    remote_terms_ = terms;
  }
  HazardSlot& slot() { return slot_; }

  // ---- requests, as in Stream
  template <WorkKind kind>
  SendOutcome send(const SendRequest& message, Progress& progress);
  SendOutcome write_immediate(const SendRequest& message, Progress& progress);
  SendOutcome atomic(const ExtendedRequest& message, Progress& progress);
  bool put_again(const SingleRdma& request);

  // ---- answers; false: malformed
  bool done_arrived(std::uint32_t more);
  bool atomic_done_arrived(const CellView& view);
  bool faulted_in_arrived(std::uint32_t outcome) { return pages_.faulted_in_arrived(outcome); }

  // ---- turns
  void ask_for_mapping();
  void ask_for_pages() { pages_.ask(); }
  // Memory of this process could not be brought in for an RDMA to it. The next turn hands that over again.
  void not_had(std::uint64_t address) { not_had_.store(address); }

  // ---- what holds RDMA back
  void wait_for_word();                                 // that the connection stands, which RDMA must not overtake
  void end_with_peer() { waits_ = peer_left_ = true; }  // which has closed in order

 private:
  // The region of the peer that it has put Writes of this side into, and where it is for the peer: as unmapped().
  // Now and then one looks again whether there is a better way.
  struct PutLane {
    std::uint32_t key = 0;  // 0: none
    std::uint32_t left = 0;
    std::uint64_t shift = 0;
  };

  static SendOutcome fail(Progress& progress, WorkStatus status) {
    progress.failure = status;
    return SendOutcome::failed;
  }
  SendOutcome by_peer(const SendRequest& message, Progress& progress);
  bool peer_is_faster(const SendRequest& message, std::uint64_t shift);
  SendOutcome write_by_peer(const SendRequest& message, Progress& progress);
  void open_put_lane(const SendRequest& message, std::uint64_t shift);
  SendOutcome later();
  template <bool reads>
  bool local_there(const SendRequest& message, const Progress& progress);
  SendOutcome without_pages(const SendRequest& message, Progress& progress);
  template <WorkKind kind>
  SendOutcome unmapped(const SendRequest& message, Progress& progress, bool after_peer, bool mapped);
  void ask_for_own_slot(std::uint32_t key);
  template <WorkKind kind>
  void open_lane(const SendRequest& message, const MappedRegions::Mapped& to, bool ours);
  bool target_there(const nic::Segment& target, const SendRequest& message, const Progress& progress);
  bool is_here(const RemoteSegment& remote);
  template <WorkKind kind>
  CopyOutcome copy(const SendRequest& message, std::uint64_t shift, std::uint64_t offset, std::uint64_t count);
  std::uint32_t puts_under_way() const {
    return puts_sent_.load(std::memory_order_acquire) - puts_answered_.load(std::memory_order_acquire);
  }
  // Before it is sent, since the answer may be there before the call has returned; taken back if it is not.
  void count_put(std::uint32_t sent) {
    puts_sent_.store(puts_sent_.load(std::memory_order_relaxed) + sent, std::memory_order_release);
  }
  // As whom this side uses the peer's memory.
  RegionUser remote_user() const { return {remote_terms_.zone, remote_terms_.scope}; }

  ShmStream& stream_;
  SendQueue& sends_;
  SoftAdapter& adapter_;
  Link* link_ = nullptr;  // this and remote_ are the stream's; fixed before the connection stands
  std::uint32_t remote_ = 0;
  RdmaTerms remote_terms_{};

  HazardSlot slot_;  // in the peer's segment
  RdmaPages pages_;
  std::atomic<std::uint32_t> mapping_wanted_{0};  // key of a region of the peer
  std::atomic<std::uint64_t> not_had_{0};
  SeenMemory writes_seen_{false};
  SeenMemory reads_seen_{true};
  PutLane put_lane_;
  os::Nanoseconds short_writes_epoch_ = -1;  // as in RdmaPages::Seen, and how many there were since
  std::uint32_t short_writes_ = 0;
  std::atomic<std::uint32_t> puts_sent_{0};      // whole, for the peer to put in place; ever
  std::atomic<std::uint32_t> puts_answered_{0};  // of them; written with the engine
  // No RDMA may begin now: the word that the connection stands still waits for room in the ring; or (peer_left_) the
  // peer has closed in order, and none begins again while its last messages are delivered. Written with the engine and,
  // once the connection stands, the send lock.
  bool waits_ = false;
  bool peer_left_ = false;
  bool begun_by_peer_ = false;  // the oldest Write has been sent in part
  std::atomic<std::uint32_t> atomics_under_way_{0};
};

}  // namespace anydat::nic::soft::shm
