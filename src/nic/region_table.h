// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "nic/types.h"
#include "os/lock.h"
#include "os/random.h"
#include "os/unique_fd.h"

namespace anydat::nic {

enum class RegionCheck : std::uint8_t { ok, unknown_key, wrong_zone, out_of_bounds, no_right };

inline constexpr std::uint32_t kRegionIndexBits = 20;
inline constexpr std::uint32_t kRegionsMax = 1u << kRegionIndexBits;

// One region as those that check see it: also processes that have the table mapped to read, so its layout is a format.
// The first entry of a table is no region's: its `address` holds the table's spread, its `length` says that this is a
// table, and its `key` is one of another slot, so that the key 0, which leads there, opens nothing.
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
  ZoneId zone;  // or the scope of the one queue pair that may use it (RegionUser)
  std::uint32_t rights;

  // May [at, at + count) be used with these rights by this user (kAnyZone: the zone does not matter)? What is
  // zero-based or a window's may not.
  RegionCheck check(std::uint64_t at, std::uint64_t count, RegionUser user, std::uint32_t wanted) const {
    return check(at, count, user, wanted, access::kIndirect);
  }
  // The same of memory that is named by its addresses whatever the region is: by what has been checked before.
  RegionCheck covers(std::uint64_t at, std::uint64_t count, RegionUser user, std::uint32_t wanted) const {
    return check(at, count, user, wanted, 0);
  }
  // The same of bytes that are named as the region has them named, and where they are in its owner's memory.
  RegionCheck resolve(std::uint64_t at, std::uint64_t count, RegionUser user, std::uint32_t wanted,
                      std::uint64_t& where) const {
    where = at + (address - known().address);
    return covers(where, count, user, wanted);
  }
  // As peers know it: its address is what its first byte is named by.
  Region known() const {
    return {(rights & access::kZeroBased) != 0 ? 0 : address, length, zone, rights & ~access::kIndirect};
  }
  RegionCheck check(std::uint64_t at, std::uint64_t count, RegionUser user, std::uint32_t wanted,
                    std::uint32_t unwanted) const {
    if ((rights & (wanted | unwanted)) != wanted) return RegionCheck::no_right;
    if (!user.is(zone)) return RegionCheck::wrong_zone;
    return holds(at, count) ? RegionCheck::ok : RegionCheck::out_of_bounds;
  }
  bool holds(std::uint64_t at, std::uint64_t count) const {
    // No region reaches beyond the last address, so a start before it makes an offset greater than its length.
    const std::uint64_t offset = at - address;
    return offset <= length && count <= length - offset;
  }
};

inline constexpr std::uint64_t kRegionTableMagic = 0x656c'6261'7454'4441;  // "ADTtable"

// Where a key's entry is. A key is the number of its slot and that of its turn there, one behind the other, spread over
// all 32 bits by a multiplication that each table has chosen for itself. So the slots that are used lie close together,
// and the keys do not.
inline std::uint32_t region_slot(std::uint32_t key, std::uint32_t spread) {
  return key * spread >> (32 - kRegionIndexBits);
}

// A table of regions to be checked against: our own or, mapped to read, that of a peer.
class RegionView {
 public:
  static constexpr std::size_t kBytes = kRegionsMax * sizeof(RegionEntry);
  // Of a table that has not grown: its length is doubled as it fills.
  static constexpr std::uint32_t kFirstSlots = 16384;
  static constexpr std::size_t kFirstBytes = kFirstSlots * sizeof(RegionEntry);

  RegionView(const RegionEntry* entries, std::uint32_t spread) : entries_(entries), spread_(spread) {}

