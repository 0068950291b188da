// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/handle.h"

#include <sys/mman.h>

#include <new>

namespace anydat::dapl {

namespace {
// A freed handle rests until this many others have been freed after it (GEN-4).
constexpr std::size_t kRestingMin = 16384;
}  // namespace

HandleTable& HandleTable::instance() {
  // Never destroyed: programs call DAT from their own static destructors.
  static HandleTable* const table = new HandleTable;
  return *table;
}

HandleTable::HandleTable() {
  base::Guard guard(lock_);
  reserve();
}

bool HandleTable::reserve() {
  void* memory = mmap(nullptr, kSlotsMax * sizeof(HandleSlot), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  base_.store(reinterpret_cast<std::uintptr_t>(memory), std::memory_order_relaxed);
  bytes_.store(kSlotsMax * sizeof(HandleSlot), std::memory_order_relaxed);
  return true;
}

HandleSlot* HandleTable::add(const DAT_PROVIDER& provider, DAT_HANDLE_TYPE type, Object& object) {
  base::Guard guard(lock_);
  HandleSlot* slot = nullptr;
  // Address space that was short when the table was made may be there now.
  if (bytes() == 0 && !reserve()) return nullptr;
  if (free_.size() > kRestingMin || used_ == kSlotsMax) {
    if (free_.empty()) return nullptr;
    slot = free_.front();
    free_.pop_front();
  } else {
    slot = reinterpret_cast<HandleSlot*>(base_.load(std::memory_order_relaxed)) + used_++;
  }
  slot->provider = &provider;
  slot->type.store(type, std::memory_order_relaxed);
  slot->context.store(0, std::memory_order_relaxed);  // GEN-15
  slot->object.store(&object, std::memory_order_release);
  return slot;
}

void HandleTable::remove(HandleSlot* slot) {
  base::Guard guard(lock_);
  slot->object.store(nullptr, std::memory_order_release);
  try {
    free_.push_back(slot);
  } catch (const std::bad_alloc&) {
    // It is not used again.
  }
}

}  // namespace anydat::dapl
