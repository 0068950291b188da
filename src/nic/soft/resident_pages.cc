// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/resident_pages.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <system_error>

#include "base/log.h"

namespace anydat::nic::soft {

namespace {

// Of a word: the number of a page or a run, a bit for writing, and a time in units of up to a millisecond. The time comes
// round after a minute or more, when a page that has not been used since may pass for one that has.
constexpr int kTimeBits = 18;
constexpr int kUnitBits = 20;
constexpr std::uint64_t kUnitsForUs = 1;  // so long after it has been seen, and for the rest of that unit
constexpr std::uint64_t kUnitsForTheKernel = 15;
constexpr std::uint64_t kTimeMask = (std::uint64_t{1} << kTimeBits) - 1;
constexpr std::uint64_t kForWriting = std::uint64_t{1} << kTimeBits;

constexpr std::uint64_t kAhead = 1 << 20;

// Until the next attempt where the system had no room for the descriptor.
constexpr std::uint64_t kOpenRetry = 10'000'000;

constexpr std::uint64_t time_of(std::uint64_t now) {
  return (now >> kUnitBits) & kTimeMask;
}
constexpr std::uint64_t word_of(std::uint64_t number, bool to_write, std::uint64_t time) {
  return number << (kTimeBits + 1) | (to_write ? kForWriting : 0) | time;
}
constexpr bool covers(std::uint64_t word, std::uint64_t number, bool to_write, std::uint64_t time, std::uint64_t units) {
  return word >> (kTimeBits + 1) == number && (!to_write || (word & kForWriting) != 0) &&
         ((time - word) & kTimeMask) <= units;
}

}  // namespace

ResidentPages::Known* ResidentPages::known(pid_t thread, std::uint64_t now) {
  Known* known = known_.load(std::memory_order_acquire);
  if (known) return known;
  if (now < open_again_.load(std::memory_order_relaxed)) return nullptr;
  auto* fresh = new (std::nothrow) Known;
  if (!fresh) return nullptr;
  const int error = fresh->map.open(thread);
  fresh->told = error == 0;
  if (thread == 0 && fresh->told) fresh->access.open();
  if (error != 0 && error != EACCES && error != EPERM && error != ENOENT) {
    // What the kernel would tell is not known for good: a descriptor may be free again.
    delete fresh;
    if (open_again_.exchange(now + kOpenRetry, std::memory_order_relaxed) == 0) {
      base::log(base::LogLevel::info, "which pages are in memory cannot be found out for now: {}",
                std::generic_category().message(error));
    }
    return nullptr;
  }
  if (known_.compare_exchange_strong(known, fresh)) return fresh;
  delete fresh;  // another thread was quicker
  return known;
}

// The first page from `page` on, but before `end`, that has not been seen lately.
std::uint64_t ResidentPages::Known::seen_until(std::uint64_t page, std::uint64_t end, bool to_write, std::uint64_t time,
                                               std::uint64_t units) const {
  while (page < end) {
    const std::uint64_t run = page / kPagesOfRun;
    if (covers(runs[run % kRuns].load(std::memory_order_relaxed), run, to_write, time, units)) {
      page = (run + 1) * kPagesOfRun;
    } else if (covers(pages[page % kPages].load(std::memory_order_relaxed), page, to_write, time, units)) {
      ++page;
    } else {
      return page;
    }
  }
  return end;
}

void ResidentPages::Known::note(std::uint64_t page, std::uint64_t end, bool to_write, std::uint64_t time) {
  while (page < end) {
    if (page % kPagesOfRun == 0 && end - page >= kPagesOfRun) {
      const std::uint64_t run = page / kPagesOfRun;
      runs[run % kRuns].store(word_of(run, to_write, time), std::memory_order_relaxed);
      page += kPagesOfRun;
    } else {
      pages[page % kPages].store(word_of(page, to_write, time), std::memory_order_relaxed);
      ++page;
    }
  }
}

bool ResidentPages::hold(pid_t thread, const Range& range, bool to_write, std::uint64_t now, CopiedBy by) {
  if (range.length == 0) return true;
  Known* const known = this->known(thread, now);
  if (!known || !known->told) return true;
  const std::uint64_t time = time_of(now);
  const std::uint64_t units = by == CopiedBy::kernel ? kUnitsForTheKernel : kUnitsForUs;
  const std::uint64_t end = (range.address + range.length - 1) / os::kPageBytes + 1;
  const std::uint64_t page = known->seen_until(range.address / os::kPageBytes, end, to_write, time, units);
  if (page == end) return true;
  // Looking at many at once costs little more than looking at few, and tells how far they are there.
  const std::uint64_t address = page * os::kPageBytes;
  const std::uint64_t ahead = range.address + std::max(kAhead, range.length);
  const std::optional<std::uint64_t> until = known->map.resident_until(address, ahead - address, to_write);
  if (!until) return true;
  if (*until / os::kPageBytes < end) return false;
  const std::uint64_t seen = known->access.allowed_until(address, *until - address, to_write) / os::kPageBytes;
  if (seen < end) return false;
  known->note(page, seen, to_write, time);
  return true;
}

}  // namespace anydat::nic::soft
