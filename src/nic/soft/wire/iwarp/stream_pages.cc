// SPDX-License-Identifier: BSD-3-Clause
// Memory of this process that is not there when a connection over TCP is to read or write it (nic/soft/own_pages.h).
//
// What arrives for pages that are not there stays where it has been read to, and nothing more is read. A peer that
// hangs up meanwhile is waited for no longer than kMemoryPatience: how it ends comes behind all that it sent.
#include <algorithm>
#include <array>

#include "base/log.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

namespace {

// From the moment at which the peer has hung up. As long as a peer that leaves in order waits for progress.
constexpr base::Nanoseconds kMemoryPatience = 2'000'000'000;

}  // namespace

// Otherwise it is awaited.
bool TcpStream::can_be_written(std::span<const iovec> pieces) {
  if (targets_.there(pieces, read_at_)) [[likely]]
    return true;
  awaits_memory_ = true;
  if (hung_up_) limit_wait_for_memory();
  return false;
}

bool TcpStream::next_buffer_surely_there(std::size_t bytes) {
  const Segment* const only = queue_pair_.receives().buffers().next_piece();
  return only && targets_.surely_there(only->address, std::min<std::uint64_t>(bytes, only->length), true, read_at_);
}

bool TcpStream::next_buffer_there(std::size_t bytes) {
  if (next_buffer_surely_there(bytes)) [[likely]]
    return true;
  std::array<iovec, kSegmentsMax> pieces;
  const std::size_t used = queue_pair_.receives().buffers().aim_next(bytes, pieces);
  return used == 0 || can_be_written(std::span(pieces).first(used));
}

// Where the answer to an atomic operation puts what the word was.
bool TcpStream::result_there() {
  std::array<iovec, kSegmentsMax> pieces;
  const std::size_t used = queue_pair_.initiator().aim_atomic(pieces);
  return used == 0 || can_be_written(std::span(pieces).first(used));
}

void TcpStream::wants_pages() {
  fabric_.come_back(turn_);
}

// What waits looks again, and meets what the memory has become.
void TcpStream::pages_brought(const OwnPages&, const OwnPages::Brought& news) {
  if (closed_ || !std::exchange(awaits_memory_, false)) return;
  fabric_.engine().cancel_timer(memory_patience_);
  if (news.there) {
    resume_receiving();
    read_on();
    return;
  }
  base::log(base::LogLevel::warn, "a connection over TCP is cut: memory for what arrives cannot be written any more");
  if (Incoming* const begun = waiting_.begun()) {
    waiting_.set_begun(nullptr);
    queue_pair_.receives().fail(*begun, WorkStatus::local_protection);
  } else if (reader_.step() == Step::payload && reader_.into() == Into::memory) {
    refuse(ddp_error::kBaseOrBounds, CloseReason::remote_access);
  } else if (reader_.step() == Step::payload && reader_.into() == Into::read) {
    reader_.go_into(Into::nothing);
    requester_.read_failed();
    if (closed_) return;
    read_on();
  } else if (reader_.step() == Step::payload && reader_.header().opcode == Opcode::atomic_response) {
    requester_.atomic_failed();
    if (closed_) return;
    read_on();
  } else if (messages_.current()) {
    queue_pair_.receives().fail(*messages_.current(), WorkStatus::local_protection);
  } else {
    // It is that of the receive for the next message, which is flushed with the others.
    prepare_last_words_on_message(rdmap_error::kStreamCatastrophic);
    queue_pair_.connection().break_off(WorkStatus::flushed, CloseReason::local_error);
  }
}

void TcpStream::limit_wait_for_memory() {
  if (!memory_patience_.pending()) {
    fabric_.engine().set_timer(memory_patience_, base::now_ns() + kMemoryPatience);
  }
}

// What arrives is lost, and with it the connection; but the peer may have said how it ends.
void TcpStream::give_memory_up() {
  if (closed_ || !std::exchange(awaits_memory_, false)) return;
  base::log(base::LogLevel::warn,
            "the peer of a connection over TCP has gone, and memory for what it sent has not come in time");
  discards_ = true;
  reader_.go_into(Into::nothing);
  waiting_.set_begun(nullptr);
  waiting_.parked().clear();
  read_on();
}

void TcpStream::end_discarded() {
  if (reader_.header().opcode == Opcode::terminate) {
    terminated(reader_.control().first(std::min(reader_.payload_bytes(), reader_.control().size())));
  } else if (reader_.header().opcode == Opcode::write && reader_.payload_bytes() == 0 &&
             reader_.header().stag == kSignalStag) {
    const bool graceful = reader_.header().tagged_offset == (static_cast<std::uint64_t>(Signal::goodbye) << 32 |
                                                             static_cast<std::uint32_t>(CloseReason::graceful));
    if (graceful) {
      // It left in order, but not all of what it sent has been delivered.
      closed_ = true;
      queue_pair_.connection().peer_lost(WorkStatus::transport);
    } else {
      signalled(reader_.header().tagged_offset);
    }
  }
}

}  // namespace anydat::nic::soft::iwarp
