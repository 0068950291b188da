// SPDX-License-Identifier: BSD-3-Clause
// Messages over TCP that wait for a receive buffer.
//
// While the first of them has waited for less than a moment, nothing behind it is looked at: the buffer is most likely
// about to be posted. After that, what is behind it is taken in as far as the bounds allow, so that Writes and answers
// to Reads pass; until there are buffers again.
#include <algorithm>
#include <utility>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

namespace {

// How long a message waits for a buffer before what is behind it is looked at.
constexpr base::Nanoseconds kPatience = 1'000'000;
// Of messages without a buffer. What has been read from the socket before that is known comes on top.
constexpr std::size_t kParkedMax = 1 << 20;
// The same when many do it, and all that they keep together is as much as they may (ParkedTogether).
constexpr std::size_t kParkedByManyMax = 64 << 10;
// And when the peer has hung up: the word of how it ends comes behind all that it sent, which is no more than sockets
// hold.
constexpr std::size_t kParkedAtEndMax = 16 << 20;

}  // namespace

// Nothing more is read for now. Whatever it is for, its end has the reading go on.
bool TcpStream::reads_no_more() {
  if (stuck_ || awaits_memory_) return true;
  if (parked_.empty()) return false;
  if (hung_up_) return parked_.cost() >= kParkedAtEndMax;
  if (!looks_past_ || parked_.cost() >= kParkedMax) return true;
  if (parked_.cost() < kParkedByManyMax || !fabric_.parked().full()) return false;
  fabric_.parked().wait_for_room(turn_);
  return true;
}

// The segment that is arriving begins a message that there is no buffer for.
void TcpStream::wait_for_buffer(bool solicited) {
  if (looks_past_ || hung_up_) {
    parked_.add(solicited, reader_.header().stag);
  } else {
    stuck_ = true;
    be_patient();
  }
  receives_.wait_for_buffer();
}

void TcpStream::be_patient() {
  waits_since_ = base::now_ns();
  // One that is set already does: it looks how long this has lasted.
  if (!patience_.pending()) fabric_.engine().set_timer(patience_, waits_since_ + kPatience);
}

void TcpStream::patience_ended() {
  if (closed_ || !holds_messages()) return;
  if (base::now_ns() - waits_since_ < kPatience) {
    fabric_.engine().set_timer(patience_, waits_since_ + kPatience);
  } else {
    look_past();
  }
}

void TcpStream::look_past() {
  if (closed_ || !holds_messages()) return;
  looks_past_ = true;
  if (stuck_) or_break([this] { go_on(); });
  if (closed_) return;
  looks_past_ = holds_messages();
  // There may have been buffers by now, of which the peer has to have word, though nothing may come any more.
  read_on();
}

// What was read behind a segment that is stuck, or behind the last message of this turn.
void TcpStream::hold(std::span<const std::byte> bytes) {
  if (held_.capacity() == 0) held_ = fabric_.take_spare();
  held_.assign(bytes.begin(), bytes.end());
  held_from_ = 0;
}

void TcpStream::drop_held() {
  held_from_ = 0;
  fabric_.give_spare(std::exchange(held_, {}));
}

// The segment that was stuck has another chance, and what is held behind it.
void TcpStream::go_on() {
  stuck_ = false;
  enter_segment();
  if (current_) receives_.stop_waiting();
  if (!stuck_ && !closed_) take_held();
}

// What was read before and could not be delivered then.
void TcpStream::take_held() {
  turn_.begin_held();
  // The end of the connection drops what is held, and may come while it is being read.
  std::vector<std::byte> held = std::exchange(held_, {});
  const std::size_t from = std::exchange(held_from_, 0);
  const std::size_t rest = consume(std::span<const std::byte>(held).subspan(from)).size();
  fabric_.adapter().batch().flush();
  if (rest > 0 && (stuck_ || turn_.over() || awaits_memory_) && !closed_) {
    held_from_ = held.size() - rest;
    held_ = std::move(held);
  } else {
    fabric_.give_spare(std::move(held));
  }
}

void TcpStream::drop_parked() {
  stuck_ = false;
  fabric_.engine().cancel_timer(patience_);
  drop_held();
  fabric_.parked().forget(turn_);
  parked_.clear();
}

void TcpStream::resume_receiving() {
  looks_past_ = false;
  read_at_ = fabric_.engine().ticks();
  or_break([this] {
    deliver_parked();
    if (!closed_ && parked_.empty() && stuck_) go_on();
  });
  if (closed_) return;
  if (owes_word_) confirm();
  if (!holds_messages()) {
    queue_pair_.connection().orderly_end().delivered_everything();
  } else if (!stuck_) {
    be_patient();
  }
  if (!closed_) queue_pair_.connection().orderly_end().message_finished();  // not only by ReceiveSide::finish()
  if (!closed_ && !reads_no_more()) read_on();
}

// False: there is no buffer for it now.
bool TcpStream::deliver_invalidating(const Parked::Message& message) {
  Incoming* const incoming = receives_.begin(message.bytes.size(), message.solicited);
  if (!incoming) return closed_;
  incoming->invalidate(message.invalidates);
  if (!receives_.place(*incoming, message.bytes.data(), message.bytes.size())) return true;
  if (queue_pair_.connection().windows().make_ready(*incoming) == WindowOperations::Readiness::yes) {
    receives_.finish(*incoming);
  } else {
    refuse_parked(rdmap_error::kCannotInvalidate, CloseReason::remote_access);
  }
  return true;
}

void TcpStream::deliver_parked() {
  while (!closed_ && !parked_.empty() && !current_) {
    Parked::Message& message = parked_.oldest();
    if (awaits_memory_) return;
    if (!message.immediate) {
      const bool there = next_buffer_there(message.bytes.size());
      fabric_.adapter().batch().flush();
      if (!there) return;
    }
    if (message.whole) {
      const std::size_t length = message.immediate ? 0 : message.bytes.size();
      const ImmediateData data = message.immediate ? parse_immediate(message.bytes) : ImmediateData{};
      const bool taken = message.immediate ? receives_.deliver_immediate(data.length, data.value, message.solicited)
                         : message.invalidates != 0
                             ? deliver_invalidating(message)
                             : receives_.deliver(message.bytes.data(), message.bytes.size(), message.solicited);
      // One by one: each may be the last for want of a buffer.
      fabric_.adapter().batch().flush();
      if (closed_) return;
      if (!taken) {
        receives_.wait_for_buffer();
        return;
      }
      receives_.stop_waiting();
      message_delivered(length);
    } else {
      // The rest of it is still arriving, and the segment that is may reach further than what is here.
      const bool amid_segment = reader_.amid_message();
      const std::uint64_t length = message_bytes_ + (amid_segment ? reader_.payload_bytes() : 0);
      current_ = receives_.begin(std::max<std::uint64_t>(length, message.bytes.size()), message.solicited);
      if (closed_) return;
      if (!current_) {
        receives_.wait_for_buffer();
        return;
      }
      receives_.stop_waiting();
      if (message.invalidates != 0) current_->invalidate(message.invalidates);
      if (!receives_.place(*current_, message.bytes.data(), message.bytes.size())) return;
    }
    parked_.drop_oldest();
  }
}

}  // namespace anydat::nic::soft::iwarp
