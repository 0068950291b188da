// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "nic/types.h"
#include "nic/verbs/resources.h"
#include "nic/verbs/window.h"

namespace anydat::nic::verbs {

// The requests of one queue pair that have not completed, in posting order. The device has them all but those that
// follow one that cannot be done, those that wait for a bind, and binds, which need nothing of it.
//
// It has two sides that share no lock: posters, one at a time, append; the holder of the engine takes from the front.
// So the thread that takes completions does not wait for a poster, who may be long in the device's driver.
class SendRing {
 public:
  struct Bind : PendingBind {
    VerbsWindow* window = nullptr;
    void* owner = nullptr;
    std::uint64_t tag = 0;
    bool begun = false;  // what its window showed before is being taken back
  };
  // What is kept will be flushed in its turn; what waits goes to the device when the binds before it are done.
  enum class Stage : std::uint8_t { kept, waits, at_device, finished };
  // What the device is to be told later.
  struct Later {
    std::vector<Segment> segments;
    RemoteSegment remote{};
  };
  struct Entry {
    std::uint64_t cookie = 0;
    std::uint64_t length = 0;
    WorkKind kind = WorkKind::send;
    WorkFlags flags{};
    std::atomic<WorkStatus> status{WorkStatus::success};  // of what is finished
    std::atomic<Stage> stage{Stage::kept};
    std::unique_ptr<Bind> bind;
    std::unique_ptr<Later> later;  // of what waits

    // By the thread that hands it to the device, if the device refuses; then by the taker.
    void finish(WorkStatus with) {
      status.store(with, std::memory_order_relaxed);
      stage.store(Stage::finished, std::memory_order_release);
    }
  };

  // Room for so many. May throw std::bad_alloc.
  struct Storage {
    explicit Storage(std::uint32_t of_depth)
        : depth(of_depth), slots(std::bit_ceil(std::max<std::uint64_t>(of_depth, 1))), ring(new Entry[slots]) {}
    std::uint32_t depth;
    std::uint64_t slots;
    std::unique_ptr<Entry[]> ring;
  };
  // With neither side at work. Requires: empty.
  void move_to(Storage room) noexcept {
    ring_ = std::move(room.ring);
    depth_ = room.depth;
    mask_ = room.slots - 1;
  }

  // For anybody.
  bool empty() const { return next_.load(std::memory_order_acquire) == first_.load(std::memory_order_acquire); }

  // For posters.
  bool full() const { return next_.load(std::memory_order_relaxed) - first_.load(std::memory_order_acquire) >= depth_; }
  std::uint64_t next() const { return next_.load(std::memory_order_relaxed); }  // the number of the entry to come
  // Requires: it is in the ring.
  Entry& at(std::uint64_t number) { return ring_[number & mask_]; }
  // Requires: not full.
  Entry& append(const SendRequest& request, Stage stage, std::unique_ptr<Bind> bind = nullptr) {
    const std::uint64_t number = next();
    Entry& entry = ring_[number & mask_];
    entry.cookie = request.cookie;
    entry.length = request.length;
    entry.kind = request.kind;
    entry.flags = request.flags;
    entry.status.store(WorkStatus::success, std::memory_order_relaxed);
    entry.stage.store(stage, std::memory_order_relaxed);
    entry.bind = std::move(bind);
    next_.store(number + 1, std::memory_order_release);
    return entry;
  }

  // For the taker.
  // The entry whose number has these low bits, if the device has it.
  Entry* find_at_device(std::uint32_t low_bits) {
    const std::uint64_t first = first_.load(std::memory_order_relaxed);
    const std::uint64_t number = first + (low_bits - static_cast<std::uint32_t>(first));
    if (number >= next_.load(std::memory_order_acquire)) return nullptr;
    Entry& entry = ring_[number & mask_];
    return entry.stage.load(std::memory_order_acquire) == Stage::at_device ? &entry : nullptr;
  }
  bool any_at_device() const {
    const std::uint64_t end = next_.load(std::memory_order_acquire);
    for (std::uint64_t i = first_.load(std::memory_order_relaxed); i != end; ++i) {
      if (ring_[i & mask_].stage.load(std::memory_order_acquire) == Stage::at_device) return true;
    }
    return false;
  }
  std::uint64_t first() const { return first_.load(std::memory_order_relaxed); }
  std::uint64_t end() const { return next_.load(std::memory_order_acquire); }  // of what has been posted by now
  // The oldest, null if there is none.
  Entry* front() { return empty() ? nullptr : &ring_[first_.load(std::memory_order_relaxed) & mask_]; }
  // The oldest, null unless it is finished.
  Entry* finished_front() {
    Entry* const entry = front();
    return entry && entry->stage.load(std::memory_order_acquire) == Stage::finished ? entry : nullptr;
  }
  void drop_first() {
    const std::uint64_t first = first_.load(std::memory_order_relaxed);
    ring_[first & mask_].bind.reset();
    ring_[first & mask_].later.reset();
    first_.store(first + 1, std::memory_order_release);
  }

 private:
  std::unique_ptr<Entry[]> ring_;
  std::uint32_t depth_ = 0;
  std::uint64_t mask_ = 0;  // the ring has mask_ + 1 >= depth_ entries
  std::atomic<std::uint64_t> first_{0};
  std::atomic<std::uint64_t> next_{0};
};

}  // namespace anydat::nic::verbs
