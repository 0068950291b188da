// SPDX-License-Identifier: BSD-3-Clause
#include "nic/region_table.h"

#include <sys/mman.h>

#include <new>

namespace anydat::nic {

RegionTable::RegionTable(std::uint32_t regions_max) : regions_max_(regions_max) {
  void* memory = mmap(nullptr, kRegionsMax * sizeof(Entry), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  // Fresh pages are zero, which is what a free entry holds.
  if (memory != MAP_FAILED) entries_ = static_cast<Entry*>(memory);
}

RegionTable::~RegionTable() {
  if (entries_) munmap(entries_, kRegionsMax * sizeof(Entry));
}

std::uint32_t RegionTable::add(std::uint64_t address, std::uint64_t length, ZoneId zone, std::uint32_t rights) {
  base::Guard guard(lock_);
  if (!entries_ || live_ >= regions_max_) return 0;
  std::uint32_t index = 0;
  // A freed slot rests until many others were freed after it, so that a stale key meets a dead entry.
  if (used_ < kRegionsMax && free_.size() < 4096) {
    index = used_++;
  } else if (!free_.empty()) {
    index = free_.front();
    free_.pop_front();
  } else {
    return 0;
  }
  Entry& entry = entries_[index];
  const std::uint32_t generation = entry.generation.load(std::memory_order_relaxed) + 1;
  entry.generation.store(generation, std::memory_order_relaxed);
  entry.zone.store(zone, std::memory_order_relaxed);
  entry.rights.store(rights, std::memory_order_relaxed);
  entry.address.store(address, std::memory_order_relaxed);
  entry.length.store(length, std::memory_order_relaxed);
  const std::uint32_t key = (generation << kIndexBits) | index;
  entry.key.store(key, std::memory_order_release);
  ++live_;
  return key;
}

void RegionTable::remove(std::uint32_t key) {
  base::Guard guard(lock_);
  Entry& entry = entries_[key & kIndexMask];
  if (key == 0 || entry.key.load(std::memory_order_relaxed) != key) return;
  entry.key.store(0, std::memory_order_release);
  free_.push_back(key & kIndexMask);
  --live_;
}

RegionCheck RegionTable::check(std::uint32_t key, std::uint64_t address, std::uint64_t length, ZoneId zone,
                               std::uint32_t rights) const {
  if (key == 0 || !entries_) return RegionCheck::unknown_key;
  const Entry& entry = entries_[key & kIndexMask];
  // Pairs with the release in add(): a key seen means its fields are seen.
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

}  // namespace anydat::nic
