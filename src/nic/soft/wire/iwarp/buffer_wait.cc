// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/buffer_wait.h"

#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

namespace {

// How long a message waits for a buffer before what is behind it is looked at.
constexpr os::Nanoseconds kPatience = 1'000'000;
// Of messages without a buffer. What has been read from the socket before that is known comes on top.
constexpr std::size_t kBacklogMax = 1 << 20;
// The same when many do it, and all that they keep together is as much as they may (ReceiveBacklogs).
constexpr std::size_t kBacklogByManyMax = 64 << 10;
// And when the peer has hung up: the word of how it ends comes behind all that it sent, which is no more than sockets
// hold.
constexpr std::size_t kBacklogAtEndMax = 16 << 20;

}  // namespace

BufferWait::BufferWait(TcpStream& stream) : stream_(stream), backlog_(stream.fabric().backlogs()) {}

// Whatever it is for, its end has the reading go on.
bool BufferWait::reads_no_more() {
  if (stream_.placement().awaits_memory() || blocked_) return true;
  if (backlog_.empty()) return false;
  if (stream_.disconnection().hung_up()) return backlog_.cost() >= kBacklogAtEndMax;
  if (!looks_past_ || backlog_.cost() >= kBacklogMax) return true;
  ReceiveBacklogs& all = stream_.fabric().backlogs();
  if (backlog_.cost() < kBacklogByManyMax || !all.full()) return false;
  all.wait_for_room(stream_.reading_turn());
  return true;
}

void BufferWait::be_patient() {
  since_ = os::now_ns();
  // One that is set already does: it looks how long this has lasted.
  if (!patience_.pending()) stream_.fabric().engine().set_timer(patience_, since_ + kPatience);
}

void BufferWait::patience_ended() {
  if (stream_.over() || !any()) return;
  if (os::now_ns() - since_ < kPatience) {
    stream_.fabric().engine().set_timer(patience_, since_ + kPatience);
  } else {
    look_past();
  }
}

void BufferWait::wait_for_buffer(bool solicited) {
  if (looks_past_ || stream_.disconnection().hung_up()) {
    backlog_.add(solicited, stream_.reader().header().stag);
  } else {
    blocked_ = true;
    be_patient();
  }
  stream_.queue_pair().receives().not_ready().wait_for_buffer();
}

void BufferWait::drop() {
  begun_ = nullptr;
  blocked_ = false;
  stream_.fabric().engine().cancel_timer(patience_);
  let_go(take_stash());
  stream_.fabric().backlogs().forget(stream_.reading_turn());
  backlog_.clear();
}

void BufferWait::look_past() {
  if (stream_.over() || !any()) return;
  looks_past_ = true;
  if (blocked_) stream_.disconnection().or_break([this] { go_on(); });
  if (stream_.over()) return;
  looks_past_ = any();
  // There may have been buffers by now, of which the peer has to have word, though nothing may come any more.
  stream_.reading_turn().want();
}

// The segment that was blocked has another chance, and what is stashed behind it.
void BufferWait::go_on() {
  blocked_ = false;
  stream_.segments().enter();
  if (stream_.messages().current()) stream_.queue_pair().receives().not_ready().stop_waiting();
  if (!blocked_ && !stream_.over()) take_in_stash();
}

void BufferWait::resume() {
  looks_past_ = false;
  stream_.placement().set_read_at(stream_.fabric().engine().ticks());
  stream_.disconnection().or_break([this] {
    stream_.messages().deliver_backlog();
    if (!stream_.over() && backlog_.empty() && blocked_) go_on();
  });
  if (stream_.over()) return;
  stream_.messages().confirm_delivered();
  if (!any()) {
    stream_.queue_pair().connection().orderly_end().delivered_everything();
  } else if (!blocked_) {
    be_patient();
  }
  if (stream_.over()) return;
  stream_.queue_pair().connection().orderly_end().message_finished();  // not only by ReceiveSide::finish()
  if (!stream_.over() && !reads_no_more()) stream_.reading_turn().want();
}

// ---- what was read behind

void BufferWait::stash(std::span<const std::byte> bytes) {
  if (stash_.bytes.capacity() == 0) stash_.bytes = stream_.fabric().staging().take_spare();
  stash_.bytes.assign(bytes.begin(), bytes.end());
  stash_.from = 0;
}

void BufferWait::stash_again(Stash taken, std::size_t count) {
  taken.from = taken.bytes.size() - count;
  stash_ = std::move(taken);
}

void BufferWait::let_go(Stash taken) {
  stream_.fabric().staging().give_spare(std::move(taken.bytes));
}

// What was read before and could not be delivered then.
void BufferWait::take_in_stash() {
  stream_.reading_turn().begin_with_stash();
  // The end of the connection drops the stash, and may come while it is being read.
  Stash taken = take_stash();
  const std::size_t rest = stream_.segments().consume(taken.rest()).size();
  stream_.fabric().adapter().batch().flush();
  if (rest > 0 && (blocked_ || stream_.reading_turn().over() || stream_.placement().awaits_memory()) &&
      !stream_.over()) {
    stash_again(std::move(taken), rest);
  } else {
    let_go(std::move(taken));
  }
}

}  // namespace anydat::nic::soft::iwarp
