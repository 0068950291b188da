// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/orderly_end.h"

#include <utility>

#include "nic/soft/connection.h"
#include "nic/soft/receive_side.h"

namespace anydat::nic::soft {

OrderlyEnd::OrderlyEnd(Connection& connection, SendQueue& sends, ReceiveSide& receives, Engine& engine)
    : connection_(connection),
      sends_(sends),
      receives_(receives),
      engine_(engine),
      linger_timer_([this] { look(); }),
      look_task_{[this] { finish_if_drained(); }} {}

void OrderlyEnd::begin() {
  sends_.enter(ConnectionState::draining);
  linger();
  finish_if_drained();
}

void OrderlyEnd::peer_ends() {
  peer_closing_ = true;
  // A program that has asked for the end itself has no more buffers to post.
  const bool more = sends_.state() == ConnectionState::draining
                        ? !arrivals_over()
                        : connection_.stream()->holds_messages() || receives_.incoming_count() > 0;
  if (more) return linger();
  finish();
}

void OrderlyEnd::linger() {
  const base::Nanoseconds now = base::now_ns();
  patience_ = Patience(kEndIdle, kEndTotal, now);
  owed_ = owed();
  engine_.set_timer(linger_timer_, patience_.next_look(now));
}

void OrderlyEnd::look() {
  const base::Nanoseconds now = base::now_ns();
  const Owed before = std::exchange(owed_, owed());
  if (owed_ != before) patience_.progress(now);
  if (patience_.over(now)) {
    finish();
  } else {
    engine_.set_timer(linger_timer_, patience_.next_look(now));
    finish_if_drained();
  }
}

OrderlyEnd::Owed OrderlyEnd::owed() {
  Owed now;
  now.untaken = connection_.stream()->untaken();
  now.received = sends_.counters().all_receives();
  now.placed = receives_.placed_of_next();
  now.sent = sends_.progressed();
  return now;
}

void OrderlyEnd::delivered_everything() {
  if (peer_closing_ && receives_.incoming_count() == 0) finish();
}

// What an orderly end of this side waits for when all is sent, or nothing more can be: the messages that have their
// buffers by then, so that they are delivered, and no later ones, or a peer that goes on sending could hold it up. One
// that has ended in order sends no more.
bool OrderlyEnd::arrivals_over() {
  if (connection_.stream()->awaits_memory_for_parked()) return false;
  if (peer_closing_) return receives_.incoming_count() == 0;
  if (!awaited_) awaited_ = receives_.newest();
  return receives_.finished() >= *awaited_;
}

// Not at once: the stream is in the middle of it, and may have more to deliver.
void OrderlyEnd::look_soon() {
  engine_.add_task(look_task_);
}

void OrderlyEnd::finish_if_drained() {
  if (sends_.state() == ConnectionState::draining && (peer_closing_ || sends_.idle()) && arrivals_over()) finish();
}

// All is sent, all is received, or whoever had to do his part took too long.
void OrderlyEnd::finish() {
  if (!stands(sends_.state())) return;
  if (sends_.state() == ConnectionState::draining && !peer_closing_) {
    connection_.stream()->close(CloseReason::graceful);
  }
  connection_.end(
      {Connection::Ending::Report::closed, {}, peer_closing_ ? WorkStatus::flushed : WorkStatus::receiver_not_ready});
}

void OrderlyEnd::connection_ends() {
  engine_.cancel_timer(linger_timer_);
}

void OrderlyEnd::reset() {
  peer_closing_ = false;
  awaited_.reset();
}

void OrderlyEnd::destroy() {
  engine_.cancel_task(look_task_);
}

}  // namespace anydat::nic::soft
