// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include "base/hidden_order.h"
#include "nic/soft/wire/shm/layout.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft::shm {

// One mapped segment. It has no name: it lives as long as a process maps it, and a process that dies leaves nothing
// behind.
class Segment {
 public:
  Segment() = default;
  Segment(Segment&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)), order_(other.order_) {}
  Segment& operator=(Segment&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(order_, other.order_);
    return *this;
  }
  ~Segment();

  // Makes a segment to receive by; `fd` is for the peer. Empty when there is no memory.
  static Segment create(os::UniqueFd& fd);
  // Maps a peer's segment. Empty if the descriptor is not what create() makes: of our size, and sealed so that the peer
  // cannot shrink it under us.
  static Segment attach(int fd);

  explicit operator bool() const { return memory_ != nullptr; }
  SegmentHeader& header() const { return *static_cast<SegmentHeader*>(memory_); }
  std::byte* cells() const { return static_cast<std::byte*>(memory_) + kHeaderBytes; }
  std::byte* bulk() const { return cells() + kCellRingBytes; }
  // Of what is written into it and then published.
  base::HiddenOrder order() const { return order_; }

 private:
  Segment(void* memory, int fd);
  void* memory_ = nullptr;
  base::HiddenOrder order_;
};

}  // namespace anydat::nic::soft::shm
