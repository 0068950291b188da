// SPDX-License-Identifier: BSD-3-Clause
#include "os/page_map.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "os/own_memory.h"
#include "os/uncancelled.h"

namespace anydat::os {

namespace {

// Of <linux/fs.h>, which older headers do not have.
struct ScanArguments {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;
  std::uint64_t found;
  std::uint64_t found_count;
  std::uint64_t most_pages;
  std::uint64_t inverted;
  std::uint64_t all_of;
  std::uint64_t any_of;
  std::uint64_t wanted;
};
struct FoundRange {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t categories;
};
const unsigned long kScan = _IOWR('f', 16, ScanArguments);
constexpr std::uint64_t kIsWritten = 1u << 1;  // not waiting for userfaultfd to let it be written
constexpr std::uint64_t kIsPresent = 1u << 3;

// Of an entry of the file.
constexpr std::uint64_t kEntryPresent = std::uint64_t{1} << 63;
constexpr std::uint64_t kEntryWaits = std::uint64_t{1} << 57;  // the same, the other way round

// Memory of a device, for one, is none that the kernel copies from: it is read as a futex, of whose sleepers none is
// woken or sent elsewhere. No thread of ours sleeps on it either: it could be woken in another's place.
bool read_as_futex(std::uint64_t first, std::uint64_t end) {
  constexpr std::uint32_t kAny = 0;
  std::uint32_t elsewhere = 0;
  for (; first < end; first += kPageBytes) {
    if (syscall(SYS_futex, first, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, &elsewhere, kAny) < 0 && errno != EAGAIN)
      return false;
  }
  return true;
}

// Without writing: a page that cannot be read is an error here, where an instruction would end the process.
bool read_each(std::uint64_t first, std::uint64_t end) {
  while (first < end) {
    std::array<iovec, 64> there;
    std::array<std::byte, 64> bytes;
    std::size_t count = 0;
    for (; count < there.size() && first < end; ++count, first += kPageBytes) {
      there[count] = {reinterpret_cast<void*>(first), 1};
    }
    const iovec here{bytes.data(), count};
    if (process_vm_readv(gettid(), &here, 1, there.data(), count, 0) == static_cast<ssize_t>(count)) continue;
    if (!read_as_futex(first - count * kPageBytes, first)) return false;
  }
  return true;
}

// The one access for writing that is an error, and no signal, where it may not be, and that changes no byte, whatever
// the program does with it at the same time. Its comparison is with a number that few words are below, so that it
// seldom wakes a thread that sleeps on the word, which any futex may be woken from at any time.
bool write_each(std::uint64_t first, std::uint64_t end) {
  constexpr unsigned kOrNothing = static_cast<unsigned>(FUTEX_OP_OR) << 28;
  constexpr unsigned kIfBelow = static_cast<unsigned>(FUTEX_OP_CMP_LT) << 24;
  constexpr unsigned kLowest = 0x800;  // of 12 bits
  std::uint32_t without_sleepers = 0;
  for (; first < end; first += kPageBytes) {
    if (syscall(SYS_futex, &without_sleepers, FUTEX_WAKE_OP_PRIVATE, 0, 0, first, kOrNothing | kIfBelow | kLowest) <
        0) {
      return false;
    }
  }
  return true;
}

// It tells of mapped memory alone, all or nothing: where there is a hole, of fewer pages at once.
std::uint64_t resident_by_mincore(std::uint64_t first, std::uint64_t end) {
  std::array<unsigned char, 256> pages;
  std::uint64_t most = pages.size();
  while (first < end) {
    const std::uint64_t count = std::min(most, (end - first) / kPageBytes);
    if (mincore(reinterpret_cast<void*>(first), count * kPageBytes, pages.data()) != 0) {
      if (count == 1) return first;
      most = count / 2;
      continue;
    }
    for (std::size_t i = 0; i < count; ++i, first += kPageBytes) {
      if ((pages[i] & 1) == 0) return first;
    }
  }
  return first;
}

}  // namespace

int PageMap::open(pid_t thread) {
  std::array<char, 48> path;
  if (thread == 0) {
    std::snprintf(path.data(), path.size(), "/proc/thread-self/pagemap");
  } else {
    std::snprintf(path.data(), path.size(), "/proc/%d/pagemap", static_cast<int>(thread));
  }
  int error = 0;
  file_ = UniqueFd::of([&] {
    const int file = uncancelled::open(path.data(), O_RDONLY | O_CLOEXEC);
    if (file < 0) error = errno;
    return file;
  });
  if (thread != 0 || (error != EACCES && error != EPERM && error != ENOENT)) return error;
  look_by_residency();
  return 0;
}

std::optional<std::uint64_t> PageMap::resident_until(std::uint64_t address, std::uint64_t length, bool to_write) const {
  if ((!file_ && !by_residency_) || length > ~address) return std::nullopt;
  const std::uint64_t first = address & ~(kPageBytes - 1);
  if (length == 0) return first;
  const std::uint64_t end = ((address + length - 1) | (kPageBytes - 1)) + 1;
  if (by_residency_) return resident_by_mincore(first, end);
  if (scans_.load(std::memory_order_relaxed)) {
    if (const auto until = scan(first, end, to_write)) return until;
    scans_.store(false, std::memory_order_relaxed);
  }
  return read_entries(first, end, to_write);
}

// Costs a third of what reading entries does. The answer is the first range of pages that are there, since holes are in
// no answer.
std::optional<std::uint64_t> PageMap::scan(std::uint64_t first, std::uint64_t end, bool to_write) const {
  FoundRange found{};
  ScanArguments arguments{};
  arguments.size = sizeof arguments;
  arguments.start = first;
  arguments.end = end;
  arguments.found = reinterpret_cast<std::uint64_t>(&found);
  arguments.found_count = 1;
  arguments.all_of = to_write ? kIsPresent | kIsWritten : kIsPresent;
  arguments.wanted = kIsPresent;
  const int count = ioctl(file_.get(), kScan, &arguments);
  if (count < 0) return std::nullopt;
  return count > 0 && found.start == first ? found.end : first;
}

std::optional<std::uint64_t> PageMap::read_entries(std::uint64_t first, std::uint64_t end, bool to_write) const {
  std::array<std::uint64_t, 256> entries;
  while (first < end) {
    const std::uint64_t count = std::min<std::uint64_t>(entries.size(), (end - first) / kPageBytes);
    const std::size_t bytes = count * sizeof entries[0];
    const ssize_t got = uncancelled::pread(file_.get(), entries.data(), bytes,
                                           static_cast<off_t>(first / kPageBytes * sizeof entries[0]));
    if (got != static_cast<ssize_t>(bytes)) return std::nullopt;
    for (std::size_t i = 0; i < count; ++i, first += kPageBytes) {
      if ((entries[i] & kEntryPresent) == 0 || (to_write && (entries[i] & kEntryWaits) != 0)) return first;
    }
  }
  return first;
}

bool fault_in(std::uint64_t address, std::uint64_t length, bool to_write, bool* untold) {
  if (length == 0) return true;
  if (length > ~address) return false;
  const std::uint64_t first = address & ~(kPageBytes - 1);
  const std::uint64_t end = ((address + length - 1) | (kPageBytes - 1)) + 1;
  int error = 0;
  do {
    error = populate(reinterpret_cast<void*>(first), end - first, to_write);
    if (error == 0) return true;
  } while (error == EAGAIN || error == EINTR);
  // An old kernel does not know the advice, and memory of a device does not take it. Neither does memory that may not
  // be accessed so.
  if (error != EINVAL || !fault_in_by_access(address, length, to_write)) return false;
  if (untold) *untold = true;
  return true;
}

bool fault_in_by_access(std::uint64_t address, std::uint64_t length, bool to_write) {
  const std::uint64_t first = address & ~(kPageBytes - 1);
  const std::uint64_t end = ((address + length - 1) | (kPageBytes - 1)) + 1;
  return to_write ? write_each(first, end) : read_each(first, end);
}

}  // namespace anydat::os
