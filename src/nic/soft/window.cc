// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/window.h"

#include <utility>

#include "nic/soft/adapter.h"

namespace anydat::nic::soft {

SoftWindow::~SoftWindow() {
  withdrawn();
  leave_list();
}

void SoftWindow::leave_list() {
  if (listed_in_) std::exchange(listed_in_, nullptr)->all.remove(*this);
}

bool SoftWindow::withdrawn() {
  if (key_ != 0) leaving_ = std::exchange(key_, 0);
  if (leaving_ != 0 && !adapter_.close_window(leaving_, used_by_)) return false;
  leaving_ = 0;
  leave_list();
  return true;
}

bool SoftWindow::taken_back() {
  if (!withdrawn()) return false;
  shows_nothing();
  return true;
}

void SoftWindow::shows_nothing() {
  if (tag_ != 0) events_.on_unbound(std::exchange(tag_, 0));
}

bool SoftWindow::close() {
  closed_ = true;
  if (!withdrawn()) return false;
  if (known_) known_ = !adapter_.queue_pairs_let_go();
  return !known_;
}

bool SoftWindow::can_bind(const Segment& part) const {
  if (closed_ || part.length == 0) return true;
  return adapter_.regions().covers(part.key, part.address, part.length, zone_, 0) == RegionCheck::ok;
}

void SoftWindow::bind(std::uint32_t key, const Segment& part, std::uint32_t rights, std::uint64_t tag,
                      const Binder& by) {
  if (closed_ || part.length == 0) {
    adapter_.regions().remove(key);
    tag_ = 0;
  } else {
    // A Read of this side may have the window for its sink (D2-READRMR-2): what peers may write, that may be put in.
    const std::uint32_t local = (rights & access::kRemoteWrite) != 0 ? access::kLocalWrite : 0;
    const bool own = scope_ == WindowScope::queue_pair;
    adapter_.regions().publish(key,
                               {part.address, part.length, own ? by.scope : zone_, rights | local | access::kWindow});
    key_ = key;
    known_ = true;
    tag_ = tag;
    used_by_ = own ? &by.stream : nullptr;
    if (own) {
      listed_in_ = &by.windows;
      by.windows.all.push_back(*this);
    }
  }
  events_.on_bind(tag, true);
}

void SoftWindow::give_up(std::uint32_t key, std::uint64_t tag) {
  adapter_.regions().remove(key);
  events_.on_bind(tag, false);
}

bool OwnWindows::take_back_all() {
  bool quiet = true;
  for (SoftWindow* window = all.front(); window;) {
    SoftWindow* const next = all.after(*window);  // it leaves the list if it is taken back
    quiet &= window->taken_back();
    window = next;
  }
  return quiet;
}

SoftWindow* OwnWindows::find(std::uint32_t key) const {
  SoftWindow* window = all.front();
  while (window && !window->shows(key)) window = all.after(*window);
  return window;
}

}  // namespace anydat::nic::soft
