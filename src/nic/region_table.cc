// SPDX-License-Identifier: BSD-3-Clause
#include "nic/region_table.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/shareable.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace anydat::nic {

RegionTable::RegionTable(std::uint32_t regions_max) : regions_max_(regions_max) {
  // Fresh pages are zero, which is what a free entry holds, and cost nothing until they are used.
  base::UniqueFd fd(memfd_create("anydat-regions", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ftruncate(fd.get(), RegionView::kBytes) != 0) return;
  void* memory = mmap(nullptr, RegionView::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (memory == MAP_FAILED) return;
  entries_ = static_cast<RegionEntry*>(memory);
  // Nobody else writes it; a kernel too old for that seal leaves it to the peers' good manners.
  fcntl(fd.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) fd_ = std::move(fd);
}

RegionTable::~RegionTable() {
  if (entries_) munmap(entries_, RegionView::kBytes);
}

std::uint32_t RegionTable::reserve() {
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
  ++live_;
  return entries_[index].generation.load(std::memory_order_relaxed) << kRegionIndexBits | index;
}

void RegionTable::publish(std::uint32_t key, const Region& region) {
  RegionEntry& entry = entries_[key & kRegionIndexMask];
  entry.zone.store(region.zone, std::memory_order_relaxed);
  entry.rights.store(region.rights, std::memory_order_relaxed);
  entry.address.store(region.address, std::memory_order_relaxed);
  entry.length.store(region.length, std::memory_order_relaxed);
  entry.key.store(key, std::memory_order_release);
}

std::uint32_t RegionTable::add(const Region& region) {
  const std::uint32_t key = reserve();
  if (key != 0) publish(key, region);
  return key;
}

void RegionTable::remove(std::uint32_t key) {
  base::Guard guard(lock_);
  if (key == 0) return;
  RegionEntry& entry = entries_[key & kRegionIndexMask];
  const std::uint32_t generation = entry.generation.load(std::memory_order_relaxed);
  if ((generation << kRegionIndexBits | (key & kRegionIndexMask)) != key) return;
  entry.generation.store(generation + 1, std::memory_order_relaxed);
  // Sequentially consistent: whoever waits afterwards for those who use the key must not miss one.
  entry.key.store(0);
  free_.push_back(key & kRegionIndexMask);
  --live_;
}

PeerRegions::PeerRegions(int fd) {
  if (!base::cannot_shrink_below(fd, RegionView::kBytes)) return;
  void* memory = mmap(nullptr, RegionView::kBytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (memory != MAP_FAILED) entries_ = static_cast<const RegionEntry*>(memory);
}

PeerRegions::~PeerRegions() {
  if (entries_) munmap(const_cast<RegionEntry*>(entries_), RegionView::kBytes);
}

}  // namespace anydat::nic
