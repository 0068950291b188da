// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/connection.h"

#include "nic/soft/adapter.h"
#include "nic/soft/queue_pair.h"

namespace anydat::nic::soft {

using State = ConnectionState;

Connection::Connection(SoftQueuePair& queue_pair, SoftAdapter& adapter, QueuePairEvents& events)
    : sends_(queue_pair.sends()),
      receives_(queue_pair.receives()),
      engine_(adapter.engine()),
      events_(events),
      establishment_(queue_pair, *this, adapter, events),
      orderly_end_(*this, sends_, receives_, engine_),
      windows_(*this, sends_, queue_pair.memory(), engine_),
      overflow_task_{[this] { break_off(WorkStatus::flushed, CloseReason::local_error); }} {}

// ---- its stream

void Connection::begin(std::unique_ptr<Stream> stream, State state) {
  sends_.enter(state, stream.get());
  stream_ = std::move(stream);
}

void Connection::change_stream(std::unique_ptr<Stream> stream) {
  sends_.change_stream(stream.get());
  stream_ = std::move(stream);  // the old one goes when nobody sends by it
}

void Connection::resume_receiving() {
  if (stream_) stream_->resume_receiving();
}

// ---- users of memory

void Connection::let_posts_end() {
  sends_.let_posts_end(receives_.incoming_count() > 0 || (stream_ && stream_->holds_messages()));
}

bool Connection::memory_changed() {
  let_posts_end();
  return !stream_ || stream_->memory_changed();
}

// ---- its end

void Connection::disconnect(bool graceful) {
  switch (sends_.state()) {
    case State::connected:
      if (!graceful) break;
      orderly_end_.begin();
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

void Connection::peer_closed(CloseReason reason) {
  switch (sends_.state()) {
    case State::connecting:
      establishment_.failed(ConnectFailure::refused);
      return;
    case State::accepting:
      establishment_.accept_failed();
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
      orderly_end_.peer_ends();
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

WorkStatus Connection::status_of(CloseReason reason) {
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

void Connection::peer_lost(WorkStatus why) {
  switch (sends_.state()) {
    case State::connecting:
      establishment_.failed(ConnectFailure::refused);
      return;
    case State::accepting:
      establishment_.accept_failed();
      return;
    case State::connected:
    case State::draining:
      end(orderly_end_.peer_closing() ? Ending{Ending::Report::closed} : Ending{Ending::Report::broken, {}, why});
      return;
    case State::idle:
    case State::ending:
    case State::closed:
      return;
  }
}

void Connection::break_off(WorkStatus send_status, CloseReason tell_peer) {
  if (!stands(sends_.state())) return;
  stream_->close(tell_peer);
  end({Ending::Report::broken, {}, send_status});
}

void Connection::completion_overflowed() {
  engine_.add_task(overflow_task_);
}

void Connection::stop_sending() {
  sends_.enter(State::ending);
}

void Connection::end(Ending ending) {
  sends_.enter(State::ending);
  ending_ = ending;
  receives_.connection_ends();
  establishment_.stop();
  orderly_end_.connection_ends();
  windows_.connection_ends();
  // Before anybody is told that memory is his again.
  if (!stream_ || stream_->let_go()) let_go_finished();
}

// Everything posted completes, in order; then nothing is left but the state.
void Connection::let_go_finished() {
  if (!sends_.begun_bind_is_over()) return;
  if (!windows_.let_go()) return;
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
      events_.on_connect_failed(ending_.why, establishment_.take_rejection());
      break;
    case Ending::Report::accept_failed:
      events_.on_accept_failed();
      break;
  }
}

bool Connection::cut() {
  ending_.report = Ending::Report::none;
  if (sends_.state() == State::ending) return false;
  if (sends_.state() == State::closed || sends_.state() == State::idle) return true;
  stream_->close(CloseReason::abrupt);
  end({});  // with no queues to complete to, this only releases what is held
  return sends_.state() == State::closed;
}

void Connection::reset() {
  establishment_.stop();
  stream_.reset();
  windows_.reset();
  orderly_end_.reset();
  names_.reached = {};
}

void Connection::destroy() {
  establishment_.stop();
  orderly_end_.destroy();
  engine_.cancel_task(overflow_task_);
  stream_.reset();
}

}  // namespace anydat::nic::soft
