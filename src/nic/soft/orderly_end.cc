// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/orderly_end.h"

#include <utility>

#include "env/log.h"
#include "nic/soft/queue_pair.h"

namespace anydat::nic::soft {

OrderlyEnd::OrderlyEnd(SoftQueuePair& queue_pair) : queue_pair_(queue_pair), sends_(queue_pair.sends()) {}

void OrderlyEnd::begin() {
  sends_.enter(ConnectionState::draining);
  linger();
  finish_if_drained();
}

void OrderlyEnd::peer_ends() {
  if (std::exchange(peer_closing_, true)) return;  // it does not begin anew, nor the time for it
  if (still_to_be_delivered()) {
    linger();
  } else {
    finish();
  }
}

bool OrderlyEnd::still_to_be_delivered() {
  // A program that has asked for the end itself has no more buffers to post.
  if (sends_.state() == ConnectionState::draining) return !arrivals_over();
  return queue_pair_.connection().stream()->holds_messages() || !queue_pair_.receives().arriving().empty();
}

void OrderlyEnd::linger() {
  const os::Nanoseconds now = os::now_ns();
  patience_ = Patience(kEndIdle, kEndTotal, now);
  owed_ = owed();
  queue_pair_.connection().engine().set_timer(linger_timer_, patience_.next_look(now));
}

void OrderlyEnd::look() {
  const os::Nanoseconds now = os::now_ns();
  const Owed before = std::exchange(owed_, owed());
  if (owed_ != before) patience_.progress(now);
  if (patience_.over(now)) {
    if (peer_closing_ && still_to_be_delivered()) {
      env::log(env::LogLevel::warn,
               "a connection that the peer has ended in order loses messages that have arrived: no receive buffer was "
               "there for them in time");
    }
    finish();
  } else {
    queue_pair_.connection().engine().set_timer(linger_timer_, patience_.next_look(now));
    finish_if_drained();
  }
}

OrderlyEnd::Owed OrderlyEnd::owed() {
  Owed now;
  now.untaken = queue_pair_.connection().stream()->untaken();
  now.received = sends_.counters().all_receives();
  now.placed = queue_pair_.receives().arriving().placed_of_next();
  now.sent = sends_.progressed();
  return now;
}

void OrderlyEnd::delivered_everything() {
  if (peer_closing_ && queue_pair_.receives().arriving().empty()) finish();
}

// What an orderly end of this side waits for when all is sent, or nothing more can be: the messages that have their
// buffers by then, so that they are delivered, and no later ones, or a peer that goes on sending could hold it up. One
// that has ended in order sends no more.
bool OrderlyEnd::arrivals_over() {
  if (queue_pair_.connection().stream()->awaits_memory_for_backlog()) return false;
  if (peer_closing_) return queue_pair_.receives().arriving().empty();
  if (!awaited_) awaited_ = queue_pair_.receives().arriving().newest();
  return queue_pair_.receives().arriving().finished() >= *awaited_;
}

// Not at once: the stream is in the middle of it, and may have more to deliver.
void OrderlyEnd::look_soon() {
  queue_pair_.connection().engine().add_task(look_task_);
}

void OrderlyEnd::finish_if_drained() {
  if (sends_.state() == ConnectionState::draining && (peer_closing_ || sends_.idle()) && arrivals_over()) finish();
}

// All is sent, all is received, or the side that had to do its part took too long.
void OrderlyEnd::finish() {
  if (!stands(sends_.state())) return;
  if (sends_.state() == ConnectionState::draining && !peer_closing_) {
    queue_pair_.connection().stream()->close(CloseReason::graceful);
  }
  queue_pair_.connection().end(
      {Ending::Report::closed, {}, peer_closing_ ? WorkStatus::flushed : WorkStatus::receiver_not_ready});
}

void OrderlyEnd::connection_ends() {
  queue_pair_.connection().engine().cancel_timer(linger_timer_);
}

void OrderlyEnd::reset() {
  peer_closing_ = false;
  awaited_.reset();
}

void OrderlyEnd::destroy() {
  queue_pair_.connection().engine().cancel_task(look_task_);
}

}  // namespace anydat::nic::soft
