// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/handle_table.h"

#include <memory>

#include "os/mapping.h"

namespace anydat::dapl {

namespace {

// A freed handle rests until this many others have been freed after it (GEN-4).
constexpr std::size_t kRestingMin = 16384;
// Windows of addresses in which a chunk is tried at a place that is free.
constexpr std::size_t kTries = 1024;

// Never destroyed: programs call DAT from their own static destructors.
constinit HandleTable table;

}  // namespace

constinit std::array<HandleSlot, HandleTable::kFirst> HandleTable::first_{};
constinit std::array<std::atomic<std::uintptr_t>, HandleTable::kPlaces> HandleTable::chunks_{};

HandleTable& HandleTable::instance() {
  return table;
}

bool HandleTable::add_chunk() {
  if (slots_ == 0) {
    after_fork_.enlist();
    fresh_ = first_.data();
    fresh_count_ = slots_ = kFirst;
    return true;
  }
  if (slots_ + kSlotsPerChunk > kSlotsMax) return false;
  const auto take = [this](void* memory) ANYDAT_NO_ANALYSIS {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    if (place_of(address).load(std::memory_order_relaxed) != 0) return false;
    place_of(address).store(address, std::memory_order_relaxed);
    fresh_ = static_cast<HandleSlot*>(memory);
    fresh_count_ = kSlotsPerChunk;
    slots_ += kSlotsPerChunk;
    return true;
  };
  void* const any = os::map_private_aligned(kChunkBytes);
  if (!any) return false;
  if (take(any)) return true;
  os::unmap(any, kChunkBytes);
  // The place of what the system gives is taken: one that is free is asked for, in one of the windows that are as large
  // as all places together, below this one.
  std::size_t place = 0;
  while (chunks_[place].load(std::memory_order_relaxed) != 0) ++place;  // there are twice as many as chunks
  constexpr std::uintptr_t kWindow = kPlaces * kChunkBytes;
  std::uintptr_t window = reinterpret_cast<std::uintptr_t>(any) / kWindow * kWindow;
  for (std::size_t tries = 0; tries < kTries && window > kWindow; ++tries, window -= kWindow) {
    void* const memory = os::map_private_at(window + place * kChunkBytes, kChunkBytes);
    if (memory && take(memory)) return true;
  }
  return false;
}

HandleSlot* HandleTable::add(const void* provider, HandleType type, Object& object) {
  os::Guard guard(lock_);
  HandleSlot* slot = nullptr;
  if (free_count_ <= kRestingMin && (fresh_count_ > 0 || add_chunk())) {
    slot = fresh_++;
    --fresh_count_;
  } else {
    if (!free_first_) return nullptr;
    slot = free_first_;
    free_first_ = slot->next_free;
    --free_count_;
  }
  slot->provider = provider;
  slot->type.store(type, std::memory_order_relaxed);
  slot->context.store(0, std::memory_order_relaxed);  // GEN-15
  slot->object.store(&object, std::memory_order_release);
  return slot;
}

void HandleTable::remove(HandleSlot* slot) {
  os::Guard guard(lock_);
  slot->object.store(nullptr, std::memory_order_release);
  put_free(slot);
}

void HandleTable::put_free(HandleSlot* slot) {
  slot->next_free = nullptr;
  (free_first_ ? free_last_->next_free : free_first_) = slot;
  free_last_ = slot;
  ++free_count_;
}

// The list of free slots may be half changed, so it is made again from what the slots say.
void HandleTable::begin_anew(void* of) {
  auto& self = *static_cast<HandleTable*>(of);
  std::construct_at(&self.lock_);
  os::Guard guard(self.lock_);
  self.free_first_ = nullptr;
  self.free_count_ = 0;
  const auto reset = [&self](HandleSlot* slots, std::size_t count) ANYDAT_NO_ANALYSIS {
    for (HandleSlot* slot = slots; slot != slots + count; ++slot) {
      if (!slot->provider) return;  // this one and the rest have never been used
      slot->object.store(nullptr, std::memory_order_relaxed);
      self.put_free(slot);
    }
  };
  reset(first_.data(), kFirst);
  if (self.slots_ <= kFirst) return;
  for (const std::atomic<std::uintptr_t>& chunk : chunks_) {
    const std::uintptr_t address = chunk.load(std::memory_order_relaxed);
    if (address != 0) reset(reinterpret_cast<HandleSlot*>(address), kSlotsPerChunk);
  }
}

}  // namespace anydat::dapl
