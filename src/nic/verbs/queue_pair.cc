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

// After how long without an answer the device repeats itself, seven times: 4.096 us times two to this power, 0.27 s.
// What connection management proposes is eight times as long, and so would be the silence after a peer's death.
constexpr std::uint8_t kAnswerTimeout = 16;

}  // namespace

VerbsQueuePair::VerbsQueuePair(VerbsAdapter& adapter, SharedQueue* shared, QueuePairEvents& events)
    : adapter_(adapter),
      events_(events),
      tag_(adapter.completions().queue_pairs().add(*this)),
      sends_(*this, adapter, events),
      receives_(*this, adapter, shared, events, sends_.counters()),
      first_word_timer_([this] {
        if (state() == State::accepting) established({});
      }),
      deadline_timer_([this] {
        if (state() == State::connecting) end_now({Ending::Report::connect_failed, ConnectFailure::timed_out});
      }),
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

VerbsQueuePair::~VerbsQueuePair() {
  adapter_.completions().queue_pairs().remove(tag_);
}

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

// ---- the device's queue pair

VerbsQueuePair::Made VerbsQueuePair::make_queue_pair(rdma_cm_id* id) try {
  Device& device = adapter_.device();
  if (adapter_.gone()) return Made::connection_over;
  SharedQueue* const shared = receives_.shared();
  if (shared && !shared->usable()) return Made::no_memory;
  pd_ = device.zone(zone_);
  // A Read with more segments than the device scatters to is several of its requests.
  const std::uint32_t parts = limits_.send_segments > device.read_segments() ? std::max(limits_.send_segments, 1u) : 1;
  const std::uint32_t sends =
      std::max(std::min(limits_.send_depth * parts, static_cast<std::uint32_t>(device.attributes().max_qp_wr)), 1u);
  cq_room_ = sends + (shared ? 0 : limits_.recv_depth);
  cq_ = pd_ ? adapter_.completions().queues().reserve(cq_room_) : nullptr;
  if (!cq_) return Made::no_memory;
  // Small messages go with their request where the device takes them so.
  for (const std::uint32_t inline_max : {128u, 64u, 0u}) {
    ibv_qp_init_attr attributes{};
    attributes.qp_context = this;
    attributes.qp_type = IBV_QPT_RC;
    attributes.send_cq = cq_->get();
    attributes.recv_cq = shared ? shared->completions().get() : cq_->get();
    attributes.srq = shared ? shared->device_queue() : nullptr;
    attributes.cap.max_send_wr = sends;
    attributes.cap.max_send_sge = std::max(limits_.send_segments, 1u);
    attributes.cap.max_recv_wr = shared ? 0 : std::max(limits_.recv_depth, 1u);
    attributes.cap.max_recv_sge = shared ? 0 : std::max(limits_.recv_segments, 1u);
    attributes.cap.max_inline_data = inline_max;
    QpPtr made(ibv_create_qp(pd_.get(), &attributes));
    if (!made) continue;
    QueuePairTable& queue_pairs = adapter_.completions().queue_pairs();
    // Who had the number before has just gone, and perhaps not all that it gave back has been seen.
    if (queue_pairs.numbered(made->qp_num)) adapter_.completions().drain();
    queue_pairs.note_number(made->qp_num, *this);
    if (shared) shared->attach();
    qp_ = std::move(made);
    sends_.attach(qp_.get(), tag_, std::min(attributes.cap.max_inline_data, inline_max));
    break;
  }
  const Made result = !qp_ ? Made::no_memory : !change_state(id, IBV_QPS_INIT) ? Made::connection_over : Made::ready;
  if (result != Made::ready) {
    discard_queue_pair();
    return result;
  }
  receives_.attach(qp_.get(), tag_, limits_.recv_depth);
  return result;
} catch (const std::bad_alloc&) {
  discard_queue_pair();  // with what has been reserved for it
  return Made::no_memory;
}

bool VerbsQueuePair::change_state(rdma_cm_id* id, ibv_qp_state state) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  int mask = 0;
  if (rdma_init_qp_attr(id, &attributes, &mask) != 0) return false;
  attributes.qp_state = state;
  if (state == IBV_QPS_INIT) {
    attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    mask |= IBV_QP_ACCESS_FLAGS;
  }
  if (state == IBV_QPS_RTR) {
    attributes.min_rnr_timer = adapter_.rnr_timer();
    if (accepts_) attributes.max_dest_rd_atomic = reads_in_;
  }
  if (state == IBV_QPS_RTS) {
    if (accepts_) attributes.max_rd_atomic = reads_out_;
    attributes.timeout = std::min(attributes.timeout, kAnswerTimeout);
  }
  return ibv_modify_qp(qp_.get(), &attributes, mask) == 0;
}

// The device's queue pair goes, which takes a while: report_end() follows when it has gone.
void VerbsQueuePair::remove_queue_pair() {
  // Receives may be posted by any thread meanwhile.
  receives_.close();
  Reaper::Job job;
  removed_number_ = qp_->qp_num;
  sends_.detach();
  job.queue_pair = std::move(qp_);
  job.done = [this] {  // small enough to need no memory
    queue_pair_removed();
    report_end();
  };
  adapter_.reaper().give(std::move(job));
}

void VerbsQueuePair::queue_pair_removed() {
  // What it had taken from a shared queue comes back with the last completions.
  adapter_.completions().drain();
  adapter_.completions().queue_pairs().forget_number(std::exchange(removed_number_, 0), *this);
  if (SharedQueue* const shared = receives_.shared()) shared->detach();
  receives_.detach();
  adapter_.completions().queues().release(std::exchange(cq_, nullptr), cq_room_);
  pd_.reset();
}

