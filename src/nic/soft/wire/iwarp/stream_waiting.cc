// SPDX-License-Identifier: BSD-3-Clause
// Messages over TCP that wait for a receive buffer, and get one (nic/soft/wire/iwarp/buffer_wait.h).
#include <algorithm>
#include <array>
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
  queue_pair_.receives().not_ready().wait_for_buffer();
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
  if (current_) queue_pair_.receives().not_ready().stop_waiting();
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

void TcpStream::deliver_parked() {
  while (!closed_ && !waiting_.parked().empty() && !current_ && !awaits_memory_) {
    Parked::Message& message = waiting_.parked().oldest();
    const std::size_t bytes = message.bytes.size();
    if (message.immediate) {
      const ImmediateData data = parse_immediate(message.bytes);
      if (!has_buffer(queue_pair_.receives().deliver_immediate(data.length, data.value, message.solicited))) return;
      message_delivered(0);
    } else if (message.whole && message.invalidates == 0 && !waiting_.begun() && next_buffer_surely_there(bytes)) {
      if (!has_buffer(queue_pair_.receives().deliver(message.bytes.data(), bytes, message.solicited))) return;
      message_delivered(bytes);
    } else {
      if (!begin_parked(message)) return;
      Incoming& incoming = *waiting_.begun();
      std::array<iovec, kSegmentsMax> pieces;
      if (!can_be_written(std::span(pieces).first(queue_pair_.receives().aim(incoming, bytes, pieces)))) return;
      waiting_.set_begun(nullptr);
      if (!place_parked(message, incoming)) return;
    }
    waiting_.parked().drop_oldest();
  }
}

// Of a message that has been given to the receive side. False: it waits for a buffer, or the connection is over.
bool TcpStream::has_buffer(bool taken) {
  // One by one: each may be the last for want of a buffer.
  fabric_.adapter().batch().flush();
  if (closed_) return false;
  if (taken) {
    queue_pair_.receives().not_ready().stop_waiting();
  } else {
    queue_pair_.receives().not_ready().wait_for_buffer();
  }
  return taken;
}

// The buffer is its own before it is known whether its memory is there: the next one is another's.
bool TcpStream::begin_parked(Parked::Message& message) {
  if (waiting_.begun()) return true;
  std::uint64_t length = message.bytes.size();
  if (!message.whole) {
    // The rest of it is still arriving, and the segment that is may reach further than what is here.
    const std::uint64_t segment = reader_.amid_message() ? reader_.payload_bytes() : 0;
    length = std::max(message_bytes_ + segment, length);
  }
  Incoming* const incoming = queue_pair_.receives().begin(length, message.solicited);
  if (!has_buffer(incoming != nullptr)) return false;
  if (message.invalidates != 0) incoming->invalidate(message.invalidates);
  waiting_.set_begun(incoming);
  return true;
}

// False: the connection has broken.
bool TcpStream::place_parked(const Parked::Message& message, Incoming& incoming) {
  if (!queue_pair_.receives().place(incoming, message.bytes.data(), message.bytes.size())) return false;
  if (!message.whole) {
    current_ = &incoming;
    return true;
  }
  if (queue_pair_.connection().windows().make_ready(incoming) != WindowOperations::Readiness::yes) {
    refuse_parked(rdmap_error::kCannotInvalidate, CloseReason::remote_access);
    return false;
  }
  const bool stands = queue_pair_.receives().finish(incoming);
  if (stands) message_delivered(message.bytes.size());
  return stands;
}

}  // namespace anydat::nic::soft::iwarp
