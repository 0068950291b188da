// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "nic/region_table.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/shm/layout.h"
#include "os/clock.h"
#include "os/page_map.h"

namespace anydat::nic::soft::shm {

class ShmStream;

// What an RDMA request needs of the peer.
constexpr std::uint32_t remote_right(WorkKind kind) {
  return kind == WorkKind::rdma_read ? access::kRemoteRead : access::kRemoteWrite;
}

// Whether the memory of RDMA requests is there, at both ends, so that their bytes can be copied without waiting for a
// page; and what the peer is asked to bring in, for the oldest that has not been carried out.
//
// A request whose memory is not there is blocked with those behind it. Bringing it in may take for ever, and holds up
// nothing else.
//
// Thread safety: with the queue pair's send lock; ask() and what arrives with the engine held. Lives and dies with its
// stream.
class RdmaPages {
 public:
  // Pages that the last RDMA has found to be there, at both ends, and when (PeerMemory::epoch()).
  struct Seen {
    os::Nanoseconds epoch = -1;
    std::uint64_t remote_first = 0;
    std::uint64_t remote_last = 0;
    std::uint64_t local_first = 0;
    std::uint64_t local_last = 0;
    bool reads = false;
    bool cover(os::Nanoseconds now, std::uint64_t remote, std::uint64_t local, std::uint64_t count,
               bool for_read) const {
      return reads == for_read && remote >= remote_first && remote + count - 1 <= remote_last &&
             cover(now, local, count);
    }
    // Those of this side.
    bool cover(os::Nanoseconds now, std::uint64_t local, std::uint64_t count) const {
      return epoch == now && local >= local_first && local + count - 1 <= local_last;
    }
    static constexpr std::uint64_t first_of(std::uint64_t address) { return address & ~(os::kPageBytes - 1); }
    static constexpr std::uint64_t last_of(std::uint64_t address, std::uint64_t count) {
      return (address + count - 1) | (os::kPageBytes - 1);
    }
  };
  // What has become of the memory that the peer is to bring in.
  enum class Asked : std::uint8_t { nothing, wanted, asked, told, refused };

  explicit RdmaPages(ShmStream& stream) : stream_(stream) {}
  RdmaPages(const RdmaPages&) = delete;
  RdmaPages& operator=(const RdmaPages&) = delete;

  const Seen& seen() const { return seen_; }
  // Of a Write that is whole, at a glance.
  bool seen(const SendRequest& message, std::uint64_t shift, os::Nanoseconds epoch) const {
    return message.segments.size() == 1 &&
           seen_.cover(epoch, message.remote.address + shift, message.segments[0].address, message.length, false);
  }
  // Where this side can look at the peer's memory. `shift`: from what the peer's program calls it to where it is.
  bool there(const SendRequest& message, std::uint64_t shift, std::uint64_t offset, std::uint64_t count);
  // Of a Write, where it cannot: what the peer says holds for some milliseconds.
  bool told(const SendRequest& message, std::uint64_t offset, std::uint64_t count, const RegionUser& user);

  Asked answer() const { return asked_.load(std::memory_order_acquire); }
  void forget_answer() { asked_.store(Asked::nothing, std::memory_order_relaxed); }
  void ask();                                      // if something is wanted
  bool faulted_in_arrived(std::uint32_t outcome);  // false: malformed

 private:
  // Memory that the peer has said is there, where this side cannot look. For some milliseconds, and so many bytes of
  // Writes, since the peer keeps those whose memory has gone.
  struct Told {
    std::uint32_t key = 0;
    std::uint32_t moment = 0;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t left = 0;
  };

  void want(const GetBody& wanted, std::uint32_t right);
  bool is_wanted(const GetBody& what, std::uint32_t right) const { return wanted_ == what && right_ == right; }

  ShmStream& stream_;
  std::atomic<Asked> asked_{Asked::nothing};
  GetBody wanted_{};  // these two written before Asked::wanted is
  std::uint32_t right_ = 0;
  Told told_;
  Seen seen_;
};

}  // namespace anydat::nic::soft::shm
