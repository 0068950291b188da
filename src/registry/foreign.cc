// SPDX-License-Identifier: BSD-3-Clause
#include "registry/foreign.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/unique_fd.h"

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

bool read_word(const void* address, std::uintptr_t& word) {
  const iovec to{&word, sizeof word};
  const iovec from{const_cast<void*>(address), sizeof word};
  // By the calling thread's number: a process whose first thread has ended may not be found by its own.
  const ssize_t got = process_vm_readv(gettid(), &to, 1, &from, 1, 0);
  if (got == static_cast<ssize_t>(sizeof word)) return true;
  return got < 0 && errno != EFAULT && read_word_by_pipe(address, word);
}

bool read_word_by_pipe(const void* address, std::uintptr_t& word) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return false;
  const base::UniqueFd out(fds[0]);
  const base::UniqueFd in(fds[1]);
  // The kernel looks at the memory, and says EFAULT where we would get a signal. Not write(): a sanitizer's would look
  // at it too.
  return syscall(SYS_write, in.get(), address, sizeof word) == static_cast<long>(sizeof word) &&
         syscall(SYS_read, out.get(), &word, sizeof word) == static_cast<long>(sizeof word);
}

constinit base::PerProcess<ForeignTables> ForeignTables::instance_;

ForeignTables::ForeignTables() : generation_(std::uint64_t{base::forks()} << 48 | 1) {}

ForeignTables& ForeignTables::instance() {
  return *instance_;
}

ForeignTable* ForeignTables::add(const DAT_PROVIDER* provider, DAT_UINT32 major, DAT_UINT32 minor) {
  base::Guard guard(lock_);
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
  base::Guard guard(lock_);
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
  if (!read_word(handle, word)) return nullptr;
  base::Guard guard(lock_);
  for (ForeignTable& known : tables_) {
    if (known.references == 0 || reinterpret_cast<std::uintptr_t>(known.provider) != word) continue;
    return known.is_callable.load() ? &known : nullptr;
  }
  return nullptr;
}

}  // namespace anydat::registry
