// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/chunk.h"

#include <algorithm>
#include <new>

namespace anydat::nic::soft::iwarp {

ChunkPool::~ChunkPool() {
  os::Guard guard(lock_);
  while (Chunk* chunk = free_.pop_front()) ::operator delete(chunk);
}

Chunk* ChunkPool::take(std::uint32_t bytes) {
  if (bytes <= kUsual) {
    os::Guard guard(lock_);
    if (Chunk* chunk = free_.pop_front()) return chunk;
  }
  const std::uint32_t capacity = std::max(bytes, kUsual);
  void* memory = ::operator new(sizeof(Chunk) + capacity, std::nothrow);
  return memory ? new (memory) Chunk{{}, capacity, 0, 0} : nullptr;
}

void ChunkPool::give(Chunk& chunk) {
  if (chunk.capacity == kUsual) {
    os::Guard guard(lock_);
    if (free_.size() < kKept) {
      chunk.begin = chunk.end = 0;
      free_.push_back(chunk);
      return;
    }
  }
  ::operator delete(&chunk);
}

}  // namespace anydat::nic::soft::iwarp
