// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "base/lock.h"
#include "nic/types.h"

namespace anydat::nic {

enum class RegionCheck : std::uint8_t { ok, unknown_key, wrong_zone, out_of_bounds, no_right };

// The registered memory of one adapter: key -> range, zone and rights.
//
// Thread safety: any thread may call any method; check() takes no lock, so that a post can check its segments for a few
// nanoseconds. Whoever removes a region and must know that nobody still acts on an old answer has to wait for those
// who may (the adapter's quiesce()).
// Always true: a live key is never 0, names one region, and is not issued again for as long as can be (LMR-FREE-9):
// slots are reused oldest first and each reuse changes the key.
class RegionTable {
 public:
  static constexpr std::uint32_t kRegionsMax = 1u << 20;

  explicit RegionTable(std::uint32_t regions_max = kRegionsMax - 1);
  ~RegionTable();
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  // The new region's key, or 0 when there is no room.
  std::uint32_t add(std::uint64_t address, std::uint64_t length, ZoneId zone, std::uint32_t rights);
  void remove(std::uint32_t key);

  // May [address, address + length) be used with these rights by somebody of this zone (kAnyZone: the zone does not
  // matter)? length > 0.
  RegionCheck check(std::uint32_t key, std::uint64_t address, std::uint64_t length, ZoneId zone,
                    std::uint32_t rights) const;

 private:
  struct Entry {
    std::atomic<std::uint32_t> key{0};  // 0: free
    std::atomic<std::uint32_t> zone{0};
    std::atomic<std::uint32_t> rights{0};
    std::atomic<std::uint32_t> generation{0};
    std::atomic<std::uint64_t> address{0};
    std::atomic<std::uint64_t> length{0};
  };

  static constexpr std::uint32_t kIndexBits = 20;
  static constexpr std::uint32_t kIndexMask = (1u << kIndexBits) - 1;

  Entry* entries_ = nullptr;  // an address range of kRegionsMax entries, touched only as far as used
  const std::uint32_t regions_max_;
  base::SpinLock lock_;
  std::uint32_t used_ ANYDAT_GUARDED_BY(lock_) = 1;  // entries ever handed out; index 0 stays unused
  std::uint32_t live_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::deque<std::uint32_t> free_ ANYDAT_GUARDED_BY(lock_);
};

}  // namespace anydat::nic
