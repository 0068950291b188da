// SPDX-License-Identifier: BSD-3-Clause
// The descriptors that the library has open, by number, and what each stands for. By the number the child of a fork can
// close them: a connection ends for its peer when the last copy of its socket is closed, and a service point accepts as
// long as one is open. By what it stands for a program is kept from harm that has closed our descriptors together with
// its own (closefrom, daemons) and has files of its own by those numbers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace anydat::os {

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
  // select() of it; `beyond` keeps so many numbers more below it. Where a limit leaves no such number, the descriptor
  // keeps the one it has. Does not change errno where there is no descriptor.
  static int move_up(int fd, int beyond = 0);

  // The library has opened `fd`. 0 if the table has no place for it: a process has to have a million descriptors open
  // before it gets one, or no memory.
  static Ticket note(int fd);
  // The child of a fork keeps it.
  static void keep_in_child(int fd, Ticket ticket);

  // Whether the number has not been given to another descriptor of ours since.
  static bool is_current(int fd, Ticket ticket) {
    if (ticket.number == 0) return true;  // nothing is known of it
    const std::atomic<std::uint64_t>* const entry = find(*ticket.table, fd);
    return entry && (entry->load(std::memory_order_relaxed) & kTickets) == ticket.number;
  }
  // Whether the number still stands for what was noted under that ticket. What has no file of its own (epoll, eventfd,
  // descriptors of processes) cannot be told from another of its kind: it counts as lost once anything has been found
  // lost that is as old.
  static bool is_ours(int fd, Ticket ticket);

  // Closes it if it is ours, and forgets it.
  static void close(int fd, Ticket ticket);

  // The same where the system takes its time over it. The number is the system's to give away at once, so it may be
  // another descriptor's of ours when this returns. The child of a fork passes over it meanwhile: by that number it has
  // nothing, or what is no descriptor of ours, and neither says that the program has closed anything.
  static void close_slowly(int fd, Ticket ticket);

  // The program has closed descriptors of ours: all may be lost that have been opened so far.
  static void note_loss() { note_loss(own_); }

  // In the child of a fork: closes all that the library had open.
  static void close_all();

  // How many this process may have (RLIMIT_NOFILE); 0 if the system does not tell.
  static std::uint64_t limit();

 private:
  static constexpr std::size_t kNumbers = DescriptorTable::kNumbers;
  static constexpr std::size_t kNumbersPerPage = DescriptorTable::kNumbersPerPage;
  static constexpr std::uint64_t kKept = std::uint64_t{1} << 31;
  static constexpr std::uint32_t kTickets = (1u << 31) - 1;
  using Page = DescriptorTable::Page;

  // A program may select() on what lies below, or open so many files before it gets a number that was ours.
  static int lowest();
  static void close_number(int fd);
  static std::uint32_t what_is(int fd, bool& anonymous);
  static void note_loss(DescriptorTable& table);
  static bool stands_for(DescriptorTable& table, int fd, std::uint64_t word);
  static std::atomic<std::uint64_t>* find(const DescriptorTable& table, int fd) {
    if (static_cast<std::size_t>(fd) >= kNumbers) return nullptr;
    Page* const page = table.pages[static_cast<std::size_t>(fd) / kNumbersPerPage].load(std::memory_order_acquire);
    return page ? &(*page)[static_cast<std::size_t>(fd) % kNumbersPerPage] : nullptr;
  }
  // Makes the page if it is not there.
  static std::atomic<std::uint64_t>* place_of(int fd);

  static constinit DescriptorTable own_;
};

// While one lives, no other thread of the process can fork: for the few system calls between which a descriptor is open
// and not in the table, or the other way round. Nothing in between may block, or begin another such section. A fork
// waits for at most a second, since the thread that forks may be inside one itself, in a signal's handler; a
// section waits for at most half a second for a fork, since a handler of the program's that comes after ours may wait
// for this thread, or be in a call of the library itself.
class ForkHeldOff {
 public:
  ForkHeldOff() {
    inside_.fetch_add(1);
    if (forks_.load() != 0) [[unlikely]]
      wait_for_forks();
  }
  ~ForkHeldOff() { inside_.fetch_sub(1); }
  ForkHeldOff(const ForkHeldOff&) = delete;
  ForkHeldOff& operator=(const ForkHeldOff&) = delete;

  // Around a fork, in this order: before it, and then in each of the two processes.
  static void prepare();
  static void in_parent();
  static void in_child() {
    forks_.store(0);
    inside_.store(0);
  }

 private:
  static void wait_for_forks();
  static std::uint32_t* address() { return reinterpret_cast<std::uint32_t*>(&forks_); }

  static inline constinit std::atomic<std::uint32_t> forks_{0};  // that are under way
  static inline constinit std::atomic<int> inside_{0};           // threads in such a section
};

}  // namespace anydat::os
