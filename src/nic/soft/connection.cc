// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/connection.h"

#include "nic/soft/adapter.h"
#include "nic/soft/queue_pair.h"

namespace anydat::nic::soft {

using State = ConnectionState;

Connection::Connection(SoftQueuePair& queue_pair, SoftAdapter& adapter, QueuePairEvents& events)
    : queue_pair_(queue_pair),
      engine_(adapter.engine()),
      events_(events),
      establishment_(queue_pair, adapter, events),
      orderly_end_(queue_pair),
      windows_(queue_pair),
      overflow_task_{[this] { break_off(WorkStatus::flushed, CloseReason::local_error); }} {}

// ---- its stream

void Connection::begin(std::unique_ptr<Stream> stream, State state) {
  queue_pair_.sends().enter(state, stream.get());
  stream_ = std::move(stream);
}

void Connection::change_stream(std::unique_ptr<Stream> stream) {
  queue_pair_.sends().change_stream(stream.get());
  stream_ = std::move(stream);  // the old one goes when no thread sends by it
}

void Connection::resume_receiving() {
  if (stream_) stream_->resume_receiving();
}

// ---- users of memory

void Connection::await_posts() {
  queue_pair_.sends().await_posts(!queue_pair_.receives().arriving().empty() || (stream_ && stream_->holds_messages()));
}

bool Connection::region_removed() {
  await_posts();
  return !stream_ || stream_->region_removed();
}

// ---- its end

void Connection::disconnect(bool graceful) {
  switch (step_for(graceful ? Occurrence::disconnect_in_order : Occurrence::disconnect_at_once, queue_pair_.state())) {
    case Step::drain:
      orderly_end_.begin();
      break;
    case Step::close:
      stream_->close(CloseReason::abrupt);
      end({Ending::Report::closed});
      break;
    default:
      break;
  }
}

// The peer has gone. False: it has ended a connection that stood, and the caller knows why.
bool Connection::came_to_nothing() {
  switch (step_for(Occurrence::peer_gone, queue_pair_.state())) {
    case Step::end:
      return false;
    case Step::attempt_fails:
      establishment_.failed(ConnectFailure::refused);
      break;
    case Step::accept_fails:
      establishment_.accept_failed();
      break;
    default:
      break;
  }
  return true;
}

void Connection::peer_closed(CloseReason reason) {
  if (came_to_nothing()) return;
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
  if (came_to_nothing()) return;
  end(orderly_end_.peer_closing() ? Ending{Ending::Report::closed} : Ending{Ending::Report::broken, {}, why});
}

void Connection::break_off(WorkStatus send_status, CloseReason tell_peer) {
  if (step_for(Occurrence::failure, queue_pair_.state()) != Step::end) return;
  stream_->close(tell_peer);
  end({Ending::Report::broken, {}, send_status});
}

void Connection::completion_overflowed() {
  engine_.add_task(overflow_task_);
}

void Connection::stop_sending() {
  queue_pair_.sends().enter(State::ending);
}

void Connection::end(Ending ending) {
  queue_pair_.sends().enter(State::ending);
  ending_ = ending;
  queue_pair_.receives().not_ready().connection_ends();
  establishment_.stop();
  orderly_end_.connection_ends();
  windows_.connection_ends();
  // Before anybody is told that memory is his again.
  if (!stream_ || stream_->let_go()) let_go_finished();
}

// Everything posted completes, in order; then nothing is left but the state.
void Connection::let_go_finished() {
  if (!queue_pair_.sends().begun_bind_is_over()) return;
  if (!windows_.let_go()) return;
  queue_pair_.receives().flush_to_failed();
  queue_pair_.sends().flush(ending_.first_send_status);
  queue_pair_.receives().flush_rest();
  ending_.tell(events_, establishment_.take_rejection());
}

bool Connection::cut() {
  ending_.report = Ending::Report::none;
  if (queue_pair_.state() == State::ending) return false;
  if (queue_pair_.state() == State::closed || queue_pair_.state() == State::idle) return true;
  stream_->close(CloseReason::abrupt);
  end({});  // with no queues to complete to, this only releases what is held
  return queue_pair_.state() == State::closed;
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
