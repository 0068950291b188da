// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "nic/region_table.h"
#include "nic/types.h"

namespace anydat::nic::soft {

// A region of ours that requests of a queue pair use one after the other, once it has been checked for the first of
// them.
//
// With the send lock, but for is(). It is true until Adapter::quiesce() comes by (SoftQueuePair::let_posts_end()),
// which closes it.
class LocalRegion {
 public:
  // For requests on the region of `local`, unless they use several in turn: then it is not worth while.
  bool open(const Segment& local, const RegionTable& regions, ZoneId zone, std::uint32_t right) {
    if (key_.load(std::memory_order_relaxed) == local.key) [[likely]]
      return true;
    close();
    if (std::exchange(last_key_, local.key) != local.key) return false;
    const std::optional<Region> region = regions.find(local.key);
    if (!region || region->check(local.address, local.length, zone, right) != RegionCheck::ok) return false;
    region_ = *region;
    key_.store(local.key, std::memory_order_relaxed);
    return true;
  }
  void close() {
    key_.store(0, std::memory_order_relaxed);
    region_.length = 0;  // for what names the key 0
  }

  // Also without the lock, and then a guess.
  bool is(std::uint32_t key) const { return key_.load(std::memory_order_relaxed) == key; }
  // Requires: the segment is not empty.
  bool holds(const Segment& segment) const { return is(segment.key) && region_.holds(segment.address, segment.length); }

 private:
  std::atomic<std::uint32_t> key_{0};  // 0: closed
  std::uint32_t last_key_ = 0;
  Region region_{};
};

}  // namespace anydat::nic::soft
