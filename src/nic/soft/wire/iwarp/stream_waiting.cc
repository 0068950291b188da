// SPDX-License-Identifier: BSD-3-Clause
// Messages over TCP that wait for a receive buffer, and get one (nic/soft/wire/iwarp/buffer_wait.h).
#include <algorithm>
#include <utility>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

// Nothing more is read for now. Whatever it is for, its end has the reading go on.
bool TcpStream::reads_no_more() {
  return awaits_memory_ || waiting_.reads_no_more(hung_up_);
}

// The segment that is arriving begins a message that there is no buffer for.
void TcpStream::wait_for_buffer(bool solicited) {
  if (waiting_.looks_past() || hung_up_) {
    waiting_.parked().add(solicited, reader_.header().stag);
  } else {
    waiting_.set_stuck(true);
    waiting_.be_patient();
  }
  queue_pair_.receives().wait_for_buffer();
}

void TcpStream::look_past() {
  if (closed_ || !holds_messages()) return;
  waiting_.set_looks_past(true);
  if (waiting_.stuck()) or_break([this] { go_on(); });
  if (closed_) return;
  waiting_.set_looks_past(holds_messages());
  // There may have been buffers by now, of which the peer has to have word, though nothing may come any more.
  read_on();
}

// The segment that was stuck has another chance, and what is held behind it.
void TcpStream::go_on() {
  waiting_.set_stuck(false);
  enter_segment();
  if (current_) queue_pair_.receives().stop_waiting();
  if (!waiting_.stuck() && !closed_) take_held();
}

// What was read before and could not be delivered then.
void TcpStream::take_held() {
  turn_.begin_held();
  // The end of the connection drops what is held, and may come while it is being read.
  BufferWait::Held held = waiting_.take_held();
  const std::size_t rest = consume(held.rest()).size();
  fabric_.adapter().batch().flush();
  if (rest > 0 && (waiting_.stuck() || turn_.over() || awaits_memory_) && !closed_) {
    waiting_.hold_on(std::move(held), rest);
  } else {
    waiting_.let_go(std::move(held));
  }
}

void TcpStream::resume_receiving() {
  waiting_.set_looks_past(false);
  read_at_ = fabric_.engine().ticks();
  or_break([this] {
    deliver_parked();
    if (!closed_ && waiting_.parked().empty() && waiting_.stuck()) go_on();
  });
  if (closed_) return;
  if (owes_word_) confirm();
  if (!holds_messages()) {
    queue_pair_.connection().orderly_end().delivered_everything();
  } else if (!waiting_.stuck()) {
    waiting_.be_patient();
  }
  if (!closed_) queue_pair_.connection().orderly_end().message_finished();  // not only by ReceiveSide::finish()
  if (!closed_ && !reads_no_more()) read_on();
}

// False: there is no buffer for it now.
bool TcpStream::deliver_invalidating(const Parked::Message& message) {
  Incoming* const incoming = queue_pair_.receives().begin(message.bytes.size(), message.solicited);
  if (!incoming) return closed_;
  incoming->invalidate(message.invalidates);
  if (!queue_pair_.receives().place(*incoming, message.bytes.data(), message.bytes.size())) return true;
  if (queue_pair_.connection().windows().make_ready(*incoming) == WindowOperations::Readiness::yes) {
    queue_pair_.receives().finish(*incoming);
  } else {
    refuse_parked(rdmap_error::kCannotInvalidate, CloseReason::remote_access);
  }
  return true;
}

void TcpStream::deliver_parked() {
  while (!closed_ && !waiting_.parked().empty() && !current_) {
    Parked::Message& message = waiting_.parked().oldest();
    if (awaits_memory_) return;
    if (!message.immediate) {
      const bool there = next_buffer_there(message.bytes.size());
      fabric_.adapter().batch().flush();
      if (!there) return;
    }
    if (message.whole) {
      const std::size_t length = message.immediate ? 0 : message.bytes.size();
      const ImmediateData data = message.immediate ? parse_immediate(message.bytes) : ImmediateData{};
      const bool taken =
          message.immediate ? queue_pair_.receives().deliver_immediate(data.length, data.value, message.solicited)
          : message.invalidates != 0
              ? deliver_invalidating(message)
              : queue_pair_.receives().deliver(message.bytes.data(), message.bytes.size(), message.solicited);
      // One by one: each may be the last for want of a buffer.
      fabric_.adapter().batch().flush();
      if (closed_) return;
      if (!taken) {
        queue_pair_.receives().wait_for_buffer();
        return;
      }
      queue_pair_.receives().stop_waiting();
      message_delivered(length);
    } else {
      // The rest of it is still arriving, and the segment that is may reach further than what is here.
      const bool amid_segment = reader_.amid_message();
      const std::uint64_t length = message_bytes_ + (amid_segment ? reader_.payload_bytes() : 0);
      current_ = queue_pair_.receives().begin(std::max<std::uint64_t>(length, message.bytes.size()), message.solicited);
      if (closed_) return;
      if (!current_) {
        queue_pair_.receives().wait_for_buffer();
        return;
      }
      queue_pair_.receives().stop_waiting();
      if (message.invalidates != 0) current_->invalidate(message.invalidates);
      if (!queue_pair_.receives().place(*current_, message.bytes.data(), message.bytes.size())) return;
    }
    waiting_.parked().drop_oldest();
  }
}

}  // namespace anydat::nic::soft::iwarp
