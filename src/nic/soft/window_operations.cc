// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/window_operations.h"

#include <utility>

#include "nic/soft/queue_pair.h"

namespace anydat::nic::soft {

namespace {

// How soon to look again whether the peer has let go of what a window has shown.
constexpr os::Nanoseconds kLook = 200'000;

}  // namespace

WindowOperations::WindowOperations(SoftQueuePair& queue_pair)
    : queue_pair_(queue_pair), look_timer_([this] { look(); }) {}

WindowOperations::Readiness WindowOperations::make_ready(Incoming& message) {
  if (message.kind != WorkKind::recv_invalidate) return Readiness::yes;
  SoftWindow* const window = own_.find(message.value);
  // Found before and no more: this side has taken it back meanwhile.
  if (!window) return message.invalidating ? Readiness::yes : Readiness::no;
  message.invalidating = true;
  if (window->taken_back()) return Readiness::yes;
  invalidation_waits_ = true;
  look_later();
  return Readiness::not_yet;
}

std::optional<bool> WindowOperations::carry_out(SendRing::Entry& entry) {
  SendRing::Entry::Bind& bind = entry.bind;
  const Segment& part = entry.all().front();
  if (!bind.begun && !bind.window->can_bind(part)) return false;
  bind.begun = true;
  if (!bind.window->withdrawn()) {
    look_later();
    return std::nullopt;
  }
  // The region may have gone while that took its time.
  if (!bind.window->can_bind(part)) {
    bind.window->shows_nothing();
    return false;
  }
  bind.window->bind(bind.key, part, bind.rights, bind.tag,
                    {queue_pair_.scope(), own_, *queue_pair_.connection().stream()});
  return true;
}

void WindowOperations::look_later() {
  queue_pair_.connection().engine().set_timer(look_timer_, os::now_ns() + kLook);
}

void WindowOperations::look() {
  if (queue_pair_.state() == ConnectionState::ending) return queue_pair_.connection().let_go_finished();
  queue_pair_.sends().pump();
  if (std::exchange(invalidation_waits_, false) && !is_over(queue_pair_.state())) {
    queue_pair_.connection().resume_receiving();
  }
}

void WindowOperations::connection_ends() {
  queue_pair_.connection().engine().cancel_timer(look_timer_);
  own_.take_back_all();  // D2-RMR-4
}

bool WindowOperations::let_go() {
  if (own_.take_back_all()) {
    // The connection is over, and may go.
    queue_pair_.connection().engine().cancel_timer(look_timer_);
    return true;
  }
  look_later();
  return false;
}

}  // namespace anydat::nic::soft
