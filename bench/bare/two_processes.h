// SPDX-License-Identifier: BSD-3-Clause
// Two processes that share memory, each tied to a processor of its own: what the bare measurements run in.
#ifndef ANYDAT_BENCH_BARE_TWO_PROCESSES_H
#define ANYDAT_BENCH_BARE_TWO_PROCESSES_H

#include <cstddef>
#include <functional>
#include <vector>

namespace bench {

// Zeroed and touched, on huge pages where the system gives them; a child of fork() has the same.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  // An object that begins there; its type is one of plain words and atomics, for which zero is a good beginning.
  template <typename Object>
  Object& at(std::size_t offset) const {
    return *reinterpret_cast<Object*>(data_ + offset);
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_;
};

// Runs `answer` in a child on the first of `cpus`, and `ask` here on the second; without any, wherever the system
// likes. Throws tools::Error when the child failed. The child ends with this process.
void in_two_processes(const std::vector<int>& cpus, const std::function<void()>& answer,
                      const std::function<void()>& ask);

// Gives the processor away once in many turns of a loop that waits, so that two processes on one processor come along.
class Spin {
 public:
  void turn() {
    if (++turns_ % kTurns == 0) yield();
  }

 private:
  static constexpr unsigned kTurns = 1 << 14;
  static void yield();
  unsigned turns_ = 0;
};

}  // namespace bench

#endif
