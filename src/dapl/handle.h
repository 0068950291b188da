// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <dat/udat.h>
// dat_registry.h needs the types of udat.h.
#include <dat/dat_registry.h>

#include <atomic>
#include <cstdint>
#include <deque>

#include "base/lock.h"

namespace anydat::dapl {

class Object;

// What a DAT handle points to. The first word is the provider table (HND-9), which macros of old programs read. A
// slot's memory is never given back nor used for anything else, so a stale handle can be looked at and refused (ruling
// A6).
struct alignas(64) HandleSlot {
  const DAT_PROVIDER* provider;
  std::atomic<Object*> object;  // null: free
  std::atomic<std::uint32_t> type;
  std::atomic<std::uint64_t> context;  // the consumer's (CTX-SET-1)
};

// All handles of the process, in one range of addresses, so that any value a program passes can be checked.
//
// Thread safety: any thread may call anything; lookups take no lock.
class HandleTable {
 public:
  static HandleTable& instance();

  // Null when the table is full.
  HandleSlot* add(const DAT_PROVIDER& provider, DAT_HANDLE_TYPE type, Object& object);
  void remove(HandleSlot* slot);

  // The slot of a live object, or null.
  static HandleSlot* find(DAT_HANDLE handle) {
    const auto address = reinterpret_cast<std::uintptr_t>(handle);
    const std::uintptr_t offset = address - base_.load(std::memory_order_relaxed);
    if (offset >= bytes() || offset % sizeof(HandleSlot) != 0) return nullptr;
    auto* slot = reinterpret_cast<HandleSlot*>(address);
    return slot->object.load(std::memory_order_acquire) ? slot : nullptr;
  }
  // Ours, live or not.
  static bool owns(DAT_HANDLE handle) {
    return reinterpret_cast<std::uintptr_t>(handle) - base_.load(std::memory_order_relaxed) < bytes();
  }

 private:
  HandleTable();
  bool reserve() ANYDAT_REQUIRES(lock_);
  static std::size_t bytes() { return bytes_.load(std::memory_order_relaxed); }

  static constexpr std::size_t kSlotsMax = 1u << 22;

  // The range. Without one, no address is in it. Whoever has a handle has seen both written. Every call looks at them,
  // so they are found without asking for the table.
  static inline constinit std::atomic<std::uintptr_t> base_{0};
  static inline constinit std::atomic<std::size_t> bytes_{0};
  base::SpinLock lock_;
  std::size_t used_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::deque<HandleSlot*> free_ ANYDAT_GUARDED_BY(lock_);
};

}  // namespace anydat::dapl
