// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nic/verbs/device.h"

namespace anydat::nic::verbs {

// A memory window, made of regions: each bind registers its part of memory anew, with the rights of the bind and a key
// of its own, and drops what the window showed before. So it needs nothing of the device, and the rules of binding hold
// everywhere; a bind costs as much as a registration. Windows of devices do not keep these rules: docs/verbs.md. With
// the engine held.
class VerbsWindow final : public Window {
 public:
  VerbsWindow(Device& device, ZoneId zone, WindowEvents& events) : device_(device), zone_(zone), events_(events) {}

  void close() override {
    closed_ = true;
    memory_ = {};
  }

  // What a bind will show; empty if the device refuses.
  MemoryRegion register_part(const Segment& part, std::uint32_t rights) {
    return device_.register_memory(zone_, part.address, part.length, rights);
  }
  // False: the region has gone meanwhile.
  bool can_bind(const Segment& part) const {
    if (closed_ || part.length == 0) return true;
    return device_.regions().check(part.key, part.address, part.length, zone_, 0) == RegionCheck::ok;
  }
  // Carries out a bind, or gives it up.
  void bind(MemoryRegion memory, std::uint64_t tag) {
    memory_ = {};  // RMR-BIND-6
    if (!closed_) memory_ = std::move(memory);
    events_.on_bind(tag, true);
  }
  void give_up(std::uint64_t tag) { events_.on_bind(tag, false); }

 private:
  Device& device_;
  const ZoneId zone_;
  WindowEvents& events_;
  MemoryRegion memory_;
  bool closed_ = false;
};

}  // namespace anydat::nic::verbs
