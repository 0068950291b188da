// SPDX-License-Identifier: BSD-3-Clause
// The way of a message with all that its rules ask for and nothing else: handles are looked up, regions are checked at
// both ends, a buffer is taken from a queue, an event of 32 bytes is queued and dequeued. One thread, no lock.
#ifndef ANYDAT_BENCH_FLOOR_STRIPPED_H
#define ANYDAT_BENCH_FLOOR_STRIPPED_H

#include <array>

#include "floor/ring.h"

namespace bench {

struct Region {
  std::uint32_t key = 0;  // 0: there is none
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

struct Segment {
  std::uint32_t key = 0;
  std::byte* address = nullptr;
  std::size_t bytes = 0;
};

struct Event {
  std::uint64_t cookie = 0;
  std::uint64_t endpoint = 0;
  std::uint32_t length = 0;
  std::uint32_t status = 0;
  std::uint64_t number = 0;
};
static_assert(sizeof(Event) == 32);

// An endpoint with its receive queue and the queue of its events.
class Endpoint {
 public:
  static constexpr std::size_t kReceives = 512;

  Endpoint(Ring& out, Ring& in) : writer_(out), reader_(in) {}

  void add_region(const Region& region) { regions_[region.key % regions_.size()] = region; }
  bool post_receive(const Segment& segment, std::uint64_t cookie) {
    if (!allowed(segment) || posted_ - taken_ == kReceives) return false;
    receives_[posted_++ % kReceives] = {segment, cookie};
    return true;
  }
  bool post_send(const Segment& segment) {
    if (!allowed(segment)) return false;
    writer_.write(segment.address, segment.bytes, kMagic);
    return true;
  }
  // The next event, once it is there.
  bool dequeue(Event& event) {
    const Cell& cell = reader_.wait();
    if (cell.tag != kMagic || posted_ == taken_) return false;
    const Receive& receive = receives_[taken_++ % kReceives];
    const std::uint32_t length = cell.length;
    if (length > receive.segment.bytes || !allowed(receive.segment)) return false;
    std::memcpy(receive.segment.address, cell.body, length);
    reader_.take(cell);
    events_[queued_ % kReceives] = {receive.cookie, reinterpret_cast<std::uintptr_t>(this), length, 0, queued_};
    event = events_[queued_++ % kReceives];
    return true;
  }

 private:
  static constexpr std::uint64_t kMagic = 0x6d657373616765;
  struct Receive {
    Segment segment;
    std::uint64_t cookie = 0;
  };

  bool allowed(const Segment& segment) const {
    const Region& region = regions_[segment.key % regions_.size()];
    if (region.key != segment.key || segment.key == 0 || segment.address < region.begin) return false;
    const auto offset = static_cast<std::size_t>(segment.address - region.begin);
    return offset <= region.bytes && segment.bytes <= region.bytes - offset;
  }

  Writer writer_;
  Reader reader_;
  std::array<Region, 16> regions_{};
  std::array<Receive, kReceives> receives_{};
  std::array<Event, kReceives> events_{};
  std::uint64_t posted_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t queued_ = 0;
};

// Handles are numbers that say which place of the table they mean, and which of its users.
class Handles {
 public:
  std::uint64_t add(Endpoint& endpoint) {
    endpoints_[1] = &endpoint;
    return kUser << 32 | 1;
  }
  Endpoint* find(std::uint64_t handle) const {
    const std::uint64_t index = handle & 0xffffffff;
    return index < endpoints_.size() && users_[index] == handle >> 32 ? endpoints_[index] : nullptr;
  }

 private:
  static constexpr std::uint64_t kUser = 7;
  std::array<Endpoint*, 64> endpoints_{};
  std::array<std::uint64_t, 64> users_{0, kUser};
};

}  // namespace bench

#endif
