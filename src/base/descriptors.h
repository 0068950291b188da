// SPDX-License-Identifier: BSD-3-Clause
// The descriptors that the library has open, by number, so that the child of a fork can close them: a connection ends
// for its peer when the last copy of its socket is closed, and a service point accepts as long as one is open.
//
// All of it is in the header, for programs that use nothing else of the library.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>

namespace anydat::base {

// Thread safety: any thread may call anything.
class Descriptors {
 public:
  // The library has opened `fd`, or is about to close it. Numbers beyond the table are not known to it: a process has
  // to have a million descriptors open before it gets one.
  static void note(int fd) {
    if (static_cast<std::size_t>(fd) >= kNumbers) return;
    word_of(fd).fetch_or(bit_of(fd), std::memory_order_relaxed);
    for (int highest = highest_.load(std::memory_order_relaxed);
         fd > highest && !highest_.compare_exchange_weak(highest, fd, std::memory_order_relaxed);) {
    }
  }
  static void forget(int fd) {
    if (static_cast<std::size_t>(fd) < kNumbers) word_of(fd).fetch_and(~bit_of(fd), std::memory_order_relaxed);
  }

  // In the child of a fork: closes all that the library had open.
  static void close_all() {
    const int highest = highest_.load(std::memory_order_relaxed);
    for (int first = 0; first <= highest; first += kBits) {
      std::uint64_t word = word_of(first).exchange(0, std::memory_order_relaxed);
      // Not close(), which is a cancellation point: the thread that has forked may have been cancelled.
      for (; word != 0; word &= word - 1) syscall(SYS_close, first + __builtin_ctzll(word));
    }
    highest_.store(-1, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kNumbers = 1u << 20;
  static constexpr int kBits = 64;

  static std::atomic<std::uint64_t>& word_of(int fd) { return open_[static_cast<std::size_t>(fd) / kBits]; }
  static std::uint64_t bit_of(int fd) { return std::uint64_t{1} << (static_cast<unsigned>(fd) % kBits); }

  static inline constinit std::array<std::atomic<std::uint64_t>, kNumbers / kBits> open_{};
  static inline constinit std::atomic<int> highest_{-1};
};

// While one lives, no other thread of the process can fork: for the few system calls between which a descriptor is open
// and not in the table, or the other way round. Nothing in between may block, or begin another such section. A fork
// waits for at most a tenth of a second, since the thread that forks may be inside one itself, in a signal's handler; a
// section waits for at most half a second for a fork, since a handler of the program's that comes after ours may wait for
// this thread, or be in a call of the library itself.
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
