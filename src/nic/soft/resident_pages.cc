// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/resident_pages.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <optional>
#include <system_error>

#include "base/log.h"

namespace anydat::nic::soft {

namespace {

constexpr std::uint64_t kAhead = 1 << 20;
constexpr std::uint64_t kStretchPages = 128;

// Until the next attempt where the system had no room for the descriptor.
constexpr std::uint64_t kOpenRetry = 10'000'000;

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
    const std::uint64_t seen = word(run, to_write).load(std::memory_order_relaxed) ^ word_of(run, 0, 0);
    if (seen >> kRunShift != 0 || ((time - seen) & kMomentMask) > units) return page;
    const std::uint64_t missing = ~(seen >> kPagesShift) & kAllPages & ~std::uint64_t{0} << page % kPagesOfRun;
    if (missing != 0) return std::min(end, run * kPagesOfRun + static_cast<std::uint64_t>(std::countr_zero(missing)));
    page = (run + 1) * kPagesOfRun;
  }
  return end;
}

void ResidentPages::Known::note(std::uint64_t page, std::uint64_t end, bool to_write, std::uint64_t time) {
  while (page < end) {
    const std::uint64_t run = page / kPagesOfRun;
    const std::uint64_t next = std::min(end, (run + 1) * kPagesOfRun);
    const std::uint64_t pages = kAllPages >> (kPagesOfRun - (next - page)) << page % kPagesOfRun;
    // What can be written can be read.
    for (std::size_t table = 0; table < (to_write ? words.size() : 1); ++table) {
      std::atomic<std::uint64_t>& word = words[table][run % kRuns];
      const std::uint64_t fresh = word_of(run, pages, time);
      const std::uint64_t old = word.load(std::memory_order_relaxed);
      const bool same = ((old ^ fresh) & ~(kAllPages << kPagesShift)) == 0;
      word.store(same ? old | fresh : fresh, std::memory_order_relaxed);
    }
    page = next;
  }
}

bool ResidentPages::hold(pid_t thread, const Range& range, bool to_write, std::uint64_t now, CopiedBy by) {
  if (range.length == 0) return true;
  Known* const known = this->known(thread, now);
  if (!known || !known->told) return true;
  const std::uint64_t time = moment_of(now);
  const std::uint64_t units = by == CopiedBy::us ? kUnitsForUs : kUnitsForOthers;
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

bool ResidentPages::seen_around(const Range& range, bool to_write, std::uint64_t moment, Stretch& stretch) const {
  const Known* const known = known_.load(std::memory_order_acquire);
  if (!known || moment == kNoMoment) return false;
  if (!known->told) {
    stretch = {moment, 0, ~std::uint64_t{0}};
    return true;
  }
  const std::uint64_t page = range.address / os::kPageBytes;
  // Who has looked may have read the clock a moment later.
  const std::uint64_t until = known->seen_until(page, page + kStretchPages, to_write, moment + 1, kUnitsForOthers + 1);
  if (until * os::kPageBytes < range.address + range.length) return false;
  stretch = {moment, page * os::kPageBytes, (until - page) * os::kPageBytes};
  return true;
}

void ResidentPages::renew_stretch(Stretch& stretch, bool to_write, std::uint64_t moment) const {
  if (stretch.length == 0 || !seen_around({stretch.address, 1}, to_write, moment, stretch)) stretch = {moment, 0, 0};
}

}  // namespace anydat::nic::soft
