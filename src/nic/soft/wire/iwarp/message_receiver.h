// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/soft/queue_pair.h"
#include "nic/soft/wire/iwarp/format/ddp.h"
#include "nic/soft/wire/iwarp/outgoing_half.h"
#include "nic/soft/wire/iwarp/receive_backlog.h"

namespace anydat::nic::soft::iwarp {

class TcpStream;

// Messages that come over TCP, which are Sends and immediate data: in their order, each goes into its receive buffer as
// its segments arrive, and is delivered with the last of them, if nothing before it waits for a buffer. Those that wait
// are kept by BufferWait, and delivered here when they have one. A peer of our kind is told what has been delivered:
// its large Sends complete with that.
//
// With the engine held. Lives and dies with its stream.
class MessageReceiver {
 public:
  explicit MessageReceiver(TcpStream& stream) : stream_(stream) {}
  MessageReceiver(const MessageReceiver&) = delete;
  MessageReceiver& operator=(const MessageReceiver&) = delete;

  // ---- what arrives, from the next byte of a frame on, or a segment whose header the reader has
  std::size_t deliver_whole(std::span<const std::byte> bytes);
  void begin_send();
  void send_ended();
  void begin_immediate();
  void immediate_ended();

  // ---- the message that is arriving; null: none, or it has no buffer
  Incoming* current() const { return current_; }
  void forget_current() { current_ = nullptr; }
  void region_removed();

  void deliver_backlog();  // as far as there are buffers

  // ---- what the peer is told of
  std::uint32_t delivered() const { return sends_delivered_; }
  void confirm_delivered() {
    if (owes_word_) confirm();
  }
  void say_last(OutgoingHalf& outgoing) ANYDAT_REQUIRES(outgoing.lock());  // nothing follows

 private:
  ReceiveSide& receives();
  ReceiveBacklog& backlog();  // those that wait for buffers
  std::uint32_t arriving_invalidates();
  bool finish_message(Incoming& message);
  bool has_buffer(bool taken);
  bool begin_from_backlog(ReceiveBacklog::Message& message);
  bool place_from_backlog(const ReceiveBacklog::Message& message, Incoming& incoming);
  void message_delivered(std::uint64_t length);
  void confirm();

  TcpStream& stream_;
  Incoming* current_ = nullptr;
  std::uint64_t message_bytes_ = 0;  // whole segments of the message that is arriving
  std::uint32_t sends_expected_ = kFirstSequence;
  std::uint32_t sends_delivered_ = 0;  // sequence number of the last
  bool owes_word_ = false;             // of what has been delivered
};

}  // namespace anydat::nic::soft::iwarp
