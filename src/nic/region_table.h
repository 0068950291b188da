// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "base/lock.h"
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
  std::atomic<std::uint32_t> generation;  // of the next key
  std::atomic<std::uint64_t> address;
  std::atomic<std::uint64_t> length;
};
static_assert(sizeof(RegionEntry) == 32 && std::atomic<std::uint64_t>::is_always_lock_free);

// A table of regions to be checked against: our own or, mapped to read, that of a peer.
class RegionView {
 public:
  static constexpr std::size_t kBytes = kRegionsMax * sizeof(RegionEntry);

  RegionView() = default;
  explicit RegionView(const RegionEntry* entries) : entries_(entries) {}
  explicit operator bool() const { return entries_ != nullptr; }

  // May [address, address + length) be used with these rights by somebody of this zone (kAnyZone: the zone does not
  // matter)? length > 0.
  RegionCheck check(std::uint32_t key, std::uint64_t address, std::uint64_t length, ZoneId zone,
                    std::uint32_t rights) const;

 private:
  const RegionEntry* entries_ = nullptr;
};

inline RegionCheck RegionView::check(std::uint32_t key, std::uint64_t address, std::uint64_t length, ZoneId zone,
                                     std::uint32_t rights) const {
  if (key == 0 || !entries_) return RegionCheck::unknown_key;
  const RegionEntry& entry = entries_[key & kRegionIndexMask];
  // Pairs with the release in publish(): a key seen means its fields are seen.
  if (entry.key.load(std::memory_order_acquire) != key) return RegionCheck::unknown_key;
  // Acquire loads keep the second look at the key behind them.
  const std::uint64_t start = entry.address.load(std::memory_order_acquire);
  const std::uint64_t size = entry.length.load(std::memory_order_acquire);
  const ZoneId owner = entry.zone.load(std::memory_order_acquire);
  const std::uint32_t granted = entry.rights.load(std::memory_order_acquire);
  // The slot may have been freed and reused between the loads; then its key has changed by now.
  if (entry.key.load(std::memory_order_relaxed) != key) return RegionCheck::unknown_key;
  if ((granted & rights) != rights) return RegionCheck::no_right;
  if (owner != zone && zone != kAnyZone) return RegionCheck::wrong_zone;
  if (address < start || address - start > size || length > size - (address - start)) return RegionCheck::out_of_bounds;
  return RegionCheck::ok;
}

// The registered memory of one adapter: key -> range, zone and rights.
//
// Thread safety: any thread may call any method; check() takes no lock, so that a post can check its segments for a few
// nanoseconds. Whoever removes a region and must know that nobody still acts on an old answer has to wait for those
// who may (the adapter's remove_region()).
// Always true: a live key is never 0, names one region, and is not issued again for as long as can be (LMR-FREE-9):
// slots are reused oldest first and each reuse changes the key.
class RegionTable {
 public:
  explicit RegionTable(std::uint32_t regions_max = kRegionsMax - 1);
  ~RegionTable();
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  struct Region {
    std::uint64_t address;
    std::uint64_t length;
    ZoneId zone;
    std::uint32_t rights;
  };
  // The new region's key, or 0 when there is no room.
  std::uint32_t add(const Region& region);
  // The same in two steps: nothing can be reached by a key between them.
  std::uint32_t reserve();
  void publish(std::uint32_t key, const Region& region);
  void remove(std::uint32_t key);  // published, or only reserved
  std::optional<Region> find(std::uint32_t key) const;

  RegionCheck check(std::uint32_t key, std::uint64_t address, std::uint64_t length, ZoneId zone,
                    std::uint32_t rights) const {
    return RegionView(entries_).check(key, address, length, zone, rights);
  }

  // For processes that shall check against it themselves: memory that they can map to read. Ours; -1 if there is none.
  int descriptor() const { return fd_.get(); }

 private:
  base::UniqueFd fd_;
  RegionEntry* entries_ = nullptr;  // kRegionsMax of them, touched only as far as used
  const std::uint32_t regions_max_;
  base::SpinLock lock_;
  std::uint32_t used_ ANYDAT_GUARDED_BY(lock_) = 1;  // entries ever handed out; index 0 stays unused
  std::uint32_t live_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::deque<std::uint32_t> free_ ANYDAT_GUARDED_BY(lock_);
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
