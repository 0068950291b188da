// SPDX-License-Identifier: BSD-3-Clause
// What a queue pair is made of, and how it ends. Setting connections up and moving work have files of their own.
#include "nic/verbs/queue_pair.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.h"
#include "nic/verbs/adapter.h"
#include "nic/verbs/window.h"

namespace anydat::nic::verbs {

namespace {

// How long an orderly end may be held up by what is still to be sent (EP-DISC-18).
constexpr base::Nanoseconds kLinger = 2 * base::kNsPerSecond;
// How long the device may take to give back what it has once its queue pair is in error.
constexpr base::Nanoseconds kQuiet = 2 * base::kNsPerSecond;

}  // namespace

VerbsQueuePair::VerbsQueuePair(VerbsAdapter& adapter, SharedQueue* shared, QueuePairEvents& events)
    : adapter_(adapter),
      events_(events),
      sends_(*this, adapter, events),
      receives_(*this, adapter, shared, events, sends_.counters()),
      device_(*this, adapter),
      establishment_(*this, adapter, events),
      linger_timer_([this] {
        if (flushed_unasked_) return fail(WorkStatus::flushed);
        finish_draining();
      }),
      quiet_timer_([this] {
        if (state() != State::ending) return;
        base::log(base::LogLevel::warn, "{} does not give back the work of a connection that is over",
                  adapter_.info().name);
        finish();
      }),
      break_timer_([this] { run_breaks(); }),
      break_task_{[this] { run_breaks(); }},
      quiet_task_{[this] {
        if (state() == State::draining && send_idle()) return finish_draining();
        end_if_quiet();
      }} {}

VerbsQueuePair::~VerbsQueuePair() = default;

Status VerbsQueuePair::init(const QueuePairLimits& limits) {
  if (const Status status = receives_.init(limits); status != Status::ok) return status;
  SendQueue::Room room(limits, adapter_.device().is_iwarp());
  base::Guard guard(sends_.lock());
  sends_.move_to(std::move(room));
  limits_ = limits;
  return Status::ok;
}

void VerbsQueuePair::set_completion_queues(CompletionQueue* recv, CompletionQueue* send) {
  base::Guard guard(sends_.lock());
  receives_.set_queue(recv);
  sends_.set_queue(send);
}

Status VerbsQueuePair::set_limits(const QueuePairLimits& limits) try {
  // All of it or nothing: what is refused has changed nothing (EP-MODIFY-1). So what may find no memory comes first,
  // and what may not fit comes last of what can fail.
  SendQueue::Room room(limits, adapter_.device().is_iwarp());
  base::Guard guard(sends_.lock());
  if (const Status status = receives_.set_limits(limits); status != Status::ok) return status;
  sends_.move_to(std::move(room));
  limits_ = limits;
  return Status::ok;
} catch (const std::bad_alloc&) {
  return Status::no_memory;
}

// ---- ends

void VerbsQueuePair::disconnect(bool graceful) {
  switch (state()) {
    case State::connected:
      if (!graceful) break;
      sends_.enter(State::draining);
      if (send_idle()) {
        finish_draining();
      } else {
        adapter_.engine().set_timer(linger_timer_, base::now_ns() + kLinger);
      }
      return;
    case State::draining:
      if (graceful) return;
      break;
    case State::connecting:
    case State::accepting:
      end_now({Ending::Report::closed});
      return;
    case State::idle:
    case State::ending:
    case State::closed:
      return;
  }
  end({Ending::Report::closed});
}

// Ends an orderly end: all is sent, or it took too long.
void VerbsQueuePair::finish_draining() {
  if (state() == State::draining) end({Ending::Report::closed, {}, WorkStatus::receiver_not_ready});
}

void VerbsQueuePair::peer_closed() {
  // What arrived before is delivered, and what failed before says why.
  adapter_.completions().drain();
  if (failed_) return run_breaks();
  if (state() == State::connected || state() == State::draining) end({Ending::Report::closed});
}

// Breaks the connection. Requires: no completion is being handled.
void VerbsQueuePair::fail(WorkStatus first_send_status) {
  if (state() == State::connected || state() == State::draining) {
    end({Ending::Report::broken, {}, first_send_status});
  }
}

void VerbsQueuePair::run_breaks() {
  if (std::exchange(failed_, false)) fail(WorkStatus::flushed);
}

void VerbsQueuePair::break_soon() {
  failed_ = true;
  adapter_.engine().add_task(break_task_);
}

void VerbsQueuePair::look_soon() {
  adapter_.engine().add_task(quiet_task_);
}

void VerbsQueuePair::end(Ending ending) {
  sends_.end(ending.first_send_status);
  ending_ = ending;
  establishment_.stop();
  adapter_.engine().cancel_timer(linger_timer_);
  adapter_.engine().cancel_timer(break_timer_);
  establishment_.disconnect();
  device_.fail();
  adapter_.engine().set_timer(quiet_timer_, base::now_ns() + kQuiet);
  end_if_quiet();
}

void VerbsQueuePair::end_if_quiet() {
  if (state() != State::ending) return;
  adapter_.completions().drain();
  if (state() == State::ending && !device_.removing() && device_.quiet()) finish();
}

void VerbsQueuePair::end_now(Ending ending) {
  const bool never_was = state() == State::connecting;
  sends_.end(ending.first_send_status);
  ending_ = ending;
  establishment_.stop();
  adapter_.engine().cancel_timer(linger_timer_);
  adapter_.engine().cancel_timer(break_timer_);
  if (!establishment_.abandon_unanswered()) {
    establishment_.release_id();
    if (never_was) device_.discard();
  }
  finish();
}

// Everything posted completes, in order; then nothing is left but the state.
void VerbsQueuePair::finish() {
  adapter_.engine().cancel_timer(quiet_timer_);
  if (device_.removing() || end_waits_) return;  // it will be
  if (device_) return device_.remove();
  device_.release();
  report_end();
}

void VerbsQueuePair::report_end() {
  end_waits_ = sends_.bind_has_begun();
  if (end_waits_) return;  // go_on() comes
  sends_.flush();
  receives_.flush_early();
  adapter_.completions().batch().flush();
  receives_.flush();
  ending_.tell(events_, establishment_.take_rejection());
}

// The device has let go of what a window showed. An end that has waited for that goes on, too.
void VerbsQueuePair::go_on() {
  sends_.retire();
  if (end_waits_ && !sends_.bind_has_begun()) report_end();
}

void VerbsQueuePair::reset() {
  establishment_.reset();
  sends_.reset();
  flushed_unasked_ = false;
  failed_ = false;
}

bool VerbsQueuePair::cut() {
  set_completion_queues(nullptr, nullptr);
  ending_.report = Ending::Report::none;
  if (device_.removing() || end_waits_) return false;
  if (state() == State::closed || state() == State::idle) return true;
  if (state() != State::connecting) establishment_.disconnect();
  end_now({});  // with no queues to complete to, this only releases what is held
  return !device_.removing() && !end_waits_;
}

void VerbsQueuePair::destroy() {
  while (!cut()) adapter_.reaper().finish();
  receives_.flush();
  sends_.destroy();
  adapter_.engine().cancel_task(break_task_);
  adapter_.engine().cancel_task(quiet_task_);
  establishment_.release_id();
}

void VerbsQueuePair::device_event(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      adapter_.completions().drain();
      if (failed_) return run_breaks();
      fail(WorkStatus::flushed);
      break;
    case IBV_EVENT_COMM_EST:
      if (state() == State::accepting) establishment_.first_message_seen();
      break;
    default:
      break;
  }
}

void VerbsQueuePair::device_gone() {
  lost_by_device();
  establishment_.release_id();  // for which the kernel waits
}

void VerbsQueuePair::lost_by_device() {
  switch (state()) {
    case State::connecting:
      end_now({Ending::Report::connect_failed, ConnectFailure::unreachable});
      break;
    case State::accepting:
      end_now({Ending::Report::accept_failed});
      break;
    case State::connected:
    case State::draining:
      end_now({Ending::Report::broken, {}, WorkStatus::transport});
      break;
    case State::ending:
      finish();
      break;
    case State::idle:
    case State::closed:
      break;
  }
}

}  // namespace anydat::nic::verbs
