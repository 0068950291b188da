// SPDX-License-Identifier: BSD-3-Clause
#include "nic/region_table.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <new>

#include "os/mapping.h"
#include "os/memory_file.h"
#include "os/own_memory.h"

namespace anydat::nic {
namespace {

// A slot that has been used is used again only when so many are free, and then any of them. With fewer, each new region
// would take a page of the table that has not been touched; with more, a key would come again later still.
constexpr std::size_t kFreeMin = 1024;

// What is remembered of a slot: whether it is in use, the last key's turn, and by how much turns go on. The step is
// odd, so that all values come before one comes again, and a secret, so that who knew one key of the slot does not know
// the next.
class History {
 public:
  explicit History(std::uint32_t word) : word_(word) {}
  bool used() const { return word_ != 0; }
  bool in_use() const { return (word_ & kInUse) != 0; }
  std::uint32_t turn() const { return word_ & kTurnMask; }
  std::uint32_t begun(std::uint32_t random) const {
    if (!used()) return kInUse | (random & (kTurnMask << kTurnBits | kTurnMask)) | 1u << kTurnBits;
    return kInUse | (word_ & kTurnMask << kTurnBits) | ((word_ + (word_ >> kTurnBits)) & kTurnMask);
  }
  std::uint32_t ended() const { return word_ & ~kInUse; }

  static constexpr std::uint32_t kTurnBits = 32 - kRegionIndexBits;

 private:
  static constexpr std::uint32_t kTurnMask = (1u << kTurnBits) - 1;
  static constexpr std::uint32_t kInUse = 1u << 31;
  static_assert(2 * kTurnBits < 31);