// Nobody need wait for the end of one that has never been connected: it touches no memory. What it gives back when it
// goes is nobody's.
void VerbsQueuePair::discard_queue_pair() {
  AbandonedAttempt parts = take_apart();
  adapter_.drop(parts);
}

AbandonedAttempt VerbsQueuePair::take_apart() {
  AbandonedAttempt parts{};
  parts.pd = std::move(pd_);
  parts.cq = std::exchange(cq_, nullptr);
  parts.cq_room = cq_room_;
  parts.shared = receives_.shared();
  receives_.close();
  sends_.detach();
  parts.queue_pair = std::move(qp_);
  if (parts.queue_pair) {
    parts.counted = receives_.shared() != nullptr;
    // In this state it does not connect any more, so that nothing is written to the memory of its receives.
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    ibv_modify_qp(parts.queue_pair.get(), &attributes, IBV_QP_STATE);
    parts.queue_pair->qp_context = nullptr;
    adapter_.completions().queue_pairs().forget_number(parts.queue_pair->qp_num, *this);
  }
  receives_.detach();
  adapter_.completions().queue_pairs().remove(tag_);
  tag_ = adapter_.completions().queue_pairs().add(*this);
  return parts;
}

bool VerbsQueuePair::quiet() {
  return !qp_ || (!receives_.any_at_device() && !sends_.any_at_device());
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
  adapter_.engine().cancel_timer(first_word_timer_);
  adapter_.engine().cancel_timer(deadline_timer_);
  adapter_.engine().cancel_timer(linger_timer_);
  adapter_.engine().cancel_timer(break_timer_);
  if (id_) rdma_disconnect(id_.get());
  if (qp_) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    ibv_modify_qp(qp_.get(), &attributes, IBV_QP_STATE);
  }
  adapter_.engine().set_timer(quiet_timer_, base::now_ns() + kQuiet);
  end_if_quiet();
}

void VerbsQueuePair::end_if_quiet() {
  if (state() != State::ending) return;
  adapter_.completions().drain();
  if (state() == State::ending && removed_number_ == 0 && quiet()) finish();
}

// For a connection that has not begun, or whose end nobody waits for: the device's queue pair goes at once.
void VerbsQueuePair::end_now(Ending ending) {
  const bool never_was = state() == State::connecting;
  sends_.end(ending.first_send_status);
  ending_ = ending;
  if (inquiry_) inquiry_->stop();
  adapter_.engine().cancel_timer(first_word_timer_);
  adapter_.engine().cancel_timer(deadline_timer_);
  adapter_.engine().cancel_timer(linger_timer_);
  adapter_.engine().cancel_timer(break_timer_);
  if (std::exchange(unanswered_, false) && adapter_.device().is_iwarp()) {
    abandon_attempt();
  } else {
    release_id();
    if (never_was) discard_queue_pair();
  }
  finish();
}

// Over iWARP the kernel destroys what belongs to an attempt only when the other side has answered, for which it may
// wait for many seconds. So may not the adapter.
void VerbsQueuePair::abandon_attempt() {
  AbandonedAttempt attempt = take_apart();
  attempt.id = std::move(id_);
  attempt.dial = std::exchange(dial_, nullptr);
  adapter_.abandon(std::move(attempt));
}

void VerbsQueuePair::release_id() {
  if (!dial_) return id_.reset();
  AbandonedAttempt attempt{};
  attempt.id = std::move(id_);
  attempt.dial = std::exchange(dial_, nullptr);
  attempt.unwanted = true;
  adapter_.abandon(std::move(attempt));
}

// Everything posted completes, in order; then nothing is left but the state.
void VerbsQueuePair::finish() {
  adapter_.engine().cancel_timer(quiet_timer_);
  if (removed_number_ != 0 || end_waits_) return;  // it will be
  if (qp_) return remove_queue_pair();
  receives_.detach();
  if (cq_) adapter_.completions().queues().release(std::exchange(cq_, nullptr), cq_room_);
  pd_.reset();
  report_end();
}

void VerbsQueuePair::report_end() {
  end_waits_ = sends_.bind_has_begun();
  if (end_waits_) return;  // go_on() comes
  sends_.flush();
  receives_.flush_early();
  adapter_.completions().batch().flush();
  receives_.flush();
  ending_.tell(events_, std::exchange(rejection_, {}));
}

// The device has let go of what a window showed. An end that has waited for that goes on, too.
void VerbsQueuePair::go_on() {
  sends_.retire();
  if (end_waits_ && !sends_.bind_has_begun()) report_end();
}

void VerbsQueuePair::reset() {
  release_id();
  sends_.reset();
  flushed_unasked_ = false;
  failed_ = false;
  names_.reached = {};
}

bool VerbsQueuePair::cut() {
  set_completion_queues(nullptr, nullptr);
  ending_.report = Ending::Report::none;
  if (removed_number_ != 0 || end_waits_) return false;
  if (state() == State::closed || state() == State::idle) return true;
  if (id_ && state() != State::connecting) rdma_disconnect(id_.get());
  end_now({});  // with no queues to complete to, this only releases what is held
  return removed_number_ == 0 && !end_waits_;
}

void VerbsQueuePair::destroy() {
  while (!cut()) adapter_.reaper().finish();
  receives_.flush();
  sends_.destroy();
  adapter_.engine().cancel_task(break_task_);
  adapter_.engine().cancel_task(quiet_task_);
  release_id();
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
      if (state() == State::accepting && id_) rdma_notify(id_.get(), type);
      break;
    default:
      break;
  }
}

bool VerbsQueuePair::uses(const Cq* cq) const {
  return qp_ && (cq == cq_ || (receives_.shared() && cq == &receives_.shared()->completions()));
}

void VerbsQueuePair::device_gone() {
  lost_by_device();
  release_id();  // for which the kernel waits
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
