// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "nic/region_table.h"
#include "nic/soft/moments.h"
#include "nic/soft/resident_pages.h"
#include "nic/types.h"

namespace anydat::nic::soft {

// A region of ours that requests of a queue pair use one after the other, once it has been checked for the first of
// them.
//
// With the send lock, but for is(). It is true until Adapter::quiesce() comes by (Connection::await_posts()),
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

// Whether memory of ours can be touched under a lock that others need, for what is like the last one (ResidentPages).
class SeenMemory {
 public:
  explicit SeenMemory(bool to_write) : to_write_(to_write) {}

  bool holds(const ResidentPages::Range& range, std::uint64_t moment) const { return seen_.holds(range, moment); }
  // The same, and looks if it is not known yet. False may mean that the pages are to be looked at. What holds() answers
  // for from then on lies within `bounds`, as the range does.
  bool look(const ResidentPages::Range& range, const ResidentPages::Range& bounds, Moments& moments,
            ResidentPages& pages) {
    if (range.length > kSeenAtOnce)
      return pages.are_resident(0, range, to_write_, moments.ticks(), ResidentPages::CopiedBy::us_in_short);
    if (!pages.seen(range, to_write_, moments.now(), seen_)) return false;
    const std::uint64_t end = std::min(seen_.address + seen_.length, bounds.address + bounds.length);
    seen_.address = std::max(seen_.address, bounds.address);
    seen_.length = static_cast<std::uint32_t>(end - seen_.address);
    return true;
  }
  // The same for short memory, and what holds() answers for may be any.
  [[gnu::noinline]] bool look(const ResidentPages::Range& range, Moments& moments, ResidentPages& pages) {
    return pages.seen(range, to_write_, moments.now(), seen_);
  }
  void forget() { seen_ = {}; }

 private:
  // What is longer is looked at as a whole each time, which takes less than copying it by far.
  static constexpr std::uint64_t kSeenAtOnce = 64 << 10;

  ResidentPages::Stretch seen_;
  const bool to_write_;
};

// The same where the pages have to be in memory as well.
class SeenLocalRegion : private LocalRegion {
 public:
  explicit SeenLocalRegion(bool to_write) : seen_(to_write) {}

  using LocalRegion::is;
  void close() {
    LocalRegion::close();
    seen_.forget();
  }
  bool open(const Segment& local, const RegionTable& regions, ZoneId zone, std::uint32_t right) {
    if (!is(local.key)) seen_.forget();
    return LocalRegion::open(local, regions, zone, right);
  }
  // False may mean that the pages are to be looked at.
  // `moment`: of Engine::moment().
  bool holds(const Segment& segment, std::uint64_t moment, Moments& moments, ResidentPages& pages) {
    if (!is(segment.key)) return false;
    if (seen_.holds({segment.address, segment.length}, moment)) [[likely]]
      return true;
    return look(segment, moments, pages);
  }

 private:
  [[gnu::noinline]] bool look(const Segment& segment, Moments& moments, ResidentPages& pages) {
    return LocalRegion::holds(segment) &&
           seen_.look({segment.address, segment.length}, {region_.address, region_.length}, moments, pages);
  }

  SeenMemory seen_;  // of the region
};

}  // namespace anydat::nic::soft
