// SPDX-License-Identifier: BSD-3-Clause
#include "os/descriptors.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

#include "os/clock.h"

namespace anydat::os {

constinit DescriptorTable Descriptors::own_;

int Descriptors::move_up(int fd, int beyond) {
  const int floor = lowest() + beyond;
  if (fd < 0 || fd >= floor) return fd;
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, floor);
  if (high < 0) return beyond > 0 ? move_up(fd) : fd;
  close_number(fd);
  return high;
}

Descriptors::Ticket Descriptors::note(int fd) {
  std::atomic<std::uint64_t>* const entry = place_of(fd);
  if (!entry) return {};
  std::uint32_t ticket = 0;
  while (ticket == 0) ticket = own_.next_ticket.fetch_add(1, std::memory_order_relaxed) & kTickets;
  bool anonymous = false;
  entry->store(std::uint64_t{what_is(fd, anonymous)} << 32 | ticket, std::memory_order_relaxed);
  for (int highest = own_.highest.load(std::memory_order_relaxed);
       fd > highest && !own_.highest.compare_exchange_weak(highest, fd, std::memory_order_relaxed);) {
  }
  return {ticket, &own_};
}

void Descriptors::keep_in_child(int fd, Ticket ticket) {
  std::atomic<std::uint64_t>* const entry = ticket.number != 0 ? find(*ticket.table, fd) : nullptr;
  if (entry && (entry->load(std::memory_order_relaxed) & kTickets) == ticket.number) entry->fetch_or(kKept);
}

bool Descriptors::is_ours(int fd, Ticket ticket) {
  if (ticket.number == 0) return true;  // nothing is known of it
  std::atomic<std::uint64_t>* const entry = find(*ticket.table, fd);
  const std::uint64_t word = entry ? entry->load(std::memory_order_relaxed) : 0;
  return (word & kTickets) == ticket.number && stands_for(*ticket.table, fd, word);
}

void Descriptors::close(int fd, Ticket ticket) {
  if (ticket.number == 0) {
    close_number(fd);
    return;
  }
  std::atomic<std::uint64_t>* const entry = find(*ticket.table, fd);
  const std::uint64_t word = entry ? entry->load(std::memory_order_relaxed) : 0;
  if ((word & kTickets) != ticket.number) return;  // the number is another descriptor's of ours by now
  entry->store(0, std::memory_order_relaxed);
  if (stands_for(*ticket.table, fd, word)) close_number(fd);
}

void Descriptors::close_slowly(int fd, Ticket ticket) {
  std::atomic<std::uint64_t>* const entry = ticket.number != 0 ? find(*ticket.table, fd) : nullptr;
  std::uint64_t word = entry ? entry->load(std::memory_order_relaxed) : 0;
  if (entry && (word & kTickets) != ticket.number) return;
  if (!entry) return close_number(fd);
  std::uint64_t closing = word | kKept;
  if (!stands_for(*ticket.table, fd, word)) {
    entry->compare_exchange_strong(word, 0);
    return;
  }
  entry->compare_exchange_strong(word, closing);
  close_number(fd);
  entry->compare_exchange_strong(closing, 0);
}

void Descriptors::close_all() {
  const int highest = own_.highest.load(std::memory_order_relaxed);
  for (int fd = 0; fd <= highest; ++fd) {
    std::atomic<std::uint64_t>* const entry = find(own_, fd);
    if (!entry) {
      fd |= static_cast<int>(kNumbersPerPage) - 1;
      continue;
    }
    const std::uint64_t word = entry->load(std::memory_order_relaxed);
    if (word == 0 || (word & kKept) != 0) continue;
    entry->store(0, std::memory_order_relaxed);
    if (stands_for(own_, fd, word)) close_number(fd);
  }
}

std::uint64_t Descriptors::limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

int Descriptors::lowest() {
  return static_cast<int>(std::min<std::uint64_t>(limit() / 2, 512));
}

void Descriptors::close_number(int fd) {
#if defined(__SANITIZE_THREAD__)
  ::close(fd);  // the sanitizer has to hear that the number is another file's from now on
#else
  syscall(SYS_close, fd);  // not close(), which is a cancellation point: the caller may have been cancelled
#endif
}

std::uint32_t Descriptors::what_is(int fd, bool& anonymous) {
  // Not fstat(): a peer may pass a descriptor of a file system that answers when the peer likes.
  struct statx status;
  if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_TYPE, &status) != 0) return 0;
  anonymous = (status.stx_mode & S_IFMT) == 0;
  const std::uint64_t device = std::uint64_t{status.stx_dev_major} << 32 | status.stx_dev_minor;
  std::uint64_t hash = (status.stx_ino + device * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
  hash ^= hash >> 29;
  return static_cast<std::uint32_t>(hash >> 16) | 1;  // 0 is none
}

void Descriptors::note_loss(DescriptorTable& table) {
  table.lost.store((table.next_ticket.load(std::memory_order_relaxed) - 1) & kTickets, std::memory_order_relaxed);
}

bool Descriptors::stands_for(DescriptorTable& table, int fd, std::uint64_t word) {
  bool anonymous = false;
  if (what_is(fd, anonymous) != word >> 32) {
    note_loss(table);
    return false;
  }
  if (!anonymous) return true;
  const std::uint32_t lost = table.lost.load(std::memory_order_relaxed);
  const std::uint32_t age = (lost - static_cast<std::uint32_t>(word)) & kTickets;
  return lost == 0 || age > kTickets / 2;
}

std::atomic<std::uint64_t>* Descriptors::place_of(int fd) {
  if (fd < 0 || static_cast<std::size_t>(fd) >= kNumbers) return nullptr;
  std::atomic<Page*>& place = own_.pages[static_cast<std::size_t>(fd) / kNumbersPerPage];
  if (!place.load(std::memory_order_acquire)) {
    // Not from the heap: a fork may be held off meanwhile.
    void* const memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    Page* none = nullptr;
    if (!place.compare_exchange_strong(none, static_cast<Page*>(memory))) munmap(memory, sizeof(Page));
  }
  return find(own_, fd);
}

void ForkHeldOff::wait_for_forks() {
  for (int turns = 0; turns < 50 && forks_.load() != 0; ++turns) {
    inside_.fetch_sub(1);
    const std::uint32_t forks = forks_.load();
    const timespec pause{0, 10'000'000};
    if (forks != 0) syscall(SYS_futex, address(), FUTEX_WAIT_PRIVATE, forks, &pause, nullptr, 0);
    inside_.fetch_add(1);
  }
}

void ForkHeldOff::prepare() {
  forks_.fetch_add(1);
  const timespec pause{0, 50'000};
  const Nanoseconds until = now_ns() + kNsPerSecond;
  while (inside_.load() > 0 && now_ns() < until) syscall(SYS_nanosleep, &pause, nullptr);
}

void ForkHeldOff::in_parent() {
  if (forks_.fetch_sub(1) == 1) syscall(SYS_futex, address(), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace anydat::os
