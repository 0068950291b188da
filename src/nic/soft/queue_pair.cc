// SPDX-License-Identifier: BSD-3-Clause
// The software NIC's queue pair: what it is made of, and the life of its connection.
#include "nic/soft/queue_pair.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "nic/soft/adapter.h"

namespace anydat::nic::soft {

namespace {

// Between two attempts (ConnectParameters::patience).
constexpr base::Nanoseconds kConnectAgain = 2'000'000;

}  // namespace

SoftQueuePair::SoftQueuePair(SoftAdapter& adapter, ReceivePool* shared, QueuePairEvents& events)
    : adapter_(adapter),
      events_(events),
      sends_(*this, adapter, events),
      receives_(*this, adapter, shared, events, sends_.counters()),
      scope_(adapter.scopes().next()),
      window_timer_([this] { look_at_windows(); }),
      linger_timer_([this] { look_whether_to_linger(); }),
      deadline_timer_([this] {
        if (state() != State::connecting && state() != State::accepting) return;
        stream_->close(CloseReason::abrupt);
        if (state() == State::connecting) {
          connect_failed(ConnectFailure::timed_out);
        } else {
          accept_failed();
        }
      }),
      overflow_task_{[this] { break_connection(WorkStatus::flushed, CloseReason::local_error); }},
      drained_task_{[this] { finish_if_drained(); }} {}

SoftQueuePair::~SoftQueuePair() = default;

Status SoftQueuePair::init(const QueuePairLimits& limits) {
  if (const Status status = receives_.init(limits); status != Status::ok) return status;
  reads_in_ = limits.reads_in;
  base::Guard guard(sends_.lock());
  sends_.set_limits(limits, std::nullopt);
  return Status::ok;
}

// ---- configuration

void SoftQueuePair::set_zone(ZoneId zone) {
  zone_.store(zone, std::memory_order_relaxed);
  receives_.note_straight_way();
}

void SoftQueuePair::set_completion_queues(CompletionQueue* recv, CompletionQueue* send) {
  {
    base::Guard guard(sends_.lock());
    receives_.set_queue(recv);
    sends_.set_queue(send);
  }
  receives_.note_straight_way();
}

Status SoftQueuePair::set_limits(const QueuePairLimits& limits) {
  base::Guard guard(sends_.lock());
  // Both or neither: what is refused has changed nothing (EP-MODIFY-1).
  std::optional<SendRing::Storage> room = sends_.room_for(limits);
  if (room && !room->ring) return Status::no_memory;
  if (const Status status = receives_.set_limits(limits); status != Status::ok) return status;
  sends_.set_limits(limits, std::move(room));
  reads_in_ = limits.reads_in;
  return Status::ok;
}

std::uint32_t SoftQueuePair::takes() const {
  return adapter_.info().abilities & ~(receives_.shows_immediates() ? 0 : ability::kImmediate);
}

// ---- life of a connection

Status SoftQueuePair::connect(const ConnectParameters& parameters) {
  // What may find no memory comes before anything has begun.
  if (!sends_.make_room()) return Status::no_memory;
  attempt_.reset();
  if (parameters.patience > 0) {
    attempt_ = std::make_unique<Attempt>(Attempt{parameters,
                                                 {parameters.private_data.begin(), parameters.private_data.end()},
                                                 std::string(parameters.adapter),
                                                 base::now_ns() + parameters.patience});
    Attempt& attempt = *attempt_;
    attempt.parameters.private_data = attempt.private_data;
    attempt.parameters.adapter = attempt.adapter;
  }
  std::unique_ptr<Stream> stream;
  const Status status = adapter_.open_stream(*this, parameters, stream);
  if (status != Status::ok) return status;
  names_.remote = parameters.remote;
  names_.remote_port = parameters.qual;
  take_stream(std::move(stream), State::connecting);
  if (parameters.deadline != base::kForever) adapter_.engine().set_timer(deadline_timer_, parameters.deadline);
  return Status::ok;
}

void SoftQueuePair::connect_again() {
  std::unique_ptr<Stream> stream;
  Status status = Status::no_memory;
  try {
    status = adapter_.open_stream(*this, attempt_->parameters, stream);
  } catch (const std::bad_alloc&) {
    // As without a descriptor.
  }
  if (status == Status::ok) {
    change_stream(std::move(stream));
  } else {
    end({Ending::Report::connect_failed, ConnectFailure::refused});
  }
}

void SoftQueuePair::begin_accept(std::unique_ptr<Stream> stream, const Address& local, std::uint64_t local_port,
                                 const Address& remote, std::uint64_t remote_port) {
  names_.local = local;
  names_.local_port = local_port;
  names_.remote = remote;
  names_.remote_port = remote_port;
  take_stream(std::move(stream), State::accepting);
}

void SoftQueuePair::take_stream(std::unique_ptr<Stream> stream, State state) {
  sends_.enter(state, stream.get());
  stream_ = std::move(stream);
}

void SoftQueuePair::expect_established_by(base::Nanoseconds deadline) {
  adapter_.engine().set_timer(deadline_timer_, deadline);
}

void SoftQueuePair::established(std::span<const std::byte> private_data) {
  adapter_.engine().cancel_timer(deadline_timer_);
  receives_.connection_begins();
  sends_.connection_begins();
  events_.on_established(private_data);
  receives_.test_watermarks();  // EP-WM-11
}

// The deadline keeps running.
void SoftQueuePair::try_another_wire(const ConnectParameters& parameters) {
  std::unique_ptr<Stream> stream;
  Status status = Status::no_memory;
  try {
    status = adapter_.open_tcp_stream(*this, parameters, stream);
  } catch (const std::bad_alloc&) {
    // As without a descriptor.
  }
  if (status != Status::ok) {
    connect_failed(ConnectFailure::refused);
    return;
  }
  change_stream(std::move(stream));
}

void SoftQueuePair::change_stream(std::unique_ptr<Stream> stream) {
  sends_.change_stream(stream.get());
  stream_ = std::move(stream);  // the old one goes when nobody sends by it
}

// A rejection whose private data find no memory is one without.
void SoftQueuePair::connect_failed(ConnectFailure why, std::span<const std::byte> private_data) {
  if (why == ConnectFailure::refused && attempt_ && base::now_ns() < attempt_->until) {
    adapter_.engine().set_timer(again_timer_, base::now_ns() + kConnectAgain);
    return;
  }
  try {
    rejection_.assign(private_data.begin(), private_data.end());
  } catch (const std::bad_alloc&) {
    rejection_.clear();
  }
  end({Ending::Report::connect_failed, why});
}

void SoftQueuePair::accept_failed() {
  end({Ending::Report::accept_failed});
}

void SoftQueuePair::disconnect(bool graceful) {
  switch (state()) {
    case State::connected:
      if (!graceful) break;
      sends_.enter(State::draining);
      linger();
      finish_if_drained();
      return;
    case State::draining:
      if (graceful) return;
      break;
    case State::connecting:
    case State::accepting:
      break;
    case State::idle:
    case State::ending:
    case State::closed:
      return;
  }
  stream_->close(CloseReason::abrupt);
  end({Ending::Report::closed});
}

// An orderly end waits for what one side still owes the other, as long as there is progress and for a minute at most
// (EP-DISC-18).
void SoftQueuePair::linger() {
  const base::Nanoseconds now = base::now_ns();
  linger_patience_ = Patience(kEndIdle, kEndTotal, now);
  owed_ = owed();
  adapter_.engine().set_timer(linger_timer_, linger_patience_.next_look(now));
}

void SoftQueuePair::look_whether_to_linger() {
  const base::Nanoseconds now = base::now_ns();
  const Owed before = std::exchange(owed_, owed());
  if (owed_ != before) linger_patience_.progress(now);
  if (linger_patience_.over(now)) {
    finish_draining();
  } else {
    adapter_.engine().set_timer(linger_timer_, linger_patience_.next_look(now));
    finish_if_drained();
  }
}

SoftQueuePair::Owed SoftQueuePair::owed() {
  Owed now;
  now.untaken = stream_->untaken();
  now.received = sends_.counters().all_receives();
  now.placed = receives_.placed_of_next();
  now.sent = sends_.progressed();
  return now;
}

void SoftQueuePair::delivered_everything() {
  if (peer_closing_ && receives_.incoming_count() == 0) finish_draining();
}

// What an orderly end of this side waits for when all is sent, or nothing more can be: the messages that have their
// buffers by then, so that they are delivered, and no later ones, or a peer that goes on sending could hold it up. One
// that has ended in order sends no more.
bool SoftQueuePair::arrivals_over() {
  if (stream_->awaits_memory_for_parked()) return false;
  if (peer_closing_) return receives_.incoming_count() == 0;
  if (!awaited_) awaited_ = receives_.newest();
  return receives_.finished() >= *awaited_;
}

// Not at once: the stream is in the middle of it, and may have more to deliver.
void SoftQueuePair::look_soon_whether_drained() {
  adapter_.engine().add_task(drained_task_);
}

void SoftQueuePair::finish_if_drained() {
  if (state() == State::draining && (peer_closing_ || send_idle()) && arrivals_over()) finish_draining();
}

void SoftQueuePair::resume_receiving() {
  if (stream_) stream_->resume_receiving();
}

Status SoftQueuePair::post_recvs(const RecvRow& row, std::size_t& posted) {
  return receives_.counts_each_post() ? QueuePair::post_recvs(row, posted) : receives_.post_row(row, posted);
}

void SoftQueuePair::enter_memory_users() {
  adapter_.memory_users().add(memory_user_);
}

void SoftQueuePair::let_posts_end() {
  sends_.let_posts_end(receives_.incoming_count() > 0 || (stream_ && stream_->holds_messages()));
}

bool SoftQueuePair::memory_changed() {
  let_posts_end();
  return !stream_ || stream_->memory_changed();
}

void SoftQueuePair::completion_overflowed() {
  adapter_.engine().add_task(overflow_task_);
}

// Ends an orderly end: all is sent, all is received, or whoever had to do his part took too long.
void SoftQueuePair::finish_draining() {
  if (!stands()) return;
  if (state() == State::draining && !peer_closing_) stream_->close(CloseReason::graceful);
  end({Ending::Report::closed, {}, peer_closing_ ? WorkStatus::flushed : WorkStatus::receiver_not_ready});
}

void SoftQueuePair::peer_closed(CloseReason reason) {
  switch (state()) {
    case State::connecting:
      connect_failed(ConnectFailure::refused);
      return;
    case State::accepting:
      accept_failed();
      return;
    case State::idle:
    case State::ending:
    case State::closed:
      return;
    case State::connected:
    case State::draining:
      break;
  }
  Ending ending{Ending::Report::broken};
  switch (reason) {
    case CloseReason::graceful:
      peer_closing_ = true;
      // A program that has asked for the end itself has no more buffers to post.
      if (state() == State::draining ? !arrivals_over() : stream_->holds_messages() || receives_.incoming_count() > 0) {
        linger();
        return;
      }
      finish_draining();
      return;
    case CloseReason::abrupt:
      ending.report = Ending::Report::closed;
      break;
    case CloseReason::local_error:
    case CloseReason::receiver_not_ready:
    case CloseReason::remote_access:
    case CloseReason::request_failed:
      ending.first_send_status = status_of(reason);
      break;
  }
  end(ending);
}

WorkStatus SoftQueuePair::status_of(CloseReason reason) {
  switch (reason) {
    case CloseReason::local_error:
      return WorkStatus::remote_responder;
    case CloseReason::receiver_not_ready:
      return WorkStatus::receiver_not_ready;
    case CloseReason::remote_access:
      return WorkStatus::remote_access;
    case CloseReason::graceful:
    case CloseReason::abrupt:
    case CloseReason::request_failed:
      break;
  }
  return WorkStatus::flushed;
}

void SoftQueuePair::peer_lost(WorkStatus why) {
  switch (state()) {
    case State::connecting:
      connect_failed(ConnectFailure::refused);
      return;
    case State::accepting:
      accept_failed();
      return;
    case State::connected:
    case State::draining:
      end(peer_closing_ ? Ending{Ending::Report::closed} : Ending{Ending::Report::broken, {}, why});
      return;
    case State::idle:
    case State::ending:
    case State::closed:
      return;
  }
}

void SoftQueuePair::break_connection(WorkStatus send_status, CloseReason tell_peer) {
  if (!stands()) return;
  stream_->close(tell_peer);
  end({Ending::Report::broken, {}, send_status});
}

void SoftQueuePair::end(Ending ending) {
  sends_.enter(State::ending);
  ending_ = ending;
  receives_.connection_ends();
  adapter_.engine().cancel_timer(window_timer_);
  adapter_.engine().cancel_timer(deadline_timer_);
  adapter_.engine().cancel_timer(again_timer_);
  adapter_.engine().cancel_timer(linger_timer_);
  windows_.take_back_all();  // D2-RMR-4
  // Before anybody is told that memory is his again.
  if (!stream_ || stream_->let_go()) let_go_finished();
}

SoftQueuePair::Readiness SoftQueuePair::make_ready(Incoming& message) {
  if (message.kind != WorkKind::recv_invalidate) return Readiness::yes;
  SoftWindow* const window = windows_.find(message.value);
  // Found before and no more: this side has taken it back meanwhile.
  if (!window) return message.invalidating ? Readiness::yes : Readiness::no;
  message.invalidating = true;
  if (window->taken_back()) return Readiness::yes;
  invalidation_waits_ = true;
  adapter_.engine().set_timer(window_timer_, base::now_ns() + kWindowLook);
  return Readiness::not_yet;
}

std::optional<bool> SoftQueuePair::carry_out(SendRing::Entry& entry) {
  SendRing::Entry::Bind& bind = entry.bind;
  const Segment& part = entry.all().front();
  if (!bind.begun && !bind.window->can_bind(part)) return false;
  bind.begun = true;
  if (!bind.window->withdrawn()) {
    adapter_.engine().set_timer(window_timer_, base::now_ns() + kWindowLook);
    return std::nullopt;
  }
  // The region may have gone while that took its time.
  if (!bind.window->can_bind(part)) {
    bind.window->shows_nothing();
    return false;
  }
  bind.window->bind(bind.key, part, bind.rights, bind.tag, {scope(), windows_, *stream_});
  return true;
}

void SoftQueuePair::look_at_windows() {
  if (state() == State::ending) return let_go_finished();
  sends_.pump();
  if (std::exchange(invalidation_waits_, false) && !broken()) stream_->resume_receiving();
}

// Everything posted completes, in order; then nothing is left but the state.
void SoftQueuePair::let_go_finished() {
  if (!sends_.begun_bind_is_over()) return;
  if (!windows_.take_back_all()) {
    adapter_.engine().set_timer(window_timer_, base::now_ns() + kWindowLook);
    return;
  }
  receives_.flush_to_failed();
  sends_.flush(ending_.first_send_status);
  receives_.flush_rest();
  switch (std::exchange(ending_.report, Ending::Report::none)) {
    case Ending::Report::none:
      break;
    case Ending::Report::closed:
      events_.on_closed(false);
      break;
    case Ending::Report::broken:
      events_.on_closed(true);
      break;
    case Ending::Report::connect_failed:
      events_.on_connect_failed(ending_.why, std::exchange(rejection_, {}));
      break;
    case Ending::Report::accept_failed:
      events_.on_accept_failed();
      break;
  }
}

void SoftQueuePair::reset() {
  adapter_.engine().cancel_timer(again_timer_);
  sends_.reset();
  stream_.reset();
  scope_.store(adapter_.scopes().next());
  invalidation_waits_ = false;
  peer_closing_ = false;
  awaited_.reset();
  receives_.reset();
  initiator_.reset();
  names_.reached = {};
}

bool SoftQueuePair::cut() {
  set_completion_queues(nullptr, nullptr);
  ending_.report = Ending::Report::none;
  if (state() == State::ending) return false;
  if (state() == State::closed || state() == State::idle) return true;
  stream_->close(CloseReason::abrupt);
  end({});  // with no queues to complete to, this only releases what is held
  return state() == State::closed;
}

void SoftQueuePair::destroy() {
  [[maybe_unused]] const bool quiet = cut();
  assert(quiet);
  receives_.destroy();
  adapter_.engine().cancel_timer(again_timer_);
  adapter_.engine().cancel_task(overflow_task_);
  adapter_.engine().cancel_task(drained_task_);
  sends_.destroy();
  adapter_.memory_users().remove(memory_user_);
  stream_.reset();
}

}  // namespace anydat::nic::soft