  std::uint32_t word_;
};

// Of an odd number, modulo 2^32.
std::uint32_t inverse(std::uint32_t number) {
  std::uint32_t result = number;  // right in the lowest three bits; each step doubles how many are
  for (int bits = 3; bits < 32; bits *= 2) result *= 2 - number * result;
  return result;
}

// What a table without memory shows: a first entry, where all keys lead. None has this one.
constinit const RegionEntry kNothing{.key = 0, .zone = 0, .rights = 0, .history = 0, .address = 0, .length = 0};

constexpr std::size_t bytes_of(std::uint32_t slots) {
  return slots * sizeof(RegionEntry);
}

}  // namespace

RegionTable::RegionTable(std::uint32_t regions_max) : view_(&kNothing, 0), regions_max_(regions_max) {
  assert(regions_max < kRegionsMax);
  os::Guard guard(lock_);
  read_ = os::reserve(RegionView::kBytes);
  if (!read_ || (!share() && !keep_private())) return;
  slots_ = RegionView::kFirstSlots;
  spread_ = random_.next() | 1;
  unspread_ = inverse(spread_);
  entries_[0].address.store(spread_);
  entries_[0].length.store(kRegionTableMagic);
  entries_[0].key.store(key_of(1, 0));
  view_ = RegionView(static_cast<const RegionEntry*>(read_), spread_);
}

// In a file that others can map. Fresh pages are zero, which is what a free entry holds, and cost nothing until they
// are used. It is mapped twice: to write, as far as it may ever be, before the seal after which no process can do that
// any more; and to read, as far as it is.
bool RegionTable::share() {
  os::UniqueFd fd = os::make_memory_file("anydat-regions", RegionView::kFirstBytes);
  if (!fd) return false;
  void* const written = os::map_shared_unlocked(fd.get(), RegionView::kBytes, true);
  if (!written) return false;
  // Peers that could write there would open memory to themselves (before Linux 5.1): then all of them come over TCP.
  if (!os::seal_against_other_writers(fd.get()) || !os::seal_against_shrinking(fd.get()) ||
      !os::put_shared(read_, fd.get(), 0, RegionView::kFirstBytes)) {
    os::unmap(written, RegionView::kBytes);
    return false;
  }
  entries_ = static_cast<RegionEntry*>(written);
  fd_ = std::move(fd);
  return true;
}

bool RegionTable::keep_private() {
  if (!os::open_private(read_, RegionView::kFirstBytes)) return false;
  entries_ = static_cast<RegionEntry*>(read_);
  return true;
}

RegionTable::~RegionTable() {
  if (entries_ != read_) os::unmap(entries_, RegionView::kBytes);
  os::unmap(read_, RegionView::kBytes);
}

// Twice as long. The system is asked under the lock, six times in the life of a table at most.
bool RegionTable::grow() {
  if (slots_ == kRegionsMax) return false;
  const std::size_t before = bytes_of(slots_);
  auto* const behind = static_cast<std::byte*>(read_) + before;
  if (fd_) {
    // A peer may have made the file longer, which takes nothing.
    if (!os::grow(fd_.get(), 2 * before) || !os::put_shared(behind, fd_.get(), before, before)) return false;
  } else if (!os::open_private(behind, before)) {
    return false;
  }
  slots_ *= 2;
  return true;
}

std::uint32_t RegionTable::key_of(std::uint32_t slot, std::uint32_t turn) const {
  return (slot << History::kTurnBits | turn) * unspread_;
}

// 0: there is none. Half of the slots stay free as long as the table can grow, so that chance finds one soon.
std::uint32_t RegionTable::pick_slot() {
  const std::uint32_t used = live_ + static_cast<std::uint32_t>(free_.size());
  if (free_.size() >= kFreeMin || ((used + 1) * 2 > slots_ && !grow() && used == slots_ - 1)) {
    if (free_.empty()) return 0;
    std::swap(free_[random_.next() % free_.size()], free_.back());
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  const std::uint32_t mask = slots_ - 1;
  const auto fresh = [this](std::uint32_t slot) { return slot != 0 && !History(entries_[slot].history).used(); };
  for (int tries = 0; tries < 64; ++tries) {
    const std::uint32_t slot = random_.next() & mask;
    if (fresh(slot)) return slot;
  }
  // Few are left. There is one, since live_ and free_ do not make up all.
  std::uint32_t slot = random_.next() & mask;
  while (!fresh(slot)) slot = (slot + 1) & mask;
  return slot;
}

std::uint32_t RegionTable::reserve() {
  os::Guard guard(lock_);
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
  if (slot == 0) return 0;
  ++live_;
  std::atomic<std::uint32_t>& history = entries_[slot].history;
  history.store(History(history.load(std::memory_order_relaxed)).begun(random_.next()), std::memory_order_relaxed);
  return key_of(slot, History(history.load(std::memory_order_relaxed)).turn());
}

void RegionTable::publish(std::uint32_t key, const Region& region) {
  RegionEntry& entry = entries_[slot_of(key)];
  entry.zone.store(region.zone, std::memory_order_relaxed);
  entry.rights.store(region.rights, std::memory_order_relaxed);
  entry.address.store(region.address, std::memory_order_relaxed);
  entry.length.store(region.length, std::memory_order_relaxed);
  entry.key.store(key, std::memory_order_release);
  (void)view_.alive(key);  // the page to read it by is there when the first post looks
}

std::uint32_t RegionTable::add(const Region& region) {
  const std::uint32_t key = reserve();
  if (key != 0) publish(key, region);
  return key;
}

void RegionTable::remove(std::uint32_t key) {
  os::Guard guard(lock_);
  if (key == 0) return;
  const std::uint32_t slot = slot_of(key);
  if (slot >= slots_) return;
  RegionEntry& entry = entries_[slot];
  const History history(entry.history.load(std::memory_order_relaxed));
  if (!history.in_use() || key_of(slot, history.turn()) != key) return;
  entry.history.store(history.ended(), std::memory_order_relaxed);
  // Sequentially consistent: a thread that waits afterwards for the users of the key must not miss one.
  entry.key.store(0);
  removals_.fetch_add(1);
  free_.push_back(slot);
  --live_;
}

PeerRegions::PeerRegions(int fd) {
  if (!os::cannot_shrink_below(fd, RegionView::kFirstBytes)) return;
  const std::uint64_t there = std::min<std::uint64_t>(os::size_of(fd), RegionView::kBytes);
  entries_ = static_cast<const RegionEntry*>(os::map_shared_unlocked(fd, RegionView::kBytes, false));
  if (!entries_) return;
  if (entries_[0].length.load() != kRegionTableMagic) {
    os::unmap(const_cast<RegionEntry*>(std::exchange(entries_, nullptr)), RegionView::kBytes);
    return;
  }
  slots_.store(static_cast<std::uint32_t>(there / sizeof(RegionEntry)));
  spread_ = static_cast<std::uint32_t>(entries_[0].address.load());
}

PeerRegions::~PeerRegions() {
  os::unmap(const_cast<RegionEntry*>(entries_), RegionView::kBytes);
}

// What is there once stays: the file cannot shrink. Only the system can tell, since the peer may say anything.
bool PeerRegions::has_grown_to(std::uint32_t slot) const {
  if (!entries_ || !os::readable(&entries_[slot])) return false;
  std::uint32_t known = slots_.load(std::memory_order_relaxed);
  while (known <= slot && !slots_.compare_exchange_weak(known, slot + 1)) {
  }
  return true;
}

}  // namespace anydat::nic
