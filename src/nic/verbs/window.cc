// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/window.h"

#include <algorithm>
#include <new>
#include <utility>

#include "nic/verbs/adapter.h"

namespace anydat::nic::verbs {

VerbsWindow::~VerbsWindow() {
  while (!close()) adapter_.reaper().finish();  // whoever closes it has waited, as a rule
}

bool VerbsWindow::close() {
  closed_ = true;
  drop(std::exchange(memory_, {}));
  return leaving_ == 0;
}

bool VerbsWindow::can_bind(const Segment& part) const {
  if (closed_ || part.length == 0) return true;
  return adapter_.regions().check(part.key, part.address, part.length, zone_, 0) == RegionCheck::ok;
}

bool VerbsWindow::withdrawn(std::uint32_t tag) {
  drop(std::exchange(memory_, {}));
  if (leaving_ == 0) return true;
  if (std::find(waiting_.begin(), waiting_.end(), tag) != waiting_.end()) return false;
  try {
    waiting_.push_back(tag);
    return false;
  } catch (const std::bad_alloc&) {
    while (leaving_ > 0) adapter_.reaper().finish();
    return true;
  }
}

void VerbsWindow::bind(MemoryRegion memory, std::uint64_t tag) {
  if (closed_) {
    drop(std::move(memory));
  } else {
    memory_ = std::move(memory);
  }
  events_.on_bind(tag, true);
}

void VerbsWindow::give_up(MemoryRegion memory, std::uint64_t tag) {
  drop(std::move(memory));
  events_.on_bind(tag, false);
}

void VerbsWindow::drop(MemoryRegion memory) {
  if (!memory) return;
  ++leaving_;
  adapter_.drop_part(std::move(memory), *this);
}

void VerbsWindow::part_gone() {
  if (--leaving_ > 0) return;
  for (const std::uint32_t tag : std::exchange(waiting_, {})) adapter_.go_on(tag);
}

}  // namespace anydat::nic::verbs