  bool alive(std::uint32_t key) const { return life_of(key).load(std::memory_order_acquire) == key; }
  // What holds the key while its region is alive.
  const std::atomic<std::uint32_t>& life_of(std::uint32_t key) const { return entry_of(key).key; }
  // The live region with this key; nothing if there is none.
  std::optional<Region> find(std::uint32_t key) const;
  // As Region::check(). length > 0.
  RegionCheck check(std::uint32_t key, std::uint64_t address, std::uint64_t length, RegionUser user,
                    std::uint32_t rights) const;
  RegionCheck covers(std::uint32_t key, std::uint64_t address, std::uint64_t length, RegionUser user,
                     std::uint32_t rights) const;
  RegionCheck resolve(std::uint32_t key, std::uint64_t at, std::uint64_t length, RegionUser user, std::uint32_t rights,
                      std::uint64_t& where) const;

 private:
  const RegionEntry& entry_of(std::uint32_t key) const { return entries_[region_slot(key, spread_)]; }

  const RegionEntry* entries_;
  std::uint32_t spread_;
};

inline std::optional<Region> RegionView::find(std::uint32_t key) const {
  const RegionEntry& entry = entry_of(key);
  // Pairs with the release in publish(): a key seen means its fields are seen.
  if (entry.key.load(std::memory_order_acquire) != key) return std::nullopt;
  // Acquire loads keep the second look at the key behind them.
  const Region region{entry.address.load(std::memory_order_acquire), entry.length.load(std::memory_order_acquire),
                      entry.zone.load(std::memory_order_acquire), entry.rights.load(std::memory_order_acquire)};
  // The slot may have been freed and reused between the loads; then its key has changed by now.
  if (entry.key.load(std::memory_order_relaxed) != key) return std::nullopt;
  return region;
}

inline RegionCheck RegionView::check(std::uint32_t key, std::uint64_t address, std::uint64_t length, RegionUser user,
                                     std::uint32_t rights) const {
  const std::optional<Region> region = find(key);
  return region ? region->check(address, length, user, rights) : RegionCheck::unknown_key;
}

inline RegionCheck RegionView::covers(std::uint32_t key, std::uint64_t address, std::uint64_t length, RegionUser user,
                                      std::uint32_t rights) const {
  const std::optional<Region> region = find(key);
  return region ? region->covers(address, length, user, rights) : RegionCheck::unknown_key;
}

inline RegionCheck RegionView::resolve(std::uint32_t key, std::uint64_t at, std::uint64_t length, RegionUser user,
                                       std::uint32_t rights, std::uint64_t& where) const {
  const std::optional<Region> region = find(key);
  return region ? region->resolve(at, length, user, rights, where) : RegionCheck::unknown_key;
}

