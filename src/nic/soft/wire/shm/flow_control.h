// SPDX-License-Identifier: BSD-3-Clause
// The window of a connection: cells of small messages and announcements that its receiver has not delivered yet. A
// connection without buffers so holds itself back, and no other of the link (SRQ-ARR-6).
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "nic/soft/wire/shm/layout.h"

namespace anydat::nic::soft::shm {

// The sender's side.
//
// Thread safety: with the queue pair's send lock; credit() with the engine.
class SendWindow {
 public:
  // Of cells that the peer has not given credit for. It may say more than there were.
  std::uint64_t in_use() const { return sent_ - credited_.load(std::memory_order_relaxed); }
  bool has_room(std::uint32_t cells) const {
    return sent_ + cells - credited_.load(std::memory_order_relaxed) <= kWindowCells;
  }
  void use(std::uint64_t cells) { sent_ += cells; }
  void credit(std::uint32_t cells) {
    credited_.store(credited_.load(std::memory_order_relaxed) + cells, std::memory_order_relaxed);
  }

 private:
  std::uint64_t sent_ = 0;  // cells ever that count
  std::atomic<std::uint64_t> credited_{0};
};

// The receiver's side. With the engine held.
class ReceiveWindow {
 public:
  // False for a peer that sends more than its window: the backlog is what it costs. What is delivered is owed to the
  // peer at once, so a message that meets no backlog is within it.
  bool takes(std::uint32_t cells) const { return backlog_ + owed_ + cells <= kWindowCells; }
  void add_backlog(std::uint32_t cells) { backlog_ += cells; }
  void remove_backlog(std::uint32_t cells) { backlog_ -= cells; }
  // True: the peer is to be given credit.
  bool deliver(std::uint32_t cells) {
    owed_ += cells;
    return owed_ >= kWindowCells / 4;
  }
  std::uint32_t take_credit() { return std::exchange(owed_, 0); }

 private:
  std::uint32_t backlog_ = 0;
  std::uint32_t owed_ = 0;  // delivered, and the peer does not know yet
};

}  // namespace anydat::nic::soft::shm
