// SPDX-License-Identifier: BSD-3-Clause
// The least that a ring of 64-byte cells can be, with one writer and one reader: as that of the product
// (docs/wire-shm.md) without connections, checks, or anything that tells two kinds of messages apart. A message is one
// or more consecutive cells; the first 16 bytes are its header, whose `ready` is written last.
#ifndef ANYDAT_BENCH_FLOOR_RING_H
#define ANYDAT_BENCH_FLOOR_RING_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "bare/two_processes.h"

namespace bench {

struct Cell {
  std::atomic<std::uint32_t> ready;  // the cells of the message; 0: there is none
  std::uint32_t length;
  std::uint64_t tag;
  std::byte body[48];
};
static_assert(sizeof(Cell) == 64);

struct Ring {
  static constexpr std::uint32_t kCells = 4096;
  static constexpr std::uint32_t kPad = 1u << 31;  // in `ready`: nothing but the way to the beginning

  alignas(64) std::atomic<std::uint64_t> consumed;
  alignas(64) Cell cells[kCells];
};

inline std::uint32_t cells_of(std::size_t bytes) {
  return static_cast<std::uint32_t>((offsetof(Cell, body) + bytes + sizeof(Cell) - 1) / sizeof(Cell));
}

class Writer {
 public:
  explicit Writer(Ring& ring) : ring_(ring) {}

  void write(const std::byte* bytes, std::size_t count, std::uint64_t tag = 0) {
    const std::uint32_t cells = cells_of(count);
    const std::uint32_t to_end = Ring::kCells - at(produced_);
    const bool wraps = cells > to_end;
    const std::uint32_t needed = cells + (wraps ? to_end : 0) + 1;  // one stays free for the cleared `ready`
    for (Spin spin; Ring::kCells - (produced_ - consumed_) < needed; spin.turn())
      consumed_ = ring_.consumed.load(std::memory_order_acquire);
    if (wraps) publish(to_end | Ring::kPad, to_end);
    Cell& cell = ring_.cells[at(produced_)];
    std::memcpy(cell.body, bytes, count);
    cell.length = static_cast<std::uint32_t>(count);
    cell.tag = tag;
    publish(cells, cells);
    clear_to(produced_ + kPrepared);
  }

 private:
  static constexpr std::uint64_t kPrepared = 160;

  static std::uint32_t at(std::uint64_t count) { return count & (Ring::kCells - 1); }
  void publish(std::uint32_t ready, std::uint32_t cells) {
    clear_to(produced_ + cells + 1);
    ring_.cells[at(produced_)].ready.store(ready, std::memory_order_release);
    produced_ += cells;
  }
  // Ahead of their turn, off the way of a message. Requires: the reader is through with them, or it is left for later.
  void clear_to(std::uint64_t end) {
    if (end > consumed_ + Ring::kCells) end = consumed_ + Ring::kCells;
    for (; cleared_ < end; ++cleared_) ring_.cells[at(cleared_)].ready.store(0, std::memory_order_relaxed);
  }

  Ring& ring_;
  std::uint64_t produced_ = 0;
  std::uint64_t consumed_ = 0;
  std::uint64_t cleared_ = Ring::kCells;  // a new ring is all zero
};

class Reader {
 public:
  explicit Reader(Ring& ring) : ring_(ring) {}

  // The next message, once it is there; valid until take().
  const Cell& wait() {
    Spin spin;
    for (;;) {
      const Cell& cell = ring_.cells[consumed_ & (Ring::kCells - 1)];
      const std::uint32_t ready = cell.ready.load(std::memory_order_acquire);
      if (ready == 0) {
        spin.turn();
      } else if ((ready & Ring::kPad) != 0) {
        consumed_ += ready & ~Ring::kPad;
      } else {
        return cell;
      }
    }
  }
  void take(const Cell& cell) {
    consumed_ += cells_of(cell.length);
    if (consumed_ - published_ < kUnpublished) return;
    published_ = consumed_;
    ring_.consumed.store(consumed_, std::memory_order_release);
  }
  void read(std::byte* bytes) {
    const Cell& cell = wait();
    std::memcpy(bytes, cell.body, cell.length);
    take(cell);
  }

 private:
  static constexpr std::uint64_t kUnpublished = 256;

  Ring& ring_;
  std::uint64_t consumed_ = 0;
  std::uint64_t published_ = 0;
};

}  // namespace bench

#endif
