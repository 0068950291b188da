// SPDX-License-Identifier: BSD-3-Clause
#include "registry/foreign.h"

#include <array>

#include "os/own_memory.h"

namespace anydat::registry {

namespace {

struct Remembered {
  DAT_HANDLE handle;
  ForeignTable* table;
  std::uint64_t generation;  // never 0 in what find() has written
};

constexpr std::size_t kRememberedCount = 32;

thread_local std::array<Remembered, kRememberedCount> remembered{};

Remembered& place_of(DAT_HANDLE handle) {
  const auto address = reinterpret_cast<std::uintptr_t>(handle);
  // Objects come from malloc, so the lowest bits say nothing.
  return remembered[(address >> 4 ^ address >> 10) % kRememberedCount];
}

}  // namespace

constinit os::PerProcess<ForeignTables> ForeignTables::instance_;

ForeignTables::ForeignTables() : generation_(std::uint64_t{os::forks()} << 48 | 1) {}

ForeignTables& ForeignTables::instance() {
  return *instance_;
}

ForeignTable* ForeignTables::add(const DAT_PROVIDER* provider, DAT_UINT32 major, DAT_UINT32 minor) {
  os::Guard guard(lock_);
  ForeignTable* table = nullptr;
  for (ForeignTable& known : tables_) {
    if (known.provider == provider) table = &known;
  }
  if (!table) {
    table = &tables_.emplace_back();
    table->provider = provider;
  }
  if (table->references++ == 0) {
    table->is_whole.store(false);
    table->is_callable.store(false);
    known_count_.fetch_add(1);
  }
  if (major == DAT_VERSION_MAJOR) {
    table->is_callable.store(true);
    if (minor + 1 > DAT_VERSION_MINOR) table->is_whole.store(true);
  }
  return table;
}

void ForeignTables::drop(ForeignTable* table) {
  os::Guard guard(lock_);
  if (--table->references == 0) known_count_.fetch_sub(1);
  forget_handles();
}

ForeignTable* ForeignTables::find(DAT_HANDLE handle) {
  Remembered& place = place_of(handle);
  const std::uint64_t now = generation_.load();
  if (place.handle == handle && place.generation == now) return place.table;
  ForeignTable* table = look_up(handle);
  if (table) place = {handle, table, now};
  return table;
}

ForeignTable* ForeignTables::look_up(DAT_HANDLE handle) {
  const auto address = reinterpret_cast<std::uintptr_t>(handle);
  if (address == 0 || address % alignof(const DAT_PROVIDER*) != 0) return nullptr;
  std::uintptr_t word = 0;
  if (!os::read_word(handle, word)) return nullptr;
  os::Guard guard(lock_);
  for (ForeignTable& known : tables_) {
    if (known.references == 0 || reinterpret_cast<std::uintptr_t>(known.provider) != word) continue;
    return known.is_callable.load() ? &known : nullptr;
  }
  return nullptr;
}

}  // namespace anydat::registry
