// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <utility>

#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/rdma_uses.h"

namespace anydat::nic::soft::shm {

// Where in the peer's segment a connection notes the region that its RDMA is using (rdma_uses.h): in a slot that it
// shares with others, or, for a region that is used for long, in one of its own.
//
// One of its own makes each RDMA on a region a little cheaper and the end of that region dearer, so it is not for those
// that come and go with each transfer.
//
// Thread safety: with the queue pair's send lock; at the end with the engine.
class HazardSlot {
 public:
  void share(std::uint32_t connection) { shared_ = connection % kSharedRdmaSlots; }  // spreads them over the slots

  bool is_own_for(std::uint32_t key) const { return key == key_; }
  std::uint32_t place(bool own) const { return own ? own_ : shared_; }
  // A use of a region for which there is no slot. True: this is the one after which there should be.
  [[gnu::always_inline]] bool used_often(std::uint32_t key) {
    if (key != last_key_) [[unlikely]] {
      last_key_ = key;
      uses_of_key_ = 0;
    }
    return ++uses_of_key_ == kUsesForOwn;
  }
  void was_no_use() { --uses_of_key_; }
  // Whether the region that the own slot is for is used, and no other has been in between.
  bool used_again(std::uint32_t key) { return is_own_for(key) && std::exchange(last_key_, key) == key; }

  bool has_own() const { return own_ >= kSharedRdmaSlots; }
  std::uint32_t own() const { return own_; }
  void set_own(std::uint32_t slot) { own_ = slot; }
  void announce(SegmentHeader& header, std::uint32_t key) {
    announce_slot_key(header, own_, key);
    key_ = key;
  }
  // The own one, or a shared one, which means none.
  std::uint32_t give_up(SegmentHeader& header) {
    if (has_own()) announce_slot_key(header, own_, 0);
    key_ = 0;
    return std::exchange(own_, 0);
  }

 private:
  // In a row. Freeing a region costs a hundred times what each of them saves.
  static constexpr std::uint32_t kUsesForOwn = 1000;

  std::uint32_t shared_ = 0;
  std::uint32_t own_ = 0;          // from kSharedRdmaSlots on
  std::uint32_t key_ = 0;          // of the region that the own one is for
  std::uint32_t last_key_ = 0;     // of a region of the peer
  std::uint32_t uses_of_key_ = 0;  // in a row
};

}  // namespace anydat::nic::soft::shm
