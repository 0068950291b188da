// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/hazards.h"

#include "env/log.h"
#include "nic/soft/wire/shm/link.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

Hazards::Hazards(Link& link, Engine& engine)
    : link_(link), engine_(engine), press_timer_([this] { look_whether_pressed(); }) {}

bool Hazards::needs_fence(std::uint32_t key) const {
  return shm::needs_fence(link_.inbound().header(), key);
}

bool Hazards::in_use(std::uint32_t key) const {
  return in_rdma_use(link_.inbound(), key) && !peer_gone();
}

// One that has gone has written all it ever will.
bool Hazards::peer_gone() const {
  return link_.peer_gone() || link_.end().peer_was_gone();
}

// Does the peer use what is meant, and goes on using it for longer than a look takes?
template <typename InUse>
bool Hazards::persists(InUse&& in_use) const {
  for (unsigned tries = 0; in_use(); ++tries) {
    if (tries == 100) return !peer_gone();
    os::cpu_relax();
  }
  return false;
}

bool Hazards::uses(std::uint32_t key) const {
  return persists([&] { return in_rdma_use(link_.inbound(), key); });
}

bool Hazards::uses_any() const {
  return persists([&] { return in_rdma_use(link_.inbound(), 0) || grants_in_use(link_.inbound().header()); });
}

void Hazards::shut_gate() {
  link_.inbound().header().rdma_gate.fetch_add(kGateStep);
  ++gates_shut_;
}

std::uint32_t Hazards::fence_at_gate() const {
  fence_rdma_users(link_.inbound().header(), 0);
  return gates_shut_;
}

bool Hazards::past_gate(std::uint32_t number, const ShmStream& stream) const {
  // Nothing is heard by a link that is dead; but no RDMA begins on it.
  const std::uint32_t unheard = link_.inbound().header().rdma_gate.load() / kGateStep;
  if (!link_.dead() && static_cast<std::int32_t>(gates_shut_ - unheard - number) >= 0) return true;
  return !persists([&] { return connection_in_rdma_use(link_.inbound(), stream.name()); });
}

void Hazards::never_lets_go() {
  if (link_.dead()) return;
  env::log(
      env::LogLevel::warn,
      "process {} was stopped while it used memory that is not its any more; what it still does cannot be prevented",
      link_.process().pid());
  out_of_patience_ = true;
  link_.end().fail("it does not let go of memory");
}

bool Hazards::open_gate() {
  std::atomic<std::uint32_t>& gate = link_.outbound().header().rdma_gate;
  if (gate.load() < kGateStep) return false;  // it says so without having shut it
  return gate.fetch_sub(kGateStep) < 2 * kGateStep && somebody_at_gate_.exchange(false);
}

bool Hazards::wait_at_gate() {
  somebody_at_gate_.store(true);
  return link_.outbound().header().rdma_gate.load() != 0;  // it may have been opened before anybody knew
}

bool Hazards::press(std::uint32_t key) {
  if (!uses(key)) return false;
  const os::Nanoseconds now = os::now_ns();
  if (link_.dead()) return now < link_.end().at();
  if (pressed_ != 0) return true;
  pressed_ = key;
  pressed_until_ = now + kPatience;
  engine_.set_timer(press_timer_, now + kBetweenLooks);
  return true;
}

bool Hazards::lets_go_of(std::uint32_t key) {
  fence_rdma_users(link_.inbound().header(), key);
  return !press(key);
}

void Hazards::look_whether_pressed() {
  const os::Nanoseconds now = os::now_ns();
  if (!uses(pressed_)) {
    pressed_ = 0;
  } else if (now < pressed_until_) {
    engine_.set_timer(press_timer_, now + kBetweenLooks);
  } else {
    never_lets_go();
  }
}

os::Nanoseconds Hazards::end() {
  link_.inbound().header().rdma_gate.fetch_or(kGateLinkOver);
  fence_rdma_users(link_.inbound().header(), 0);
  engine_.cancel_timer(press_timer_);
  return out_of_patience_ ? os::now_ns() : pressed_ != 0 ? pressed_until_ : os::now_ns() + kPatience;
}

}  // namespace anydat::nic::soft::shm
