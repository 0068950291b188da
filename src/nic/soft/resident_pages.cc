// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/resident_pages.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <optional>
#include <system_error>

#include "env/log.h"

namespace anydat::nic::soft {

namespace {

constexpr std::uint64_t kAhead = 1 << 20;
constexpr std::uint64_t kStretchPages = 32;  // each message that leaves the last one pays for it

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
      env::log(env::LogLevel::info, "which pages are in memory cannot be found out for now: {}",
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

// For who goes by what was seen long ago, what is known of the run already stays, and all of it is as old as that: two
// buffers in one run would have each other looked at with each message.
void ResidentPages::Known::note(std::uint64_t page, std::uint64_t end, bool to_write, std::uint64_t time,
                                std::uint64_t units) {
  while (page < end) {
    const std::uint64_t run = page / kPagesOfRun;
    const std::uint64_t next = std::min(end, (run + 1) * kPagesOfRun);
    const std::uint64_t pages = kAllPages >> (kPagesOfRun - (next - page)) << page % kPagesOfRun;
    // What can be written can be read.
    for (std::size_t table = 0; table < (to_write ? words.size() : 1); ++table) {
      std::atomic<std::uint64_t>& word = words[table][place_of(run)];
      const std::uint64_t fresh = word_of(run, pages, time);
      const std::uint64_t old = word.load(std::memory_order_relaxed);
      const std::uint64_t age = (time - old) & kMomentMask;
      const bool stays = (old ^ fresh) >> kRunShift == 0 && (age == 0 || (units > kUnitsForUs && age <= units / 2));
      word.store(stays ? old | pages << kPagesShift : fresh, std::memory_order_relaxed);
    }
    page = next;
  }
}

bool ResidentPages::are_resident(pid_t thread, const Range& range, bool to_write, std::uint64_t now, CopiedBy by,
                                 std::uint64_t* absent) {
  if (range.length == 0) return true;
  Known* const known = this->known(thread, now);
  if (!known || !known->told) return true;
  const std::uint64_t time = moment_of(now);
  const std::uint64_t units = by == CopiedBy::us ? kUnitsForUs : kUnitsForOthers;
  const std::uint64_t end = (range.address + range.length - 1) / os::kPageBytes + 1;
  const std::uint64_t page = known->seen_until(range.address / os::kPageBytes, end, to_write, time, units);
  if (page == end) return true;
  // Looking at many at once costs little more than looking at few, and tells how far they are there; also from where
  // others may be used that lie before, unless there is a gap.
  const std::uint64_t ahead = range.address + std::max(kAhead, range.length);
  const std::uint64_t before = range.address / kAhead * (kAhead / os::kPageBytes);
  for (std::uint64_t first = before;; first = page) {
    const std::uint64_t address = first * os::kPageBytes;
    const std::optional<std::uint64_t> there = known->map.resident_until(address, ahead - address, to_write);
    if (!there) return true;
    const std::uint64_t until =
        *there / os::kPageBytes < end ? *there : known->access.allowed_until(address, *there - address, to_write);
    if (until / os::kPageBytes >= end) {
      known->note(first, until / os::kPageBytes, to_write, time, units);
      return true;
    }
    if (first != page) continue;
    if (by == CopiedBy::us_in_short && *there / os::kPageBytes >= end) return true;
    if (*there / os::kPageBytes < end && all_but_untold(*known, *there, end * os::kPageBytes, to_write) &&
        known->access.allowed_until(address, end * os::kPageBytes - address, to_write) == end * os::kPageBytes) {
      known->note(first, end, to_write, time, units);
      return true;
    }
    if (absent) *absent = until;
    return false;
  }
}

// Whether what is called absent from `at` on, which the kernel says is, is memory of which it never tells.
bool ResidentPages::all_but_untold(Known& known, std::uint64_t at, std::uint64_t end, bool to_write) {
  if (!any_untold_.load(std::memory_order_relaxed)) [[likely]]
    return false;
  while (at < end) {
    const std::uint64_t behind = untold_until(at);
    if (behind == at) return false;
    if (behind >= end) return true;
    const std::optional<std::uint64_t> there = known.map.resident_until(behind, end - behind, to_write);
    if (!there) return true;
    at = *there;
  }
  return true;
}

std::uint64_t ResidentPages::untold_until(std::uint64_t address) {
  os::Guard guard(untold_lock_);
  for (const Range& untold : untold_) {
    if (address - untold.address < untold.length) return untold.address + untold.length;
  }
  return address;
}

// By whole pages.
void ResidentPages::note_untold(const Range& range, bool to_write) {
  Known* const known = known_.load(std::memory_order_acquire);
  if (!known || !known->told || range.length == 0) return;
  std::uint64_t end = ((range.address + range.length - 1) | (os::kPageBytes - 1)) + 1;
  const auto there = known->map.resident_until(range.address, range.length, to_write);
  if (!there || *there >= end) return;
  std::uint64_t begin = *there;
  os::Guard guard(untold_lock_);
  std::erase_if(untold_, [&](const Range& other) {
    if (other.address > end || begin > other.address + other.length) return false;
    begin = std::min(begin, other.address);
    end = std::max(end, other.address + other.length);
    return true;
  });
  try {
    untold_.push_back({begin, end - begin});
  } catch (const std::bad_alloc&) {
    return;  // they are brought again
  }
  any_untold_.store(true, std::memory_order_relaxed);
}

void ResidentPages::forget_untold() {
  untold_generation_.fetch_add(1);
  if (!any_untold_.load(std::memory_order_relaxed)) return;
  os::Guard guard(untold_lock_);
  untold_.clear();
  any_untold_.store(false, std::memory_order_relaxed);
}

bool ResidentPages::seen_around(const Range& range, bool to_write, std::uint64_t moment, Stretch& stretch) const {
  const Known* const known = known_.load(std::memory_order_acquire);
  if (!known || moment == kNoMoment) return false;
  if (!known->told) {
    stretch = {range.address, std::uint32_t{1} << 30, static_cast<std::uint32_t>(moment)};
    return true;
  }
  const std::uint64_t page = range.address / os::kPageBytes;
  // Who has looked may have read the clock a moment later.
  const std::uint64_t until = known->seen_until(page, page + kStretchPages, to_write, moment + 1, kUnitsForOthers + 1);
  if (until * os::kPageBytes < range.address + range.length) return false;
  stretch = {page * os::kPageBytes, static_cast<std::uint32_t>((until - page) * os::kPageBytes),
             static_cast<std::uint32_t>(moment)};
  return true;
}

void ResidentPages::note(const Range& range, bool to_write, std::uint64_t since) {
  Known* const known = known_.load(std::memory_order_acquire);
  if (!known || range.length == 0) return;
  known->note(range.address / os::kPageBytes, (range.address + range.length - 1) / os::kPageBytes + 1, to_write, since,
              kUnitsForOthers);
}

}  // namespace anydat::nic::soft
