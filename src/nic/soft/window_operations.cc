// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/window_operations.h"

#include <utility>

#include "nic/soft/connection.h"
#include "nic/soft/memory_user.h"
#include "nic/soft/send_queue.h"

namespace anydat::nic::soft {

namespace {

// How soon to look again whether the peer has let go of what a window has shown.
constexpr base::Nanoseconds kLook = 200'000;

}  // namespace

WindowOperations::WindowOperations(Connection& connection, SendQueue& sends, const MemoryUser& user, Engine& engine)
    : connection_(connection), sends_(sends), user_(user), engine_(engine), look_timer_([this] { look(); }) {}

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
  bind.window->bind(bind.key, part, bind.rights, bind.tag, {user_.scope(), own_, *connection_.stream()});
  return true;
}

void WindowOperations::look_later() {
  engine_.set_timer(look_timer_, base::now_ns() + kLook);
}

void WindowOperations::look() {
  if (sends_.state() == ConnectionState::ending) return connection_.let_go_finished();
  sends_.pump();
  if (std::exchange(invalidation_waits_, false) && !is_over(sends_.state())) connection_.stream()->resume_receiving();
}

void WindowOperations::connection_ends() {
  engine_.cancel_timer(look_timer_);
  own_.take_back_all();  // D2-RMR-4
}

bool WindowOperations::let_go() {
  const bool quiet = own_.take_back_all();
  if (!quiet) look_later();
  return quiet;
}

}  // namespace anydat::nic::soft
