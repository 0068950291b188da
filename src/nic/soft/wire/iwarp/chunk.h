// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/list.h"
#include "os/lock.h"

namespace anydat::nic::soft::iwarp {

// Bytes that wait for a socket to take them.
struct Chunk {
  base::ListLinks<Chunk> place;
  std::uint32_t capacity;
  std::uint32_t begin;
  std::uint32_t end;

  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  std::span<std::byte> waiting() { return {data() + begin, end - begin}; }
  std::span<std::byte> room() { return {data() + end, capacity - end}; }
};

// Chunks for all connections of an adapter: only those with something to send hold any.
//
// Thread safety: any thread may call any method.
class ChunkPool {
 public:
  // Small messages are gathered in chunks of this size.
  static constexpr std::uint32_t kUsual = 16 << 10;

  ChunkPool() = default;
  ~ChunkPool();
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  // An empty chunk with room for at least `bytes`; null when out of memory.
  Chunk* take(std::uint32_t bytes = 0);
  void give(Chunk& chunk);

 private:
  static constexpr std::size_t kKept = 64;
  os::SpinLock lock_;
  base::List<Chunk, &Chunk::place> free_ ANYDAT_GUARDED_BY(lock_);
};

}  // namespace anydat::nic::soft::iwarp
