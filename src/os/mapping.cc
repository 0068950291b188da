// SPDX-License-Identifier: BSD-3-Clause
#include "os/mapping.h"

#include <sys/mman.h>
#include <sys/types.h>

#include <cstdint>

namespace anydat::os {

void* map_shared(int fd, std::size_t bytes, bool writable, std::size_t offset) {
  const int rights = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* memory = mmap(nullptr, bytes, rights, MAP_SHARED | MAP_NORESERVE, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, bytes, MADV_DONTFORK);
  return memory;
}

void* map_private(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void* map_private_aligned(std::size_t bytes) {
  void* const memory = mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t aligned = (address + bytes - 1) / bytes * bytes;
  auto* const begin = static_cast<std::byte*>(memory);
  const std::size_t before = aligned - address;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, bytes - before);
  return begin + before;
}

void* map_private_at(std::uintptr_t address, std::size_t bytes) {
  auto* const wanted = reinterpret_cast<void*>(address);
  void* const memory =
      mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (memory == wanted) return memory;
  // A kernel that does not know the flag takes the address for a hint.
  if (memory != MAP_FAILED) munmap(memory, bytes);
  return nullptr;
}

void unmap(void* memory, std::size_t bytes) {
  if (memory) munmap(memory, bytes);
}

}  // namespace anydat::os
