// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/lock.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "nic/types.h"

namespace anydat::nic {

enum class RegionCheck : std::uint8_t { ok, unknown_key, wrong_zone, out_of_bounds, no_right };

inline constexpr std::uint32_t kRegionIndexBits = 20;
inline constexpr std::uint32_t kRegionsMax = 1u << kRegionIndexBits;
inline constexpr std::uint32_t kRegionIndexMask = kRegionsMax - 1;

// One region as whoever checks sees it: also processes that have the table mapped to read, so its layout is a format.
struct RegionEntry {
  std::atomic<std::uint32_t> key;  // 0: free, or not yet published
  std::atomic<std::uint32_t> zone;
  std::atomic<std::uint32_t> rights;
  std::atomic<std::uint32_t> history;  // what its owner remembers of the slot's keys
  std::atomic<std::uint64_t> address;
  std::atomic<std::uint64_t> length;
};
static_assert(sizeof(RegionEntry) == 32 && std::atomic<std::uint64_t>::is_always_lock_free);

struct Region {
  std::uint64_t address;
  std::uint64_t length;
  ZoneId zone;
  std::uint32_t rights;

  // May [at, at + count) be used with these rights by somebody of this zone (kAnyZone: the zone does not matter)?
  RegionCheck check(std::uint64_t at, std::uint64_t count, ZoneId user, std::uint32_t wanted) const {
    if ((rights & wanted) != wanted) return RegionCheck::no_right;
    if (zone != user && user != kAnyZone) return RegionCheck::wrong_zone;
    return holds(at, count) ? RegionCheck::ok : RegionCheck::out_of_bounds;
  }
  bool holds(std::uint64_t at, std::uint64_t count) const {
    // No region reaches beyond the last address, so a start before it makes an offset greater than its length.
    const std::uint64_t offset = at - address;
    return offset <= length && count <= length - offset;
  }
};

// A table of regions to be checked against: our own or, mapped to read, that of a peer.
class RegionView {
 public:
  static constexpr std::size_t kBytes = kRegionsMax * sizeof(RegionEntry);

  RegionView() = default;
  explicit RegionView(const RegionEntry* entries) : entries_(entries) {}

  bool alive(std::uint32_t key) const {
    return key != 0 && entries_ && entries_[key & kRegionIndexMask].key.load(std::memory_order_acquire) == key;
  }
  // What holds the key while its region is alive. key != 0, and there is a table.
  const std::atomic<std::uint32_t>& life_of(std::uint32_t key) const { return entries_[key & kRegionIndexMask].key; }
  // The live region with this key; nothing if there is none.
  std::optional<Region> find(std::uint32_t key) const;
  // As Region::check(). length > 0.
  RegionCheck check(std::uint32_t key, std::uint64_t address, std::uint64_t length, ZoneId zone,
                    std::uint32_t rights) const;

 private:
  const RegionEntry* entries_ = nullptr;
};

inline std::optional<Region> RegionView::find(std::uint32_t key) const {
  if (key == 0 || !entries_) return std::nullopt;
  const RegionEntry& entry = entries_[key & kRegionIndexMask];
  // Pairs with the release in publish(): a key seen means its fields are seen.
  if (entry.key.load(std::memory_order_acquire) != key) return std::nullopt;
  // Acquire loads keep the second look at the key behind them.
  const Region region{entry.address.load(std::memory_order_acquire), entry.length.load(std::memory_order_acquire),
                      entry.zone.load(std::memory_order_acquire), entry.rights.load(std::memory_order_acquire)};
  // The slot may have been freed and reused between the loads; then its key has changed by now.
  if (entry.key.load(std::memory_order_relaxed) != key) return std::nullopt;
  return region;
}

inline RegionCheck RegionView::check(std::uint32_t key, std::uint64_t address, std::uint64_t length, ZoneId zone,
                                     std::uint32_t rights) const {
  const std::optional<Region> region = find(key);
  return region ? region->check(address, length, zone, rights) : RegionCheck::unknown_key;
}

// The registered memory of one adapter: key -> range, zone and rights.
//
// Thread safety: any thread may call any method; check() takes no lock, so that a post can check its segments for a few
// nanoseconds. Whoever removes a region and must know that nobody still acts on an old answer has to wait for those
// who may (the adapter's quiesce()).
// Always true: a live key is never 0, names one region, and does not come again before its slot has had all other keys
// that it can have (LMR-FREE-9). Peers over a network are to be held off by not knowing the keys of others (RFC 5042,
// section 6): a region lies in a slot that chance has picked, under one of the slot's keys that chance has picked. So
// what is to be guessed is 32 bits, and the key itself still says where to look.
class RegionTable {
 public:
  // Requires: regions_max < kRegionsMax.
  explicit RegionTable(std::uint32_t regions_max = kRegionsMax - 1);
  ~RegionTable();
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  // The new region's key, or 0 when there is no room.
  std::uint32_t add(const Region& region);
  // The same in two steps: nothing can be reached by a key between them.
  std::uint32_t reserve();
  void publish(std::uint32_t key, const Region& region);
  void remove(std::uint32_t key);  // published, or only reserved
  // How often remove() has been called, and one more. What was found usable still is while this stays as it was before.
  std::uint64_t removals() const { return removals_.load(std::memory_order_acquire); }

  std::optional<Region> find(std::uint32_t key) const { return RegionView(entries_).find(key); }
  bool alive(std::uint32_t key) const { return RegionView(entries_).alive(key); }
  RegionCheck check(std::uint32_t key, std::uint64_t address, std::uint64_t length, ZoneId zone,
                    std::uint32_t rights) const {
    return RegionView(entries_).check(key, address, length, zone, rights);
  }

  // For processes that shall check against it themselves: memory that they can map to read. Ours; -1 if there is none.
  int descriptor() const { return fd_.get(); }

 private:
  std::uint32_t pick_slot() ANYDAT_REQUIRES(lock_);

  base::UniqueFd fd_;
  RegionEntry* entries_ = nullptr;  // kRegionsMax of them, touched only where used; the first never is
  const std::uint32_t regions_max_;
  std::atomic<std::uint64_t> removals_{1};
  base::SpinLock lock_;
  base::RandomNumbers random_ ANYDAT_GUARDED_BY(lock_);
  std::uint32_t live_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::vector<std::uint32_t> free_ ANYDAT_GUARDED_BY(lock_);  // slots that have been used
};

// A peer's table, mapped to read.
class PeerRegions {
 public:
  PeerRegions() = default;
  // Empty if the descriptor is not that of a table, or its owner could still shrink it under us.
  explicit PeerRegions(int fd);
  PeerRegions(PeerRegions&& other) noexcept : entries_(std::exchange(other.entries_, nullptr)) {}
  PeerRegions& operator=(PeerRegions&& other) noexcept {
    std::swap(entries_, other.entries_);
    return *this;
  }
  ~PeerRegions();
  explicit operator bool() const { return entries_ != nullptr; }
  RegionView view() const { return RegionView(entries_); }

 private:
  const RegionEntry* entries_ = nullptr;
};

}  // namespace anydat::nic
