// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dapl/types.h"
#include "os/fork.h"
#include "os/lock.h"

namespace anydat::dapl {

class Object;

// What a DAT handle points to. The first word is the provider table (HND-9), which macros of old programs read. A
// slot's memory is never given back nor used for anything else, so a stale handle can be looked at and refused (ruling
// A6).
struct alignas(64) HandleSlot {
  const void* provider;
  std::atomic<Object*> object;  // null: free
  std::atomic<HandleType> type;
  std::atomic<std::uint64_t> context;  // the consumer's (CTX-SET-1)
  HandleSlot* next_free;               // with the table's lock
};

// All handles of the process, so that any value a program passes can be checked. The first ones lie in the library's
// own memory, more in chunks that are made as they are needed: a program that opens an adapter and makes a few objects
// is not to pay for a million.
//
// Thread safety: any thread may call anything; lookups take no lock.
// After a fork no handle is live in the child, and all slots that were used are free there.
class HandleTable {
 public:
  constexpr HandleTable() = default;
  static HandleTable& instance();

  // Null when the table is full, or there is no memory for more.
  HandleSlot* add(const void* provider, HandleType type, Object& object);
  void remove(HandleSlot* slot);

  // The slot of a live object of an instance, or null. What has only been asked about is none (D2-QUERY-3).
  static HandleSlot* find(Handle handle) {
    if (!is_slot(handle)) return nullptr;
    auto* slot = static_cast<HandleSlot*>(handle);
    const bool live = slot->object.load(std::memory_order_acquire) != nullptr;
    return live && slot->type.load(std::memory_order_relaxed) != HandleType::query ? slot : nullptr;
  }
  // Whether it is a slot of ours, which need not be in use.
  static bool is_slot(Handle handle) {
    return owns(handle) && reinterpret_cast<std::uintptr_t>(handle) % sizeof(HandleSlot) == 0;
  }
  // Ours, live or not.
  static bool owns(Handle handle) {
    const auto address = reinterpret_cast<std::uintptr_t>(handle);
    if (address - reinterpret_cast<std::uintptr_t>(first_.data()) < sizeof first_) [[likely]]
      return true;
    const std::uintptr_t chunk = address / kChunkBytes * kChunkBytes;
    return chunk != 0 && place_of(chunk).load(std::memory_order_relaxed) == chunk;
  }

 private:
  static constexpr std::size_t kSlotsMax = 1u << 22;
  static constexpr std::size_t kFirst = 1024;
  static constexpr std::size_t kChunkBytes = 64 * 1024;  // and a chunk's address is a multiple of that
  static constexpr std::size_t kSlotsPerChunk = kChunkBytes / sizeof(HandleSlot);
  // Room for twice as many chunks as there may be. Each has one place where it can be; the system gives addresses out
  // one after the other, so that two chunks hardly ever want the same.
  static constexpr std::size_t kPlaces = 2 * kSlotsMax / kSlotsPerChunk;

  static std::atomic<std::uintptr_t>& place_of(std::uintptr_t chunk) { return chunks_[chunk / kChunkBytes % kPlaces]; }
  bool add_chunk() ANYDAT_REQUIRES(lock_);
  void put_free(HandleSlot* slot) ANYDAT_REQUIRES(lock_);
  static void begin_anew(void* table);

  // A thread that has a handle has seen its chunk written. Every call looks at them, so they are found without asking
  // for the table.
  [[gnu::visibility("hidden")]] static constinit std::array<HandleSlot, kFirst> first_;
  [[gnu::visibility("hidden")]] static constinit std::array<std::atomic<std::uintptr_t>, kPlaces> chunks_;

  os::SpinLock lock_;
  // Slots that have never been used: of the newest chunk, or of the first ones.
  HandleSlot* fresh_ ANYDAT_GUARDED_BY(lock_) = nullptr;
  std::size_t fresh_count_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::size_t slots_ ANYDAT_GUARDED_BY(lock_) = 0;
  // Those that are free again, the longest free first.
  HandleSlot* free_first_ ANYDAT_GUARDED_BY(lock_) = nullptr;
  HandleSlot* free_last_ ANYDAT_GUARDED_BY(lock_) = nullptr;
  std::size_t free_count_ ANYDAT_GUARDED_BY(lock_) = 0;
  os::AfterFork after_fork_{begin_anew, this};
};

}  // namespace anydat::dapl
