// SPDX-License-Identifier: BSD-3-Clause
// The descriptors that the library has open, by number, and what each stands for. By the number the child of a fork can
// close them: a connection ends for its peer when the last copy of its socket is closed, and a service point accepts as
// long as one is open. By what it stands for a program is kept from harm that has closed our descriptors together with
// its own (closefrom, daemons) and has files of its own by those numbers.
//
// All of it is in the header, for programs that use nothing else of the library.
#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>

namespace anydat::base {

// What is known of each number: a hash of the file, whether the child of a fork keeps it, and the ticket. Pages of it
// come as they are needed, for the process's life.
struct DescriptorTable {
  static constexpr std::size_t kNumbers = 1u << 20;
  static constexpr std::size_t kNumbersPerPage = 512;
  using Page = std::array<std::atomic<std::uint64_t>, kNumbersPerPage>;

  std::array<std::atomic<Page*>, kNumbers / kNumbersPerPage> pages{};
  std::atomic<int> highest{-1};
  std::atomic<std::uint32_t> next_ticket{1};
  std::atomic<std::uint32_t> lost{0};
};

// Thread safety: any thread may call anything.
class Descriptors {
 public:
  // Which of all that have had this number it is, and whose table knows: libdat and a module that it loads have one
  // each, and an engine of the module's runs in code of both. 0 is none. Numbers come again after two thousand million.
  struct Ticket {
    std::uint32_t number = 0;
    DescriptorTable* table = nullptr;
  };

  // The same with a number that programs do not get soon: they get the lowest that is free, and some make
  // select() of it. Where a limit leaves no such number, the descriptor keeps the one it has. Does not change errno
  // where there is no descriptor.
  static int move_up(int fd) {
    const int floor = lowest();
    if (fd < 0 || fd >= floor) return fd;
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, floor);
    if (high < 0) return fd;
    close_number(fd);
    return high;
  }

