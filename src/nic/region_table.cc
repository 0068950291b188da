// SPDX-License-Identifier: BSD-3-Clause
#include "nic/region_table.h"

#include <sys/mman.h>

#include <cassert>

#include "os/mapping.h"
#include "os/memory_file.h"

namespace anydat::nic {
namespace {

// A slot that has been used is used again only when so many are free, and then any of them. With fewer, each new region
// would take a page of the table that has not been touched; with more, a key would come again later still.
constexpr std::size_t kFreeMin = 1024;

// What is remembered of a slot: whether it is in use, the last key's bits above the index, and by how much they go on.
// The step is odd, so that all values come before one comes again, and a secret, so that who knew one key of the slot
// does not know the next.
class History {
 public:
  explicit History(std::uint32_t word) : word_(word) {}
  bool used() const { return word_ != 0; }
  bool in_use() const { return (word_ & kInUse) != 0; }
  std::uint32_t key(std::uint32_t slot) const { return word_ << kRegionIndexBits | slot; }
  std::uint32_t begun(std::uint32_t random) const {
    if (!used()) return kInUse | (random & (kTurnMask << kTurnBits | kTurnMask)) | 1u << kTurnBits;
    return kInUse | (word_ & kTurnMask << kTurnBits) | ((word_ + (word_ >> kTurnBits)) & kTurnMask);
  }
  std::uint32_t ended() const { return word_ & ~kInUse; }

 private:
  static constexpr std::uint32_t kTurnBits = 32 - kRegionIndexBits;
  static constexpr std::uint32_t kTurnMask = (1u << kTurnBits) - 1;
  static constexpr std::uint32_t kInUse = 1u << 31;
  static_assert(2 * kTurnBits < 31);

  std::uint32_t word_;
};

}  // namespace

RegionTable::RegionTable(std::uint32_t regions_max) : regions_max_(regions_max) {
  assert(regions_max < kRegionsMax);
  // Fresh pages are zero, which is what a free entry holds, and cost nothing until they are used.
  base::UniqueFd fd = os::make_memory_file("anydat-regions", RegionView::kBytes);
  void* memory = fd ? os::map_shared(fd.get(), RegionView::kBytes, true) : os::map_private(RegionView::kBytes);
  if (!memory) return;
  entries_ = static_cast<RegionEntry*>(memory);
  if (!fd) return;
  os::seal_against_other_writers(fd.get());
  if (os::seal(fd.get())) fd_ = std::move(fd);
}

RegionTable::~RegionTable() {
  os::unmap(entries_, RegionView::kBytes);
}

std::uint32_t RegionTable::pick_slot() {
  if (free_.size() >= kFreeMin || live_ + free_.size() == kRegionsMax - 1) {
    std::swap(free_[random_.next() % free_.size()], free_.back());
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  const auto fresh = [this](std::uint32_t slot) { return slot != 0 && !History(entries_[slot].history).used(); };
  for (int tries = 0; tries < 64; ++tries) {
    const std::uint32_t slot = random_.next() & kRegionIndexMask;
    if (fresh(slot)) return slot;
  }
  // Few are left. There is one, since live_ and free_ do not make up all.
  std::uint32_t slot = random_.next() & kRegionIndexMask;
  while (!fresh(slot)) slot = (slot + 1) & kRegionIndexMask;
  return slot;
}

std::uint32_t RegionTable::reserve() {
  base::Guard guard(lock_);
  if (!entries_ || live_ >= regions_max_) return 0;
  // Taking a region out must not fail for want of memory.
  if (const std::size_t most = live_ + free_.size() + 1; free_.capacity() < most) {
    try {
      free_.reserve(2 * most);
    } catch (const std::bad_alloc&) {
      return 0;
    }
  }
  const std::uint32_t slot = pick_slot();
  ++live_;
  std::atomic<std::uint32_t>& history = entries_[slot].history;
  history.store(History(history.load(std::memory_order_relaxed)).begun(random_.next()), std::memory_order_relaxed);
  return History(history.load(std::memory_order_relaxed)).key(slot);
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
  const std::uint32_t slot = key & kRegionIndexMask;
  RegionEntry& entry = entries_[slot];
  const History history(entry.history.load(std::memory_order_relaxed));
  if (!history.in_use() || history.key(slot) != key) return;
  entry.history.store(history.ended(), std::memory_order_relaxed);
  // Sequentially consistent: whoever waits afterwards for those who use the key must not miss one.
  entry.key.store(0);
  removals_.fetch_add(1);
  free_.push_back(slot);
  --live_;
}

PeerRegions::PeerRegions(int fd) {
  if (!os::cannot_shrink_below(fd, RegionView::kBytes)) return;
  entries_ = static_cast<const RegionEntry*>(os::map_shared(fd, RegionView::kBytes, false));
}

PeerRegions::~PeerRegions() {
  os::unmap(const_cast<RegionEntry*>(entries_), RegionView::kBytes);
}

}  // namespace anydat::nic