// The registered memory of one adapter: key -> range, zone and rights.
//
// Thread safety: any thread may call any method; check() takes no lock, so that a post can check its segments for a few
// nanoseconds. A thread that removes a region and must know that no other still acts on an old answer has to wait for
// those that may (the adapter's quiesce()).
// Always true: a live key is never 0, names one region, and does not come again before its slot has had all other keys
// that it can have (LMR-FREE-9). Peers over a network are to be held off by not knowing the keys of others (RFC 5042,
// section 6): a region lies in a slot that chance has picked, under one of the slot's keys that chance has picked, and
// all keys are spread by a secret of the table. So what is to be guessed is 32 bits, and the key itself still says
// where to look. A peer that has many keys of a table can find out its secret; what is left to be guessed of another
// key is 26 bits.
//
// The table is made for few regions and grows: what it takes is 512 KiB of a file that does not count until it is
// touched, and addresses for all that there may ever be, which are neither committed nor locked. A part that is not
// there yet reads as free slots, so that checks need not ask how long the table is.
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

  std::optional<Region> find(std::uint32_t key) const { return view_.find(key); }
  bool alive(std::uint32_t key) const { return view_.alive(key); }
  RegionCheck check(std::uint32_t key, std::uint64_t address, std::uint64_t length, RegionUser user,
                    std::uint32_t rights) const {
    return view_.check(key, address, length, user, rights);
  }
  RegionCheck covers(std::uint32_t key, std::uint64_t address, std::uint64_t length, RegionUser user,
                     std::uint32_t rights) const {
    return view_.covers(key, address, length, user, rights);
  }
  RegionCheck resolve(std::uint32_t key, std::uint64_t at, std::uint64_t length, RegionUser user, std::uint32_t rights,
                      std::uint64_t& where) const {
    return view_.resolve(key, at, length, user, rights, where);
  }
  // Two keys of one slot have the same. It says nothing else.
  std::uint32_t slot_of(std::uint32_t key) const { return region_slot(key, spread_); }

  // For processes that shall check against it themselves: memory that they can map to read. Ours; -1 if there is none.
  int descriptor() const { return fd_.get(); }

 private:
  bool share();
  bool keep_private();
  bool grow() ANYDAT_REQUIRES(lock_);
  std::uint32_t pick_slot() ANYDAT_REQUIRES(lock_);
  std::uint32_t key_of(std::uint32_t slot, std::uint32_t turn) const;

  RegionView view_;  // of read_; of a table without an entry if there is no memory
  std::atomic<std::uint64_t> removals_{1};
  RegionEntry* entries_ = nullptr;  // to write; those in use, and the first
  void* read_ = nullptr;            // the same to read, and free slots behind it: as many as there may be in all
  os::UniqueFd fd_;
  std::uint32_t spread_ = 1;
  std::uint32_t unspread_ = 1;  // spread_ * unspread_ == 1
  const std::uint32_t regions_max_;
  os::SpinLock lock_;
  os::RandomNumbers random_ ANYDAT_GUARDED_BY(lock_);
  std::uint32_t slots_ ANYDAT_GUARDED_BY(lock_) = 0;  // how many there are by now, a power of two
  std::uint32_t live_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::vector<std::uint32_t> free_ ANYDAT_GUARDED_BY(lock_);  // slots that have been used
};

// A peer's table, mapped to read. It grows as the peer's does: what is mapped reaches over all that there may ever be,
// and a thread that looks for a key behind what is known to be there has the system asked whether it is by now.
//
// Thread safety: any thread may look.
class PeerRegions {
 public:
  PeerRegions() = default;
  // Empty if the descriptor is not that of a table, or its owner could still shrink it under us.
  explicit PeerRegions(int fd);
  PeerRegions(PeerRegions&& other) noexcept { *this = std::move(other); }
  PeerRegions& operator=(PeerRegions&& other) noexcept {
    std::swap(entries_, other.entries_);
    std::swap(spread_, other.spread_);
    slots_.store(other.slots_.exchange(slots_.load()));
    return *this;
  }
  ~PeerRegions();
  explicit operator bool() const { return entries_ != nullptr; }

  // As those of RegionView.
  std::optional<Region> find(std::uint32_t key) const { return reaches(key) ? view().find(key) : std::nullopt; }
  bool alive(std::uint32_t key) const { return reaches(key) && view().alive(key); }
  RegionCheck check(std::uint32_t key, std::uint64_t address, std::uint64_t length, RegionUser user,
                    std::uint32_t rights) const {
    return reaches(key) ? view().check(key, address, length, user, rights) : RegionCheck::unknown_key;
  }
  // Of a key that has been found alive.
  const std::atomic<std::uint32_t>& life_of(std::uint32_t key) const { return view().life_of(key); }

 private:
  RegionView view() const { return {entries_, spread_}; }
  bool reaches(std::uint32_t key) const {
    const std::uint32_t slot = region_slot(key, spread_);
    // The process that made the table may have written anything into its first entry.
    return slot != 0 && (slot < slots_.load(std::memory_order_relaxed) || has_grown_to(slot));
  }
  bool has_grown_to(std::uint32_t slot) const;

  const RegionEntry* entries_ = nullptr;
  std::uint32_t spread_ = 0;
  mutable std::atomic<std::uint32_t> slots_{0};  // so many at least are there
};

}  // namespace anydat::nic
