// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "nic/engine.h"
#include "nic/region_table.h"
#include "nic/soft/resident_pages.h"
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

 protected:
  Region region_{};

 private:
  std::atomic<std::uint32_t> key_{0};  // 0: closed
  std::uint32_t last_key_ = 0;
};

// The same where the pages have to be in memory as well, so that they can be read under a lock that others need.
class SeenLocalRegion : private LocalRegion {
 public:
  using LocalRegion::is;
  void close() {
    LocalRegion::close();
    seen_ = {};
  }
  void open(const Segment& local, const RegionTable& regions, ZoneId zone, std::uint32_t right) {
    if (!is(local.key)) seen_ = {};
    LocalRegion::open(local, regions, zone, right);
  }
  // False may mean that the pages are to be looked at.
  bool holds(const Segment& segment, const Engine& engine, const ResidentPages& pages) {
    if (!is(segment.key)) return false;
    if (seen_.holds({segment.address, segment.length}, engine.moment())) [[likely]]
      return true;
    return look(segment, engine, pages);
  }

 private:
  [[gnu::noinline]] bool look(const Segment& segment, const Engine& engine, const ResidentPages& pages) {
    if (!LocalRegion::holds(segment)) return false;
    std::uint64_t moment = engine.moment();
    if (moment == kNoMoment) moment = moment_of(engine.ticks());
    if (!pages.seen({segment.address, segment.length}, false, moment, seen_)) return false;
    const std::uint64_t end = std::min(seen_.address + seen_.length, region_.address + region_.length);
    seen_.address = std::max(seen_.address, region_.address);
    seen_.length = static_cast<std::uint32_t>(end - seen_.address);
    return true;
  }

  ResidentPages::Stretch seen_;  // of the region
};

}  // namespace anydat::nic::soft
