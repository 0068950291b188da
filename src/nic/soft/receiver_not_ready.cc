// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/receiver_not_ready.h"

#include <algorithm>

#include "env/log.h"
#include "nic/soft/adapter.h"
#include "nic/soft/queue_pair.h"

namespace anydat::nic::soft {

namespace {

constexpr os::Nanoseconds kNotReadyWarning = os::kNsPerSecond;
// From one look to the next whether messages are still arriving that one without a buffer has to wait for; and how long
// they may arrive without progress.
constexpr os::Nanoseconds kOthersLook = 10'000'000;
constexpr os::Nanoseconds kOthersPatience = 2 * os::kNsPerSecond;

}  // namespace

// Each endpoint has one of these, so what its queue pair knows is asked for there.
ReceiverNotReady::ReceiverNotReady(SoftQueuePair& queue_pair, SoftAdapter& adapter)
    : queue_pair_(queue_pair), adapter_(adapter), timer_([this] { timed_out(); }) {}

ReceivePool& ReceiverNotReady::pool() {
  return queue_pair_.receives().buffers().pool();
}

void ReceiverNotReady::wait_for_buffer() {
  if (waits_) return;
  const os::Nanoseconds limit = adapter_.config().receiver_not_ready_ns;
  // Who is only behind others has found buffers.
  if (pool().counts().available == 0) queue_pair_.sends().counters().buffer_waits.add();
  waits_ = true;
  waits_since_ = os::now_ns();
  if (!timer_.pending()) {
    adapter_.engine().set_timer(timer_, waits_since_ + std::min(limit, kNotReadyWarning));
  }
  pool().wait_for_receive(waiter_);
}

// A message that has its buffer is not to end with a later one that has none, as long as there is progress.
bool ReceiverNotReady::others_come_first() {
  const ArrivingMessages& arriving = queue_pair_.receives().arriving();
  if (!arriving.next_is_there()) return false;
  const std::pair<std::uint64_t, std::uint64_t> now{arriving.oldest().number, arriving.oldest().placed};
  if (now != arriving_seen_) {
    arriving_seen_ = now;
    arriving_since_ = os::now_ns();
  }
  return os::now_ns() - arriving_since_ < kOthersPatience;
}

void ReceiverNotReady::stop_waiting() {
  if (!waits_) return;
  waits_ = false;
  queue_pair_.sends().counters().buffer_wait_ns.add(static_cast<std::uint64_t>(os::now_ns() - waits_since_));
  pool().stop_waiting(waiter_);
}

void ReceiverNotReady::buffers_available() {
  stop_waiting();
  queue_pair_.connection().resume_receiving();
}

void ReceiverNotReady::timed_out() {
  const os::Nanoseconds limit = adapter_.config().receiver_not_ready_ns;
  if (!waits_) return;
  const os::Nanoseconds waited = os::now_ns() - waits_since_;
  if (const os::Nanoseconds first = std::min(limit, kNotReadyWarning); waited < first) {
    adapter_.engine().set_timer(timer_, waits_since_ + first);  // it was set for an earlier message
    return;
  }
  if (limit != os::kForever && waited >= limit) {
    if (others_come_first()) {
      adapter_.engine().set_timer(timer_, os::now_ns() + kOthersLook);
      return;
    }
    env::log(env::LogLevel::warn, "a message found no receive buffer within {} ms; its connection breaks",
             limit / 1'000'000);
    queue_pair_.connection().break_off(WorkStatus::flushed, CloseReason::receiver_not_ready);
    return;
  }
  env::log(env::LogLevel::warn,
           "a message at port qualifier {} has waited {} ms for a receive buffer; post more receives, or set "
           "DAT_RNR_TIMEOUT_MS",
           queue_pair_.names().local_port, waited / 1'000'000);
  if (limit != os::kForever) adapter_.engine().set_timer(timer_, waits_since_ + limit);
}

void ReceiverNotReady::connection_ends() {
  stop_waiting();
  adapter_.engine().cancel_timer(timer_);
}

}  // namespace anydat::nic::soft
