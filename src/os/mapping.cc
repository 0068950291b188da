// SPDX-License-Identifier: BSD-3-Clause
#include "os/mapping.h"

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace anydat::os {
namespace {

// Zeros of this process alone.
constexpr int kOwnRights = PROT_READ | PROT_WRITE;
constexpr int kOwn = MAP_PRIVATE | MAP_ANONYMOUS;

// A mapping that is not locked grows without being locked, and without a question about the leave to lock: so one page
// is mapped, and let grow. It may lie in the middle of others that are like it.
void* let_grow(void* seed, std::size_t bytes, int flags) {
  const std::size_t page = page_bytes();
  munlock(seed, page);
  return bytes > page ? mremap(seed, page, bytes, flags) : seed;
}

void* map_unlocked(int fd, std::size_t offset, std::size_t bytes, int rights, int flags) {
  const std::size_t page = page_bytes();
  void* const seed = mmap(nullptr, page, rights, flags, fd, static_cast<off_t>(offset));
  if (seed == MAP_FAILED) return nullptr;
  void* memory = let_grow(seed, bytes, MREMAP_MAYMOVE);
  if (memory == MAP_FAILED) {
    munmap(seed, page);
    memory = mmap(nullptr, bytes, rights, flags, fd, static_cast<off_t>(offset));
    if (memory == MAP_FAILED) return nullptr;
  }
  return memory;
}

// The child of a fork does not get it.
void* for_parent_only(void* memory, std::size_t bytes) {
  if (memory) madvise(memory, bytes, MADV_DONTFORK);
  return memory;
}

}  // namespace

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void* map_shared(int fd, std::size_t bytes, bool writable, std::size_t offset) {
  const int rights = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  constexpr int kFlags = MAP_SHARED | MAP_NORESERVE;
  void* memory = mmap(nullptr, bytes, rights, kFlags, fd, static_cast<off_t>(offset));
  // No leave to lock as much (RLIMIT_MEMLOCK): memory that is not locked serves as well.
  if (memory == MAP_FAILED && errno == EAGAIN)
    return for_parent_only(map_unlocked(fd, offset, bytes, rights, kFlags), bytes);
  return memory != MAP_FAILED ? for_parent_only(memory, bytes) : nullptr;
}

void* reserve(std::size_t bytes) {
  return for_parent_only(map_unlocked(-1, 0, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE), bytes);
}

void* map_shared_unlocked(int fd, std::size_t bytes, bool writable) {
  const int rights = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  return for_parent_only(map_unlocked(fd, 0, bytes, rights, MAP_SHARED | MAP_NORESERVE), bytes);
}

bool put_shared(void* place, int fd, std::size_t offset, std::size_t bytes) {
  // Made elsewhere first, so that nothing but the last step touches the range, which takes place as one.
  void* const made = for_parent_only(map_unlocked(fd, offset, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE), bytes);
  if (!made) return false;
  if (mremap(made, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place) return true;
  munmap(made, bytes);
  // A kernel that refuses the step lets the range be replaced in another way, which counts as locked.
  void* const replaced =
      mmap(place, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, static_cast<off_t>(offset));
  return for_parent_only(replaced != MAP_FAILED ? replaced : nullptr, bytes) != nullptr;
}

bool open_private(void* place, std::size_t bytes) {
  return mprotect(place, bytes, PROT_READ | PROT_WRITE) == 0;
}

void* map_private_unlocked(std::size_t bytes) {
  return map_unlocked(-1, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
}

void* map_private_aligned(std::size_t bytes) {
  void* memory = mmap(nullptr, 2 * bytes, kOwnRights, kOwn, -1, 0);
  if (memory == MAP_FAILED && errno == EAGAIN) {
    memory = map_unlocked(-1, 0, 2 * bytes, kOwnRights, kOwn);
    if (!memory) return nullptr;
  }
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
  std::size_t mapped = bytes;
  void* memory = mmap(wanted, mapped, kOwnRights, kOwn | MAP_FIXED_NOREPLACE, -1, 0);
  if (memory == MAP_FAILED && errno == EAGAIN) {
    mapped = page_bytes();
    memory = mmap(wanted, mapped, kOwnRights, kOwn | MAP_FIXED_NOREPLACE, -1, 0);
  }
  if (memory == MAP_FAILED) return nullptr;
  // A kernel that does not know the flag takes the address for a hint.
  if (memory == wanted && (mapped == bytes || let_grow(memory, bytes, 0) == wanted)) return memory;
  munmap(memory, mapped);
  return nullptr;
}

void unmap(void* memory, std::size_t bytes) {
  if (memory) munmap(memory, bytes);
}

}  // namespace anydat::os
