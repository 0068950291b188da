// SPDX-License-Identifier: BSD-3-Clause
#include "no_memory.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<bool> counting{false};
std::atomic<long> left{0};  // that still work
std::atomic<bool> all_fail{false};
std::atomic<bool> any_failed{false};

bool fails_now() {
  if (!counting.load(std::memory_order_relaxed)) {
    return false;
  }
  const long now = left.fetch_sub(1);
  if (now > 0 || (now < 0 && !all_fail)) {
    return false;
  }
  any_failed = true;
  return true;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  bytes = (bytes + alignment) / alignment * alignment;
  void* const memory = fails_now() ? nullptr : std::aligned_alloc(alignment, bytes);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace anydat::test {

NoMemory::NoMemory(long working, Failing which) {
  any_failed = false;
  all_fail = which == Failing::all;
  left = working;
  counting = true;
}

NoMemory::~NoMemory() {
  counting = false;
}

bool NoMemory::has_failed_any() {
  return any_failed;
}

}  // namespace anydat::test
