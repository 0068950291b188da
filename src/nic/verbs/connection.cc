// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/connection.h"

#include <utility>

#include "env/log.h"
#include "nic/verbs/adapter.h"
#include "nic/verbs/queue_pair.h"

namespace anydat::nic::verbs {

namespace {

// How long an orderly end may be held up by what is still to be sent (EP-DISC-18).
constexpr os::Nanoseconds kLinger = 2 * os::kNsPerSecond;
// How long the device may take to give back what it has once its queue pair is in error.
constexpr os::Nanoseconds kQuiet = 2 * os::kNsPerSecond;
// How long after work came back flushed the reason may take to arrive.
constexpr os::Nanoseconds kReason = os::kNsPerSecond;
// How long the device has to tell the sender of a message what is wrong with it before the connection breaks. Soft-RoCE
// tells us first.
constexpr os::Nanoseconds kWordToSender = 10'000'000;

}  // namespace

Connection::Connection(VerbsQueuePair& queue_pair, VerbsAdapter& adapter, QueuePairEvents& events)
    : queue_pair_(queue_pair),
      adapter_(adapter),
      events_(events),
      establishment_(queue_pair, adapter, events),
      linger_timer_([this] {
        if (flushed_unasked_) return fail(WorkStatus::flushed);
        finish_draining();
      }),
      quiet_timer_([this] {
        if (queue_pair_.state() != ConnectionState::ending) return;
        env::log(env::LogLevel::warn, "{} does not give back the work of a connection that is over",
                 adapter_.info().name);
        finish();
      }),
      break_timer_([this] { run_breaks(); }),
      break_task_{[this] { run_breaks(); }},
      quiet_task_{[this] {
        if (queue_pair_.state() == ConnectionState::draining && queue_pair_.sends().idle()) return finish_draining();
        end_if_quiet();
      }} {}

void Connection::disconnect(bool graceful) {
  switch (step_for(graceful ? Occurrence::disconnect_in_order : Occurrence::disconnect_at_once, queue_pair_.state())) {
    case Step::drain:
      queue_pair_.sends().enter(ConnectionState::draining);
      if (queue_pair_.sends().idle()) {
        finish_draining();
      } else {
        adapter_.engine().set_timer(linger_timer_, os::now_ns() + kLinger);
      }
      break;
    case Step::close:
      if (stands(queue_pair_.state())) {
        end({Ending::Report::closed});
      } else {
        end_now({Ending::Report::closed});
      }
      break;
    default:
      break;
  }
}

// Ends an orderly end: all is sent, or it took too long.
void Connection::finish_draining() {
  if (queue_pair_.state() != ConnectionState::draining) return;
  end({Ending::Report::closed, {}, WorkStatus::receiver_not_ready});
}

void Connection::peer_closed() {
  // What arrived before is delivered, and what failed before says why.
  adapter_.completions().drain();
  if (failed_) return run_breaks();
  if (step_for(Occurrence::peer_gone, queue_pair_.state()) == Step::end) end({Ending::Report::closed});
}

// Breaks the connection. Requires: no completion is being handled.
void Connection::fail(WorkStatus first_send_status) {
  if (step_for(Occurrence::failure, queue_pair_.state()) == Step::end) {
    end({Ending::Report::broken, {}, first_send_status});
  }
}

void Connection::run_breaks() {
  if (std::exchange(failed_, false)) fail(WorkStatus::flushed);
}

void Connection::break_soon() {
  failed_ = true;
  adapter_.engine().add_task(break_task_);
}

void Connection::look_soon() {
  adapter_.engine().add_task(quiet_task_);
}

void Connection::end(Ending ending) {
  queue_pair_.sends().end(ending.first_send_status);
  ending_ = ending;
  establishment_.stop();
  adapter_.engine().cancel_timer(linger_timer_);
  adapter_.engine().cancel_timer(break_timer_);
  establishment_.disconnect();
  queue_pair_.device().fail();
  adapter_.engine().set_timer(quiet_timer_, os::now_ns() + kQuiet);
  end_if_quiet();
}

void Connection::end_if_quiet() {
  if (queue_pair_.state() != ConnectionState::ending) return;
  adapter_.completions().drain();
  const DeviceQueuePair& device = queue_pair_.device();
  if (queue_pair_.state() == ConnectionState::ending && !device.removing() && device.quiet()) finish();
}

void Connection::end_now(Ending ending) {
  const bool never_was = queue_pair_.state() == ConnectionState::connecting;
  queue_pair_.sends().end(ending.first_send_status);
  ending_ = ending;
  establishment_.stop();
  adapter_.engine().cancel_timer(linger_timer_);
  adapter_.engine().cancel_timer(break_timer_);
  if (!establishment_.abandon_unanswered()) {
    establishment_.release_id();
    if (never_was) queue_pair_.device().discard();
  }
  finish();
}

void Connection::finish() {
  adapter_.engine().cancel_timer(quiet_timer_);
  DeviceQueuePair& device = queue_pair_.device();
  if (device.removing() || end_waits_) return;  // it will be
  if (device) return device.remove();
  device.release();
  report_end();
}

void Connection::report_end() {
  end_waits_ = queue_pair_.sends().bind_has_begun();
  if (end_waits_) return;  // window_let_go() comes
  queue_pair_.sends().flush();
  queue_pair_.receives().flush_early();
  adapter_.completions().batch().flush();
  queue_pair_.receives().flush();
  ending_.tell(events_, establishment_.take_rejection());
}

// An end that has waited for that goes on, too.
void Connection::window_let_go() {
  queue_pair_.sends().retire();
  if (end_waits_ && !queue_pair_.sends().bind_has_begun()) report_end();
}

void Connection::reset() {
  establishment_.reset();
  flushed_unasked_ = false;
  failed_ = false;
}

bool Connection::cut() {
  ending_.report = Ending::Report::none;
  if (queue_pair_.device().removing() || end_waits_) return false;
  if (queue_pair_.state() == ConnectionState::closed || queue_pair_.state() == ConnectionState::idle) return true;
  if (queue_pair_.state() != ConnectionState::connecting) establishment_.disconnect();
  end_now({});  // with no queues to complete to, this only releases what is held
  return !queue_pair_.device().removing() && !end_waits_;
}

void Connection::destroy() {
  adapter_.engine().cancel_task(break_task_);
  adapter_.engine().cancel_task(quiet_task_);
  establishment_.release_id();
}

void Connection::device_event(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      adapter_.completions().drain();
      if (failed_) return run_breaks();
      fail(WorkStatus::flushed);
      break;
    case IBV_EVENT_COMM_EST:
      if (queue_pair_.state() == ConnectionState::accepting) establishment_.first_message_seen();
      break;
    default:
      break;
  }
}

void Connection::device_gone() {
  lost_by_device();
  establishment_.release_id();  // for which the kernel waits
}

void Connection::lost_by_device() {
  switch (step_for(Occurrence::peer_gone, queue_pair_.state())) {
    case Step::attempt_fails:
      end_now({Ending::Report::connect_failed, ConnectFailure::unreachable});
      break;
    case Step::accept_fails:
      end_now({Ending::Report::accept_failed});
      break;
    case Step::end:
      end_now({Ending::Report::broken, {}, WorkStatus::transport});
      break;
    default:
      if (queue_pair_.state() == ConnectionState::ending) finish();
      break;
  }
}

void Connection::break_once_told() {
  failed_ = true;
  if (stands(queue_pair_.state())) adapter_.engine().set_timer(break_timer_, os::now_ns() + kWordToSender);
}

void Connection::work_flushed() {
  if (!stands(queue_pair_.state()) || failed_ || flushed_unasked_) return;
  // The device has ended the connection; connection management will say on whose behalf.
  flushed_unasked_ = true;
  adapter_.engine().set_timer(linger_timer_, os::now_ns() + kReason);
}

}  // namespace anydat::nic::verbs
