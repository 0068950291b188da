// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <unordered_set>

#include "nic/verbs/reaper.h"
#include "nic/verbs/resources.h"

namespace anydat::nic::verbs {

class VerbsWindow;

// The windows of an adapter, and the parts of regions that they have shown, until the device has let go of them. With
// the engine held.
class Windows {
 public:
  explicit Windows(Reaper& reaper) : reaper_(reaper) {}

  void add(VerbsWindow& window) { all_.insert(&window); }
  void remove(VerbsWindow& window) { all_.erase(&window); }
  void note_pending_binds(int more) { pending_binds_ += more; }
  // The region with this key goes, and so does what is to be shown of it.
  void region_goes(std::uint32_t key);
  // Of the region with this key. The window is told when the device has let go of it.
  void drop_part(MemoryRegion memory, std::uint32_t key, VerbsWindow& window);
  bool parts_are_leaving(std::uint32_t key) const { return leaving_.contains(key); }

 private:
  Reaper& reaper_;
  std::unordered_set<VerbsWindow*> all_;
  int pending_binds_ = 0;                           // of all of them
  std::unordered_multiset<std::uint32_t> leaving_;  // the key of the region, for each part that the device still has
};

}  // namespace anydat::nic::verbs
