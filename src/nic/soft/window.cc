// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/window.h"

#include <utility>

#include "nic/soft/adapter.h"

namespace anydat::nic::soft {

bool SoftWindow::withdrawn() {
  if (key_ != 0) leaving_ = std::exchange(key_, 0);
  if (leaving_ != 0 && !adapter_.close_to_peers(leaving_)) return false;
  leaving_ = 0;
  return true;
}

void SoftWindow::close() {
  closed_ = true;
  withdrawn();
}

bool SoftWindow::can_bind(const Segment& part) const {
  if (closed_ || part.length == 0) return true;
  return adapter_.regions().covers(part.key, part.address, part.length, zone_, 0) == RegionCheck::ok;
}

void SoftWindow::bind(std::uint32_t key, const Segment& part, std::uint32_t rights, std::uint64_t tag) {
  if (closed_ || part.length == 0) {
    adapter_.regions().remove(key);
  } else {
    // A Read of this side may have the window for its sink (D2-READRMR-2): what peers may write, that may be put in.
    const std::uint32_t local = (rights & access::kRemoteWrite) != 0 ? access::kLocalWrite : 0;
    adapter_.regions().publish(key, {part.address, part.length, zone_, rights | local | access::kWindow});
    key_ = key;
  }
  events_.on_bind(tag, true);
}

void SoftWindow::give_up(std::uint32_t key, std::uint64_t tag) {
  adapter_.regions().remove(key);
  events_.on_bind(tag, false);
}

}  // namespace anydat::nic::soft
