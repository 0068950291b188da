// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/window.h"

#include <algorithm>
#include <new>
#include <utility>

#include "nic/verbs/adapter.h"
#include "nic/verbs/queue_pair.h"

namespace anydat::nic::verbs {

VerbsWindow::~VerbsWindow() {
  while (!close()) adapter_.reaper().finish();  // the call that frees it has waited, as a rule
  adapter_.windows().remove(*this);
}

bool VerbsWindow::close() {
  closed_ = true;
  drop_shown();
  for (PendingBind* bind = pending_.front(); bind; bind = pending_.after(*bind)) {
    drop(std::exchange(bind->memory, {}), bind->part.key);
  }
  return leaving_ == 0;
}

void VerbsWindow::expect(PendingBind& bind) {
  pending_.push_back(bind);
  adapter_.windows().note_pending_binds(1);
}

void VerbsWindow::forget(PendingBind& bind) {
  pending_.remove(bind);
  adapter_.windows().note_pending_binds(-1);
}

void VerbsWindow::drop_pending_on(std::uint32_t key) {
  for (PendingBind* bind = pending_.front(); bind; bind = pending_.after(*bind)) {
    if (bind->part.key == key) drop(std::exchange(bind->memory, {}), key);
  }
}

bool VerbsWindow::can_bind(const Segment& part) const {
  if (closed_ || part.length == 0) return true;
  return adapter_.regions().check(part.key, part.address, part.length, zone_, 0) == RegionCheck::ok;
}

bool VerbsWindow::withdrawn(std::uint32_t tag) {
  drop_shown();
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

void VerbsWindow::bind(PendingBind& bind, std::uint64_t tag) {
  forget(bind);
  shown_ = std::exchange(bind.memory, {});
  shown_of_ = bind.part.key;
  tag_ = bind.part.length > 0 ? tag : 0;
  events_.on_bind(tag, true);
}

void VerbsWindow::shows_nothing() {
  if (tag_ != 0) events_.on_unbound(std::exchange(tag_, 0));
}

void VerbsWindow::give_up(PendingBind& bind, std::uint64_t tag) {
  forget(bind);
  drop(std::exchange(bind.memory, {}), bind.part.key);
  events_.on_bind(tag, false);
}

void VerbsWindow::drop_shown() {
  drop(std::exchange(shown_, {}), shown_of_);
}

void VerbsWindow::drop(MemoryRegion memory, std::uint32_t key) {
  if (!memory) return;
  ++leaving_;
  adapter_.windows().drop_part(std::move(memory), key, *this);
}

void VerbsWindow::part_gone() {
  if (--leaving_ > 0) return;
  for (const std::uint32_t tag : std::exchange(waiting_, {})) {
    if (VerbsQueuePair* const waits = adapter_.completions().queue_pairs().find(tag))
      waits->connection().window_let_go();
  }
}

}  // namespace anydat::nic::verbs