  // The library has opened `fd`. 0 if the table has no place for it: a process has to have a million descriptors open
  // before it gets one, or no memory.
  static Ticket note(int fd) {
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
  // The child of a fork keeps it.
  static void keep_in_child(int fd, Ticket ticket) {
    std::atomic<std::uint64_t>* const entry = ticket.number != 0 ? find(*ticket.table, fd) : nullptr;
    if (entry && (entry->load(std::memory_order_relaxed) & kTickets) == ticket.number) entry->fetch_or(kKept);
  }

  // Whether the number has not been given to another descriptor of ours since.
  static bool is_current(int fd, Ticket ticket) {
    if (ticket.number == 0) return true;  // nothing is known of it
    const std::atomic<std::uint64_t>* const entry = find(*ticket.table, fd);
    return entry && (entry->load(std::memory_order_relaxed) & kTickets) == ticket.number;
  }
  // Whether the number still stands for what was noted under that ticket. What has no file of its own (epoll, eventfd,
  // descriptors of processes) cannot be told from another of its kind: it counts as lost once anything has been found
  // lost that is as old.
  static bool is_ours(int fd, Ticket ticket) {
    if (ticket.number == 0) return true;  // nothing is known of it
    std::atomic<std::uint64_t>* const entry = find(*ticket.table, fd);
    const std::uint64_t word = entry ? entry->load(std::memory_order_relaxed) : 0;
    return (word & kTickets) == ticket.number && stands_for(*ticket.table, fd, word);
  }

  // Closes it if it is ours, and forgets it.
  static void close(int fd, Ticket ticket) {
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

  // The same where the system takes its time over it. The number is the system's to give away at once, so it may be
  // another descriptor's of ours when this returns. The child of a fork passes over it meanwhile: by that number it has
  // nothing, or what is no descriptor of ours, and neither says that the program has closed anything.
  static void close_slowly(int fd, Ticket ticket) {
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

  // The program has closed descriptors of ours: all may be lost that have been opened so far.
  static void note_loss() { note_loss(own_); }

  // In the child of a fork: closes all that the library had open.
  static void close_all() {
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

 private:
  static constexpr std::size_t kNumbers = DescriptorTable::kNumbers;
  static constexpr std::size_t kNumbersPerPage = DescriptorTable::kNumbersPerPage;
  static constexpr std::uint64_t kKept = std::uint64_t{1} << 31;
  static constexpr std::uint32_t kTickets = (1u << 31) - 1;
  using Page = DescriptorTable::Page;

  // A program may select() on what lies below, or open so many files before it gets a number that was ours.
  static int lowest() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    return static_cast<int>(std::min<rlim_t>(limit.rlim_cur / 2, 512));
  }

  static void close_number(int fd) {
#if defined(__SANITIZE_THREAD__)
    ::close(fd);  // the sanitizer has to hear that the number is another file's from now on
#else
    syscall(SYS_close, fd);  // not close(), which is a cancellation point: the caller may have been cancelled
#endif
  }

  static std::uint32_t what_is(int fd, bool& anonymous) {
    // Not fstat(): a peer may pass a descriptor of a file system that answers when the peer likes.
    struct statx status;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_TYPE, &status) != 0) return 0;
    anonymous = (status.stx_mode & S_IFMT) == 0;
    const std::uint64_t device = std::uint64_t{status.stx_dev_major} << 32 | status.stx_dev_minor;
    std::uint64_t hash = (status.stx_ino + device * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 29;
    return static_cast<std::uint32_t>(hash >> 16) | 1;  // 0 is none
  }

  static void note_loss(DescriptorTable& table) {
    table.lost.store((table.next_ticket.load(std::memory_order_relaxed) - 1) & kTickets, std::memory_order_relaxed);
  }

  static bool stands_for(DescriptorTable& table, int fd, std::uint64_t word) {
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

  static std::atomic<std::uint64_t>* find(const DescriptorTable& table, int fd) {
    if (static_cast<std::size_t>(fd) >= kNumbers) return nullptr;
    Page* const page = table.pages[static_cast<std::size_t>(fd) / kNumbersPerPage].load(std::memory_order_acquire);
    return page ? &(*page)[static_cast<std::size_t>(fd) % kNumbersPerPage] : nullptr;
  }
  // Makes the page if it is not there.
  static std::atomic<std::uint64_t>* place_of(int fd) {
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

  static inline constinit DescriptorTable own_;
};

// While one lives, no other thread of the process can fork: for the few system calls between which a descriptor is open
// and not in the table, or the other way round. Nothing in between may block, or begin another such section. A fork
// waits for at most a tenth of a second, since the thread that forks may be inside one itself, in a signal's handler; a
// section waits for at most half a second for a fork, since a handler of the program's that comes after ours may wait
// for this thread, or be in a call of the library itself.
class ForkHeldOff {
 public:
  ForkHeldOff() {
    inside_.fetch_add(1);
    for (int turns = 0; turns < 50 && forks_.load() != 0; ++turns) [[unlikely]] {
        inside_.fetch_sub(1);
        const std::uint32_t forks = forks_.load();
        const timespec pause{0, 10'000'000};
        if (forks != 0) syscall(SYS_futex, address(), FUTEX_WAIT_PRIVATE, forks, &pause, nullptr, 0);
        inside_.fetch_add(1);
      }
  }
  ~ForkHeldOff() { inside_.fetch_sub(1); }
  ForkHeldOff(const ForkHeldOff&) = delete;
  ForkHeldOff& operator=(const ForkHeldOff&) = delete;

  // Around a fork, in this order: before it, and then in each of the two processes.
  static void prepare() {
    forks_.fetch_add(1);
    const timespec pause{0, 50'000};
    for (int i = 0; i < 2000 && inside_.load() > 0; ++i) syscall(SYS_nanosleep, &pause, nullptr);
  }
  static void in_parent() {
    if (forks_.fetch_sub(1) == 1) syscall(SYS_futex, address(), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  static void in_child() {
    forks_.store(0);
    inside_.store(0);
  }

 private:
  static std::uint32_t* address() { return reinterpret_cast<std::uint32_t*>(&forks_); }

  static inline constinit std::atomic<std::uint32_t> forks_{0};  // that are under way
  static inline constinit std::atomic<int> inside_{0};           // threads in such a section
};

}  // namespace anydat::base
