// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "base/fence.h"
#include "base/hidden_order.h"
#include "nic/budget.h"
#include "nic/region_table.h"
#include "nic/soft/copy.h"
#include "nic/soft/local_region.h"
#include "nic/types.h"

namespace anydat::nic::soft {

// The short way of RDMA Writes, or Reads, that are like the ones before them: between one region of ours and one of the
// peer that is here in memory, too. What was found out about both is kept; each looks only whether it still holds.
//
// Its stream opens it, with the send lock of its queue pair held, under which it is used, too. It is closed by whatever
// must come before a request that is posted from then on, and by the end of any region of ours. The target's end is met
// as on the long way (shm::RdmaUse, for a connection with a slot of its own).
template <WorkKind kind>
class RdmaLane {
 public:
  struct Target {
    std::uint32_t key = 0;
    Region region{};          // the peer, whose zone and rights have been checked, knows it by these addresses
    std::byte* at = nullptr;  // and here it is
    const std::atomic<std::uint32_t>* alive = nullptr;  // holds the key as long as the region is there
    const std::atomic<std::uint32_t>* gate = nullptr;   // not 0: no RDMA may begin, for now or any more
    // Holds `used` during each copy; the owner that ends the region or shuts the gate fences this process before it
    // looks.
    std::atomic<std::uint64_t>* use = nullptr;
    std::uint64_t used = 0;
    base::HiddenOrder order{};  // from the copies to that look
    bool ours = false;          // its memory is of this process, and may be anything
  };

  // For requests on the region of `local`, unless they use several in turn: then it is not worth while.
  void open(const Target& target, const Segment& local, const RegionTable& regions, ZoneId zone) {
    constexpr std::uint32_t right = kReads ? access::kLocalWrite : access::kLocalRead;
    if (!local_.open(local, regions, zone, right)) return close();
    target_ = target;
    key_.store(target.key, std::memory_order_relaxed);
  }
  // Also to a request that names the key 0, which the lane seems to lead to then.
  void close() {
    key_.store(0, std::memory_order_relaxed);
    local_.close();
  }

  // Also without the lock, and then a guess.
  bool leads_to(std::uint32_t key) const { return key_.load(std::memory_order_relaxed) == key; }

  // False: no byte has been copied, and the request must go the long way. Requires: leads_to(request.remote.key).
  // `moment`: of Engine::moment().
  bool carry(const SingleRdma& request, std::uint64_t moment, Moments& moments, ResidentPages& pages) {
    if (request.length > budget::kCopiedInMemoryPerTurn || !local_.holds(request.local, moment, moments, pages) ||
        !target_.region.holds(request.remote.address, request.length) ||
        (target_.ours && !target_there(request, moment, moments, pages))) [[unlikely]] {
      return false;
    }
    target_.use->store(target_.used, std::memory_order_relaxed);
    base::compiler_fence();
    const bool open = target_.gate->load(std::memory_order_relaxed) == 0 &&
                      target_.alive->load(std::memory_order_acquire) == target_.key;
    if (open) [[likely]] {
      auto* const here = reinterpret_cast<std::byte*>(request.local.address);
      std::byte* const there = target_.at + (request.remote.address - target_.region.address);
      if constexpr (kReads) {
        copy_unordered(here, there, request.length);
      } else {
        copy_ascending(there, here, request.length);
      }
    }
    target_.order.published();
    target_.use->store(0, std::memory_order_release);
    return open;
  }

 private:
  static constexpr bool kReads = kind == WorkKind::rdma_read;

  bool target_there(const SingleRdma& request, std::uint64_t moment, Moments& moments, ResidentPages& pages) {
    const ResidentPages::Range range{
        reinterpret_cast<std::uint64_t>(target_.at) + (request.remote.address - target_.region.address),
        request.length};
    return target_seen_.holds(range, moment) || target_seen_.look(range, range, moments, pages);
  }

  std::atomic<std::uint32_t> key_{0};  // 0: closed
  SeenLocalRegion local_{kReads};
  Target target_;
  SeenMemory target_seen_{!kReads};
};

}  // namespace anydat::nic::soft
